/* SPDX-License-Identifier: Apache-2.0
 *
 * embed.c: host tool, prints the named files as a C table, so that the dpgen binary carries templates/ and rt/ inside itself.
 * A file that was made in build/ has its name without that.
 */
#include <stdio.h>
#include <string.h>

static int print_file(const char *path, int index)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "embed: cannot read %s\n", path);
        return 1;
    }
    printf("static const char file%d[] = {", index);
    int c, n = 0;
    for (; (c = getc(f)) != EOF; n++)
        printf("%s%d,", n % 24 ? "" : "\n", c > 127 ? c - 256 : c);
    printf("0};\n");
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
