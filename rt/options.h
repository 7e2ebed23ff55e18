/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h: a command line as a table, for the programs of a job: each option, the field of a struct that it fills, and its
 * line of --help.  A row without a name ends a table.
 */
#ifndef OPTIONS_H
#define OPTIONS_H
#include "run.h"

/* bool, char *, long, int, double; paths that are read, char * and char **; char * from OUTPUT on: paths that are written */
typedef enum { FLAG, WORD, NUMBER, BYTE, FRACTION, INPUT, INPUTS, OUTPUT, FOLDER, CHECKPOINTS, PUBLISHED,
    BY_STAGE } JobOptionKind;
typedef struct JobOption { const char *name, *value; JobOptionKind kind; size_t field; const char *about; } JobOption;

extern const JobOption options_train[];     /* of options_read() */

/* --help and --version, which come first wherever they stand: the status to end with; -1: go on. */
int options_about(const JobOption *table, const Job *job, const char *does, int argc, char **argv, bool speak);
int options_table(const JobOption *table, void *to, char **argv, bool speak);      /* -1: go on; else STATUS_USAGE */
#endif
