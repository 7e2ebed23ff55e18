/* SPDX-License-Identifier: Apache-2.0
 *
 * fields.h: fields that several families of models have.
 */
#ifndef FIELDS_H
#define FIELDS_H
#include "hf.h"

/* rotary positions: in their old form, and that of transformers 5 */
#define ROPE(base) \
    {"rope_parameters.rope_theta", REAL, "theta", "", NULL}, \
    {"rope_theta", REAL, "theta", base, NULL}, \
    {"rope_parameters.rope_type", WORD, "scaling", "", "default: linear:linear llama3:llama3"}, \
    {"rope_scaling.rope_type", WORD, "scaling", "", "default: linear:linear llama3:llama3"}, \
    {"rope_scaling.type", WORD, "scaling", "", "default: linear:linear llama3:llama3"}, \
    {"rope_parameters.factor", REAL, "factor", "", NULL}, {"rope_scaling.factor", REAL, "factor", "", NULL}, \
    {"rope_parameters.low_freq_factor", REAL, "low", "", NULL}, {"rope_scaling.low_freq_factor", REAL, "low", "", NULL}, \
    {"rope_parameters.high_freq_factor", REAL, "high", "", NULL}, {"rope_scaling.high_freq_factor", REAL, "high", "", NULL}, \
    {"rope_parameters.original_max_position_embeddings", INT, "original", "", NULL}, \
    {"rope_scaling.original_max_position_embeddings", INT, "original", "", NULL}, \
    ROPE_LINE

#define ROPE_LINE \
    {NULL, LET, "rope", "width: W@?turned|, dims: $@, theta: @theta@@?adjacent|, pairs: adjacent@@?scaling|, scaling: $@" \
                        "@?factor|, factor: $@@?low|, low: $@@?high|, high: $@@?original|, original: $@", NULL}

/* The part of each head that is turned. */
#define PART(otherwise) \
    {"rope_parameters.partial_rotary_factor", REAL, "part", "", NULL}, \
    {"partial_rotary_factor", REAL, "part", otherwise, NULL}, \
    {NULL, INT, "turned", "ceil(W*part-0.999)", NULL}

/* A context of more than 2048 positions is for a model that has to be trained so: -D T=N. */
#define CONTEXT(most) \
    {"max_position_embeddings", INT, "P", most, NULL}, \
    {NULL, INT, "T", "min(P, 2048)", NULL}, \
    {NULL, INT, "large", "max(V-65536, 0)", NULL}
#endif
