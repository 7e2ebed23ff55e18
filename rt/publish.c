/* SPDX-License-Identifier: Apache-2.0
 *
 * publish.c: `--export DIR`: the parameters at the end as DIR/model.safetensors, with the names, shapes, axes and type of the
 * published weights that the model file describes.  What weights.c reads comes back with equal bytes where training did not
 * change it and the type is the same.
 *
 * The header is laid out by everybody alike before the first step, tensors by name.  Each stage writes its own parameters, so
 * over MPI it needs a file system that all hosts see.  The file is written as .part, and takes its name when it is whole.  A
 * tensor that holds parameters of two stages is written in pieces, and no byte of it twice.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "link.h"
#include "safetensors.h"
#include "weights.h"

typedef struct { Published p; const Item *item; int64_t at; } PublishItem; /* at: of its tensor, bytes behind the header */
struct Publish {
    PublishItem *item;          /* of all stages, by name of the tensor */
    int parts;
    Text header;
    int size;                   /* bytes of an element */
    char dir[4096], whole[4128], file[4160];
};

static int by_file(const void *a, const void *b)
{
    const PublishItem *x = a, *y = b;
    int order = strcmp(x->p.in.file, y->p.in.file);
    return order ? order : (x->p.in.from > y->p.in.from) - (x->p.in.from < y->p.in.from);
}

static void add_tensor(Publish *x, int i, const char *type, int64_t *end)
{
    const Published *p = &x->item[i].p;
    text_add(&x->header, ",");
    text_json(&x->header, p->in.file);
    text_add(&x->header, ":{\"dtype\":\"%s\",\"shape\":[", type);
    for (int d = 0; d < p->ndim; d++)
        text_add(&x->header, "%s%lld", d ? "," : "", (long long)p->dim[d]);
    x->item[i].at = *end;
    *end += p->n * x->size;
    text_add(&x->header, "],\"data_offsets\":[%lld,%lld]}", (long long)x->item[i].at, (long long)*end);
}

