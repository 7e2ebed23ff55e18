/* The benchmark of dpgen profile: how long each call of a model takes on this machine.
 *
 *     train kernels      rows alone, rows with the other stages busy, copies to a second memory and back
 *     train messages     messages between two stages; with the transport mpi in two ranks
 *
 * Protocol, as FFTW's timer (Frigo and Johnson, "The design and implementation of FFTW3", 2005, section IV): a repetition
 * runs the call n times, n doubled until a repetition lasts FLOOR; then REPEATS repetitions, of which the median counts and
 * the distance of the quartiles tells how far to trust it.  FFTW takes the minimum, which is right for choosing between two
 * algorithms; a stage waits for its median call.  All measurements together have about BUDGET, and each one CAP at most: a
 * long call is repeated less.  One that takes its whole share runs once.
 *
 * Busy: every other stage has a thread that runs the calls of a micro-batch in their order, again and again, on operands of
 * its own, as it would in training.  Caches, memory, power and cores are then shared as they will be.
 *
 * The main thread measures; the others rest, mix, copy, or answer messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include "bench_shared.h"
#include "link.h"
#include "pages.h"
#include "run.h"

enum { REPEATS = 9, MOST_THREADS = 257 };
static const double FLOOR = 2.5e-4, CAP = 1, BUDGET = 60;     /* seconds */

typedef enum { REST, MIX, COPY, END } Mode;
typedef struct {
    Stage stage;
    pthread_t thread;
    size_t at;                  /* in the mix */
    _Atomic int mode, now;      /* wanted, reached */
} Other;

