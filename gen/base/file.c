/* SPDX-License-Identifier: Apache-2.0
 *
 * file.c: a whole file as one text; a file written whole or not at all.
 *
 * A file name that cannot be read is a mistake in the command line, whatever the file was for.  The status is 2, with the
 * name, the reason, and a similar name next to it, or else the text to write instead.
 */
#define _GNU_SOURCE             /* realpath, flock */
#include "base.h"
#include "rt/apart.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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
        bool itself = !strcmp(other, name);             /* a link that leads nowhere */
        if (!itself && !strcmp(other + k, name + stem))
            *PUSH(&names) = strf("%.*s", (int)k, other);
        if (!itself && k == stem && !strncmp(other, name, k))
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

static void note(const char *what, const char *path, bool written)
{
    char why[1024];
    if (!apart_note(what, path, written, why, sizeof why))
        fail(EXIT_USAGE, "%s", why);
}

void file_reads(const char *path)
{
    note("input", path, false);
}

FILE *file_open(const char *path, const char *remedy)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        file_refuse(path, remedy);
    file_reads(path);
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

static const char *part_of(const char *target)
{
    struct stat s;
    return lstat(target, &s) == 0 && !S_ISREG(s.st_mode) ? target : strf("%s.part", target);
}

void file_writes(const char *path)
{
    note("output", path, true);
    note("output", strf("%s.part", path), true);
}

void file_rewrites(const char *path)
{
    apart_forget(path);
}

/* A file that is written, or waits for others: its part, which is locked, must not stay behind. */
typedef struct { FILE *f; const char *path, *target, *partial; } Writing;  /* partial is target: no plain file */
static Writing now;
static VEC(Writing) waiting;
static struct { const char *dir; bool on, made; } group;

static void remove_unfinished(void)
{
    if (now.f && now.partial != now.target)
        remove(now.partial);
    for (int i = 0; i < waiting.n; i++)
        remove(waiting.at[i].partial);
    if (group.on && group.made)
        rmdir(group.dir);
}

static void remove_at_exit(void)
{
    static bool registered;
    if (!registered)
        atexit(remove_unfinished);
    registered = true;
}

/* Two may write it at once: the second waits for the lock, which goes when the first has put its file in place. */
static int open_part(const char *part)
{
    struct stat s, t;
    for (;;) {
        int fd = open(part, O_WRONLY | O_CREAT, 0666);
        if (fd < 0 || fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
            return fd;
        flock(fd, LOCK_EX);             /* a file system without locks is trusted to be used by one */
        if (stat(part, &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino)
            return ftruncate(fd, 0) == 0 ? fd : -1;
        close(fd);
    }
}

FILE *file_begin(const char *path)
{
    file_writes(path);
    /* A link is followed.  A path that exists and is no plain file, such as /dev/stdout, is written to and not replaced. */
    struct stat s;
    bool device = !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
    char *real = !device && lstat(path, &s) == 0 && S_ISLNK(s.st_mode) ? realpath(path, NULL) : NULL;
    const char *to = real ? strf("%s", real) : path;
    free(real);
    const char *target = to, *part = part_of(target);
    int fd = open_part(part);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        unwritten(path);
    now = (Writing){f, path, target, part};
    remove_at_exit();
    return f;
}

/* Puts the file in its place and forgets its inode, which any new file may get. */
static void put(const Writing *w, bool bad)
{
    bool plain = w->partial != w->target;
    bad = bad || (plain && rename(w->partial, w->target) != 0);
    int why = errno;
    if (bad && plain)
        remove(w->partial);             /* while it is locked: it may be the next one's at once */
    if (fclose(w->f) != 0 && !bad) {
        bad = true;
        why = errno;
    }
    now.f = NULL;
    errno = why;
    if (bad)
        unwritten(w->path);
    apart_forget(w->path);
    apart_forget(strf("%s.part", w->path));
}

void file_end(FILE *f, const char *path)
{
    bool plain = now.partial != now.target, bad = fflush(f) != 0 || ferror(f) || (plain && fsync(fileno(f)) != 0);
    if (f != now.f || strcmp(path, now.path))
        die("%s is written, and not %s", now.path, path);
    if (bad || !plain || !group.on) {
        put(&now, bad);
    } else {
        *PUSH(&waiting) = now;
        now.f = NULL;
    }
}

void files_begin(const char *dir, bool alone)
{
    bool made = dir && mkdir(dir, 0777) == 0;
    if (dir && !made && errno != EEXIST)
        fail(EXIT_RUN, "cannot make the folder %s: %s", dir, strerror(errno));
    int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;         /* held until dpgen ends */
    if (dir && fd < 0)
        fail(EXIT_RUN, "cannot write to the folder %s: %s", dir, strerror(errno));
    if (alone && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        fail(EXIT_RUN, "another dpgen writes to %s; name another folder", dir);
    memset(&waiting, 0, sizeof waiting);        /* of a group before, whose memory may be gone */
    group.dir = dir;
    group.made = made;
    group.on = true;
    remove_at_exit();
}

void files_end(void)
{
    for (; waiting.n > 0; waiting.n--) {
        Writing first = waiting.at[0];
        memmove(waiting.at, waiting.at + 1, (size_t)(waiting.n - 1) * sizeof *waiting.at);
        put(&first, false);
    }
    group.on = false;
}
