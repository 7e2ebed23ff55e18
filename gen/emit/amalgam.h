/* SPDX-License-Identifier: Apache-2.0
 *
 * amalgam.h: several C files as one.
 */
#ifndef AMALGAM_H
#define AMALGAM_H
#include "emit.h"

typedef struct Amalgam Amalgam;
/* The text of a file that stands in it, and its path; NULL: #include "NAME" is left out. */
typedef const char *(*Amalgamated)(const void *with, const char *name, const char **path);
Amalgam *amalgam_new(Amalgamated find, const void *with);
void amalgam_learn(Amalgam *a, const char *file);       /* of each file, before the first is printed */
Strs amalgam_names(const Amalgam *a);                   /* that they have at file level */
void amalgam_begin(Amalgam *a);                         /* then they are printed in the same order */
void amalgam_skip(Amalgam *a, const char *file);        /* it stands there already */
void amalgam_print(Amalgam *a, FILE *f, const char *file);
/* A source and its header whose names others have too: each is a macro meanwhile, so their text stays as it is.  They have no
 * name that is a member of theirs. */
void amalgam_print_apart(Amalgam *a, FILE *f, const char *header, const char *source, int number);
#endif
