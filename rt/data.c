/* SPDX-License-Identifier: Apache-2.0
 *
 * data.c: samples for the data inputs of a step.
 *
 * The sample at a place is a function of (seed, step, sample in the step) alone.  It is therefore the same for every stage
 * count and after every resume.  Samples are numbered through: ((step micro) + micro-batch) batch + place in it.
 *
 * Of token formats all files make one stream of n tokens.  A sample is T+1 neighbours: `tokens` the first T, `next` the last T.
 * Drawn: sample i starts at a Philox draw in [0, n-T), anew for each i, as in nanoGPT.  In order: at T (i mod whole windows).
 * In other formats a sample is a row (data_rows.c).
 *
 * Training draws unless the model file says sequential; an evaluation goes in order.
 *
 * Every id is compared with the declared range before a kernel sees it, because it indexes memory there.  Only a target that
 * all losses pass over may lie outside.  Files are mapped, not read: a file that is cut short while a job runs ends it with a
 * bus error.  Not handled: windows stop at no document border; nothing is decoded or converted but the width of numbers.
 */
#include <stdlib.h>
#include <string.h>
#include "data.h"
#include "link.h"
#include "number.h"

/* ---- elements ------------------------------------------------------------------------------------------------ */

size_t data_width(Element kind)
{
    static const size_t width[] = {1, 2, 4, 1, 2, 4, 8, 4, 4};
    return width[kind];
}

uint64_t data_bits(const unsigned char *at, int bytes)
{
    uint64_t u = 0;
    for (int i = 0; i < bytes; i++)
        u |= (uint64_t)at[i] << (8 * i);
    return u;
}

int64_t data_integer(const unsigned char *at, Element kind)
{
    int bytes = (int)data_width(kind);
    uint64_t u = data_bits(at, bytes);
    int32_t here;
    if (kind == DATA_HERE)
        return *(int32_t *)memcpy(&here, at, sizeof here);
    if (kind >= DATA_I8 && bytes < 8 && u >> (8 * bytes - 1))
        u |= ~(uint64_t)0 << (8 * bytes);
    return (int64_t)u;
}

