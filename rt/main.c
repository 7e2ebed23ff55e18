/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c: a job from its options to its exit status.
 *
 * The main thread prepares everything that can fail or allocate, for all stages of the process.  Then it starts a thread for
 * each stage but the first, and runs the first itself, since MPI wants its calls from the thread that started it.  Each stage
 * walks the same loop.  After the last action of a step, all stages exchange loss, norm and the requests of signals.  They
 * therefore come to the same decision: print, evaluate, checkpoint, stop.  Replicas add up their losses one by one (losses.c).
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include "link.h"
#include "options.h"
#include "run.h"

/* ---- the loop of a stage -------------------------------------------------------------------------------------- */

/* The loss is zero on all stages but one, and of that one device tells it.  The norm is -1, or the same bits on every stage
 * that has it. */
Report worker_share(Worker *w, double loss, double norm)
{
    bool asks = &w->run->worker[0] == w;
    Report mine = {w->stage.shard ? 0 : loss, norm, w->blank, asks ? signal_take() : 0, ckpt_writing(w)};
    Report sum = {.norm = -1}, *all = w->board;
    if (w->stage.index == 0 && progress_late(w->run))
        mine.want |= WANT_END;
    link_share(&w->stage, &mine, all, sizeof mine);
    for (int i = 0; i < w->stage.count; i++) {
        sum.loss += all[i].loss;
        sum.norm = all[i].norm > sum.norm || all[i].norm != all[i].norm ? all[i].norm : sum.norm;
        sum.want |= all[i].want;
        sum.writing |= all[i].writing;
        sum.blank = all[i].blank && (!sum.blank || all[i].blank < sum.blank) ? all[i].blank : sum.blank;
    }
    w->writing = sum.writing;
    if (w->stage.index == 0 && sum.blank && !w->run->blank)
        metrics_blank(w->run, sum.blank);
    return sum;
}

/* Of all stages, the sum or the most. */
static double worker_all(Worker *w, double mine, bool most)
{
    double *all = w->board, sum = 0;
    mine = w->stage.shard ? 0 : mine;
    link_share(&w->stage, &mine, all, sizeof mine);
    for (int i = 0; i < w->stage.count; i++)
        sum = !most ? sum + all[i] : all[i] > sum ? all[i] : sum;
    return sum;
}

/* A number that is not finite ends the job, and every stage has the same bits of it. */
static int judge(Worker *w, int64_t done, const char *what, double x)
{
    if (isfinite(x) || w->run->opt.nan)
        return 0;
    if (!w->broken) {
        w->broken = what;
        w->broken_at = done;
    }
    return WANT_BROKEN;
}

int worker_judge(Worker *w, int64_t done, const Report *r)
{
    return judge(w, done, "loss", r->loss) | judge(w, done, "norm of the gradient", r->norm);
}

void worker_rest(Worker *w)
{
    atomic_store(&w->at, -1);
    atomic_fetch_add(&w->beat, 1);
    w->stage.at = -1;
    if (paced(&w->stage))
        job_parts.pace->begin(w, -1);
    trace_stamp(&w->stage, -1);
    if (w->stage.hook)
        w->stage.hook(&w->stage, ACTION_BEGINS, NULL, NULL, NULL);
}

static int one_step(Worker *w, int64_t step)
{
    double begun = seconds();
    w->step = step;
    w->eval = false;
    arena_step(w);
    worker_rest(w);
    const Values *v = w->last;
    Report r = worker_share(w, v->loss, v->norm);
    if (w->stage.loss)
        r.loss = job_parts.losses->sum(w, w->stage.loss, w->stage.losses);
    if (w->stage.index == 0)
        metrics_step(w->run, step, r.loss, r.norm, (double)v->lr, seconds() - begun);
    return r.want | worker_judge(w, step + 1, &r);
}

typedef struct { int64_t next, least; double begun; } Asks;    /* micro-batches of an evaluation behind which all stages meet */

