/* SPDX-License-Identifier: Apache-2.0
 *
 * library.c: the job as functions, for a program of somebody else: what rt/main.c and its neighbours are to `train`.
 *
 * It calls memcpy, memset and memcmp alone, and aligned_alloc where there is a system.  The job lies at the begin of its arena,
 * and the arena of the stage behind it.
 *
 * Everything that may be refused is looked at before the first byte changes.  Not handled: several stages, replicas, steps
 * that overlap, copies to the host; dpgen writes no library of these.
 */
#include <stdarg.h>
#include <string.h>
#include "inside.h"
#include "values.h"
#if __STDC_HOSTED__
#include <stdlib.h>
#endif

_Static_assert(sizeof(struct library_job) <= JOB_ROOM, "the job has outgrown its room");
_Static_assert(LIBRARY_ALIGN == 64 && JOB_ROOM % LIBRARY_ALIGN == 0, "alignment");

/* ---- texts ------------------------------------------------------------------------------------------------------------- */

static char *put_text(char *to, const char *end, const char *text)
{
    while (*text && to < end)
        *to++ = *text++;
    return to;
}

static char *put_number(char *to, const char *end, int64_t n)
{
    char digit[24];
    int k = 0;
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    do
        digit[k++] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (n < 0)
        digit[k++] = '-';
    while (k > 0 && to < end)
        *to++ = digit[--k];
    return to;
}

/* %s a text, %d an int64_t. */
static void text_put(char *to, const char *form, va_list given)
{
    const char *end = to + LIBRARY_TEXT - 1;
    for (; *form && to < end; form++)
        if (*form != '%')
            *to++ = *form;
        else if (*++form == 's')
            to = put_text(to, end, va_arg(given, const char *));
        else
            to = put_number(to, end, va_arg(given, int64_t));
    *to = 0;
}

int job_refuse(library_job *job, int status, const char *form, ...)
{
    va_list given;
    va_start(given, form);
    text_put(job->why, form, given);
    va_end(given);
    return status;
}

static library_job *fail_open(char *why, const char *form, ...)
{
    va_list given;
    va_start(given, form);
    if (why)
        text_put(why, form, given);
    va_end(given);
    return NULL;
}

int order_of(const char *a, const char *b)
{
    for (; *a && *a == *b; a++, b++)
        ;
    return (unsigned char)*a - (unsigned char)*b;
}

/* ---- what a stage calls -------------------------------------------------------------------------------------------------- */

static library_job *job_of(Stage *st)
{
    return (library_job *)(void *)st;
}

void action(Stage *st, int number, const char *text)
{
    library_job *j = job_of(st);
    st->at = number;
    if (j->told)
        j->told(j->with, text);
}

void step_begin(Stage *st, Values *vals)
{
    library_job *j = job_of(st);
    values_fill(vals, &job, j->of ? j->micro : j->done, j->of > 0);
    for (int i = 0; i <= job.param_groups && j->of; i++)
        vals[i].micro = (int32_t)j->of;
}

void step_end(Stage *st, Values *vals)
{
    (void)st, (void)vals;
}

static const int32_t *ids_of(const library_job *j, int input)
{
    return j->in[input].at;
}

void data_count(Stage *st, Values *vals, int input, int ignore, int count)
{
    const library_job *j = job_of(st);
    int64_t n = 0;
    for (size_t i = 0; ids_of(j, input) && i < j->in[input].n; i++)
        n += ids_of(j, input)[i] != ignore;
    vals->valid[count] = n;
}

/* What stands where nothing is given: 0, or the least number that the model has room for. */
static void load_nothing(void *to, const InputInfo *in, size_t n)
{
    int32_t least_id = in->lo < in->hi && (in->lo > 0 || in->hi <= 0) ? (int32_t)in->lo : 0;
    if (in->type == JOB_I32)
        for (size_t i = 0; i < n; i++)
            ((int32_t *)to)[i] = least_id;
    else
        memset(to, 0, n * (in->type == JOB_BF16 ? 2 : 4));
}

void data_load(Stage *st, void *to, Values *vals, int input, int mb, long bytes)
{
    const library_job *j = job_of(st);
    const InputInfo *in = &job.input[input];
    (void)bytes;
    size_t per = (size_t)in->per, batch = (size_t)vals->batch, first = (size_t)(j->of ? j->micro : mb) * batch;
    size_t here = first >= j->samples ? 0 : j->samples - first < batch ? j->samples - first : batch;
    const char *from = j->in[input].at;
    here = from ? here * per : 0;
    if (in->type != JOB_BF16 && here)
        memcpy(to, from + first * per * 4, here * 4);
    for (size_t i = 0; in->type == JOB_BF16 && i < here; i++)
        ((uint16_t *)to)[i] = float_bf16(((const float *)(const void *)from)[first * per + i]);
    if (here < batch * per)
        load_nothing((char *)to + here * (in->type == JOB_BF16 ? 2 : 4), in, batch * per - here);
}

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

