/* SPDX-License-Identifier: Apache-2.0
 *
 * tables.h: what a library knows of its job: launch.c, and the outputs of an evaluation.
 */
#ifndef TABLES_H
#define TABLES_H
#include "job.h"

/* A value of the evaluation whose bytes stand until its end: offset in the arena of the stage; elements of a sample. */
typedef struct { const char *name; size_t at; long per; } Output;
#endif
