/* SPDX-License-Identifier: Apache-2.0
 *
 * library.c: the job as functions, for a program of somebody else: what rt/main.c and its neighbours are to `train`.
 *
 * It calls memcpy, memset and memcmp alone, and aligned_alloc where there is a system.  The job lies at the begin of its arena,
 * and the arenas of its stages behind it.  Several stages are threads (threads.c); between two runs all of them sleep, so
 * whoever calls may read and write every arena.
 *
 * Everything that may be refused is looked at before the first byte changes.  Not handled: steps that overlap, copies to the
 * host; dpgen writes no library of these.
 */
#include <string.h>
#include "inside.h"
#include "values.h"
#if __STDC_HOSTED__
#include <stdlib.h>
#endif

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

/* %s a text, %d an int64_t, %lld. */
void job_text(char *to, const char *form, va_list given)
{
    const char *end = to + LIBRARY_TEXT - 1;
    for (; *form && to < end; form++)
        if (*form != '%')
            *to++ = *form;
        else if (*++form == 's')
            to = put_text(to, end, va_arg(given, const char *));
        else if (*form == 'l')
            form += 2, to = put_number(to, end, va_arg(given, long long));
        else
            to = put_number(to, end, va_arg(given, int64_t));
    *to = 0;
}

int job_refuse(library_job *job, int status, const char *form, ...)
{
    va_list given;
    va_start(given, form);
    job_text(job->why, form, given);
    va_end(given);
    return status;
}

