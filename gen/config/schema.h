/* SPDX-License-Identifier: Apache-2.0
 *
 * schema.h: a section of the model file is a table of fields; a field names its key, who reads it and where it goes.
 */
#ifndef SCHEMA_H
#define SCHEMA_H
#include "graph.h"

typedef struct Field Field;
typedef struct {                /* a value about to be read */
    Model *m;
    const Field *field;
    const char *path;           /* train.optimizer.lr, for messages */
    Node *value;
    void *to;
} Spot;
struct Field {
    const char *key;
    void (*read)(const Spot *s);
    size_t at;                  /* offset in the structure that the section fills */
    double lo, hi;              /* numbers */
    const char *words;          /* choices, a space between two */
};
#define COUNT(array) ((int)(sizeof (array) / sizeof *(array)))

/* Read every key of a map, if there is one, by its field, in the order of the file; keys without a field are mistakes. */
void section(Model *m, Node *map, const char *path, const Field *fields, int n, void *to);
/* The value is of that kind, or a mistake was named. */
bool want(const Spot *s, NodeKind kind, const char *what);
Node *want_key(Node *map, const char *key, const char *path);   /* named as a mistake if absent */
bool is_word(const Node *node, const char *word);               /* that plain scalar */
bool name_check(const Node *node, const char *what, bool dashes);  /* letters, digits, _ and . : fit for a file and for C */
bool number_lookup(void *m, const char *name, double *value);   /* dims */
const Spot *spot_as(const Spot *s, const Field *field, void *to);               /* the same value, by another field */
const Spot *spot_to(const Spot *s, void *to);                                   /* ... to be written there */
const Spot *spot_item(const Spot *list, int i, const Field *field, void *to);
const Spot *spot_key(const Spot *map, int i, const Field *field, void *to);

/* Readers: what they write. */
void read_int(const Spot *s);           /* int64_t in [lo, hi] */
void read_count(const Spot *s);         /* int in [lo, hi] */
void read_float(const Spot *s);         /* double in [lo, hi] */
void read_below(const Spot *s);         /* double in [lo, hi) */
void read_above(const Spot *s);         /* double in (lo, hi] */
void read_counts(const Spot *s);        /* Ints: a list of numbers in [lo, hi]; words: what is expected */
void read_pair(const Spot *s);          /* two doubles in [lo, hi], one behind the other */
void read_pair_below(const Spot *s);    /* ... in [lo, hi) */
/* A list of two: false, and a mistake was named.  form: what is expected; kind: of what the two are; hint: the remedy. */
bool read_two(const Spot *s, const char *form, const char *kind, const char *hint, void (*read)(const Spot *), size_t size);
void read_true(const Spot *s);          /* bool: true or false */
void read_choice(const Spot *s);        /* int: position in words */
void read_second(const Spot *s);        /* bool: the second of two words */
void read_word(const Spot *s);          /* const char *: one of words */
void read_built(const Spot *s);         /* the same, but only the first `hi` of the words are built */
void read_nothing(const Spot *s);       /* nothing: it has been read before */
void read_fixed(const Spot *s);         /* nothing: one of words, which dpgen does anyway */
void read_name(const Spot *s);          /* const char *; letters, digits, _ and . */
void read_title(const Spot *s);         /* const char *; - too */
void read_text(const Spot *s);          /* const char *, not empty */
void read_texts(const Spot *s);         /* Strs: one text or a list of them; lo above 0: not an empty one */
void read_bytes(const Spot *s);         /* Bytes, not below lo: 24GiB */
void read_rate(const Spot *s);          /* double: 300GB/s */
void read_flops(const Spot *s);         /* double: 1.2TFLOP/s */
void read_time(const Spot *s);          /* Ns: 2.5us */

void read_schedule_row(const Spot *s);  /* read_built, or a row of the user's: PlanSpec.schedule, row */

/* The sections: train.c, devices.c, links.c, weights.c, override.c */
void model_train(Model *m, Node *node);
void model_data(Model *m, Node *node);
void model_checkpoint(Model *m, Node *node);
void model_weights(Model *m, Node *node);
void model_adapt(Model *m, Node *node);
void model_quantize(Model *m, Node *node);
void model_report(Model *m, Node *node);
void model_devices(Model *m, Node *node);
void model_hosts(Model *m, Node *node);
void model_links(Model *m, Node *node);
enum { MOST_TEAM = 16 };                            /* as many as sums have blocks */
void read_some(const Spot *s, int *to, bool *any);  /* a number, or auto */
void read_widths(const Spot *s);                    /* widths.c, and once stages and replicas are read */
void widths_end(Model *m, const Node *plan);
void widths_check(const Model *m);                  /* does it go with the rest of plan? */
void read_tensor(const Spot *s);                    /* tensor.c: plan.tensor, and once the rest of plan is read, its devices */
void tensor_end(Model *m);
void model_plan(Model *m, Node *node);
void model_mode(Model *m, Node *root);        /* infer.c: plan.mode, once all sections are read */
bool device_known(const Model *m, const char *name, size_t n);
void override(Node *root, const Overrides *over);
#endif
