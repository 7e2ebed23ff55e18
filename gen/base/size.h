/* SPDX-License-Identifier: Apache-2.0
 *
 * size.h: quantities as people write them: a decimal number and a unit.
 */
#ifndef SIZE_H
#define SIZE_H
#include "base.h"

typedef struct { const char *name; double factor; } Unit;       /* a row without a name ends a table */
extern const Unit size_bytes[];                     /* B, kB, MB, ..., KiB, MiB, ... */

typedef struct { const char *why, *hint; } SizeFault;
/* Rounded down to a whole number, at most 2^60; -1: `fault` says why.  behind: what follows each unit, such as /s. */
double size_read(const char *text, const Unit *units, const char *behind, const char *example, SizeFault *fault);
#endif