/* Is a stop asked for?  About once a second, which stage 0 measures, and not behind the last micro-batch of any replica. */
static int eval_asked(Worker *w, int64_t done, Asks *a)
{
    if (done < a->next || done >= a->least)
        return 0;
    double each = (seconds() - a->begun) / (double)done, later = each > 0 ? floor(1 / each) : 1;
    later = later < 1 ? 1 : later > (double)done ? (double)done : later;
    Report r = worker_share(w, w->stage.index == 0 ? (double)done + later : 0, -1);
    a->next = (int64_t)r.loss;
    return r.want;
}

void worker_eval(Worker *w)
{
    if (w->ended)
        job_parts.overlap->eval(w);
    else
        w->info->eval(&w->stage);
}

/* Losses of micro-batches are parts of that of the evaluation, as they are of a step.  Each replica takes its share of them.  A
 * stop does not wait for the rest. */
static int evaluate(Worker *w, int64_t step)
{
    const Job *job = w->run->job;
    Stage *st = &w->stage;
    int64_t from = eval_begin(w, 0, job->eval_batches), end = eval_begin(w, 1, job->eval_batches);
    double sum = 0, hits = 0;
    long n = 0;
    int want = 0;
    Asks asks = {1, job->homes ? job->eval_batches : job->eval_batches / replicas_of(job), seconds()};
    w->eval = true;
    for (w->step = from; w->step < end && !(want & WANT_STOP); w->step++) {
        st->losses = 0;
        if (evaluates(w)) {         /* others only meet those that do */
            worker_eval(w);
            sum += w->last->loss;
            hits += (double)w->last->hits;
        }
        if (st->losses)
            w->eval_loss[n++] = st->loss[(w->last->step & 1) * st->room];
        want |= eval_asked(w, w->step + 1 - from, &asks);
    }
    worker_rest(w);
    if (want & WANT_STOP)
        return want;
    Report r = worker_share(w, sum, -1);
    if (st->loss)
        r.loss = job_parts.losses->sum(w, w->eval_loss, n);
    if (job->top) {             /* who counts targets counts those of all micro-batches; where schedules go two ways, two do */
        double valid = worker_all(w, (double)w->eval_valid[job->top_count], true);
        hits = valid > 0 ? worker_all(w, hits, false) / valid : 0;
    }
    if (w->stage.index == 0)
        metrics_eval(w->run, step, r.loss, hits);
    want |= judge(w, step + 1, "loss of the evaluation", r.loss);
    return want | r.want | (want & WANT_BROKEN || !job_parts.best ? 0 : job_parts.best->note(w, step + 1, r.loss));
}

static bool due(long every, int64_t done)
{
    return every > 0 && done % every == 0;
}

static int end_broken(Worker *w, int64_t done)
{
    if (w->stage.index > 0)
        return STATUS_BROKEN;
    metrics_line(w->run, "stop", done, "not finite");
    return complain(STATUS_BROKEN, "after step %lld the %s is not finite: the job ends, and checkpoints are as they were; "
                    "try a lower rate, a warmup or clip_norm, and look at the data; --allow-nan goes on",
                    (long long)w->broken_at, w->broken);
}

/* What follows a step; a status, or -1 to go on. */
static int after_step(Worker *w, int64_t done, int want)
{
    const Job *job = w->run->job;
    const Options *o = &w->run->opt;
    bool last = done == o->steps || want & WANT_END, stop = want & WANT_STOP;
    int status = want & WANT_BROKEN ? ckpt_settle(w) : ckpt_turn(w);
    if (want & WANT_BROKEN || status != DONE)
        return want & WANT_BROKEN ? end_broken(w, done) : status;
    bool best = job_parts.best && job_parts.best->is_best(w, done);
    if (o->checkpoint && (want || last || best || due(job->ckpt_every, done))) {
        status = ckpt_save(w, done, want || last);
        if (status != DONE)
            return status;
        if (w == &w->run->worker[0])
            signal_saved(want & WANT_SAVE);
    } else if (want & (WANT_SAVE | WANT_STOP) && w->stage.index == 0) {
        complain(STATUS_RUN, "asked for a checkpoint, but there is no directory for it: give --checkpoint DIR");
    }
    if (stop && w->stage.index == 0)
        metrics_line(w->run, "stop", done, "on request");
    if (stop)
        return o->checkpoint ? STATUS_AGAIN : STATUS_RUN;
    bool tired = job_parts.best && job_parts.best->is_over(w);
    if (want & WANT_END && done < o->steps && w->stage.index == 0)
        metrics_line(w->run, "stop", done, tired ? "no better evaluation" : "after --seconds");
    return want & WANT_END ? DONE : -1;
}

