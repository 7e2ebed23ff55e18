/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h: the part of dpgen-verify that reads model.yaml.  It alone needs libyaml, and a folder does not carry it.
 */
#ifndef MODEL_H
#define MODEL_H
#include "../verify.h"

enum { MOST_AXES = 16 };
typedef enum { V_NONE, V_NUMBER, V_LIST } ValKind;
typedef struct { ValKind kind; bool real, loss; int n; int64_t i; double f; int64_t d[MOST_AXES]; } Val;
typedef struct { const char *name; Val val; } Named;
typedef struct Env { Named *at; int n, cap; const struct Env *up; } Env;
const Val *env_get(const Env *e, const char *name);     /* NULL */
void env_set(Env *e, const char *name, Val v);
Val val_int(int64_t i);
int64_t val_size(const Val *l, int from, int to);
Val formula(const Env *e, const char *text, bool absent, const char **fault);   /* absent: a name may be, and is 0 */
Node *yaml_read(const char *path, const char *text, size_t n);

/* ---- model.c, layer.c -------------------------------------------------------------------------------------------------- */
typedef struct { const char *tensor; Val shape; } Value;        /* of a line: a tensor of model.graph */
typedef struct { const char *word; const Value *value; } Word;
typedef LIST(Word) Words;
typedef struct Scope {
    const struct Scope *up;
    const char *path, *block;
    Env env;
    Words value;                /* by the names of `as`, and those that the block receives */
    const Value *first, *last;
} Scope;
typedef struct {
    Graph *g;
    const Folder *folder;
    const Node *root, *model;
    const char *path;           /* of the model file */
    Env dims;
    Words input;
    Map taken, params;          /* names as C has them; PATH.weight: a state */
    const char *unknown;        /* an operator that layers.def lacks */
    bool fp8;                   /* products of Linear may have factors of 8 bits */
    bool infers;                /* plan.mode: no loss, no updates, and all is frozen */
    int outputs;                /* so far */
    int at, losses, lines;      /* the operator of model.graph that is next */
    LIST(Val) momentum, each;   /* of statistics, in their order */
} Model;
_Noreturn void model_fault(const Model *m, const Node *at, const char *format, ...) __attribute__((format(printf, 3, 4)));
double model_number(const Model *m, const Scope *s, const Node *n);
Val model_val(const Model *m, const Scope *s, const Node *n);   /* a number, true or false */
const Value *model_value(const Model *m, const Scope *s, const Node *n);
const char *model_claim(Model *m, const char *path);
const char *model_path(Model *m, const Scope *s, const Node *line, const char *kind);
void model_body(Model *m, Scope *s, const Node *body);
bool model_matches(const Node *patterns, const char *name);
void model_updates(const Model *m);     /* optimizer.c */
/* layer.c: a line with an operator.  What it makes, in the order of its results. */
const char *layer_operand(const char *op, int k, int *n);       /* word of operand k of n; n -1: no such operator */
void layer_line(Model *m, Scope *s, const Node *line, const char *op, const char *path, Words operands, Words *results);
#endif
