/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h: the command line of dpgen.
 */
#ifndef OPTIONS_H
#define OPTIONS_H
#include "profiled/foreign.h"

typedef struct {
    const char *verb, *file, *out, *from, *dump, *profile, *prefix, *devices, *what, *next, *planners, *trace, *tensorboard;
    const char *csv;
    Overrides over;
    Foreign *foreign;           /* --from names a graph of another system */
    ForeignChain chain;         /* objective bottleneck */
    bool json, parameters, quick, estimate, pace, elsewhere, unproved, library, fit;
    Profile *times;             /* main: NULL for estimates */
} Options;

/* Ends with that status, or with 1 where the standard output is lost. */
void options_end(int status) NORETURN;
/* --help, --version and -d ?, behind whatever command: answers and ends with 0. */
void options_answer(int argc, char **argv, const char *commit);
/* Complains and ends with status 2 at the first mistake. */
Options options(int argc, char **argv);
/* Those that change the model file, as words of a shell command, a blank before each. */
const char *options_model(const Options *x);
#endif