static void lay_out(Publish *x, int type)
{
    const char *name = type == JOB_F16 ? "F16" : type == JOB_BF16 ? "BF16" : "F32";
    int64_t end = 0;
    text_add(&x->header, "12345678{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < x->parts; i++)
        if (i > 0 && !strcmp(x->item[i - 1].p.in.file, x->item[i].p.in.file))
            x->item[i].at = x->item[i - 1].at;
        else
            add_tensor(x, i, name, &end);
    safe_ends(&x->header);
}

/* ---- before the first step --------------------------------------------------------------------------------------- */

/* A folder whose tensors are listed elsewhere would hide what is written here from its readers. */
static int probe(const Publish *x)
{
    const char *found[WEIGHTS_LISTS];
    if (weights_lists(x->dir, found) && strcmp(found[0], "model.safetensors"))
        return complain(STATUS_RUN, "--export %s: %s there lists the tensors of other files, and whoever reads the folder "
                        "would take those; name another folder", x->dir, found[0]);
    bool made = mkdir(x->dir, 0777) == 0;
    bool good = part_try(x->file);
    int why = errno;
    if (made)
        rmdir(x->dir);
    return good ? DONE : complain(STATUS_RUN, "--export %s: cannot write there: %s", x->dir, strerror(why));
}

int publish_open(Run *run)
{
    if (!run->opt.publish)
        return DONE;
    Publish *x = run->publish = calloc(1, sizeof *x);
    int parts = 0;
    for (int i = 0; i < run->parameters; i++)
        parts += weights_pieces(run->job, run->parameter[i].state);
    if (!x || !(x->item = calloc((size_t)parts + 1, sizeof *x->item)))
        return complain(STATUS_RUN, "no memory for --export");
    x->size = run->job->published == JOB_F32 ? 4 : 2;
    x->header.cap = 4096;
    for (int i = 0; i < run->parameters; i++)
        for (int k = 0; k < weights_pieces(run->job, run->parameter[i].state); k++) {
            PublishItem *p = &x->item[x->parts++];
            *p = (PublishItem){weights_place(run->job, run->parameter[i].state, k), &run->parameter[i], 0};
            x->header.cap += 6 * strlen(p->p.in.file) + 256;
        }
    if (x->parts > 1)
        qsort(x->item, (size_t)x->parts, sizeof *x->item, by_file);
    if (!(x->header.at = malloc(x->header.cap)))
        return complain(STATUS_RUN, "no memory for --export");
    lay_out(x, run->job->published);
    if ((size_t)snprintf(x->dir, sizeof x->dir, "%s", run->opt.publish) >= sizeof x->dir)
        return complain(STATUS_RUN, "--export: a path of %zu bytes is too long", strlen(run->opt.publish));
    snprintf(x->whole, sizeof x->whole, "%s/model.safetensors", x->dir);
    snprintf(x->file, sizeof x->file, "%s.part", x->whole);
    return run->main ? probe(x) : DONE;
}

/* Room for the largest parameter of the stage: its numbers, and its bytes.  The system gives pages when they are written. */
int publish_room(Worker *w)
{
    int64_t most = 0;
    for (int i = 0; w->run->opt.publish && i < w->info->states; i++)
        if (w->info->state[i].kind == STATE_PARAM && w->info->state[i].n > most)
            most = w->info->state[i].n;
    if (most && !(w->room = malloc((size_t)most * 2 * sizeof *w->room)))
        return complain(STATUS_RUN, "no memory for --export: %lld numbers twice", (long long)most);
    return DONE;
}

void publish_close(Run *run)
{
    if (run->publish) {
        free(run->publish->item);
        free(run->publish->header.at);
    }
    free(run->publish);
}

/* ---- after the last ---------------------------------------------------------------------------------------------- */

/* Its rows as the tensor has them: all at once, or, of a part, a group at a time. */
static bool write_parameter(Worker *w, const Publish *x, const PublishItem *p, int file)
{
    const StateInfo *s = p->item->state;
    int type = w->run->job->published;
    int64_t all = p->p.in.pieces ? p->p.n : s->n;
    unsigned char *bytes = (unsigned char *)(w->room + all);
    Rows r = place_rows(&p->p, s);
    char *next = (char *)w->room;
    item_read(w, p->item, (long)place_first(&p->p), (long)all, copy_piece, &next);
    if (copy_of(w) > 0)
        return true;            /* the first device of the stage writes it */
    for (int64_t i = 0; i < r.rows; i++)
        place_narrow(bytes + (p->p.in.turn ? place_row(&p->p, &r, i) : i * r.width) * x->size, w->room + i * r.width, type,
                     r.step, r.width);
    int64_t groups = p->p.in.rows ? p->p.in.groups : 1, each = r.rows / groups;
    size_t n = (size_t)(all / groups * x->size);
    for (int64_t g = 0; g < groups; g++) {
        off_t at = (off_t)(x->header.n + (size_t)p->at) + (off_t)(place_row(&p->p, &r, g * each) * x->size);
        if (lseek(file, at, SEEK_SET) != at || !write_all(file, bytes + (size_t)g * n, n))
            return false;
    }
    atomic_fetch_add(&w->beat, 1);
    return true;
}

static bool write_mine(Worker *w, int file)
{
    const Publish *x = w->run->publish;
    bool good = file >= 0;
    for (int i = 0; i < x->parts; i++)
        if (item_here(w, x->item[i].item) && (good || x->item[i].item->state->outer || x->item[i].item->state->cut))
            good = write_parameter(w, x, &x->item[i], file) && good;
    return good;
}

int publish_write(Worker *w)
{
    const Publish *x = w->run->publish;
    if (w->stage.index == 0)
        mkdir(x->dir, 0777);
    return part_write(w, x->file, x->whole, &x->header, write_mine);
}
