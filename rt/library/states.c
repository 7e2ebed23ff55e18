/* SPDX-License-Identifier: Apache-2.0
 *
 * states.c: the states of a library's job: by name, as a hash, and as bytes that outlive the program.
 *
 * The stage says what it is by calling stage_take(); its rows live as long as that call, so whatever goes through states is
 * done inside it.  Order is by name, which no plan changes: of all names the next larger one is looked for, which takes time
 * and no memory.
 */
#include <string.h>
#include "begin.h"
#include "inside.h"
#include "sha256.h"

enum { SAVED_HEAD = 160, SAVED_FORMAT = 1 };

typedef struct Visit Visit;
struct Visit {
    Stages to;                  /* first */
    void (*see)(Visit *v, const StageInfo *s);
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
    v->see(v, s);
}

static int visit(Visit *v, void (*see)(Visit *v, const StageInfo *s))
{
    v->see = see;
    source[0](&v->to);
    return v->status;
}

static size_t elements(const Parameter *p)
{
    size_t n = 1;
    for (int i = 0; i < 6 && p->shape[i] > 0; i++)
        n *= (size_t)p->shape[i];
    return n;
}

/* The parameter with the least name behind this one, NULL: with the least of all.  NULL: there is none. */
static const Parameter *next_row(const StageInfo *s, const Parameter *last)
{
    const Parameter *best = NULL;
    for (int i = 0; i < s->parameters; i++) {
        const Parameter *p = &s->parameter[i];
        if ((!last || order_of(p->name, last->name) > 0) && (!best || order_of(p->name, best->name) < 0))
            best = p;
    }
    return best;
}

static const Parameter *named_row(const StageInfo *s, const char *name)
{
    for (int i = 0; name && i < s->parameters; i++)
        if (!order_of(s->parameter[i].name, name))
            return &s->parameter[i];
    return NULL;
}

/* A parameter: its master in f32, NULL: it has none; the copy that kernels read in bf16, NULL: likewise. */
static float *master_of(const library_job *job, const Parameter *p)
{
    return p->param ? (float *)(void *)(job->stage.arena + p->param - 1) : NULL;
}

static uint16_t *copy_of(const library_job *job, const Parameter *p)
{
    return p->copy ? (uint16_t *)(void *)(job->stage.arena + p->copy - 1) : NULL;
}

/* Elements from .. from+n-1 of a parameter change: both of what it has. */
static void place(library_job *job, const Parameter *p, size_t from, const float *x, size_t n)
{
    float *master = master_of(job, p);
    uint16_t *copy = copy_of(job, p);
    if (master && master + from != x)
        memcpy(master + from, x, n * sizeof *x);
    for (size_t i = 0; copy && i < n; i++)
        copy[from + i] = float_bf16(x[i]);
}

static void fetch(const library_job *job, const Parameter *p, size_t from, float *x, size_t n)
{
    const float *master = master_of(job, p);
    if (master)
        memcpy(x, master + from, n * sizeof *x);
    for (size_t i = 0; !master && i < n; i++)
        x[i] = bf16_float(copy_of(job, p)[from + i]);
}

enum { PIECE = 64, SAVED_KINDS = 5 };

/* What is saved of a parameter, and in what order: 0 the parameter, then what its optimiser has of it. */
static unsigned char *saved_state(const library_job *job, const Parameter *p, int kind, size_t *bytes)
{
    const size_t at[SAVED_KINDS] = {p->param ? p->param : p->copy, p->moment1, p->moment2, p->centre, p->drift};
    *bytes = at[kind] ? elements(p) * (kind || p->param ? sizeof(float) : sizeof(uint16_t)) : 0;
    return job && at[kind] ? job->stage.arena + at[kind] - 1 : NULL;
}

static void see_open(Visit *v, const StageInfo *s)
{
    v->job->info = *s;
    v->job->info.parameter = NULL;              /* it goes with this call */
}

static void see_start(Visit *v, const StageInfo *s)
{
    float piece[PIECE];
    size_t bytes;
    for (int i = 0; i < s->parameters; i++) {
        const Parameter *p = &s->parameter[i];
        Start start = {p->start.kind, p->start.a, p->start.b, 0, p->start.values};
        for (int axis = 0; axis < 6 && p->shape[axis]; axis++)
            start.width = p->shape[axis];
        for (size_t from = 0, n = elements(p), k; from < n; from += k) {
            k = n - from < PIECE ? n - from : PIECE;
            start_fill(piece, p->name, &start, job.seed, (long)from, (long)k);
            place(v->job, p, from, piece, k);
        }
        for (int kind = 1; kind < SAVED_KINDS; kind++) {
            unsigned char *state = saved_state(v->job, p, kind, &bytes);
            if (state)
                memset(state, 0, bytes);
        }
    }
}

