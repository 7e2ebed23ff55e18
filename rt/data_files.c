/* SPDX-License-Identifier: Apache-2.0
 *
 * data_files.c: names of files from patterns, and their bytes.
 *
 * A pattern is the name of a file, or a directory and a shell pattern in the last part of the path.  glob() is not used
 * because it pulls the user database into a static program.  Matches are sorted by byte, whatever the locale, and
 * patterns stay in the order given: the order of the data must not depend on a machine.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "apart.h"
#include "data.h"
#include "mapped.h"

typedef struct { char **at; int n; } Names;

static bool add(Names *names, const char *directory, size_t length, const char *name)
{
    char **more = realloc(names->at, ((size_t)names->n + 1) * sizeof *more);
    char *text = malloc(length + strlen(name) + 1);
    if (more)
        names->at = more;
    if (!more || !text) {
        free(text);
        return false;
    }
    memcpy(text, directory, length);
    strcpy(text + length, name);
    names->at[names->n++] = text;
    return true;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Everything that matches in the directory in front of the last part. */
static bool expand(Names *names, const char *pattern)
{
    const char *slash = strrchr(pattern, '/');
    size_t length = slash ? (size_t)(slash - pattern) + 1 : 0;
    char directory[4096];
    snprintf(directory, sizeof directory, "%.*s", (int)length, length ? pattern : "");
    DIR *d = opendir(length ? directory : ".");
    int from = names->n;
    bool good = true;
    for (struct dirent *e; d && good && (e = readdir(d)) != NULL;)
        if (fnmatch(pattern + length, e->d_name, FNM_PERIOD) == 0)
            good = add(names, pattern, length, e->d_name);
    if (d)
        closedir(d);
    if (names->n > from)
        qsort(names->at + from, (size_t)(names->n - from), sizeof *names->at, by_bytes);
    return good;
}

char **data_files(const char *const *patterns, int *n)
{
    Names names = {0};
    for (int i = 0; patterns && patterns[i]; i++) {
        struct stat info;
        int before = names.n;
        bool good = stat(patterns[i], &info) == 0 ? add(&names, "", 0, patterns[i]) : expand(&names, patterns[i]);
        if (!good || names.n == before) {
            complain(STATUS_RUN, good ? "data: no file matches `%s`; give files with --data, or run where the path "
                     "of the model file leads to them" : "data: no memory for the names that match `%s`", patterns[i]);
            for (int k = 0; k < names.n; k++)
                free(names.at[k]);
            free(names.at);
            return NULL;
        }
    }
    if (names.n == 0)
        complain(STATUS_RUN, "data: the model file names no files; give some with --data");
    *n = names.n;
    return names.at;
}

/* O_NONBLOCK: the open of a pipe that nobody writes to would never return. */
int data_map(DataFile *f, const char *path, const char *what)
{
    struct stat info;
    int file = open(path, O_RDONLY | O_NONBLOCK);
    bool good = file >= 0 && fstat(file, &info) == 0, plain = good && S_ISREG(info.st_mode);
    char clash[1024];
    void *at = NULL;
    f->path = path;
    f->size = plain ? (size_t)info.st_size : 0;
    if (f->size)
        at = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, file, 0);
    int why = errno;
    if (file >= 0)
        close(file);
    if (!good)
        return complain(STATUS_RUN, "%s: cannot open %s: %s", what, path, strerror(why));
    if (!plain)
        return complain(STATUS_RUN, "%s: %s is not a plain file", what, path);
    if (at == MAP_FAILED)
        return complain(STATUS_RUN, "%s: cannot map %s: %s", what, path, strerror(why));
    f->at = at;
    if (!apart_note(what, path, false, clash, sizeof clash))
        return complain(STATUS_USAGE, "%s", clash);
    if (f->size)
        mapped_add(at, f->size, what, path);
    return DONE;
}

void data_unmap(DataFile *f)
{
    if (!f->at)
        return;
    mapped_drop(f->at);
    munmap((void *)(uintptr_t)f->at, f->size);
}
