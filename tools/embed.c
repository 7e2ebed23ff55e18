/* SPDX-License-Identifier: Apache-2.0
 *
 * embed.c: host tool, prints the named files and their sums as a C table, so that the dpgen binary carries templates/ and rt/
 * inside itself.  A file that was made in build/ has its name without that.
 */
#include "base.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As a string, which compilers read a dozen times as fast as a list of numbers; a line for each line of the file. */
static void print_text(const char *at, size_t n, int index)
{
    printf("static const char file%d[] =\n\"", index);
    for (size_t i = 0; i < n; i++)
        if (at[i] == '\n')
            printf("\\n\"\n\"");
        else if (at[i] >= ' ' && at[i] <= '~' && at[i] != '"' && at[i] != '\\' && at[i] != '?')
            putchar(at[i]);
        else
            printf("\\%03o", (unsigned)(unsigned char)at[i]);
    printf("\";\n");
}

/* The file in memory that ends with the program; NULL, with a message: it cannot be read. */
static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *all = NULL;
    size_t room = 1 << 16;
    for (*n = 0; f && (all = realloc(all, room *= 2)) != NULL;) {
        *n += fread(all + *n, 1, room - *n, f);
        if (*n < room)
            break;
    }
    if (!all || ferror(f))
        fprintf(stderr, "embed: cannot read %s\n", path);
    bool good = all && !ferror(f);
    if (f)
        fclose(f);
    return good ? all : NULL;
}

int main(int argc, char **argv)
{
    char (*sum)[41 + 65] = calloc((size_t)argc, sizeof *sum);
    printf("#include \"base.h\"\n");
    for (int i = 1; i < argc; i++) {
        size_t n;
        char *all = read_all(argv[i], &n);
        if (!all || !sum)
            return 1;
        Digest s;
        sha1_of(all, n, sum[i]);
        digest_start(&s);
        digest_add(&s, all, n);
        digest_end(&s, sum[i] + 41);
        print_text(all, n, i);
        free(all);
    }
    printf("const Embedded embedded[] = {\n");
    for (int i = 1; i < argc; i++)
        printf("    {\"%s\", file%d, sizeof file%d - 1, \"%s\", \"%s\"},\n",
               argv[i] + (strncmp(argv[i], "build/", 6) ? 0 : 6), i, i, sum[i], sum[i] + 41);
    printf("    {0, 0, 0, 0, 0}};\n");
    free(sum);
    return 0;
}
