/* SPDX-License-Identifier: Apache-2.0
 *
 * folder: one for dpgen-verify, as one text.  A line `> NAME` begins one of its files.  With a MANIFEST its sums are asked
 * for too.
 */
#define ALONE
#include "target.h"
#include <stdbool.h>
#include <sys/stat.h>

int verify_main(int argc, char **argv);
_Noreturn void __wrap__Exit(int status);

static jmp_buf back;

void __wrap__Exit(int status)
{
    longjmp(back, status + 1);
}

static const char *const files[] = {"stage0.h", "stage0.c", "stage1.h", "stage1.c", "launch.c", "model.graph",
    "model.yaml", "MANIFEST"};
enum { FILES = sizeof files / sizeof *files };

/* The file that a line begins; -1: none */
static int begins(const char *at, const char *end)
{
    for (int i = 0; i < FILES; i++) {
        size_t n = strlen(files[i]);
        if ((size_t)(end - at) > n + 2 && !strncmp(at, "> ", 2) && !strncmp(at + 2, files[i], n) && at[n + 2] == '\n')
            return i;
    }
    return -1;
}

static const char *path_of(int file)
{
    static char folder[64], path[100];
    if (!*folder) {
        snprintf(folder, sizeof folder, "%s/fuzzed.folder.%ld", target_folder(), (long)getpid());
        if (mkdir(folder, 0777) != 0)
            abort();
    }
    snprintf(path, sizeof path, "%s%s%s", folder, file < 0 ? "" : "/", file < 0 ? "" : files[file]);
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *f = NULL;
    bool sums = false;
    for (int i = 0; i < FILES; i++)
        unlink(path_of(i));
    for (const char *at = (const char *)data, *end = at + size, *next; at < end; at = next) {
        int file = begins(at, end);
        next = memchr(at, '\n', (size_t)(end - at));
        next = next ? next + 1 : end;
        if (file >= 0 && f)
            fclose(f);
        if (file >= 0 && !(f = fopen(path_of(file), "wb")))
            abort();
        sums |= file == FILES - 1;
        if (file < 0 && f)
            fwrite(at, 1, (size_t)(next - at), f);
    }
    if (f)
        fclose(f);
    char *argv[] = {"dpgen-verify", (char *)path_of(-1), "--edited", NULL};
    if (setjmp(back) == 0)
        verify_main(sums ? 2 : 3, argv);
    return 0;
}
