/* SPDX-License-Identifier: Apache-2.0
 *
 * events.h: what a job has written, read back: its trace and its log.  JSON through the reader of rt/json.c.
 */
#ifndef EVENTS_H
#define EVENTS_H
#include "base.h"
#include "rt/json.h"

bool json_number(Json *j, double *x);               /* any number; null: not a number */
/* Status 3 at the place of the reader's first error, if there is one. */
void json_stop(const Json *j, const char *path, size_t n, const char *remedy);

/* measured.c: `dpgen report`; the name of what it wrote */
const char *report_measured(const char *dir, const char *trace, const char *out);
/* metrics.c: `dpgen metrics` */
const char *metrics_tensorboard(const char *log, const char *dir);
/* tfevents.c */
void tf_begin(FILE *f, double time);                            /* the version, first record of a file */
void tf_start(FILE *f, double time, int64_t step);              /* a run starts there: what was from that step on is void */
void tf_scalar(FILE *f, double time, int64_t step, const char *tag, double value);
uint32_t tf_crc(const void *data, size_t n);                    /* CRC-32C */
#endif