/* The one table of the program; stage 0 is the one that measures. */
static struct {
    Other other[MOST_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t change;
    char *host, *device;        /* for copies */
    int done, whole;            /* progress */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};
static const long copy_bytes[] = {65536, 1048576, 16777216};
static const long message_bytes[] = {4, 4096, 65536, 1048576, 16777216};
enum { COPIES = 3, MESSAGES = 5 };

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static int open_stage(Stage *st, int index)
{
    st->index = index;
    st->threads = threads;
    st->blocks = blocks;
    st->at = -1;
    st->arena = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (st->arena == MAP_FAILED)
        return complain(STATUS_RUN, "no memory for the operands, %zu bytes for each of %d stages", arena_bytes, stages);
    pages_large(st->arena, arena_bytes);
    for (int i = 0; i < fill_count; i++)
        fill_part(st->arena + fills[i].from, &fills[i]);
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
    stage0_open(st);
    return DONE;
}

/* ---- the other stages -------------------------------------------------------------------------------------------- */

static void mix_one(Other *x)
{
    run_row(&x->stage, mix[x->at % (size_t)mix_count], x->at);
    x->at++;
}

static void copy_one(void)
{
    memcpy(all.host, all.device, 1048576);
}

static void reach(Other *x, int mode)
{
    pthread_mutex_lock(&all.lock);
    atomic_store(&x->now, mode);
    pthread_cond_broadcast(&all.change);
    while (mode == REST && atomic_load(&x->mode) == REST)
        pthread_cond_wait(&all.change, &all.lock);
    pthread_mutex_unlock(&all.lock);
}

static void *other_main(void *at)
{
    Other *x = at;
    if (open_stage(&x->stage, (int)(x - all.other)) != DONE)
        exit(STATUS_RUN);
    for (int mode; (mode = atomic_load(&x->mode)) != END;) {
        if (mode != atomic_load(&x->now) || mode == REST)
            reach(x, mode);
        else if (mode == MIX)
            mix_one(x);
        else
            copy_one();
    }
    return NULL;
}

/* The other stages first..last are to do that, and do it when this returns. */
static void others(int first, int last, int mode)
{
    pthread_mutex_lock(&all.lock);
    for (int i = first; i <= last; i++)
        atomic_store(&all.other[i].mode, mode);
    pthread_cond_broadcast(&all.change);
    for (int i = first; i <= last && mode != END; i++)
        while (atomic_load(&all.other[i].now) != mode)
            pthread_cond_wait(&all.change, &all.lock);
    pthread_mutex_unlock(&all.lock);
}

/* Threads for stages first..last, open and at rest. */
static int start_others(int first, int last)
{
    for (int i = first; i <= last; i++) {
        all.other[i].at = (size_t)(i * mix_count / (stages + 1));
        atomic_store(&all.other[i].now, END);
        if (pthread_create(&all.other[i].thread, NULL, other_main, &all.other[i]) != 0)
            return complain(STATUS_RUN, "no thread for stage %d; check `ulimit -u`", i);
    }
    others(first, last, REST);
    return DONE;
}

/* ---- the protocol ------------------------------------------------------------------------------------------------ */

typedef void (*Work)(Stage *st, long what, size_t turn);

static double repetition(Stage *st, Work work, long what, long n, size_t *turn)
{
    double begun = seconds();
    for (long i = 0; i < n; i++)
        work(st, what, (*turn)++);
    return seconds() - begun;
}

static Time measure(Stage *st, Work work, long what, const char *name, long number)
{
    double sample[REPEATS], last, share = BUDGET / all.whole < CAP ? BUDGET / all.whole : CAP;
    size_t turn = 0;
    long n = 1;
    say_at(&all.done, all.whole, name, number);
    double first = repetition(st, work, what, 1, &turn);            /* pages, code, threads */
    if (first > share)
        return (Time){first * 1e9, 0};
    while ((last = repetition(st, work, what, n, &turn)) < FLOOR)
        n *= 2;
    int count = last * REPEATS <= share ? REPEATS : (int)(share / last);
    sample[0] = last / (double)n * 1e9;
    for (int i = 1; i < count; i++)
        sample[i] = repetition(st, work, what, n, &turn) / (double)n * 1e9;
    count = count < 1 ? 1 : count;
    return summary(sample, count);
}

/* ---- kernels and copies ------------------------------------------------------------------------------------------ */

static void work_row(Stage *st, long what, size_t turn)
{
    run_row(st, (int)what, turn);
}

static void work_mix(Stage *st, long calls, size_t turn)
{
    for (int i = 0; i < calls; i++)
        run_row(st, mix[i], turn * (size_t)mix_count + (size_t)i);
}

static void work_out(Stage *st, long what, size_t turn)
{
    (void)st, (void)turn;
    memcpy(all.host, all.device, (size_t)copy_bytes[what]);
}

static void work_in(Stage *st, long what, size_t turn)
{
    (void)st, (void)turn;
    memcpy(all.device, all.host, (size_t)copy_bytes[what]);
}

static void time_rows(Stage *st, Time *alone, Time *busy)
{
    for (int r = 0; r < row_count; r++)
        busy[r] = alone[r] = measure(st, work_row, r, "op", r);
    if (stages > 1) {
        others(1, stages - 1, MIX);
        for (int r = 0; r < row_count; r++)
            busy[r] = measure(st, work_row, r, "op", r);
        others(1, stages - 1, REST);
    }
    for (int r = 0; r < row_count; r++)
        say("op", r, alone[r], busy[r]);
}

/* Alone, and while every stage computes: the thread `stages` then stands for the stage that this thread is not. */
static void time_copies(Stage *st)
{
    static const Work work[] = {work_out, work_in};
    static const char *const name[] = {"copy-out", "copy-in"};
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < COPIES; i++) {
            Time alone = measure(st, work[way], i, name[way], copy_bytes[i]);
            others(1, stages, MIX);
            Time busy = measure(st, work[way], i, name[way], copy_bytes[i]);
            others(1, stages, REST);
            say(name[way], copy_bytes[i], alone, busy);
        }
}

/* As many calls of a micro-batch as CAP has room for. */
static long some_calls(Stage *st)
{
    double begun = seconds();
    long n = 0;
    while (n < mix_count && seconds() - begun < CAP)
        run_row(st, mix[n++], 0);
    return n;
}

/* What those take here while every stage computes, without a copy going on and with one. */
static void time_overlap(Stage *st)
{
    long calls = some_calls(st);
    others(1, stages - 1, MIX);
    Time without = measure(st, work_mix, calls, "compute", batch);
    others(stages, stages, COPY);
    Time with = measure(st, work_mix, calls, "compute", batch);
    others(1, stages, REST);
    say("compute", batch, without, with);
}