/* Fused sums, and subnormal numbers that become zero, would be other bits. */
static const char *machine_fault(void)
{
    volatile float small = 0x1p-126f, half = 0.5f;
    if (kernel_fused())
        return "products and sums are fused: compile with -ffp-contract=off";
    if (small * half == 0)
        return "subnormal floats become zero: switch flush-to-zero off, and leave out -ffast-math";
    return NULL;
}

size_t library_bytes(void)
{
    return LIBRARY_ARENA;
}

library_job *library_open(void *arena, size_t bytes, char *why)
{
    const char *fault = machine_fault();
    bool take = !arena;
    if (fault)
        return fail_open(why, "%s", fault);
#if __STDC_HOSTED__
    if (take) {
        arena = aligned_alloc(LIBRARY_ALIGN, bytes = LIBRARY_ARENA);
        if (!arena)
            return fail_open(why, "no memory for an arena of %d bytes", (int64_t)bytes);
    }
#else
    if (take)
        return fail_open(why, "there is no arena, and a freestanding library has no memory: give it %d bytes",
                         (int64_t)LIBRARY_ARENA);
#endif
    if ((uintptr_t)arena % LIBRARY_ALIGN)
        return fail_open(why, "the arena begins %d bytes behind a multiple of %d: align it",
                         (int64_t)((uintptr_t)arena % LIBRARY_ALIGN), (int64_t)LIBRARY_ALIGN);
    if (bytes < LIBRARY_ARENA)
        return fail_open(why, "the arena has %d bytes, and this job needs %d", (int64_t)bytes, (int64_t)LIBRARY_ARENA);
    library_job *j = arena;
    memset(j, 0, LIBRARY_ARENA);
    job_describe(j);
    j->taken = take;
    j->stage.arena = (unsigned char *)arena + JOB_ROOM;
    j->stage.count = 1;
    j->stage.threads = j->info.threads;
    j->stage.blocks = job.blocks;
    j->stage.at = -1;
    job_start(j);
    j->mark = JOB_MARK;
    return j;
}

static bool is_open(const library_job *j)
{
    return j && (uintptr_t)j % LIBRARY_ALIGN == 0 && j->mark == JOB_MARK;
}

/* May this call be made now? */
int job_enter(library_job *j)
{
    if (!is_open(j))
        return LIBRARY_USE;
    return j->busy ? job_refuse(j, LIBRARY_USE, "a step is under way: call the job again when it has returned") : LIBRARY_OK;
}

void library_close(library_job *j)
{
    if (!is_open(j) || j->busy)
        return;
    j->mark = 0;
#if __STDC_HOSTED__
    if (j->taken)
        free(j);
#endif
}

int library_restart(library_job *j)
{
    int status = job_enter(j);
    if (!status)
        job_start(j);
    return status;
}

/* ---- work ---------------------------------------------------------------------------------------------------------------- */

static int check_ids(library_job *j, const InputInfo *in, const int32_t *id, size_t n)
{
    for (size_t i = 0; i < n && in->lo < in->hi; i++)
        if ((id[i] < in->lo || id[i] >= in->hi) && !(in->ignores && id[i] == in->ignore))
            return job_refuse(j, LIBRARY_DATA, "input %s: element %d is %d, outside %d .. %d", in->name, (int64_t)i,
                          (int64_t)id[i], (int64_t)in->lo, (int64_t)in->hi - 1);
    return LIBRARY_OK;
}

static int check_array(library_job *j, const InputInfo *in, const library_array *x, size_t samples)
{
    int type = in->type == JOB_I32 ? LIBRARY_I32 : LIBRARY_F32;
    if (!x->at)
        return j->partial ? LIBRARY_OK : job_refuse(j, LIBRARY_USE, "input %s: no array is given", in->name);
    if (x->type != type)
        return job_refuse(j, LIBRARY_USE, "input %s: an array of type %d, not %s (%d)", in->name, (int64_t)x->type,
                      type == LIBRARY_I32 ? "int32_t" : "float", (int64_t)type);
    if ((uintptr_t)x->at % 4)
        return job_refuse(j, LIBRARY_USE, "input %s: the array is not aligned to 4 bytes", in->name);
    if (x->n != samples * (size_t)in->per)
        return job_refuse(j, LIBRARY_USE, "input %s: %d elements, and %d samples of %d are %d", in->name, (int64_t)x->n,
                      (int64_t)samples, (int64_t)in->per, (int64_t)samples * in->per);
    return type == LIBRARY_I32 ? check_ids(j, in, x->at, x->n) : LIBRARY_OK;
}

