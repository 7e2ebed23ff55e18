/* SPDX-License-Identifier: Apache-2.0
 *
 * embed.c: host tool, prints the named files as a C table, so that the dpgen binary carries templates/ and rt/ inside itself.
 * A file that was made in build/ has its name without that.
 */
#include <stdio.h>
#include <string.h>

/* As a string, which compilers read a dozen times as fast as a list of numbers; a line for each line of the file. */
static int print_file(const char *path, int index)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "embed: cannot read %s\n", path);
        return 1;
    }
    printf("static const char file%d[] =\n\"", index);
    for (int c; (c = getc(f)) != EOF;)
        if (c == '\n')
            printf("\\n\"\n\"");
        else if (c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '?')
            putchar(c);
        else
            printf("\\%03o", (unsigned)c);
    printf("\";\n");
    fclose(f);
    return 0;
}

int main(int argc, char **argv)
{
    printf("#include \"base/folder.h\"\n");
    for (int i = 1; i < argc; i++)
        if (print_file(argv[i], i))
            return 1;
    printf("const Embedded embedded[] = {\n");
    for (int i = 1; i < argc; i++)
        printf("    {\"%s\", file%d, sizeof file%d - 1},\n", argv[i] + (strncmp(argv[i], "build/", 6) ? 0 : 6), i, i);
    printf("    {0, 0, 0}};\n");
    return 0;
}
