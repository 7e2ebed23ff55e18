/* SPDX-License-Identifier: Apache-2.0
 *
 * names.c: C identifiers for the emitted stages.
 *
 * They are the user's names with dots made underscores.  No user text can collide with the language, with rt.h or with the
 * two-letter names of pools and parameters: a word that is taken gets a number, a name of a family that is taken gets a v_.
 */
#include "emit.h"

static const char *const reserved[] = {
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float",
    "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof", "static",
    "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "asm", "typeof", "linux", "unix",
    "st", "mb", "acc", "into", "from", "grads", "newer", "older", "ahead", "weights", "values", "real", "main", "job", "train",
    "Stage", "Values", "Link", "Loader", "Stages", "StageInfo", "Parameter", "to", "parameter", "predicted", "piece", "pace",
    "action", "version_copy", "step_begin", "step_end", "data_count", "data_load", "send_begin", "recv_begin", "transfer_wait",
    "messages_together",
    "offload_begin", "fetch_begin", "copy_wait", "arena_bytes", "host_bytes",
    "group_fold", "norm_gather", "fill_zero", "copy_forward", "true", "false", "bool", "errno", "assert", "offsetof",
};

/* Whole families: pools (fb, xf0), their slots, types, handles, stages, macros, and what belongs to the implementation. */
static bool is_family(const char *name)
{
    size_t n = strlen(name);
    bool pool = n <= 6 && strspn(name, "frbwlxgsua") == 2 && strspn(name + 2, "0123456789") == n - 2;
    bool single = name[0] == 'o' && n > 1 && strspn(name + 1, "0123456789") == n - 1;   /* pools of one buffer */
    bool type = n > 2 && !strcmp(name + n - 2, "_t");
    bool stage = !strncmp(name, "stage", 5) && strspn(name + 5, "0123456789") > 0;
    bool macro = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == n;
    bool open = !strncmp(name, "open_", 5) || !strncmp(name, "kernels_", 8);
    bool slot = n > 5 && !strcmp(name + n - 5, "_slot") && strncmp(name, "v_", 2);
    return pool || single || type || stage || macro || open || slot || name[0] == '_';
}

static bool is_kernel(const char *name)
{
    size_t n = strlen(name);
    for (int i = 0; i < row_count(); i++)
        for (int c = 0; c < 3; c++)
            for (const char *call = row(i)->call[c], *at = call; at && (at = strstr(at, name)); at += n)
                if (at[n] == '(' && (at == call || at[-1] == ' '))
                    return true;
    return false;
}

const char *name_new(Idents *n, const char *path)
{
    const char *base = text_plain(path, C_WORD);
    if (is_family(base))
        base = strf("v_%s", base);          /* a number behind it would leave it in the family */
    const char *name = base;
    const int words = sizeof reserved / sizeof *reserved;
    for (int k = 2; strs_has(&n->taken, name) || INDEX_OF(reserved, words, name) >= 0 || is_family(name) || is_kernel(name);
         k++)
        name = strf("%s_%d", base, k);
    *PUSH(&n->taken) = name;
    return name;
}

/* Dims are often one capital; rt.h has no such name but A, S, H, which stand before a bracket only. */
const char *name_dim(Idents *n, const char *name)
{
    bool capitals = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == strlen(name);
    if (!strncmp(name, "H_", 2))
        return name_new(n, strf("v_%s", name));         /* that is what a handle is called */
    if (!capitals || !strcmp(name, "NULL") || !strcmp(name, "EOF") || strs_has(&n->taken, name))
        return name_new(n, name);
    *PUSH(&n->taken) = name;
    return name;
}

/* A constant's name is a label in capitals, and stands where a dim may. */
const char *name_constant(Idents *n, const char *base)
{
    const char *name = base = text_plain(base, C_WORD);
    for (int k = 2; strs_has(&n->taken, name); k++)
        name = strf("%s_%d", base, k);
    *PUSH(&n->taken) = name;
    return name;
}