static int kernels_main(void)
{
    char why[512];
    Time *alone = calloc((size_t)row_count + 1, sizeof *alone), *busy = calloc((size_t)row_count + 1, sizeof *busy);
    all.host = malloc((size_t)copy_bytes[COPIES - 1]);
    all.device = malloc((size_t)copy_bytes[COPIES - 1]);
    if (!alone || !busy || !all.host || !all.device)
        return complain(STATUS_RUN, "no memory for copies");
    memset(all.host, 1, (size_t)copy_bytes[COPIES - 1]);
    memset(all.device, 1, (size_t)copy_bytes[COPIES - 1]);
    if (kernels_start(threads, why, sizeof why) != 0)
        return complain(STATUS_MACHINE, "%s", why);
    all.whole = row_count * (stages > 1 ? 2 : 1) + 4 * COPIES + 2;
    int status = start_others(1, stages);
    if (status == DONE)
        status = open_stage(&all.other[0].stage, 0);
    if (status != DONE)
        return status;
    time_rows(&all.other[0].stage, alone, busy);
    time_copies(&all.other[0].stage);
    time_overlap(&all.other[0].stage);
    others(1, stages, END);
    for (int i = 1; i <= stages; i++)
        pthread_join(all.other[i].thread, NULL);
    return DONE;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static char *parcel[2];         /* by stage */

static void one_way(Stage *st, int sending, long bytes)
{
    char *buffer = parcel[st->index];
    if (sending)
        send_begin(st, buffer, 0, !st->index, 0, bytes);
    else
        recv_begin(st, buffer, 0, !st->index, 0, bytes);
    transfer_wait(st, 0);
}

static void work_round(Stage *st, long what, size_t turn)
{
    (void)turn;
    parcel[0][0] = 1;
    one_way(st, 1, message_bytes[what]);
    one_way(st, 0, message_bytes[what]);
}

/* Stage 1 sends back what it gets, until the first byte is zero. */
static void *answer_main(void *at)
{
    Stage *st = at;
    for (int i = 0; i < 2 * MESSAGES; i++)
        do {
            one_way(st, 0, message_bytes[i % MESSAGES]);
            if (parcel[1][0])
                one_way(st, 1, message_bytes[i % MESSAGES]);
        } while (parcel[1][0]);
    return NULL;
}

/* One way is half of a round. */
static void ask(Stage *st, Time *t)
{
    for (int i = 0; i < MESSAGES; i++) {
        t[i] = measure(st, work_round, i, "message", message_bytes[i]);
        t[i].median /= 2;
        t[i].quartiles /= 2;
        parcel[0][0] = 0;
        one_way(st, 1, message_bytes[i]);
    }
}

/* Stages 0 and 1 talk; the others, where they are threads of this process, compute in the second round. */
static int ask_twice(int threads_here)
{
    Time alone[MESSAGES], busy[MESSAGES];
    int more = threads_here ? stages - 2 : 0, status = more > 0 ? start_others(2, stages - 1) : DONE;
    if (status != DONE)
        return status;
    all.whole = MESSAGES * 2;
    ask(&all.other[0].stage, alone);
    if (more > 0)
        others(2, stages - 1, MIX);
    ask(&all.other[0].stage, busy);
    if (more > 0)
        others(2, stages - 1, END);
    for (int i = 0; i < MESSAGES; i++)
        say("message", message_bytes[i], alone[i], busy[i]);
    return DONE;
}

static int messages_main(int argc, char **argv)
{
    int status = DONE;
    Link *link = link_open(2, NULL, &argc, &argv, &status);
    if (!link)
        return status;
    for (int i = 0; i < 2; i++) {
        all.other[i].stage = (Stage){.index = i, .count = 2, .link = link, .at = -1};
        parcel[i] = calloc(1, (size_t)message_bytes[MESSAGES - 1]);
        if (!parcel[i])
            return complain(STATUS_RUN, "no memory for messages");
    }
    int first = link_first(link), both = link_count(link) == 2;
    if (both && pthread_create(&all.other[1].thread, NULL, answer_main, &all.other[1].stage) != 0)
        return complain(STATUS_RUN, "no thread for a second stage; check `ulimit -u`");
    if (first == 0)
        status = ask_twice(both);
    else
        answer_main(&all.other[1].stage);
    fflush(stdout);
    if (status == DONE && both)
        pthread_join(all.other[1].thread, NULL);
    if (status == DONE)
        link_close(link);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "kernels"))
        return kernels_main();
    if (argc == 2 && !strcmp(argv[1], "messages"))
        return messages_main(argc, argv);
    return complain(STATUS_USAGE, "train kernels | messages");
}
