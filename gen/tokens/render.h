/* SPDX-License-Identifier: Apache-2.0
 *
 * render.h: chat templates: values, the tree of a template, and the text that it gives.
 */
#ifndef RENDER_H
#define RENDER_H
#include "base.h"

typedef enum { UNDEFINED, NONE, BOOLEAN, WHOLE, STRING, LISTED, MAPPED } ValueKind;
typedef struct Value Value;
struct Value {
    ValueKind kind;
    int64_t i;                          /* BOOLEAN, WHOLE */
    const char *s;                      /* STRING */
    VEC(Value) at;                      /* LISTED; MAPPED: of each key */
    Strs key;
};
Value value_string(const char *s);
Value value_json(const char *path, const char *text, size_t n);     /* values.c: fail()s where it is none */
const Value *value_member(const Value *map, const char *key);       /* NULL: it has not */
void value_put(Value *map, const char *key, Value v);
bool value_true(const Value *v);
bool value_same(const Value *a, const Value *b);

/* What is between marks.  CALL: of[0] the function or method, then its operands; names are those of the operands */
typedef enum { CONSTANT, NAMED, MEMBER, INDEXED, SLICED, CALL, FILTER, TEST, NOT, NEGATIVE, BINARY, CHOICE, LIST } ExprKind;
typedef struct Expr Expr;
struct Expr { ExprKind kind; Loc loc; const char *name; Value value; VEC(Expr *) of; Strs names; };
typedef enum { TEXT, PRINT, IF, FOR, SET, ANSWER, MACRO } StepKind;
typedef struct Step Step;
typedef VEC(Step *) Steps;
struct Step { StepKind kind; Loc loc; const char *text; Strs names; Expr *value, *when; Steps body, otherwise; };

Steps template_read(const char *path, const char *text);            /* parse.c: err()s at what is no template */

/* render.c: the text for some names and values, and where the answers that a template marks begin and end in it.  err()s at
 * what is outside of the subset; refusal: what the template itself refuses, NULL nothing */
typedef struct { const char *text; Ints from, to; const char *refusal; } Rendered;
Rendered template_render(const Steps *steps, const Value *names);
#endif
