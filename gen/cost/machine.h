/* SPDX-License-Identifier: Apache-2.0
 *
 * machine.h: everything on this machine that measured times depend on.
 */
#ifndef MACHINE_H
#define MACHINE_H
#include "model.h"

const char *machine_cpu(void);
const char *machine_isa(void);                      /* the highest level of x86-64 that it has; NULL: it is another machine */
const char *machine_lacks(const char *isa);         /* the level it has, if kernels of isa cannot run here; else NULL */
void machine_compiler(const Model *m, const char **compiler, const char **kernels);   /* and versions of both */
const char *machine_runtime(void);                  /* hash of what is linked and how */
#endif
