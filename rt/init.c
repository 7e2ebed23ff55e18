/* SPDX-License-Identifier: Apache-2.0
 *
 * init.c: start values of parameters and moments.
 *
 * Element i of a parameter is a function of (seed, name, i): the same bits for every partition, whichever stage holds
 * it, and on every stage that holds a copy of a tied one (begin.c).  Cost: about 30 ns an element of one core; the stages
 * of a process share the cores, as each block of elements is drawn by several threads.  Large tables take longer than the
 * watchdog waits, so that every block is a sign of life.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "real.h"
#include "run.h"

/* Pieces are even, so that pairs stay pairs. */
enum { PIECE = 4096, BLOCK = 1 << 20, MOST_THREADS = 16 };

void init_widen(float *to, const uint16_t *from, long n)
{
    for (long i = 0; i < n; i++)
        to[i] = bf16_float(from[i]);
}

void init_place(Worker *w, const StateInfo *s, int64_t version, const float *from, long first, long n)
{
    float *data = state_data(w, s, version);
    uint16_t *copy = s->bits ? NULL : state_copy(w, s, version), narrow[PIECE];
    if (s->outer) {
        job_parts.divided->place(w, s, data, copy, from, first, n);
        return;
    }
    if (s->bits)
        job_parts.quantized->place(w, s, from, first, n);
    long begin = s->cut && first < s->from ? s->from : first, here = s->cut ? s->from : 0;
    long end = s->cut && first + n > s->from + s->part ? s->from + s->part : first + n;
    if (data && end > begin)
        arena_write(w, data + begin - here, from + (begin - first), (size_t)(end - begin) * sizeof *data);
    for (long at = 0; copy && at < n; at += PIECE) {
        long k = n - at < PIECE ? n - at : PIECE;
        for (long i = 0; i < k; i++)
            narrow[i] = float_bf16(from[at + i]);
        arena_write(w, copy + first + at, narrow, (size_t)k * sizeof *copy);
    }
}

typedef struct { pthread_t thread; bool begun; float *x; const StateInfo *s; uint64_t seed; long first, n; } Share;

static void *fill_share(void *share)
{
    const Share *f = share;
    start_fill(f->x, f->s->name, &(Start){f->s->init, f->s->a, f->s->b, f->s->dim[f->s->ndim - 1], f->s->values},
               f->seed, f->first, f->n);
    return NULL;
}

/* Elements first .. first+n-1, by this thread and others; a share that no thread can be had for is this one's too. */
static void fill(float *x, const StateInfo *s, uint64_t seed, long first, long n, int threads)
{
    Share share[MOST_THREADS];
    long pieces = (n + PIECE - 1) / PIECE;
    for (int i = threads; i-- > 0;) {
        long from = pieces * i / threads * PIECE, until = i == threads - 1 ? n : pieces * (i + 1) / threads * PIECE;
        share[i] = (Share){.x = x + from, .s = s, .seed = seed, .first = first + from, .n = until - from};
        share[i].begun = i > 0 && until > from && pthread_create(&share[i].thread, NULL, fill_share, &share[i]) == 0;
        if (!share[i].begun)
            fill_share(&share[i]);
    }
    for (int i = 1; i < threads; i++)
        if (share[i].begun)
            pthread_join(share[i].thread, NULL);
}

/* Every version of a parameter begins as the first one. */
static int start_parameter(Worker *w, const StateInfo *s)
{
    long record = s->bits ? job_parts.quantized->each(s) : PIECE, whole = record % 2 ? 2 * record : record;
    long most_once = (BLOCK + whole - 1) / whole * whole;       /* records of few bits are made whole, and pairs stay pairs */
    float piece[PIECE], *block = s->n > PIECE ? malloc((size_t)most_once * sizeof *block) : NULL, *x = block ? block : piece;
    long each = block ? most_once : PIECE, cores = sysconf(_SC_NPROCESSORS_ONLN) / w->run->count;
    if (!block && s->n > PIECE && PIECE % whole)
        return complain(STATUS_RUN, "no memory to make the start of `%s`, a row of %ld at a time", s->name, record);
    int most = cores < 1 ? 1 : cores < MOST_THREADS ? (int)cores : MOST_THREADS;
    for (long from = 0; from < s->n; from += each) {
        long n = s->n - from < each ? s->n - from : each;
        fill(x, s, w->run->job->seed, from, n, n < BLOCK / 4 ? 1 : most);
        for (int v = 0; v < state_versions(s); v++)
            init_place(w, s, v, x, from, n);
        atomic_fetch_add(&w->beat, 1);
    }
    free(block);
    return DONE;
}

static void start_moment(Worker *w, const StateInfo *s)
{
    static const float zero[PIECE];
    float *zeros = s->n > PIECE ? calloc(BLOCK, sizeof *zeros) : NULL;
    long each = zeros ? BLOCK : PIECE;
    for (long from = 0; from < s->n; from += each)
        init_place(w, s, 0, zeros ? zeros : zero, from, s->n - from < each ? s->n - from : each);
    free(zeros);
}

/* Those that files of weights have come from there. */
int init_parameters(Worker *w)
{
    bool all = !w->run->opt.weights;
    int status = DONE;
    for (int i = 0; i < w->info->states && status == DONE; i++) {
        const StateInfo *s = &w->info->state[i];
        if (s->kind == STATE_PARAM && (all || s->files))
            status = start_parameter(w, s);
        else if (s->kind != STATE_PARAM && s->kind != STATE_GRAD)
            start_moment(w, s);
    }
    return status;
}
