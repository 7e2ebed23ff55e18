/* SPDX-License-Identifier: Apache-2.0
 *
 * file.c: a whole file as one text; a file written whole or not at all.
 *
 * A file name that cannot be read is a mistake in the command line, whatever the file was for.  The status is 2, with the
 * name, the reason, and a similar name next to it, or else the text to write instead.
 */
#include "file.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static size_t stem_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && dot > name ? (size_t)(dot - name) : strlen(name);
}

/* A file in the same folder that is called nearly so, or so but for what stands behind the dot; NULL: none. */
static const char *beside(const char *path)
{
    const char *name = strrchr(path, '/'), *same = NULL;
    const char *folder = name ? strf("%.*s", (int)(name + 1 - path), path) : "";
    name = name ? name + 1 : path;
    size_t stem = stem_of(name);
    struct dirent **entry;
    int n = scandir(*folder ? folder : ".", &entry, NULL, alphasort);
    Strs names = {0};
    for (int i = 0; i < n; i++) {
        const char *other = entry[i]->d_name;
        size_t k = stem_of(other);
        if (!strcmp(other + k, name + stem))
            *PUSH(&names) = strf("%.*s", (int)k, other);
        if (k == stem && !strncmp(other, name, k))
            same = strf("%s%s", folder, other);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    const char *near = nearest(strf("%.*s", (int)stem, name), names.at, names.n);
    return near ? strf("%s%s%s", folder, near, name + stem) : same;
}

void file_refuse(const char *path, const char *remedy)
{
    int why = errno;
    const char *near = why == ENOENT ? beside(path) : NULL;
    fail(EXIT_USAGE, "cannot read %s: %s; %s", path, strerror(why), near ? strf("did you mean %s?", near) : remedy);
}

FILE *file_open(const char *path, const char *remedy)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        file_refuse(path, remedy);
    return f;
}

const char file_stdin[] = "/dev/stdin";
static struct { char *text; size_t n; } input;

char *file_read(const char *path, const char *remedy, size_t *n)
{
    bool once = !strcmp(path, file_stdin);
    if (once && input.text) {
        *n = input.n;
        return input.text;
    }
    FILE *f = file_open(path, remedy);
    enum { PIECE = 1 << 16, MOST = 1 << 30 };
    char *text = alloc(PIECE);
    size_t size = 0, cap = PIECE, got;
    while ((got = fread(text + size, 1, cap - size - 1, f)) > 0) {
        size += got;
        if (cap - size > 1)
            continue;
        if (cap >= MOST)
            fail(EXIT_USAGE, "cannot read %s: it is longer than %d bytes; %s", path, MOST, remedy);
        char *more = memcpy(alloc(2 * cap), text, size);
        text = more;
        cap *= 2;
    }
    if (ferror(f))
        file_refuse(path, remedy);
    fclose(f);
    *n = size;
    if (once) {
        input.text = text;
        input.n = size;
    }
    return text;
}

/* ---- written whole or not at all --------------------------------------------------------------------------------------- */

static NORETURN void unwritten(const char *path)
{
    fail(EXIT_RUN, "cannot write %s: %s", path, strerror(errno));
}

/* What is there and no plain file, such as /dev/stdout, is written to and not replaced. */
static const char *part_of(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0 && !S_ISREG(s.st_mode) ? path : strf("%s.part", path);
}

FILE *file_begin(const char *path)
{
    FILE *f = fopen(part_of(path), "w");
    if (!f)
        unwritten(path);
    return f;
}

void file_end(FILE *f, const char *path)
{
    const char *part = part_of(path);
    bool plain = strcmp(part, path), bad = fflush(f) != 0 || ferror(f);
    bad |= fclose(f) != 0;
    if (!bad && plain)
        bad = rename(part, path) != 0;
    if (bad && plain) {
        int why = errno;
        remove(part);
        errno = why;
    }
    if (bad)
        unwritten(path);
}