/* Now and then, and at the end; a signal to stop is in a hurry, and of broken parameters nobody wants to know. */
static bool to_evaluate(const Worker *w, int64_t done, int want)
{
    const Job *job = w->run->job;
    bool end = (done == w->run->opt.steps || want & WANT_END) && !(want & WANT_STOP);
    if (want & WANT_BROKEN)
        return false;
    return job->eval.format && (w->info->eval || w->ended) && (end || due(job->eval_every, done));
}

static int train(Worker *w)
{
    const Run *run = w->run;
    w->done = run->start;
    w->best = run->best;
    if (run->opt.evaluates) {   /* of what is there */
        int want = evaluate(w, w->done - 1);
        return want & WANT_BROKEN ? end_broken(w, w->done) : want & WANT_STOP ? STATUS_RUN : DONE;
    }
    if (job_parts.best && job_parts.best->is_over(w))
        return DONE;            /* it has ended before */
    while (w->done < run->opt.steps) {
        int64_t to = w->done + 1;
        int want = w->ended ? job_parts.overlap->run(w, w->done, &to) : one_step(w, w->done);
        w->done = to;
        if (to_evaluate(w, to, want))
            want |= evaluate(w, to - 1);
        int status = after_step(w, to, want);
        if (status >= 0)
            return status;
    }
    return DONE;
}

static int results(Worker *w)
{
    const Options *o = &w->run->opt;
    int status = DONE;
    if (o->gradients)
        status = export_gradients(w, o->gradients);
    if (status == DONE && o->publish)
        status = publish_write(w);
    if (status == DONE && o->trace)
        status = trace_write(w, o->trace);
    if (status == DONE && o->dump)
        status = worst(w, arena_dump(w));
    part_close(w);
    if (o->hash) {
        char hex[65], line[80];
        export_hash(w, hex);
        snprintf(line, sizeof line, "sha256 %s\n", hex);
        if (w->stage.index == 0) {
            metrics_break(w->run);
            if (!write_all(STDOUT_FILENO, line, strlen(line)))
                status = complain(STATUS_RUN, "--hash: cannot write to standard output: %s", strerror(errno));
        }
    }
    return status;
}

/* By stage, once all have opened: what they have in common, a GPU, counts for the first of them. */
static const int64_t *library_bytes(Worker *w)
{
    int64_t mine = 0;
    link_share(&w->stage, &mine, w->board, sizeof mine);
    mine = (int64_t)kernels_bytes(&w->stage);
    link_share(&w->stage, &mine, w->board, sizeof mine);
    return w->board;
}

static void enter(Worker *w)
{
    arena_enter(w);
#ifdef _OPENMP
    omp_set_num_threads(w->info->threads);
#endif
}

/* Before there are values in the arena: the first calls of a library may write there. */
static void *open_stage(void *at)
{
    Worker *w = at;
    enter(w);
    atomic_store(&w->patience, PATIENT);        /* kernels are prepared */
    if (w->info->open)
        w->info->open(&w->stage);
    arena_warm(w);
    return NULL;
}

static void *stage_main(void *at)
{
    Worker *w = at;
    enter(w);
    w->run->does->stage(w);
    return NULL;
}

static void train_stage(Worker *w)
{
    Run *run = w->run;
    atomic_store(&w->patience, PATIENT);        /* other stages make their start values */
    bool starts = !run->opt.resume && !run->opt.weights && !w->info->pace;
    int status = starts ? init_parameters(w) : DONE;
    machine_cores(w);
    arena_record(w);
    status = worst(w, status);
    const int64_t *library = library_bytes(w);  /* nobody goes on before all have opened */
    atomic_store(&w->patience, 1);
    trace_origin(&w->stage);
    if (w->stage.index == 0) {
        metrics_start(run, library);
        progress_begin(run);
    }
    if (run->opt.selftest)
        selftest_open(w);
    w->status = status == DONE ? train(w) : status;
    if (run->opt.selftest && w->status == DONE)
        w->status = worst(w, selftest_end(w));
    if (w->stage.index == 0)
        progress_end(run);
    atomic_store(&w->patience, PATIENT);
    if (w->status == DONE)
        w->status = results(w);
}

