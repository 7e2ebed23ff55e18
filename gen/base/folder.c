/* SPDX-License-Identifier: Apache-2.0
 *
 * folder.c: a folder that appears whole or not at all.
 *
 * Files are written into a fresh folder next to the target, which then takes the target's name in one rename.  A target that
 * dpgen made before (it has a MANIFEST) is replaced.  Files that neither the new folder has nor the old MANIFEST names
 * (checkpoints, logs, at any depth) move over.  Files that somebody has changed by hand move over, too, as NAME.edited.  A
 * target that dpgen did not make is refused.  Names are fixed by dpgen, never derived from the model.  The fresh folder of a
 * run that was killed is removed by the next run.  It is locked while its process lives, and holds no file of a user before it
 * has a MANIFEST.  MANIFEST lists the SHA-256 of every file, in the form that sha256sum -c reads.
 */
#define _GNU_SOURCE             /* renameat2 */
#include "base.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct Out {
    const char *dir, *partial;
    VEC(OutFile) file;
    Text text;                  /* being written */
};

static const char *unfinished;          /* the one folder that must not stay behind */

static void remove_unfinished(void)
{
    if (unfinished)
        out_remove(unfinished);
}

static void give_up(const Out *o, const char *what, const char *name)
{
    fail(EXIT_RUN, "cannot %s %s/%s: %s; nothing was written to %s", what, o->partial, name, strerror(errno), o->dir);
}

static bool made_by_dpgen(const char *dir)
{
    struct stat s;
    return stat(strf("%s/MANIFEST", dir), &s) == 0;
}

static bool is_empty(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    if (d)
        closedir(d);
    return n == 0;
}

static const char *plain(const char *dir)
{
    char *name = strf("%s", dir);
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--)
        name[n - 1] = 0;
    return name;
}

void out_check(const char *dir)
{
    struct stat s;
    const char *name = plain(dir), *slash = strrchr(name, '/');
    const char *parent = slash ? strf("%.*s", (int)(slash - name) + (slash == name), name) : ".";
    if (lstat(name, &s) == 0 && S_ISLNK(s.st_mode))
        fail(EXIT_USAGE, "%s is a symbolic link: name the folder itself as -o", name);
    if (lstat(name, &s) == 0 && (!S_ISDIR(s.st_mode) || (!made_by_dpgen(name) && !is_empty(name))))
        fail(EXIT_USAGE, "%s exists and was not made by dpgen (it has no MANIFEST): choose another -o, or remove it", name);
    if (access(parent, W_OK) != 0)
        fail(EXIT_RUN, "cannot make the folder %s: %s", name, strerror(errno));
}

/* DIR.part-123 of a process that is no more. */
static void remove_stale(const char *dir)
{
    const char *slash = strrchr(dir, '/'), *above = slash ? strf("%.*s/", (int)(slash - dir), dir) : "./";
    const char *start = strf("%s.part-", slash ? slash + 1 : dir);
    DIR *d = opendir(above);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *path = strf("%s%s", above, e->d_name), *number = e->d_name + strlen(start);
        if (strncmp(e->d_name, start, strlen(start)) || !*number || number[strspn(number, "0123456789")])
            continue;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        bool gone = fd >= 0 && kill((pid_t)strtol(number, NULL, 10), 0) != 0 && errno == ESRCH &&
            flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (gone && !made_by_dpgen(path))
            out_remove(path);
        else if (gone)
            fprintf(stderr, "dpgen: %s is left of a run that was killed, and may hold files of yours\n", quote_terminal(path));
        if (fd >= 0)
            close(fd);
    }
    if (d)
        closedir(d);
}

Out *out_begin(const char *dir)
{
    Out *o = alloc(sizeof *o);
    o->dir = plain(dir);
    o->partial = strf("%s.part-%ld", o->dir, (long)getpid());
    out_check(dir);
    remove_stale(o->dir);
    if (mkdir(o->partial, 0777) != 0)
        fail(EXIT_RUN, "cannot make the folder %s: %s", o->partial, strerror(errno));
    unfinished = o->partial;
    atexit(remove_unfinished);
    int fd = open(o->partial, O_RDONLY | O_DIRECTORY | O_CLOEXEC);  /* held until this process ends */
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        give_up(o, "lock", ".");
    return o;
}

