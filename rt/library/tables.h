/* SPDX-License-Identifier: Apache-2.0
 *
 * tables.h: what a library knows of its job: launch.c, and the outputs of an evaluation.
 */
#ifndef TABLES_H
#define TABLES_H
#include "job.h"

/* A value of the evaluation whose bytes stand until its end: the stage that has it, and where in its arena; elements of a
 * sample.  Each replica has a row.  Of a job that infers: its outputs by number, which leave by output_put(). */
typedef struct { const char *name; int stage; size_t at; long per; } Output;
#endif
