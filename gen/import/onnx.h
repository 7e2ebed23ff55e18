/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx.h: a node of ONNX, for onnx.c, which reads the file, and onnx_ops.c, which knows its operators.
 */
#ifndef ONNX_H
#define ONNX_H
#include "net.h"

typedef struct {
    const char *name;
    double f;
    int64_t i;
    const char *s;
    int tensor;                 /* value; -1: none */
    Numbers list;               /* ints or floats */
} Attribute;
typedef struct {
    const char *op, *name, *domain;
    Ints in;                    /* values; -1: left out */
    Strs out;
    VEC(Attribute) attribute;
} OnnxNode;

/* NULL: it has none */
const Attribute *node_attribute(const OnnxNode *n, const char *name);
int64_t node_integer(const OnnxNode *n, const char *name, int64_t otherwise);
double  node_real(const OnnxNode *n, const char *name, double otherwise);
/* The values of its results, as far as anybody may read them: others are of training. */
void onnx_node(Net *g, const OnnxNode *n, int opset, Ints *results);
/* onnx_fold.c: what only depends on numbers of the file; -1: it does not */
int onnx_fold(Net *g, const OnnxNode *n);
#endif