/* ---- preparation ------------------------------------------------------------------------------------------------ */

static int prepare_worker(Run *run, int i)
{
    Worker *w = &run->worker[i];
    size_t stages = (size_t)run->job->stages;
    w->run = run;
    w->info = &run->job->stage[run->first + i];
    w->stage.index = run->first + i;
    w->stage.count = run->job->stages;
    w->stage.threads = w->info->threads;
    w->stage.blocks = run->job->blocks;
    if (team_of(run->job) > 1) {
        w->stage.team = job_parts.team;
        w->stage.apart = firsts_of(run->job);
        w->stage.shards = run->job->team;
        w->stage.shard = w->stage.index / w->stage.apart;
    }
    w->stage.link = run->link;
    w->stage.loader = run->loader;
    w->stage.at = -1;
    w->pacing = -1;
    w->stage.worker = w;
    atomic_store(&w->at, -1);
    atomic_store(&w->patience, 1);
    w->board = calloc(stages, LINK_SHARE);
    w->text.cap = (size_t)items_room(run->gradient, run->gradients);
    w->text.at = malloc(w->text.cap);
    w->names = calloc((size_t)(w->info->actions + w->info->eval_actions + 1), sizeof *w->names);
    if (!w->board || !w->text.at || !w->names)
        return complain(STATUS_RUN, "no memory for %s", w->info->name);
    int status = run->job->overlap > 0 ? job_parts.overlap->open(w) : DONE;
    if (status == DONE)
        status = arena_open(w);         /* chooses the GPU, which the next asks for memory */
    if (status == DONE && copies_of(run->job) > 1)
        status = job_parts.losses->open(w);
    if (status == DONE)
        status = publish_room(w);
    return status == DONE && offloads(w) ? job_parts.offload->open(w) : status;
}

enum { STACK = 8 << 20 };       /* bytes of a stage's thread: gemm.c takes 2.8 MiB, and musl's threads have 128 KiB */

/* In a thread for each stage, the first of them this one. */
static void each_stage(Run *run, void *(*what)(void *))
{
    pthread_attr_t attr;
    size_t size = 0;
    pthread_attr_init(&attr);
    if (pthread_attr_getstacksize(&attr, &size) == 0 && size < STACK)
        pthread_attr_setstacksize(&attr, STACK);
    for (int i = 1; i < run->count; i++)
        if (pthread_create(&run->worker[i].thread, &attr, what, &run->worker[i]) != 0)
            quit(run->link, STATUS_RUN, "no thread for %s; check `ulimit -u` (processes) and `ulimit -v` (memory)",
                 run->worker[i].info->name);
    pthread_attr_destroy(&attr);
    what(&run->worker[0]);
    for (int i = 1; i < run->count; i++)
        pthread_join(run->worker[i].thread, NULL);
}

int prepare_workers(Run *run)
{
    run->worker = calloc((size_t)run->count, sizeof *run->worker);
    run->parameter = items_make(run->job, 1u << STATE_PARAM, -1, &run->parameters);
    run->gradient = items_make(run->job, 1u << STATE_GRAD, -1, &run->gradients);
    if (!run->worker || !run->parameter || !run->gradient)
        return complain(STATUS_RUN, "no memory for %d stages", run->count);
    int status = publish_open(run);
    for (int i = 0; i < run->count && status == DONE; i++)
        status = prepare_worker(run, i);
    if (status == DONE)
        each_stage(run, open_stage);
    return status;
}

int start_values(Run *run)
{
    if (run->opt.resume) {
        int status = ckpt_load(run);
        if (status == DONE && run->main && run->start >= run->opt.steps && !run->opt.evaluates)
            complain(DONE, "step %lld is done already, and the job ends with step %ld: there is nothing to do; a larger "
                     "--steps goes on", (long long)run->start, run->opt.steps);
        return status;
    }
    if (!run->opt.weights)
        return DONE;
    int status = DONE;
    for (int i = 0; i < run->count && status == DONE; i++)
        status = init_parameters(&run->worker[i]);
    return status == DONE ? ckpt_weights(run, run->opt.weights) : status;
}

