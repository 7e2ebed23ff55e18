/* SPDX-License-Identifier: Apache-2.0
 *
 * export.c: the hash of all parameters, and the gradients of the last step as one file.
 *
 * The hash runs over the parameters of all stages in ascending order of names.  The data stays where it is; the state
 * of the hash, about a hundred bytes, goes to whoever holds the next parameter.  A gradient file is laid out by
 * everybody alike; each stage writes its own part of it, so over MPI it needs a file system that all hosts see.
 *
 * What is written at the end is tried at the start, so that a day of training does not end with a mistyped path.  The
 * try leaves nothing: a file that it had to make goes again, one that was there keeps its bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "link.h"
#include "little.h"
#include "run.h"
#include "safetensors.h"
#include "sha256.h"

/* ---- before the first step --------------------------------------------------------------------------------------- */

/* Can `path` be written?  What is there already must be a plain file, or else a device: to write to. */
static int probe(const char *option, const char *path, bool device)
{
    char part[PART_PATH];
    struct stat info;
    if (strlen(path) + sizeof ".part" > PATH_MAX)
        return complain(STATUS_RUN, "%s: a path of %zu bytes is too long", option, strlen(path));
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !(device && S_ISCHR(info.st_mode)))
        return complain(STATUS_RUN, "%s %s: that is not a plain file; name another", option, path);
    part_name(part, path);
    return part_try(part) ? DONE : complain(STATUS_RUN, "%s %s: cannot write: %s", option, path, strerror(errno));
}

static void dump_name(char *to, const Run *run, int stage)
{
    snprintf(to, PART_PATH, "%s.%s", run->opt.dump, run->job->stage[stage].name);
}

int export_probe(const Run *run)
{
    const Options *o = &run->opt;
    char name[PART_PATH];
    int status = o->gradients && run->main ? probe("--gradients", o->gradients, false) : DONE;
    if (status == DONE && o->trace && run->main)
        status = probe("--trace", o->trace, true);
    for (int i = 0; o->dump && i < run->count && status == DONE; i++) {
        dump_name(name, run, run->first + i);
        status = probe("--dump-arena", name, true);
    }
    return status;
}

/* ---- after the last ---------------------------------------------------------------------------------------------- */

int worst(Worker *w, int status)
{
    int *all = w->board;
    link_share(&w->stage, &status, all, sizeof status);
    for (int i = 0; i < w->stage.count; i++)
        if (all[i] > status)
            status = all[i];
    return status;
}

/* From the stage that changed it to all. */
static void hand_over(Worker *w, Digest *d, int from)
{
    link_share(&w->stage, d, w->board, sizeof *d);
    memcpy(d, (char *)w->board + (size_t)from * sizeof *d, sizeof *d);
}

static bool add(void *to, const void *piece, size_t n)
{
    digest_add(to, piece, n);
    return true;
}

static bool into_digest(void *to, const void *piece, size_t n)
{
    return little_floats(piece, n, add, to);
}

static bool into_file(void *to, const void *piece, size_t n)
{
    return little_floats(piece, n, write_piece, to);
}

void export_hash(Worker *w, char hex[65])
{
    const Run *run = w->run;
    Digest d;
    digest_start(&d);
    for (int i = 0; i < run->parameters; i++) {
        const Item *item = &run->parameter[i];
        if (i > 0 && item->stage != item[-1].stage)
            hand_over(w, &d, item[-1].stage);
        if (!item_here(w, item))
            continue;
        digest_add(&d, item->state->name, strlen(item->state->name) + 1);
        item_read(w, item, 0, item->state->n, into_digest, &d);
    }
    hand_over(w, &d, run->parameters ? run->parameter[run->parameters - 1].stage : 0);
    digest_end(&d, hex);
}

static bool write_gradients(Worker *w, int file)
{
    const Run *run = w->run;
    off_t at = (off_t)w->text.n;
    bool good = file >= 0;
    for (int i = 0; i < run->gradients; i++) {
        const Item *item = &run->gradient[i];
        long from = 0, n = 0;
        const float *data = item->state->outer ? NULL : item_part(w, item, &from, &n);
        off_t here = at + (off_t)from * (off_t)sizeof *data;
        if (item->state->outer)
            good = good && job_parts.divided->give(w, item, file, at, into_file, &file);
        else if (n > 0 && good)
            good = lseek(file, here, SEEK_SET) == here && arena_read(w, data, (size_t)n * sizeof *data, into_file, &file);
        at += (off_t)item->state->n * (off_t)sizeof *data;
    }
    return good;
}

int export_gradients(Worker *w, const char *path)
{
    char part[PART_PATH];
    part_name(part, path);
    safe_header(&w->text, w->run->gradient, w->run->gradients, NULL);
    return part_write(w, part, path, &w->text, write_gradients);
}

int arena_dump(Worker *w)
{
    char name[PART_PATH], part[PART_PATH];
    dump_name(name, w->run, w->stage.index);
    part_name(part, name);
    int file = part_open(w, part);
    bool good = file >= 0 && arena_read(w, w->stage.arena, w->info->arena, write_piece, &file) &&
        (fsync(file) == 0 || errno == EINVAL);          /* a device */
    return part_end(part, name, good ? DONE : complain(STATUS_RUN, "%s: cannot write the arena: %s", name, strerror(errno)));
}
