/* SPDX-License-Identifier: Apache-2.0
 *
 * states.c: the states of a library's job: by name, as a hash, and as bytes that outlive the program.
 *
 * A stage says what it is by calling stage_take(); its rows live as long as that call.  So the next stage is asked inside it,
 * and whatever goes through states is done in the innermost one, where the rows of all stages are alive.  Order is by name,
 * which no plan changes: of all names the next larger one is looked for, which takes time and no memory.
 *
 * A parameter has one row that owns it, in the first replica.  What leaves is read there; what comes goes to every row of its
 * name.  A row may have a part alone: where replicas update parts, and where devices of a stage share it (rt/team.h).
 */
#include <string.h>
#include "inside.h"
#include "little.h"
#include "sha256.h"
#include "values.h"

enum { SAVED_HEAD = 160, SAVED_FORMAT = 1 };
enum { PIECE = __STDC_HOSTED__ ? 2048 : 64, SAVED_KINDS = 5 };     /* elements on the stack, of which a board has little */

typedef struct Visit Visit;
struct Visit {
    Stages to;                  /* first */
    void (*see)(Visit *v);
    const StageInfo *stage[JOB_SOURCES];
    int stages;                 /* that have spoken */
    library_job *job;
    const char *name;
    float *out;
    const float *in;
    unsigned char *bytes;
    size_t n;
    int number, status;
    library_about *about;
    char *hex;
};

void stage_take(Stages *to, const StageInfo *s)
{
    Visit *v = (Visit *)(void *)to;
    v->stage[v->stages++] = s;
    if (v->stages < JOB_SOURCES)
        source[v->stages](to);
    else
        v->see(v);
}

static int visit(Visit *v, void (*see)(Visit *v))
{
    v->see = see;
    source[0](&v->to);
    return v->status || !v->job || !v->job->lost ? v->status : LIBRARY_LOST;
}

typedef struct { const Parameter *p; int stage; } StateRow;          /* p NULL: there is none */

/* The rows of all stages behind `r`, or of this name alone.  p NULL: from the first one of its stage on. */
static StateRow next_row(const Visit *v, StateRow r, const char *name)
{
    for (; r.stage < JOB_SOURCES; r = (StateRow){NULL, r.stage + 1}) {
        const StageInfo *s = v->stage[r.stage];
        for (r.p = r.p ? r.p + 1 : s->parameter; r.p < s->parameter + s->parameters; r.p++)
            if (!name || !order_of(r.p->name, name))
                return r;
    }
    return (StateRow){NULL, 0};
}

static bool is_owner(StateRow r)
{
    return r.stage < JOB_HOMES && !r.p->shared;
}

/* The parameter with the least name behind this one, NULL: with the least of all. */
static StateRow next_owner(const Visit *v, const char *last)
{
    StateRow best = {NULL, 0};
    for (StateRow r = next_row(v, best, NULL); r.p; r = next_row(v, r, NULL))
        if (is_owner(r) && (!last || order_of(r.p->name, last) > 0) && (!best.p || order_of(r.p->name, best.p->name) < 0))
            best = r;
    return best;
}

static StateRow owner_of(const Visit *v, const char *name)
{
    StateRow r = {NULL, 0};
    while (name && (r = next_row(v, r, name)).p && !is_owner(r))
        ;
    return r;
}

static size_t elements(const Parameter *p)
{
    size_t n = 1;
    for (int i = 0; i < 6 && p->shape[i] > 0; i++)
        n *= (size_t)p->shape[i];
    return n;
}

/* ---- where elements lie ------------------------------------------------------------------------------------------------ */

