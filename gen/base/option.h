/* SPDX-License-Identifier: Apache-2.0
 *
 * option.h: the options of a command as a table: each name, what its value is, and the text of a struct that it fills.  A row
 * without a name ends a table.  A file that is rewritten may be one that is read.
 */
#ifndef OPTION_H
#define OPTION_H
#include "base.h"

/* TAKES_NOTHING sets a bool; what is TAKEN_ELSEWHERE is for others to read. */
typedef enum { TAKES_TEXT, READS_FILE, READS_FOLDER, WRITES_FILE, REWRITES_FILE, WRITES_FOLDER, TAKES_NOTHING,
    TAKEN_ELSEWHERE } OptionKind;
typedef struct { const char *name, *value; OptionKind kind; size_t field; } Option;

/* argv[0] is an option with its value behind it or behind a =: fills it, and returns how many words those were; 0: it is none
 * of the table.  A value that is missing or empty ends dpgen with status 2; so does a file to write that is one to read. */
int option_take(const Option *table, void *to, char **argv);
bool option_is_value(const char *word);             /* neither missing nor empty nor an option */
/* The same of a word that is no option. */
const char *option_word(const char *what, const char *word);
#endif
