/* SPDX-License-Identifier: Apache-2.0
 *
 * C identifiers for the emitted stages.
 *
 * They are the user's names with dots made underscores.  No user text can collide with the language, with rt.h or with the
 * two-letter names of pools and parameters: those are taken from the start, and a name that is taken gets a number.
 */
#include "emit.h"
#include <string.h>

static const char *const reserved[] = {
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float",
    "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof", "static",
    "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "asm", "typeof", "linux", "unix",
    "st", "mb", "acc", "into", "from", "grads", "A", "S", "real", "NULL", "main",
    "action", "step_begin", "step_end", "data_count", "data_load", "send_begin", "recv_begin", "transfer_wait",
    "group_fold", "norm_gather", "fill_zero", "copy_forward", "true", "false", "bool", "errno", "assert", "offsetof",
};

static bool is_taken(const Names *n, const char *name)
{
    size_t len = strlen(name);
    if (len <= 3 && strspn(name, "frbwlxgsua0123456789") == len)
        return true;                                /* a pool's */
    if (len > 2 && (!strcmp(name + len - 2, "_t") || !strncmp(name, "open_", 5) || !strncmp(name, "_", 1)))
        return true;                                /* a type's, a handle's, the implementation's */
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strcmp(reserved[i], name))
            return true;
    for (int i = 0; i < row_count(); i++)
        for (int c = 0; c < 3; c++) {
            const char *call = row(i)->call[c], *at = call ? strstr(call, name) : NULL;
            if (at && at[len] == '(')
                return true;                        /* a kernel's; also refuses its tails, which does no harm */
        }
    for (int i = 0; i < n->taken.n; i++)
        if (!strcmp(n->taken.at[i], name))
            return true;
    return false;
}

const char *name_new(Names *n, const char *path)
{
    char *base = strf("%s", path);
    for (char *c = base; *c; c++)
        if (*c == '.')
            *c = '_';
    const char *name = base;
    for (int k = 2; is_taken(n, name); k++)
        name = strf("%s_%d", base, k);
    *PUSH(&n->taken) = name;
    return name;
}
