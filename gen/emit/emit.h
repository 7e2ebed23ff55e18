/* SPDX-License-Identifier: Apache-2.0
 *
 * emit.h: what the files of gen/emit share.
 */
#ifndef EMIT_H
#define EMIT_H
#include "plan.h"
#include "base/folder.h"
#include "base/quote.h"

/* names.c: C identifiers, unique in one stage */
typedef struct { Strs taken; } Idents;
const char *name_new(Idents *n, const char *path);   /* from h.3.attn: h_3_attn; a clash gets a number */

/* stage.c launch.c archive.c build.c */
void emit_stage(FILE *f, const Plan *p, int device);
void emit_open(FILE *f, const Plan *p, int device);  /* open.c */
void emit_launch(FILE *f, const Plan *p, const char *prefix, const char *plan_hash);
void emit_plan_json(FILE *f, const Plan *p);
void emit_trace(FILE *f, const Plan *p);
void emit_report(FILE *f, const Plan *p, const char *plan_hash);    /* report.c */
extern const char report_mark[];                    /* in that page: where what a run measured is put */
void emit_build(Out *o, const Plan *p, const char *prefix);
const char *action_text(const Plan *p, const Action *k);    /* F chunk 0, micro-batch 3 */
const char *emit_piece(Piece piece, int phase);     /* period_3; step */
const char *covers_text(const Plan *p, int device);         /* its first .. last operator; several runs of them */
int emit_rank(const Plan *p, int device);           /* of MPI: devices used are ranks in the order of the model file */
bool emit_cuda(const Plan *p);                      /* stages on GPUs: rt/cuda/, rt/op/cuda/ */
bool emit_paced(const Plan *p);                     /* kernels that only wait: rt/pace.c */
const char *emit_kernels(const Plan *p);            /* portable, onednn, paced */
#endif
