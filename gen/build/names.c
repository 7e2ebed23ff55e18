/* SPDX-License-Identifier: Apache-2.0
 *
 * names.c: names and paths.
 *
 * Problem: names of the YAML become parameter names in checkpoints, C identifiers in the emitted stages and words of
 * comments.  So they are few letters, short, and different even where C cannot tell them apart: a.b and a_b are one
 * identifier.
 *
 * Method: a name is checked letter by letter; what is taken stands in a hash table (open addressing, linear steps,
 * at most half full, FNV-1a) under its C form.  Nothing ever walks the table, so its order reaches no output.
 */
#include "build.h"

static int slot_of(const Names *s, const char *text)
{
    int i = (int)(hash64(text) & (uint64_t)(s->cap - 1));
    while (s->at[i].text && strcmp(s->at[i].text, text))
        i = (i + 1) & (s->cap - 1);
    return i;
}

int names_get(const Names *s, const char *text)
{
    if (!s->cap)
        return -1;
    const BuildEntry *e = &s->at[slot_of(s, text)];
    return e->text ? e->value : -1;
}

void names_put(Names *s, const char *text, int value)
{
    if (2 * (s->n + 1) > s->cap) {
        Names old = *s;
        s->cap = old.cap ? 2 * old.cap : 64;
        s->at = alloc((size_t)s->cap * sizeof *s->at);
        for (int i = 0; i < old.cap; i++)
            if (old.at[i].text)
                s->at[slot_of(s, old.at[i].text)] = old.at[i];
    }
    BuildEntry *e = &s->at[slot_of(s, text)];
    s->n += !e->text;
    *e = (BuildEntry){text, value};
}

const char *name_as_c(const char *path)
{
    return text_plain(path, C_WORD);
}

const char *name_fault(const char *text)
{
    size_t n = strlen(text);
    if (!n || !strchr(C_LETTERS, text[0]))
        return "a name begins with a letter";
    if (n > MAX_NAME)
        return "63 characters at most";
    if (strspn(text, C_WORD ".") != n)
        return "a name consists of letters, digits, _ and .";
    if (text[n - 1] == '.' || strstr(text, ".."))
        return "something must stand between and behind dots";
    return NULL;
}

const char *path_join(const char *scope, const char *name)
{
    return *scope ? strf("%s.%s", scope, name) : strf("%s", name);
}
