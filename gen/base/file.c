/* SPDX-License-Identifier: Apache-2.0
 *
 * file.c: a whole file as one text.
 *
 * Whoever names a file that cannot be read has mistyped the command line, whatever the file was for: status 2, the name, the
 * reason, and a file of nearly that name beside it, or else what to write instead.
 */
#include "file.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A file in the same folder that is called nearly so; NULL: none. */
static const char *beside(const char *path)
{
    const char *name = strrchr(path, '/');
    const char *folder = name ? strf("%.*s", (int)(name + 1 - path), path) : "";
    name = name ? name + 1 : path;
    struct dirent **entry;
    int n = scandir(*folder ? folder : ".", &entry, NULL, alphasort);
    Strs names = {0};
    for (int i = 0; i < n; i++) {
        *PUSH(&names) = strf("%s", entry[i]->d_name);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    const char *near = nearest(name, names.at, names.n);
    return near && strcmp(near, name) ? strf("%s%s", folder, near) : NULL;
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

char *file_read(const char *path, const char *remedy, size_t *n)
{
    FILE *f = file_open(path, remedy);
    enum { PIECE = 1 << 16 };
    char *text = alloc(PIECE);
    size_t size = 0, cap = PIECE, got;
    while ((got = fread(text + size, 1, cap - size - 1, f)) > 0) {
        size += got;
        if (cap - size > 1)
            continue;
        char *more = memcpy(alloc(2 * cap), text, size);
        text = more;
        cap *= 2;
    }
    if (ferror(f))
        file_refuse(path, remedy);
    fclose(f);
    *n = size;
    return text;
}
