/* SPDX-License-Identifier: Apache-2.0
 *
 * apart.c: an output is no input and no other output.
 *
 * A file is known by device and inode, so its links count.  One that is not there yet is known by the nearest folder that is,
 * and its path from there; a link that leads nowhere is known by where it leads.  Only plain files are looked at, for what goes
 * to a device destroys nothing.  Cost: a comparison with each file that was noted.  Not handled: a file that another program
 * puts in place later.
 */
#include "apart.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST = 4096, HOPS = 40 };
typedef struct { char *what, *path, *name; dev_t dev; ino_t ino; bool written; } Noted;     /* name: NULL, the file is there */
static Noted *noted;
static size_t count, cap;

/* Where the link at `path` leads, in its place; false: it is no link. */
static bool follow(char path[LONGEST])
{
    char to[LONGEST], *slash = strrchr(path, '/');
    ssize_t n = readlink(path, to, sizeof to - 1);
    if (n < 0)
        return false;
    to[n] = 0;
    size_t folder = slash && *to != '/' ? (size_t)(slash + 1 - path) : 0;
    return (size_t)snprintf(path + folder, LONGEST - folder, "%s", to) < LONGEST - folder;
}

/* How much of the path is the nearest folder that is there; 0 is that of the process. */
static bool above(const char *path, struct stat *info, size_t *n)
{
    char folder[LONGEST + 2];
    for (*n = strlen(path);; --*n) {
        while (*n > 0 && path[*n - 1] != '/')
            --*n;
        snprintf(folder, sizeof folder, "%.*s.", (int)*n, path);
        if (stat(folder, info) == 0 || *n == 0)
            return stat(folder, info) == 0;
    }
}

static bool identify(Noted *x, const char *path)
{
    struct stat info;
    char at[LONGEST];
    size_t n;
    bool there = stat(path, &info) == 0;
    if (there && !S_ISREG(info.st_mode))
        return false;
    if (!there && (size_t)snprintf(at, sizeof at, "%s", path) >= sizeof at)
        return false;
    for (int i = 0; !there && i < HOPS && follow(at); i++)
        continue;
    if (!there && (!above(at, &info, &n) || !(x->name = strdup(at + n))))
        return false;
    x->dev = info.st_dev;
    x->ino = info.st_ino;
    return true;
}

static bool same(const Noted *a, const Noted *b)
{
    return a->dev == b->dev && a->ino == b->ino && (a->name && b->name ? !strcmp(a->name, b->name) : a->name == b->name);
}

static void drop(Noted *x)
{
    free(x->what);
    free(x->path);
    free(x->name);
}

static void keep(Noted x, const char *what, const char *path)
{
    Noted *more = count == cap ? realloc(noted, (2 * cap + 16) * sizeof *more) : NULL;
    if (more) {
        noted = more;
        cap = 2 * cap + 16;
    }
    x.what = strdup(what);
    x.path = strdup(path);
    if (count < cap && x.what && x.path)
        noted[count++] = x;
    else
        drop(&x);               /* no memory: one that is not compared */
}

bool apart_note(const char *what, const char *path, bool written, char *why, size_t room)
{
    Noted x = {.written = written};
    const Noted *other = NULL;
    bool again = !identify(&x, path) || (x.name && !written);   /* no plain file, or none to read */
    for (size_t i = 0; i < count && !again && !other; i++)
        if (same(&x, &noted[i])) {
            again = noted[i].written == written && !strcmp(noted[i].what, what) && !strcmp(noted[i].path, path);
            other = !again && (written || noted[i].written) ? &noted[i] : NULL;
        }
    if (again || other)
        free(x.name);
    else
        keep(x, what, path);
    if (other)
        snprintf(why, room, "%s %s is the same file as %s %s, and would destroy it: name another file",
                 written ? what : other->what, written ? path : other->path, written ? other->what : what,
                 written ? other->path : path);
    return !other;
}

void apart_forget(const char *path)
{
    Noted x = {0};
    bool known = identify(&x, path);
    for (size_t i = 0; i < count;)
        if (!strcmp(path, noted[i].path) || (known && same(&x, &noted[i]))) {
            drop(&noted[i]);
            noted[i] = noted[--count];
        } else {
            i++;
        }
    free(x.name);
}

void apart_clear(void)
{
    while (count > 0)
        drop(&noted[--count]);
    free(noted);
    noted = NULL;
    cap = 0;
}