static void see_about(Visit *v, const StageInfo *s)
{
    const Parameter *p = next_row(s, NULL);
    for (int i = 0; p && i < v->number; i++)
        p = next_row(s, p);
    v->status = p && v->number >= 0 ? LIBRARY_OK : LIBRARY_USE;
    if (v->status)
        return;
    *v->about = (library_about){p->name, elements(p), 0, {1, 1, 1, 1, 1, 1}};
    for (; v->about->axes < LIBRARY_AXES && p->shape[v->about->axes] > 0; v->about->axes++)
        v->about->shape[v->about->axes] = p->shape[v->about->axes];
}

static const Parameter *asked_row(Visit *v, const StageInfo *s, bool given)
{
    const Parameter *p = named_row(s, v->name);
    if (!p)
        v->status = job_refuse(v->job, LIBRARY_USE, "there is no parameter %s; library_parameter() lists them",
                           v->name ? v->name : "without a name");
    else if (elements(p) != v->n || !given)
        v->status = job_refuse(v->job, LIBRARY_USE, "parameter %s has %d elements, not %d", p->name, (int64_t)elements(p),
                           (int64_t)(given ? v->n : 0));
    return v->status ? NULL : p;
}

static void see_read(Visit *v, const StageInfo *s)
{
    const Parameter *p = asked_row(v, s, v->out != NULL);
    if (p)
        fetch(v->job, p, 0, v->out, v->n);
}

static void see_write(Visit *v, const StageInfo *s)
{
    const Parameter *p = asked_row(v, s, v->in != NULL);
    if (p)
        place(v->job, p, 0, v->in, v->n);
}

static void see_hash(Visit *v, const StageInfo *s)
{
    Digest d;
    float piece[PIECE];
    digest_start(&d);
    for (const Parameter *p = next_row(s, NULL); p; p = next_row(s, p)) {
        const char *end = p->name;
        while (*end)
            end++;
        digest_add(&d, p->name, (size_t)(end - p->name) + 1);
        for (size_t from = 0, n = elements(p), k; from < n; from += k) {
            k = n - from < PIECE ? n - from : PIECE;
            fetch(v->job, p, from, piece, k);
            digest_add(&d, piece, k * sizeof *piece);
        }
    }
    digest_end(&d, v->hex);
}

/* To `bytes`, or if v->number from there, NULL: counted alone. */
static void see_saved(Visit *v, const StageInfo *s)
{
    for (const Parameter *p = next_row(s, NULL); p; p = next_row(s, p))
        for (int kind = 0; kind < SAVED_KINDS; kind++) {
            size_t bytes;
            unsigned char *state = saved_state(v->job, p, kind, &bytes);
            if (v->bytes && bytes && v->number)
                memcpy(state, v->bytes + v->n, bytes);
            else if (v->bytes && bytes)
                memcpy(v->bytes + v->n, state, bytes);
            v->n += bytes;
        }
    for (int i = 0; v->bytes && v->number && i < s->parameters; i++)    /* copies follow their masters */
        if (s->parameter[i].param)
            place(v->job, &s->parameter[i], 0, master_of(v->job, &s->parameter[i]), elements(&s->parameter[i]));
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
    return status ? status : visit(&v, see_hash);
}

/* ---- bytes that last: mark, format, sum of the rest, key, steps, length, states ----------------------------------------- */

typedef struct { char mark[8]; uint32_t format, zero; char sum[64], key[64]; int64_t steps; uint64_t bytes; } Head;
_Static_assert(sizeof(Head) == SAVED_HEAD, "the head of saved bytes");

static const char saved_mark[8] = {'d', 'p', 'g', 'e', 'n', 'j', 'o', 'b'};

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
    if (status)
        return status;
    Head h = {.format = SAVED_FORMAT, .steps = j->done, .bytes = all};
    Visit v = {.job = j, .bytes = (unsigned char *)to + SAVED_HEAD};
    memcpy(h.mark, saved_mark, sizeof h.mark);
    sum_of_key(h.key);
    visit(&v, see_saved);
    memcpy(to, &h, sizeof h);
    sum_of(h.sum, (char *)to + SUMMED, all - SUMMED);
    memcpy(to, &h, sizeof h);
    return LIBRARY_OK;
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
    int status = job_enter(j);
    if (!status)
        status = check_saved(j, from, bytes);
    if (status)
        return status;
    Visit v = {.job = j, .bytes = (unsigned char *)(uintptr_t)from + SAVED_HEAD, .number = 1};
    Head h;
    memcpy(&h, from, sizeof h);
    visit(&v, see_saved);
    j->done = h.steps;
    return LIBRARY_OK;
}