static int check_arrays(library_job *j, const library_array *in, size_t samples)
{
    int status = in ? LIBRARY_OK : job_refuse(j, LIBRARY_USE, "no arrays are given: %d inputs", (int64_t)job.inputs);
    for (int i = 0; i < job.inputs && !status; i++)
        status = check_array(j, &job.input[i], &in[i], samples);
    j->in = in;
    j->samples = samples;
    return status;
}

/* Samples of the first array that is given. */
static size_t samples_of(const library_array *in)
{
    for (int i = 0; in && i < job.inputs; i++)
        if (in[i].at)
            return in[i].n / (size_t)job.input[i].per;
    return 0;
}

static bool finite_number(double x)
{
    return x - x == 0;
}

static Values *values_of(const library_job *j)
{
    return (Values *)(void *)(j->stage.arena + j->info.vals);
}

static void run(library_job *j, void (*list)(Stage *st))
{
    j->busy = true;
    list(&j->stage);
    j->stage.at = -1;
    j->busy = false;
}

static int result(library_job *j, const library_result *r, library_result *got)
{
    if (got)
        *got = *r;
    if (finite_number(r->loss) && finite_number(r->norm))
        return LIBRARY_OK;
    return job_refuse(j, LIBRARY_NOT_FINITE, "step %d: the %s is not finite: try a lower rate, a warmup or clip_norm", r->step,
                  finite_number(r->loss) ? "norm of the gradient" : "loss");
}

int library_step(library_job *j, const library_array *in, library_result *got)
{
    int status = job_enter(j);
    if (!status) {
        j->partial = false;
        status = check_arrays(j, in, (size_t)(job.batch * job.micro));
    }
    if (status)
        return status;
    j->of = 0;
    run(j, j->info.step);
    const Values *v = values_of(j);
    j->done++;
    return result(j, &(library_result){j->done, v->loss, v->norm, (double)v->lr}, got);
}

int library_evaluate(library_job *j, const library_array *in, library_result *got)
{
    int status = job_enter(j);
    size_t samples = samples_of(in), batch = (size_t)job.batch;
    double loss = 0;
    if (status)
        return status;
    j->partial = false;
    status = check_arrays(j, in, samples);
    if (!status && (samples == 0 || samples % batch))
        status = job_refuse(j, LIBRARY_USE, "%d samples, and an evaluation takes a multiple of %d", (int64_t)samples,
                            (int64_t)batch);
    if (status)
        return status;
    j->of = (int64_t)(samples / batch);
    for (j->micro = 0; j->micro < j->of; j->micro++) {
        run(j, j->info.eval);
        loss += values_of(j)->loss;
    }
    return result(j, &(library_result){j->done, loss, -1, 0}, got);
}

static const Output *output_of(const char *name)
{
    for (const Output *o = outputs; o->name; o++)
        if (name && !order_of(o->name, name))
            return o;
    return NULL;
}

static int check_forward(library_job *j, const library_array *in, const char *name, const float *to, size_t n)
{
    const Output *o = output_of(name);
    size_t samples = samples_of(in);
    j->partial = true;
    int status = check_arrays(j, in, samples);
    if (status)
        return status;
    if (!o)
        return job_refuse(j, LIBRARY_USE, "there is no output %s; the header lists them", name ? name : "without a name");
    if (!to || samples == 0 || n != samples * (size_t)o->per)
        return job_refuse(j, LIBRARY_USE, "output %s: room for %d floats, and %d samples of %d are %d", o->name,
                      (int64_t)(to ? n : 0), (int64_t)samples, (int64_t)o->per, (int64_t)samples * o->per);
    return LIBRARY_OK;
}

int library_forward(library_job *j, const library_array *in, const char *output, float *to, size_t n)
{
    int status = job_enter(j);
    if (!status)
        status = check_forward(j, in, output, to, n);
    if (status)
        return status;
    const Output *o = output_of(output);
    size_t each = (size_t)(o->per * job.batch);
    j->of = (int64_t)((n + each - 1) / each);
    for (j->micro = 0; j->micro < j->of; j->micro++) {
        size_t from = (size_t)j->micro * each;
        const real *x = (const real *)(const void *)(j->stage.arena + o->at);
        run(j, j->info.eval);
        for (size_t i = 0; i < each && from + i < n; i++)
            to[from + i] = get(x, (long)i);
    }
    return LIBRARY_OK;
}

/* ---- about --------------------------------------------------------------------------------------------------------------- */

int64_t library_steps(const library_job *j)
{
    return is_open(j) ? j->done : -1;
}

const char *library_why(const library_job *j)
{
    return is_open(j) ? j->why : "there is no such job: it was not opened, or is closed";
}

const char *library_key(void)
{
    return job.key;
}

void library_listen(library_job *j, void (*told)(void *with, const char *action), void *with)
{
    if (job_enter(j))
        return;
    j->told = told;
    j->with = with;
}