static library_job *fail_open(char *why, const char *form, ...)
{
    va_list given;
    va_start(given, form);
    job_text(why, form, given);
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

void action(Stage *st, int number, const char *text)
{
    Worker *w = worker_of(st);
    st->at = number;
    if (w->job->told)
        crew_tell(w, text);
}

void step_begin(Stage *st, Values *vals)
{
    const library_job *j = worker_of(st)->job;
    values_fill(vals, &job, j->of ? worker_of(st)->micro : j->done, j->of > 0);
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
    const library_job *j = worker_of(st)->job;
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
        memset(to, 0, n * 4);
}

void data_load(Stage *st, void *to, Values *vals, int input, int mb, long bytes)
{
    const library_job *j = worker_of(st)->job;
    const InputInfo *in = &job.input[input];
    (void)bytes;
    size_t per = (size_t)in->per, batch = (size_t)vals->batch;
    size_t first = (size_t)((j->of ? worker_of(st)->micro : 0) + mb) * batch;
    size_t here = first >= j->samples ? 0 : j->samples - first < batch ? j->samples - first : batch;
    const char *from = j->in[input].at;
    here = from ? here * per : 0;
    if (here)
        memcpy(to, from + first * per * 4, here * 4);
    if (here < batch * per)
        load_nothing((char *)to + here * 4, in, batch * per - here);
}

/* A job that infers lists several micro-batches; samples that are not there leave nothing. */
static void put_output(Stage *st, const real *x, const Values *vals, int mb, int output, long n)
{
    const library_job *j = worker_of(st)->job;
    size_t from = (size_t)(worker_of(st)->micro + mb) * (size_t)n;
    (void)vals;
    for (long i = 0; &outputs[output] == j->wanted && i < n && from + (size_t)i < j->room; i++)
        j->to[from + (size_t)i] = get(x, i);
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

/* The arenas of the devices of this process, one behind the other. */
static void place_devices(library_job *j)
{
    unsigned char *at = (unsigned char *)j + JOB_ROOM;
    for (int i = j->first; i < j->until; i++) {
        Worker *w = &j->worker[i];
        w->stage.arena = at;
        w->stage.index = i;
        w->stage.count = JOB_STAGES;
        w->stage.threads = w->info.threads;
        w->stage.blocks = job.blocks;
        w->stage.loss = JOB_LOSSES ? w->tally.each : NULL;
        w->stage.put = job.outputs ? put_output : NULL;
        w->stage.at = -1;
        at += (w->info.arena + LIBRARY_ALIGN - 1) / LIBRARY_ALIGN * LIBRARY_ALIGN;
    }
}

static void give_back(library_job *j)
{
#if __STDC_HOSTED__
    if (j->taken)
        free(j);
#else
    (void)j;
#endif
}

size_t library_bytes(void)
{
    return LIBRARY_ARENA;
}

/* In its arena, all 0 but for what the stages say. */
static library_job *make(void *arena, size_t bytes, char *why)
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
    j->until = JOB_STAGES;
    for (int i = 0; i < JOB_STAGES; i++)
        j->worker[i].job = j;
    job_describe(j);
    j->taken = take;
    return j;
}

library_job *job_open(const void *over, void *arena, size_t bytes, char *why)
{
    char here[LIBRARY_TEXT];
    library_job *j = make(arena, bytes, here);
    const char *fault = crew_open(j, over, here);
    if (!fault) {
        place_devices(j);
        job_start(j);
        j->mark = JOB_MARK;
        return j;
    }
    if (why)
        fail_open(why, "%s", fault);
    if (j)
        give_back(j);
    return NULL;
}

library_job *library_open(void *arena, size_t bytes, char *why)
{
#ifdef LIBRARY_RANKS
    return library_open_on(MPI_COMM_WORLD, arena, bytes, why);
#else
    return job_open(NULL, arena, bytes, why);
#endif
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
    if (j->busy)
        return job_refuse(j, LIBRARY_USE, "a step is under way: call the job again when it has returned");
    if (j->lost)
        return job_refuse(j, LIBRARY_LOST, "a step has failed half-way, and the parameters are lost: load what was saved, or "
                          "restart");
    return LIBRARY_OK;
}

int job_enter_lost(library_job *j)
{
    bool lost = is_open(j) && !j->busy && j->lost;
    return lost ? LIBRARY_OK : job_enter(j);
}

int job_agree(library_job *j, int status)
{
    return is_open(j) && !j->busy ? crew_agree(j, status) : status;
}

void library_close(library_job *j)
{
    if (!is_open(j) || j->busy)
        return;
    j->mark = 0;
    crew_close(j);
    give_back(j);
}

int library_restart(library_job *j)
{
    int status = job_agree(j, job_enter_lost(j));
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
    if (!in->per)
        return LIBRARY_OK;      /* nobody reads it */
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
        if (in[i].at && job.input[i].per)
            return in[i].n / (size_t)job.input[i].per;
    return 0;
}

static bool finite_number(double x)
{
    return x - x == 0;
}

static const Values *values_of(const Worker *w)
{
    return (const Values *)(const void *)(w->stage.arena + w->info.vals);
}

void job_count(Worker *w)
{
    w->tally.loss = values_of(w)->loss;
    w->tally.norm = values_of(w)->norm;
    w->tally.losses = w->stage.losses;
}

static int run(library_job *j)
{
    j->busy = true;
    bool good = crew_run(j, j->of && !job.outputs);
    for (int i = j->first; i < j->until; i++) {
        j->worker[i].stage.at = -1;
        job_count(&j->worker[i]);
    }
    j->busy = false;
    j->lost = !good && !j->of;
    return good ? LIBRARY_OK : LIBRARY_LOST;
}

/* The loss of a step is the sum of its micro-batches in ascending order, whoever computed them: each replica, and each
 * pipeline of it, has a run of them. */
static double loss_of_all(const library_job *j)
{
    int ways = job.ways > 1 ? job.ways : 1;
    double sum = 0;
    for (int copy = 0; copy < JOB_REPLICAS * ways; copy++)
        for (int i = 0; i < JOB_SOURCES; i++) {
            const Worker *w = &j->worker[i];
            bool has = i / JOB_HOMES == copy / ways && w->info.pipeline == copy % ways;
            for (int64_t k = 0; has && k < w->tally.losses; k++)
                sum += (double)w->tally.each[k];
        }
    return sum;
}

/* Of devices first .. until-1: the loss is 0 on all but one, and the norm -1, or the same bits on each that has it. */
static library_result sum_of(const library_job *j, int first, int until)
{
    library_result sum = {j->done, 0, -1, (double)values_of(&j->worker[j->first])->lr};
    for (int i = first; i < until; i++) {
        const Tally *s = &j->worker[i].tally;
        sum.loss += s->loss;
        sum.norm = s->norm > sum.norm || s->norm != s->norm ? s->norm : sum.norm;
    }
    return sum;
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

/* May a call be made that a job that infers has not? */
static int enter_training(library_job *j)
{
    int status = job_enter(j);
    return status || !job.outputs ? status : job_refuse(j, LIBRARY_USE, "this job infers: it has library_forward() alone");
}

int library_step(library_job *j, const library_array *in, library_result *got)
{
    int status = enter_training(j);
    if (!status) {
        j->partial = false;
        status = check_arrays(j, in, (size_t)(job.batch * job.micro));
    }
    status = job_agree(j, status);
    if (status)
        return status;
    j->of = 0;
    status = run(j);
    if (status)
        return status;
    j->done++;
    library_result r = sum_of(j, 0, JOB_SOURCES);
    r.loss = JOB_LOSSES ? loss_of_all(j) : r.loss;
    return result(j, &r, got);
}

/* The next micro-batches of an evaluation from `first` on, one for each replica.  They may gather parameters together, so one
 * that there is none for takes part too. */
static int run_eval(library_job *j, int64_t first)
{
    for (int i = 0; i < JOB_STAGES; i++)
        j->worker[i].micro = first + i % JOB_SOURCES / JOB_HOMES;
    return run(j);
}

int library_evaluate(library_job *j, const library_array *in, library_result *got)
{
    int status = enter_training(j);
    size_t samples = samples_of(in), batch = (size_t)job.batch;
    double loss = 0;
    if (!status) {
        j->partial = false;
        status = check_arrays(j, in, samples);
    }
    if (!status && (samples == 0 || samples % batch))
        status = job_refuse(j, LIBRARY_USE, "%d samples, and an evaluation takes a multiple of %d", (int64_t)samples,
                            (int64_t)batch);
    status = job_agree(j, status);
    if (status)
        return status;
    j->of = (int64_t)(samples / batch);
    for (int64_t at = 0; at < j->of && !status; at += JOB_REPLICAS) {
        status = run_eval(j, at);
        for (int r = 0; r < JOB_REPLICAS && at + r < j->of; r++)
            loss += sum_of(j, r * JOB_HOMES, (r + 1) * JOB_HOMES).loss;
    }
    if (status)
        return status;
    return result(j, &(library_result){j->done, loss, -1, 0}, got);
}

static const Output *output_of(const char *name, int replica)
{
    for (const Output *o = outputs; o->name; o++)
        if (name && !order_of(o->name, name) && o->stage / JOB_HOMES == replica)
            return o;
    return NULL;
}

static int check_forward(library_job *j, const library_array *in, const char *name, const float *to, size_t n)
{
    const Output *o = output_of(name, 0);
    size_t samples = samples_of(in);
    j->partial = true;
    int status = check_arrays(j, in, samples);
    if (status)
        return status;
    if (!o)
        return job_refuse(j, LIBRARY_USE, "there is no output %s; the header lists them", name ? name : "without a name");
    if (samples == 0)
        return job_refuse(j, LIBRARY_USE, "no samples are given: an array of an input has at least those of one");
    if (!to || n != samples * (size_t)o->per)
        return job_refuse(j, LIBRARY_USE, "output %s: room for %d floats, and %d samples of %d are %d", o->name,
                      (int64_t)(to ? n : 0), (int64_t)samples, (int64_t)o->per, (int64_t)samples * o->per);
    return LIBRARY_OK;
}

/* At most n elements of a micro-batch. */
static void take_output(library_job *j, const Output *o, float *to, size_t n)
{
    const unsigned char *arena = j->worker[o->stage].stage.arena;
    size_t each = (size_t)(o->per * job.batch);
    n = n < each ? n : each;
    for (size_t i = 0; arena && i < n; i++)
        to[i] = get((const real *)(const void *)(arena + o->at), (long)i);
    crew_spread(j, o->stage, to, n * sizeof *to);
}

int library_forward(library_job *j, const library_array *in, const char *output, float *to, size_t n)
{
    int status = job_enter(j);
    if (!status)
        status = check_forward(j, in, output, to, n);
    status = job_agree(j, status);
    if (status)
        return status;
    size_t each = (size_t)(output_of(output, 0)->per * job.batch);
    j->of = (int64_t)((n + each - 1) / each);
    j->wanted = output_of(output, 0), j->to = to, j->room = n;
    for (int64_t at = 0; at < j->of && !status; at += job.outputs ? job.micro : JOB_REPLICAS) {
        status = run_eval(j, at);
        for (int r = 0; r < JOB_REPLICAS && at + r < j->of && !status && !job.outputs; r++)
            take_output(j, output_of(output, r), to + (size_t)(at + r) * each, n - (size_t)(at + r) * each);
    }
    if (job.outputs && !status)
        crew_spread(j, j->wanted->stage, to, n * sizeof *to);
    return status || !j->lost ? status : LIBRARY_LOST;
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

void library_listen(library_job *j, void (*told)(void *with, int stage, const char *action), void *with)
{
    if (job_enter_lost(j))
        return;
    j->told = told;
    j->with = with;
}