int data_piece(Source *s, const DataFile *f, size_t offset, Element kind, int64_t n)
{
    Piece *last = s->pieces ? &s->piece[s->pieces - 1] : NULL;
    if (n == 0)
        return DONE;
    if (last && last->file == f && last->kind == kind && last->offset + (size_t)last->n * data_width(kind) == offset) {
        last->n += n;
        s->tokens += n;
        return DONE;
    }
    if (s->pieces == s->room) {
        int64_t room = s->room ? 2 * s->room : 16;
        Piece *more = realloc(s->piece, (size_t)room * sizeof *more);
        if (!more)
            return complain(STATUS_RUN, "data: no memory for the index of %s", f->path);
        s->piece = more;
        s->room = room;
    }
    s->piece[s->pieces++] = (Piece){f, offset, kind, s->tokens, n};
    s->tokens += n;
    return DONE;
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

static int64_t window_start(const Source *s, uint64_t seed, int64_t sample)
{
    if (!s->shuffle)
        return sample % ((s->tokens - 1) / s->window) * s->window;
    uint32_t word[4];
    number_draw(seed, DRAW_WINDOW, 0, (uint64_t)sample, word);
    return (int64_t)(((uint64_t)word[1] << 32 | word[0]) % (uint64_t)(s->tokens - s->window));
}

static int64_t sample_of(const Values *v, int mb, long place)
{
    return (v->step * (v->eval ? 1 : v->micro) + mb) * v->batch + place;
}

int64_t data_cursor(const Job *job, int64_t step)
{
    return step * job->micro * job->batch;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

const Piece *data_at(const Source *s, int64_t position)
{
    int64_t low = 0, high = s->pieces - 1;
    while (low < high) {
        int64_t mid = (low + high + 1) / 2;
        if (s->piece[mid].first <= position)
            low = mid;
        else
            high = mid - 1;
    }
    return &s->piece[low];
}

bool data_store(Stage *st, const InputInfo *in, const DataFile *f, int64_t position, int64_t value, int32_t *to)
{
    bool bounded = in->lo != in->hi;
    if (in->ignores && value == in->ignore)
        bounded = false;
    bool outside = bounded ? value < in->lo || value >= in->hi : value < INT32_MIN || value > INT32_MAX;
    if (outside && st)
        quit(st->link, STATUS_RUN, "data: %s: element %lld is %lld, outside [%lld, %lld) of input `%s`; nothing was "
             "changed by it, checkpoints are as they were", f->path, (long long)position, (long long)value,
             bounded ? (long long)in->lo : INT32_MIN, bounded ? (long long)in->hi : INT32_MAX + 1LL, in->name);
    *to = (int32_t)value;
    return !outside;
}

/* n ids from element `from` of a sample. */
static bool read_tokens(Stage *st, const Source *s, int role, const InputInfo *in, int64_t start, long from, long n,
                        int32_t *to)
{
    int64_t position = start + from + (strcmp(s->info->role[role], "next") == 0);
    while (n > 0) {
        const Piece *p = data_at(s, position);
        int64_t skip = position - p->first, k = p->n - skip < n ? p->n - skip : n;
        size_t width = data_width(p->kind);
        const unsigned char *at = p->file->at + p->offset + (size_t)skip * width;
        int64_t element = (int64_t)(p->offset / width) + skip;
        for (int64_t i = 0; i < k; i++)
            if (!data_store(st, in, p->file, element + i, data_integer(at + (size_t)i * width, p->kind), &to[i]))
                return false;
        to += k;
        position += k;
        n -= (long)k;
    }
    return true;
}

static bool read_ids(Stage *st, const Source *s, int role, const InputInfo *in, uint64_t seed, int64_t sample,
                     long from, long n, int32_t *to)
{
    if (!s->array)
        return read_tokens(st, s, role, in, window_start(s, seed, sample), from, n, to);
    return job_parts.rows->ids(st, s, role, in, seed, sample, from, n, to);
}

static const Source *source_of(const Stage *st, const Values *vals, int input, int *role)
{
    const Source *s = vals->eval ? &st->loader->eval : &st->loader->train;
    int roles = s->info ? s->info->roles : 0;
    for (*role = 0; *role < roles && s->info->input[*role] != input;)
        ++*role;
    if (*role == roles)
        quit(st->link, STATUS_RUN, "data: nothing feeds input %d in this data set; this folder is not what dpgen "
             "wrote", input);
    return s;
}

static bool load(Stage *st, Stage *strict, const Values *now, const Read *r, char *to)
{
    int role;
    const Source *s = source_of(st, now, r->input, &role);
    const InputInfo *in = &st->loader->job->input[r->input];
    for (long b = 0, row = r->bytes / now->batch; b < now->batch; b++) {
        int64_t sample = sample_of(now, r->mb, b);
        if (in->type == JOB_F32)
            job_parts.rows->floats(st, s, role, in, now->seed, sample, to + b * row);
        else if (!read_ids(strict, s, role, in, now->seed, sample, 0, in->per, (int32_t *)(void *)(to + b * row)))
            return false;
    }
    return true;
}

/* How many of a sample's targets count; -1: one is outside. */
static long count_sample(Stage *strict, const Source *s, int role, const InputInfo *in, uint64_t seed, int64_t sample,
                         int ignore)
{
    enum { CHUNK = 512 };
    int32_t ids[CHUNK];
    long count = 0;
    for (long from = 0; from < in->per; from += CHUNK) {
        long n = in->per - from < CHUNK ? in->per - from : CHUNK;
        if (!read_ids(strict, s, role, in, seed, sample, from, n, ids))
            return -1;
        for (long i = 0; i < n; i++)
            count += ids[i] != ignore;
    }
    return count;
}

static bool count(Stage *st, Stage *strict, const Values *now, const Read *r, int64_t *to)
{
    int role;
    const Source *s = source_of(st, now, r->input, &role);
    const InputInfo *in = &st->loader->job->input[r->input];
    Values first = *now;
    first.step = now->eval ? 0 : now->step;
    *to = 0;
    for (int mb = 0; mb < now->micro; mb++)
        for (long b = 0; b < now->batch; b++) {
            long n = count_sample(strict, s, role, in, now->seed, sample_of(&first, mb, b), r->ignore);
            if (n < 0)
                return false;
            *to += n;
        }
    return true;
}

bool data_read(Stage *st, const Values *now, const Read *r, void *to, bool early)
{
    Stage *strict = early ? NULL : st;
    return r->mb < 0 ? count(st, strict, now, r, to) : load(st, strict, now, r, to);
}

const InputInfo *data_input(Stage *st, const Values *now, int input, long bytes)
{
    int role;
    source_of(st, now, input, &role);
    const InputInfo *in = &st->loader->job->input[input];
    long row = in->per * 4;
    if (bytes != row * now->batch)
        quit(st->link, STATUS_RUN, "data: input `%s` is loaded with %ld bytes, but %d samples have %ld; this folder "
             "is not what dpgen wrote", in->name, bytes, (int)now->batch, row * now->batch);
    return in;
}

void data_counted(Stage *st, Values *now, const Read *r, int count, const int64_t *given)
{
    int64_t none = 0, *known = now->eval && st->worker ? &st->worker->eval_valid[count] : &none;
    if (given || *known)
        now->valid[count] = given ? *given : *known;
    else
        data_read(st, now, r, &now->valid[count], false);
    *known = now->valid[count];
    if (now->valid[count] == 0 && !now->eval && st->worker && !st->worker->blank)
        st->worker->blank = (now->step + 1) * 8 + r->input + 1;
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

static const DataFormat *format_of(const char *name)
{
    int i = 0;
    while (job_formats[i] && strcmp(job_formats[i]->name, name) != 0)
        i++;
    return job_formats[i];
}

static int check_tokens(Source *s, const Job *job)
{
    for (int i = 0; i < s->info->roles; i++) {
        const InputInfo *in = &job->input[s->info->input[i]];
        if (in->type == JOB_F32 || (s->window && in->per != s->window))
            return complain(STATUS_RUN, "data: input `%s` cannot be fed from tokens: it must be i32 and as long as the "
                            "other token inputs", in->name);
        s->window = in->per;
    }
    if (s->tokens <= s->window)
        return complain(STATUS_RUN, "data: %s and the files with it hold %lld tokens; a sample needs %lld",
                        s->file[0].path, (long long)s->tokens, (long long)s->window + 1);
    return DONE;
}

static int source_files(Source *s, const DataFormat *f, char **name, int n)
{
    int status = DONE;
    bool named = f->layout == ARRAYS, roles = f->layout != STREAM;
    if (named && n != s->info->roles)
        return complain(STATUS_RUN, "data: %d files for %d arrays; give one for each, in the order of the model "
                        "file", n, s->info->roles);
    s->file = calloc((size_t)n, sizeof *s->file);
    s->array = roles ? calloc((size_t)s->info->roles, sizeof *s->array) : NULL;
    if (!s->file || (roles && !s->array))
        return complain(STATUS_RUN, "data: no memory for %d files", n);
    for (int i = 0; i < n && status == DONE; i++, s->files++) {
        status = data_map(&s->file[i], name[i], "data");
        if (status == DONE)
            status = f->open(s, &s->file[i]);
    }
    return status;
}

static int source_open(Source *s, const DataInfo *info, const char *const *patterns, bool shuffle, const Job *job)
{
    const DataFormat *f = format_of(info->format);
    s->info = info;
    s->format = f;
    s->shuffle = shuffle;
    if (!f)
        return complain(STATUS_RUN, "data: format `%s` has no reader", info->format);
    const char *path[64] = {0};
    bool named = f->layout == ARRAYS;
    for (int i = 0; named && !patterns && i < info->roles && i < 63; i++)
        path[i] = info->path[i];
    int n = 0;
    char **name = s->name = data_files(patterns ? patterns : named ? path : info->files, &n);
    if (!name)
        return STATUS_RUN;
    s->names = n;
    int status = source_files(s, f, name, n);
    if (status != DONE)
        return status;
    return f->layout == STREAM ? check_tokens(s, job) : job_parts.rows->check(f, s, job);
}

static void source_close(Source *s)
{
    for (int i = 0; i < s->files; i++)
        data_unmap(&s->file[i]);
    for (int i = 0; i < s->names; i++)
        free(s->name[i]);
    free(s->name);
    free(s->file);
    free(s->array);
    free(s->piece);
}

void data_close(Loader *l)
{
    if (l) {
        source_close(&l->train);
        source_close(&l->eval);
        free(l->number);
    }
    free(l);
}

Loader *data_loader(const Job *job, int *status)
{
    Loader *l = calloc(1, sizeof *l);
    if (l)
        l->job = job;
    if (l && (!job_parts.rows || job_parts.rows->open(l)))
        return l;
    free(l);
    *status = complain(STATUS_RUN, "data: no memory");
    return NULL;
}

Loader *data_done(Loader *l, int status)
{
    if (status == DONE)
        return l;
    data_close(l);
    return NULL;
}

Loader *data_open(Run *run, int *status)
{
    const Job *job = run->job;
    Loader *l = data_loader(job, status);
    if (l && job->train.format && !run->opt.evaluates)
        *status = source_open(&l->train, &job->train, run->opt.data, !job->train.sequential, job);
    if (*status == DONE && job->eval.format)
        *status = source_open(&l->eval, &job->eval, run->opt.eval_data, false, job);
    return data_done(l, *status);
}

Loader *data_given(const Job *job, const int32_t *ids, int64_t n, const char *name, int *status)
{
    Loader *l = data_loader(job, status);
    DataFile *f = calloc(1, sizeof *f);
    if (!l || !f) {
        *status = complain(STATUS_RUN, "no memory for %s", name);
        data_close(l);
        free(f);
        return NULL;
    }
    *f = (DataFile){name, (const unsigned char *)ids, (size_t)n * sizeof *ids};
    l->eval = (Source){.info = &job->eval, .file = f};
    *status = data_piece(&l->eval, f, 0, DATA_HERE, n);
    if (*status == DONE)
        *status = check_tokens(&l->eval, job);
    return data_done(l, *status);
}
