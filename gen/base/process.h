/* SPDX-License-Identifier: Apache-2.0
 *
 * process.h: other programs.
 */
#ifndef PROCESS_H
#define PROCESS_H
#include "base.h"

/* Runs a program; each line of its standard output goes to take(); standard error to the file log, if there is one.  Returns
 * its exit status, 128 + signal, or 127 where it does not start. */
int process_run(const char *const *argv, const char *log, void (*take)(void *ctx, char *line), void *ctx);
/* Calls what is the main() of a program, in a process of its own, which ends without the handlers of this one.  Each line of
 * its standard error goes to take(); standard output is lost.  Returns as process_run() does. */
int process_call(int (*run)(int argc, char **argv), int argc, char **argv, void (*take)(void *ctx, char *line), void *ctx);
const char *process_last(const char *log);          /* last line that says something; "" if none does */

#endif