static size_t less(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Which element of what the device has is element `e`; NOWHERE: it lies elsewhere.  So are the next ones, *n in all. */
static size_t lies(const Parameter *p, int shard, bool cut, size_t e, size_t *n)
{
    size_t at = e;
    if (p->outer) {
        size_t run = elements(p) / (size_t)p->outer, room = (size_t)p->room, in = e % run, first = (size_t)shard * room;
        size_t until = first + room;
        *n = less(*n, (in < first ? less(first, run) : in < until ? less(until, run) : run) - in);
        if (in < first || in >= until)
            return NOWHERE;
        at = e / run * room + in - first;
    }
    if (cut) {
        size_t first = (size_t)p->from, until = first + (size_t)p->part;
        *n = at < until ? less(*n, (at < first ? first : until) - at) : *n;
        if (at < first || at >= until)
            return NOWHERE;
        at -= first;
    }
    return at;
}

/* What is saved of a parameter, and in what order: 0 the parameter, then what its optimiser has of it.  0: it has none. */
static size_t state_at(const Parameter *p, int kind)
{
    const size_t at[SAVED_KINDS] = {p->param, p->moment1, p->moment2, p->centre, p->drift};
    return at[kind] == EMPTY ? 0 : at[kind];
}

/* Elements from .. from+n-1 that a device has of a state: to `out`, else they become `in`, in f32 and in the copy that kernels
 * read.  Where a replica has a part of the parameter, each step makes the copy again. */
static void move(const Worker *w, const Parameter *p, int kind, size_t from, size_t n, float *out, const float *in)
{
    size_t at = state_at(p, kind);
    if (!w->stage.arena)
        return;                 /* it is in another process */
    float *x = at ? (float *)(void *)(w->stage.arena + at - 1) : NULL;
    bool cut = p->cut & (kind ? CUT_MOMENTS : CUT_PARAM);
    uint16_t *copy = !kind && p->copy && !cut ? (uint16_t *)(void *)(w->stage.arena + p->copy - 1) : NULL;
    for (size_t done = 0, k; done < n; done += k) {
        k = n - done;
        size_t here = lies(p, w->stage.shard, cut, from + done, &k);
        if (here == NOWHERE)
            continue;
        if (out && x)
            memcpy(out + done, x + here, k * sizeof *x);
        if (in && x && in + done != x + here)
            memcpy(x + here, in + done, k * sizeof *x);
        for (size_t i = 0; out && !x && copy && i < k; i++)
            out[done + i] = bf16_float(copy[here + i]);
        for (size_t i = 0; in && copy && i < k; i++)
            copy[here + i] = float_bf16(in[done + i]);
    }
}

/* On all devices of the stage of a row. */
static void place(const Visit *v, StateRow r, int kind, size_t from, const float *x, size_t n)
{
    for (int i = r.stage; i < JOB_STAGES; i += JOB_SOURCES)
        move(&v->job->worker[i], r.p, kind, from, n, NULL, x);
}

static void fetch(const Visit *v, StateRow owner, int kind, size_t from, float *x, size_t n)
{
    int copies = owner.p->cut & (kind ? CUT_MOMENTS : CUT_PARAM) ? JOB_REPLICAS : 1;
    for (int q = 0; q < copies; q++) {
        StateRow r = q ? next_row(v, (StateRow){NULL, owner.stage + q * JOB_HOMES}, owner.p->name) : owner;
        for (int i = r.stage; i < JOB_STAGES; i += JOB_SOURCES)
            move(&v->job->worker[i], r.p, kind, from, n, x, NULL);
        crew_spread(v->job, r.stage, x, n * sizeof *x);
    }
}

/* ---- what is done with all of them ------------------------------------------------------------------------------------- */

static void see_open(Visit *v)
{
    for (int i = 0; i < JOB_STAGES; i++) {
        StageInfo *info = &v->job->worker[i].info;
        *info = *v->stage[i % JOB_SOURCES];
        info->parameter = NULL;                 /* it goes with this call */
    }
}

static void see_start(Visit *v)
{
    float piece[PIECE];
    for (StateRow r = next_row(v, (StateRow){NULL, 0}, NULL); r.p; r = next_row(v, r, NULL)) {
        const Parameter *p = r.p;
        Start start = {p->start.kind, p->start.a, p->start.b, 0, p->start.values};
        for (int axis = 0; axis < 6 && p->shape[axis]; axis++)
            start.width = p->shape[axis];
        for (int kind = 0; kind < SAVED_KINDS; kind++)
            for (size_t from = 0, n = kind && !state_at(p, kind) ? 0 : elements(p), k; from < n; from += k) {
                k = less(n - from, PIECE);
                if (!kind)
                    start_fill(piece, p->name, &start, job.seed, (long)from, (long)k);
                else
                    memset(piece, 0, sizeof piece);
                place(v, r, kind, from, piece, k);
            }
    }
}

static void see_about(Visit *v)
{
    StateRow r = next_owner(v, NULL);
    for (int i = 0; r.p && i < v->number; i++)
        r = next_owner(v, r.p->name);
    v->status = r.p && v->number >= 0 ? LIBRARY_OK : LIBRARY_USE;
    if (v->status)
        return;
    *v->about = (library_about){r.p->name, elements(r.p), 0, {1, 1, 1, 1, 1, 1}};
    for (; v->about->axes < LIBRARY_AXES && r.p->shape[v->about->axes] > 0; v->about->axes++)
        v->about->shape[v->about->axes] = r.p->shape[v->about->axes];
}

/* NULL: some process refuses. */
static StateRow asked_row(Visit *v, bool given)
{
    StateRow r = owner_of(v, v->name);
    if (!r.p)
        v->status = job_refuse(v->job, LIBRARY_USE, "there is no parameter %s; library_parameter() lists them",
                           v->name ? v->name : "without a name");
    else if (elements(r.p) != v->n || !given)
        v->status = job_refuse(v->job, LIBRARY_USE, "parameter %s has %d elements, not %d", r.p->name, (int64_t)elements(r.p),
                           (int64_t)(given ? v->n : 0));
    v->status = job_agree(v->job, v->status);
    return v->status ? (StateRow){NULL, 0} : r;
}

static void see_read(Visit *v)
{
    StateRow r = asked_row(v, v->out != NULL);
    if (r.p)
        fetch(v, r, 0, 0, v->out, v->n);
}

static void see_write(Visit *v)
{
    StateRow r = asked_row(v, v->in != NULL);
    const char *name = r.p ? r.p->name : NULL;
    for (r = (StateRow){NULL, 0}; name && (r = next_row(v, r, name)).p;)
        place(v, r, 0, 0, v->in, v->n);
}

static void see_hash(Visit *v)
{
    Digest d;
    float piece[PIECE];
    digest_start(&d);
    for (StateRow r = next_owner(v, NULL); r.p; r = next_owner(v, r.p->name)) {
        const char *end = r.p->name;
        while (*end)
            end++;
        digest_add(&d, r.p->name, (size_t)(end - r.p->name) + 1);
        for (size_t from = 0, n = elements(r.p), k; from < n; from += k) {
            k = less(n - from, PIECE);
            fetch(v, r, 0, from, piece, k);
            little(piece, k, sizeof *piece);
            digest_add(&d, piece, k * sizeof *piece);
        }
    }
    digest_end(&d, v->hex);
}

/* Bytes of a state that are saved: those of a parameter in bf16 alone are two an element. */
static size_t saved_width(const Parameter *p, int kind)
{
    const size_t is[SAVED_KINDS] = {p->param || p->copy, p->moment1, p->moment2, p->centre, p->drift};
    return !is[kind] ? 0 : kind || p->param ? sizeof(float) : sizeof(uint16_t);
}

static void save_piece(const Visit *v, StateRow r, int kind, size_t from, size_t k)
{
    float piece[PIECE];
    uint16_t half[PIECE];
    fetch(v, r, kind, from, piece, k);
    for (size_t i = 0; i < k; i++)
        half[i] = float_bf16(piece[i]);
    size_t width = saved_width(r.p, kind);
    little(memcpy(v->bytes + v->n + from * width, width == sizeof *half ? (void *)half : piece, k * width), k, width);
}

/* To every row of the name. */
static void load_piece(const Visit *v, StateRow owner, int kind, size_t from, size_t k)
{
    float piece[PIECE];
    uint16_t half[PIECE];
    size_t width = saved_width(owner.p, kind);
    little(memcpy(width == sizeof *half ? (void *)half : piece, v->bytes + v->n + from * width, k * width), k, width);
    for (size_t i = 0; width == sizeof *half && i < k; i++)
        piece[i] = bf16_float(half[i]);
    for (StateRow r = {NULL, 0}; (r = next_row(v, r, owner.p->name)).p;)
        place(v, r, kind, from, piece, k);
}

/* To `bytes`, or if v->number from there, NULL: counted alone. */
static void see_saved(Visit *v)
{
    for (StateRow r = next_owner(v, NULL); r.p; r = next_owner(v, r.p->name))
        for (int kind = 0; kind < SAVED_KINDS; kind++) {
            size_t all = saved_width(r.p, kind) ? elements(r.p) : 0;
            for (size_t from = 0, k; from < all && v->bytes; from += k) {
                k = less(all - from, PIECE);
                (v->number ? load_piece : save_piece)(v, r, kind, from, k);
            }
            v->n += all * saved_width(r.p, kind);
        }
}

void job_describe(library_job *j)
{
    Visit v = {.job = j};
    visit(&v, see_open);
}

void job_start(library_job *j)
{
    Visit v = {.job = j};
    visit(&v, see_start);
    j->done = 0;
    j->lost = false;
}

/* ---- states -------------------------------------------------------------------------------------------------------------- */

int library_parameter(int i, library_about *about)
{
    Visit v = {.number = i, .about = about};
    return about ? visit(&v, see_about) : LIBRARY_USE;
}

int library_read(library_job *j, const char *name, float *to, size_t n)
{
    Visit v = {.job = j, .name = name, .out = to, .n = n};
    int status = job_enter(j);
    return status ? status : visit(&v, see_read);
}

int library_write(library_job *j, const char *name, const float *from, size_t n)
{
    Visit v = {.job = j, .name = name, .in = from, .n = n};
    int status = job_enter(j);
    return status ? status : visit(&v, see_write);
}

int library_hash(library_job *j, char hex[65])
{
    Visit v = {.job = j, .hex = hex};
    int status = job_enter(j);
    if (!status && !hex)
        status = job_refuse(j, LIBRARY_USE, "a hash takes 65 characters, and none are given");
    status = job_agree(j, status);
    return status ? status : visit(&v, see_hash);
}

/* ---- bytes that last: mark, format, sum of the rest, key, steps, length, states ----------------------------------------- */

typedef struct { char mark[8]; uint32_t format, zero; char sum[64], key[64]; int64_t steps; uint64_t bytes; } Head;
_Static_assert(sizeof(Head) == SAVED_HEAD, "the head of saved bytes");

static const char saved_mark[8] = {'d', 'p', 'g', 'e', 'n', 'j', 'o', 'b'};

/* Between this machine's numbers and those that are saved. */
static void turn_head(Head *h)
{
    little(&h->format, 1, sizeof h->format);
    little(&h->steps, 1, sizeof h->steps);
    little(&h->bytes, 1, sizeof h->bytes);
}

static void sum_of(char to[64], const void *data, size_t n)
{
    char hex[65];
    Digest d;
    digest_start(&d);
    digest_add(&d, data, n);
    digest_end(&d, hex);
    memcpy(to, hex, 64);
}

static void sum_of_key(char to[64])
{
    size_t n = 0;
    while (job.key[n])
        n++;
    sum_of(to, job.key, n);
}

size_t library_saved(void)
{
    Visit v = {.job = NULL};
    visit(&v, see_saved);
    return SAVED_HEAD + v.n;
}

int library_save(library_job *j, void *to, size_t bytes)
{
    enum { SUMMED = offsetof(Head, key) };
    int status = job_enter(j);
    size_t all = library_saved();
    if (!status && (!to || bytes < all))
        status = job_refuse(j, LIBRARY_USE, "room for %d bytes, and this job saves %d", (int64_t)(to ? bytes : 0),
                            (int64_t)all);
    status = job_agree(j, status);
    if (status)
        return status;
    Head h = {.format = SAVED_FORMAT, .steps = j->done, .bytes = all};
    Visit v = {.job = j, .bytes = (unsigned char *)to + SAVED_HEAD};
    memcpy(h.mark, saved_mark, sizeof h.mark);
    sum_of_key(h.key);
    turn_head(&h);
    status = visit(&v, see_saved);
    memcpy(to, &h, sizeof h);
    sum_of(h.sum, (char *)to + SUMMED, all - SUMMED);
    memcpy(to, &h, sizeof h);
    return status;
}

static int check_saved(library_job *j, const void *from, size_t bytes)
{
    enum { SUMMED = offsetof(Head, key) };
    size_t all = library_saved();
    char sum[64];
    Head h;
    if (!from || bytes < sizeof h)
        return job_refuse(j, LIBRARY_FOREIGN, "%d bytes are too few for a saved job, which has %d", (int64_t)(from ? bytes : 0),
                      (int64_t)all);
    memcpy(&h, from, sizeof h);
    turn_head(&h);
    if (memcmp(h.mark, saved_mark, sizeof h.mark) || h.format != SAVED_FORMAT || h.zero)
        return job_refuse(j, LIBRARY_FOREIGN, "these bytes are no saved job of format %d", (int64_t)SAVED_FORMAT);
    sum_of_key(sum);
    if (memcmp(sum, h.key, sizeof sum))
        return job_refuse(j, LIBRARY_FOREIGN, "these bytes were saved by a job with another numeric key");
    if (h.bytes != all || bytes < all)
        return job_refuse(j, LIBRARY_FOREIGN, "%d bytes are given, and this job saves %d", (int64_t)bytes, (int64_t)all);
    sum_of(sum, (const char *)from + SUMMED, all - SUMMED);
    if (memcmp(sum, h.sum, sizeof sum))
        return job_refuse(j, LIBRARY_FOREIGN, "the saved bytes are damaged: their SHA-256 is another one");
    return LIBRARY_OK;
}

int library_load(library_job *j, const void *from, size_t bytes)
{
    int status = job_enter_lost(j);
    if (!status)
        status = check_saved(j, from, bytes);
    status = job_agree(j, status);
    if (status)
        return status;
    Visit v = {.job = j, .bytes = (unsigned char *)(uintptr_t)from + SAVED_HEAD, .number = 1};
    Head h;
    memcpy(&h, from, sizeof h);
    turn_head(&h);
    visit(&v, see_saved);
    j->done = h.steps;
    j->lost = false;
    return LIBRARY_OK;
}