const char *sha256_of(const void *data, size_t n)
{
    char *hex = alloc(65);
    Digest sum;
    digest_start(&sum);
    digest_add(&sum, data, n);
    digest_end(&sum, hex);
    return hex;
}

/* The sums of an embedded file are known.  Making them was a quarter of the time of a folder. */
static void add_sums(OutFile *w, const char *data, size_t n)
{
    for (const Embedded *e = embedded; e->name; e++)
        if (e->data == data && e->n == n) {
            memcpy(w->sha1, e->sha1, sizeof w->sha1);
            memcpy(w->hex, e->sha256, sizeof w->hex);
            return;
        }
    sha1_of(data, n, w->sha1);
    memcpy(w->hex, sha256_of(data, n), sizeof w->hex);
}

void out_copy(Out *o, const char *name, const char *data, size_t n)
{
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        char *dir = strf("%s/%.*s", o->partial, (int)(slash - name), name);
        if (mkdir(dir, 0777) != 0 && errno != EEXIST)
            give_up(o, "make", name);
    }
    int fd = open(strf("%s/%s", o->partial, name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    if (fd < 0)
        give_up(o, "create", name);
    for (size_t done = 0; done < n;) {
        ssize_t k = write(fd, data + done, n - done);
        if (k < 0 && errno != EINTR)
            give_up(o, "write", name);
        done += k > 0 ? (size_t)k : 0;
    }
    if (close(fd) != 0)
        give_up(o, "write", name);
    OutFile *w = PUSH(&o->file);
    w->name = strf("%s", name);
    add_sums(w, data, n);
}

FILE *out_open(Out *o, const char *name)
{
    OutFile *w = PUSH(&o->file);            /* the name, until out_close() */
    w->name = strf("%s", name);
    return text_open(&o->text);
}

void out_close(Out *o)
{
    const char *name = o->file.at[--o->file.n].name;
    text_close(&o->text);
    if (strcmp(name, "model.yaml")) {
        /* All that generated text may hold: printable ASCII and line ends. */
        for (size_t i = 0; i < o->text.n; i++) {
            unsigned char c = (unsigned char)o->text.at[i];
            if ((c < 32 && c != '\n' && c != '\t') || c >= 127)
                die("%s: byte %zu is not printable", name, i);
        }
    }
    out_copy(o, name, o->text.at, o->text.n);
}

const OutFile *out_files(Out *o, int *n)
{
    *n = o->file.n;
    SORT(o->file.at, o->file.n, text_order);
    return o->file.at;
}

/* Objects and programs that make left behind are made again, not kept. */
static bool is_built(const char *name)
{
    size_t n = strlen(name);
    return (n > 2 && (!strcmp(name + n - 2, ".o") || !strcmp(name + n - 2, ".d"))) || !strcmp(name, "train") ||
           !strcmp(name, "verify/prove") || !strncmp(name, ".flags", 6);
}

void out_remove(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        const char *path = strf("%s/%s", dir, e->d_name);
        if (unlink(path) != 0)
            out_remove(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

static const char *read_manifest(const char *dir)
{
    char *text = alloc(1 << 20);
    FILE *f = fopen(strf("%s/MANIFEST", dir), "r");
    if (f) {
        text[fread(text, 1, (1 << 20) - 1, f)] = 0;
        fclose(f);
    }
    return text;
}

/* Is it as dpgen wrote it? */
static bool unchanged(const char *manifest, const char *path, const char *name)
{
    Digest sum;
    char hex[65], piece[4096];
    FILE *f = fopen(path, "rb");
    digest_start(&sum);
    for (size_t n; f && (n = fread(piece, 1, sizeof piece, f)) > 0;)
        digest_add(&sum, piece, n);
    if (f)
        fclose(f);
    digest_end(&sum, hex);
    return !f || strstr(manifest, strf("%s  %s\n", hex, name));
}

/* A file of dpgen's that somebody has changed since: beside the new one, which has its name. */
static void keep_edited(const Out *o, const char *from, const char *name)
{
    struct stat s;
    const char *to = strf("%s.edited", name);
    for (int i = 2; lstat(strf("%s/%s", o->dir, to), &s) == 0; i++)
        to = strf("%s.edited%d", name, i);
    if (rename(from, strf("%s/%s", o->dir, to)) != 0)
        fail(EXIT_RUN, "cannot move %s to %s/%s: %s", from, o->dir, to, strerror(errno));
    fprintf(stderr, "dpgen: %s/%s was changed by hand: what it was is now %s\n", quote_terminal(o->dir), quote_terminal(name),
            quote_terminal(to));
}

/* Move what a user left in the old folder, at any depth, to the same place in the new one. */
static void keep_others(const Out *o, const char *old, const char *manifest, const char *below)
{
    DIR *d = opendir(strf("%s/%s", old, below));
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *name = strf("%s%s", below, e->d_name), *from = strf("%s/%s", old, name), *to = strf("%s/%s", o->dir, name);
        struct stat s, t;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strcmp(name, "MANIFEST") || is_built(name) ||
            lstat(from, &s) != 0)
            continue;
        if (strstr(manifest, strf("  %s\n", name))) {
            if (S_ISREG(s.st_mode) && !unchanged(manifest, from, name))
                keep_edited(o, from, name);
            continue;
        }
        if (lstat(to, &t) == 0 && S_ISDIR(s.st_mode) && S_ISDIR(t.st_mode))
            keep_others(o, old, manifest, strf("%s/", name));
        else if (lstat(to, &t) != 0 && !(S_ISDIR(s.st_mode) && strstr(manifest, strf("  %s/", name))) && rename(from, to) != 0)
            fail(EXIT_RUN, "cannot move %s to %s: %s", from, to, strerror(errno));
    }
    if (d)
        closedir(d);
}

/* The old folder and the new one trade names in one step where the system can; else there is an instant without either. */
static const char *trade(const Out *o)
{
#ifdef RENAME_EXCHANGE
    if (renameat2(AT_FDCWD, o->partial, AT_FDCWD, o->dir, RENAME_EXCHANGE) == 0)
        return o->partial;
#endif
    const char *old = strf("%s.old-%ld", o->dir, (long)getpid());
    if (rename(o->dir, old) != 0)
        fail(EXIT_RUN, "cannot replace %s: %s", o->dir, strerror(errno));
    if (rename(o->partial, o->dir) != 0) {
        int why = errno;
        if (rename(old, o->dir) != 0)
            fail(EXIT_RUN, "cannot rename %s to %s: %s; the folder that was there is now %s", o->partial, o->dir, strerror(why),
                 old);
        fail(EXIT_RUN, "cannot rename %s to %s: %s", o->partial, o->dir, strerror(why));
    }
    return old;
}

const char *out_place(const Out *o)
{
    return o->partial;
}

const char *out_end(Out *o)
{
    struct stat s;
    int n;
    out_files(o, &n);
    FILE *f = out_open(o, "MANIFEST");
    for (int i = 0; i < n; i++)
        fprintf(f, "%s  %s\n", o->file.at[i].hex, o->file.at[i].name);
    out_close(o);
    const char *sum = o->file.at[n].hex;
    if (lstat(o->dir, &s) != 0) {
        bool good = rename(o->partial, o->dir) == 0;
        if (!good && errno != ENOTEMPTY && errno != EEXIST)     /* another dpgen has made it in between */
            fail(EXIT_RUN, "cannot rename %s to %s: %s", o->partial, o->dir, strerror(errno));
        if (good) {
            unfinished = NULL;
            return sum;
        }
    }
    const char *old = trade(o);
    unfinished = NULL;
    keep_others(o, old, read_manifest(old), "");
    out_remove(old);
    return sum;
}

const Embedded *embedded_find(const char *name)
{
    for (const Embedded *e = embedded; e->name; e++)
        if (!strcmp(e->name, name))
            return e;
    return NULL;
}
