/* SPDX-License-Identifier: Apache-2.0
 *
 * file.c: a whole file as one text.
 */
#include "dpgen.h"
#include <errno.h>
#include <string.h>

char *file_read(int status, const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail(status, "cannot open %s: %s", path, strerror(errno));
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
        fail(status, "cannot read %s: %s", path, strerror(errno));
    fclose(f);
    *n = size;
    return text;
}
