/* SPDX-License-Identifier: Apache-2.0
 *
 * emit.h: what the files of gen/emit share.
 */
#ifndef EMIT_H
#define EMIT_H
#include "dpgen.h"

/* out.c: a folder that appears whole or not at all */
typedef struct Out Out;
void  out_check(const char *dir);                   /* ends with a message where out_begin() would */
Out  *out_begin(const char *dir);
FILE *out_open(Out *o, const char *name);           /* printable text; name is fixed by dpgen, at most one folder deep */
void  out_close(Out *o);
void  out_copy(Out *o, const char *name, const char *data, size_t n);
int   out_end(Out *o);                              /* MANIFEST, then into place */
void  out_remove(const char *dir);                  /* a folder, whatever is in it */

/* embed: files of templates/ and rt/, inside the binary; made by tools/embed.c; ends with a NULL name */
typedef struct { const char *name; const char *data; size_t n; } Embedded;
extern const Embedded embedded[];
const Embedded *embedded_find(const char *name);

/* names.c: C identifiers, unique in one stage */
typedef struct { Strs taken; } Idents;
const char *name_new(Idents *n, const char *path);   /* from h.3.attn: h_3_attn; a clash gets a number */

/* stage.c launch.c archive.c build.c */
void emit_stage(FILE *f, const Plan *p, int device);
void emit_open(FILE *f, const Plan *p, int device);  /* open.c */
void emit_launch(FILE *f, const Plan *p, const char *prefix, const char *plan_hash);
void emit_plan_json(FILE *f, const Plan *p);
void emit_trace(FILE *f, const Plan *p);
void emit_report(FILE *f, const Plan *p);            /* report.c */
void emit_build(Out *o, const Plan *p, const char *prefix);
const char *action_text(const Plan *p, const Action *k);    /* F chunk 0, micro-batch 3 */
const char *emit_piece(Piece piece, int phase);     /* period_3; step */
const char *covers_text(const Plan *p, int device);         /* its first .. last operator; several runs of them */
const char *size_text(Bytes n);                     /* 23.61 GiB */
int emit_rank(const Plan *p, int device);           /* of MPI: devices used are ranks in the order of the model file */
bool emit_cuda(const Plan *p);                      /* stages on GPUs: rt/cuda/, rt/op/cuda/ */
bool emit_paced(const Plan *p);                     /* kernels that only wait: rt/pace.c */
const char *emit_kernels(const Plan *p);            /* portable, onednn, paced */
const char *model_hash(const Graph *g);             /* of parameters and forward calls, not of train or plan */
const char *train_hash(const Graph *g, const Model *m);     /* of start values, optimiser, rates and seed */
#endif