/* Everything that may fail before the first step, in the order in which it is cheapest to find out. */
static int train_prepare(Run *run)
{
    int status = machine_check(run);
    if (status == DONE)
        status = export_probe(run);
    if (status == DONE && !run->job->stage->pace && (run->opt.steps > 0 || run->opt.evaluates))
        run->loader = data_open(run, &status);
    if (status == DONE && run->loader && run->main && run->opt.record)
        status = data_record(run->loader);
    if (status == DONE && run->loader && run->main && run->opt.checkpoint && !run->opt.evaluates)
        data_fingerprint(run->loader, run->data);
    if (status == DONE)
        status = prepare_workers(run);
    status = link_worst(run->link, status);     /* all arenas are there: ckpt_open looks at the memory that is left */
    if (status == DONE)
        status = ckpt_open(run);
    status = link_worst(run->link, status);
    if (status == DONE)
        status = ckpt_seen(run);
    if (status == DONE)
        status = start_values(run);
    if (status == DONE)
        status = metrics_open(run);
    if (status == DONE)
        status = trace_open(run);
    return status;
}

/* ---- the job --------------------------------------------------------------------------------------------------- */

static int run_stages(Run *run)
{
    int status = DONE;
    Watchdog *dog = watchdog_open(run);
    each_stage(run, stage_main);
    for (int i = 0; i < run->count; i++)
        if (run->worker[i].status > status)
            status = run->worker[i].status;
    watchdog_close(dog);
    for (int i = 0; i < run->count; i++)
        if (offloads(&run->worker[i]))
            job_parts.offload->close(&run->worker[i]);
    return status;
}

/* A job may be a function of a program that goes on. */
static void release(Run *run)
{
    for (int i = 0; run->worker && i < run->count; i++) {
        Worker *w = &run->worker[i];
        if (w->stage.arena)
            arena_close(w);
        free(w->stage.trace);
        free(w->board);
        free(w->text.at);
        free(w->names);
        free(w->room);
        if (copies_of(run->job) > 1)
            job_parts.losses->close(w);
        free(w->ended);
    }
    publish_close(run);
    free(run->worker);
    free(run->parameter);
    free(run->gradient);
    data_close(run->loader);
    if (run->does->close)
        run->does->close(run);
    free(run->opt.data);
    free(run->opt.eval_data);
}

static int train_options(Run *run, char **argv)
{
    return options_read(&run->opt, run->job, argv, run->main);
}

static int run_job(const Job *job, const Program *does, int argc, char **argv)
{
    Run run = {.job = job, .does = does, .program = argc > 0 ? argv[0] : NULL, .log = -1, .best = {.at = -1}};
    int status = options_about(does->table, job, does->verb, argc, argv, launcher_ranks().rank == 0);
    if (status >= 0)
        return status;          /* what a reader on the login node asks for needs no launcher */
    signal_open();              /* first: a signal that comes early stops the job after its first step */
    run.link = link_open(job->stages, job->rank, &argc, &argv, &status);
    if (!run.link)
        return status;
    run.first = link_first(run.link);
    run.count = link_count(run.link);
    run.main = run.first == 0;
    status = does->options(&run, argv);
    if (status < 0) {
        status = link_worst(run.link, does->prepare(&run));
        if (status == DONE)
            status = link_worst(run.link, link_connect(run.link, job));
        if (status == DONE)
            status = run_stages(&run);
        metrics_close(&run);
        ckpt_close(&run);
    }
    if (run.count < job->stages)
        signal_leave();
    release(&run);
    link_close(run.link);
    return status;
}

int job_run(const Job *job, const Program *does, int argc, char **argv)
{
    const Job *full = stages_open(job);
    int status = full ? run_job(full, does, argc, argv) : complain(STATUS_RUN, "no memory for the stages of this job");
    if (full && full != job)
        stages_close(full);
    return status;
}

int job_main(const Job *job, int argc, char **argv)
{
    static const Program train = {options_train, "Train", train_options, train_prepare, train_stage, NULL};
    return job_run(job, &train, argc, argv);
}
