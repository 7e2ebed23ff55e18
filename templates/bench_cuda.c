/* The benchmark of dpgen profile on a GPU: how long each call of a model takes on it.
 *
 *     train sign         which GPU this is, and the versions of what runs on it
 *     train kernels      algorithms of matrix products; rows alone and busy; copies to the host's pinned memory and back
 *     train messages     messages between two stages: of this process, or, where each stage is a process, of two over NCCL
 *
 * Protocol as in bench.c (FFTW's timer), with events of the GPU for a clock: a repetition queues the call n times on one
 * stream between two events, n doubled until it lasts FLOOR, since events resolve half a microsecond; then REPEATS
 * repetitions, median and quartiles.  Calls that the GPU does faster than the host can queue them take the host's time here,
 * as they do in a step.
 *
 * Algorithms.  Of each matrix product the library's guesses are timed TRIES times each, and the fastest is kept; among those
 * within a hundredth of it the one with the least workspace, then the first.  The guesses take turns: products draw so much
 * power that the clock falls while they run, and one behind the other the first would be the fastest.  Rows are measured with
 * what was kept.
 *
 * Busy: stages that share this GPU in training (transport local, more stages than GPUs) run the calls of a micro-batch on
 * streams of their own, again and again.  Where none does, a copy to the host goes on all the time, as when a stage
 * offloads.  Of copies, busy is with the other direction under way, of a micro-batch (`compute`) with a copy to the host.
 *
 * Messages take the runtime's own way: a round is one there and one back, between the computations of both stages; one way is
 * half of it.  Both sides know how many rounds there are.
 *
 * The main thread measures; the others rest, mix or copy. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench_shared.h"
#include "cuda/device.h"
#include "link.h"
#include "op/cuda/product.h"
#include "op/cuda/start.h"
#include "run.h"

enum { REPEATS = 9, LEAST = 3, TRIES = 3, MOST_OTHERS = 256, MOST_CHOICES = 16, PIECE = 1 << 20 };
static const double FLOOR = 1e6, CAP = 1e9;     /* ns */

typedef enum { REST, MIX, COPY, END } Mode;
typedef struct {
    Worker worker;
    pthread_t thread;
    _Atomic int mode, now;      /* wanted, reached */
} Other;

/* The one table of the program; worker 0 is the one that measures. */
static struct {
    Other other[MOST_OTHERS];
    int sharing;                /* others that mix; the one behind them copies */
    cudaEvent_t begun, ended;
    char *host[2], *device[2];  /* for copies: out, in */
    int done, whole;            /* progress */
} all;
static const long copy_bytes[] = {4096, 65536, 1048576, 16777216, 268435456};
static const long message_bytes[] = {4, 4096, 65536, 1048576, 16777216, 268435456};
enum { COPIES = 5, MESSAGES = 6, ROUNDS = 256, FEW_ROUNDS = 4 };

/* The libraries are linked where a call of the model needs them. */
#pragma weak product_choices
#pragma weak open_product_algorithm

static void must(cudaError_t e, const char *what)
{
    if (e != cudaSuccess)
        exit(complain(STATUS_RUN, "%s: %s (%s)", what, cudaGetErrorString(e), cudaGetErrorName(e)));
}

/* ---- a stage to call kernels with ---------------------------------------------------------------------------------- */

static const int both_ways[] = {0, 1, 1, 0};
static const Job job = {.name = "benchmark", .plan = "", .stages = 2, .pairs = 2, .pair = both_ways};
static Run alone = {.job = &job, .count = 1};
static StageInfo operands = {.name = "operands"};

static int open_operands(Worker *w)
{
    size_t most = 1;
    *w = (Worker){.stage = {.count = 1, .threads = threads, .at = -1, .worker = w}, .run = &alone, .info = &operands};
    int status = arena_open(w);
    if (status != DONE)
        return status;
    arena_enter(w);
    for (int i = 0; i < fill_count; i++)
        most = fills[i].bytes > most ? fills[i].bytes : most;
    void *room = malloc(most);
    if (!room)
        return complain(STATUS_RUN, "no memory for operands of %zu bytes", most);
    for (int i = 0; i < fill_count; i++) {
        fill_part(room, &fills[i]);
        arena_write(w, w->stage.arena + fills[i].from, room, fills[i].bytes);
    }
    free(room);
    stage0_open(&w->stage);
    return DONE;
}

/* ---- the others ------------------------------------------------------------------------------------------------------ */

static void mix_all(Stage *st, size_t turn)
{
    for (int i = 0; i < mix_count; i++)
        run_row(st, mix[i], turn * (size_t)mix_count + (size_t)i);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void copy_pieces(cudaStream_t s)
{
    for (int i = 0; i < 8; i++)
        must(cudaMemcpyAsync(all.host[0], all.device[0], smaller(PIECE, arena_bytes), cudaMemcpyDeviceToHost, s), "copying");
}

static void *other_main(void *at)
{
    Other *x = at;
    cudaStream_t s;
    bool mixes = x <= all.other + all.sharing;
    must(cudaSetDevice(0), "choosing the GPU");
    if (mixes && open_operands(&x->worker) != DONE)
        exit(STATUS_RUN);
    if (!mixes)
        must(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "a stream for copies");
    else
        s = stream_of(&x->worker.stage);
    size_t turn = 0;
    for (int mode; (mode = atomic_load(&x->mode)) != END;) {
        if (mode == MIX)
            mix_all(&x->worker.stage, turn++);
        else if (mode == COPY)
            copy_pieces(s);
        must(cudaStreamSynchronize(s), "what goes on beside");
        atomic_store(&x->now, mode);
        if (mode == REST)
            usleep(100);
    }
    return NULL;
}

/* The others first..last are to do that, and do it when this returns. */
static void others(int first, int last, Mode mode)
{
    for (int i = first; i <= last; i++)
        atomic_store(&all.other[i].mode, mode);
    for (int i = first; i <= last && mode != END; i++)
        while (atomic_load(&all.other[i].now) != (int)mode)
            usleep(100);
}

static int start_others(int last)
{
    for (int i = 1; i <= last; i++) {
        atomic_store(&all.other[i].now, END);
        if (pthread_create(&all.other[i].thread, NULL, other_main, &all.other[i]) != 0)
            return complain(STATUS_RUN, "no thread for stage %d; check `ulimit -u`", i);
    }
    others(1, last, REST);
    return DONE;
}

/* ---- the protocol ---------------------------------------------------------------------------------------------------- */

typedef struct {
    void (*call)(Stage *st, long what, size_t turn);
    cudaStream_t stream;        /* that it is timed on */
} Work;

/* ns of n calls; rows of a table that has not left (cuda/device.h) belong to them */
static double repetition(Stage *st, const Work *w, long what, long n, size_t *turn)
{
    float ms = 0;
    must(cudaEventRecord(all.begun, w->stream), "measuring");
    for (long i = 0; i < n; i++)
        w->call(st, what, (*turn)++);
    stream_of(st);
    must(cudaEventRecord(all.ended, w->stream), "measuring");
    must(cudaEventSynchronize(all.ended), "measuring");
    must(cudaEventElapsedTime(&ms, all.begun, all.ended), "measuring");
    return (double)ms * 1e6;
}

static Time measure(Stage *st, const Work *w, long what, int repeats)
{
    double sample[REPEATS], last;
    size_t turn = 0;
    long n = 1;
    repetition(st, w, what, 1, &turn);      /* code is loaded with the first launch */
    while ((last = repetition(st, w, what, n, &turn)) < FLOOR)
        n *= 2;
    int count = last * repeats <= CAP ? repeats : (int)(CAP / last);
    if (count < LEAST)
        count = repeats < LEAST ? repeats : LEAST;
    for (int i = 0; i < count; i++)
        sample[i] = repetition(st, w, what, n, &turn) / (double)n;
    return summary(sample, count);
}

static Time measure_said(Stage *st, const Work *w, long what, const char *name, long number)
{
    say_at(&all.done, all.whole, name, number);
    return measure(st, w, what, REPEATS);
}

static void open_clock(void)
{
    must(cudaEventCreateWithFlags(&all.begun, cudaEventDefault), "a clock");
    must(cudaEventCreateWithFlags(&all.ended, cudaEventDefault), "a clock");
}

/* ---- algorithms ------------------------------------------------------------------------------------------------------ */

static void work_row(Stage *st, long what, size_t turn)
{
    run_row(st, (int)what, turn);
}

static void give(Stage *st, int h, int part, const Choice *c)
{
    open_product_algorithm(st, h, part, c->id, c->tile, c->stages, c->splitk, c->reduction, c->swizzle, c->custom, c->inner,
                           c->cluster, c->workspace);
}

static int fastest(const Choice *list, const double *ns, int n)
{
    int first = 0, best = 0;
    for (int i = 1; i < n; i++)
        first = ns[i] < ns[first] ? i : first;
    best = first;
    for (int i = 0; i < n; i++) {
        bool near = ns[i] <= ns[first] * 1.01;
        if (near && (list[i].workspace < list[best].workspace || (list[i].workspace == list[best].workspace && i < best)))
            best = i;
    }
    return best;
}

/* Gives every product of the row its fastest algorithm, one after the other. */
static void tune(Stage *st, int r)
{
    Choice list[MOST_CHOICES];
    double sample[MOST_CHOICES][TRIES], ns[MOST_CHOICES];
    const Work w = {work_row, stream_of(st)};
    int h = rows[r].product;
    if (h < 0 || !product_choices || !open_product_algorithm)
        return;
    run_row(st, r, 0);
    for (int part = 0; part < PARTS; part++) {
        int n = product_choices(st, h, part, list, MOST_CHOICES);
        if (n < 1)
            continue;
        for (int i = 0; i < n * TRIES; i++) {
            give(st, h, part, &list[i % n]);
            sample[i % n][i / n] = measure(st, &w, r, 1).median;
        }
        for (int i = 0; i < n; i++)
            ns[i] = summary(sample[i], TRIES).median;
        const Choice *c = &list[fastest(list, ns, n)];
        give(st, h, part, c);
        printf("algorithm %d %d %d %d %d %d %d %d %d %d %d %ld\n", r, part, c->id, c->tile, c->stages, c->splitk, c->reduction,
               c->swizzle, c->custom, c->inner, c->cluster, c->workspace);
    }
}

/* ---- kernels and copies ---------------------------------------------------------------------------------------------- */

static void work_mix(Stage *st, long what, size_t turn)
{
    (void)what;
    mix_all(st, turn);
}

static void copy(Stage *st, long bytes, int in)
{
    cudaStream_t s = in ? device_of(st)->in : device_of(st)->out;
    must(cudaMemcpyAsync(in ? all.device[1] : all.host[0], in ? all.host[1] : all.device[0], (size_t)bytes,
                         in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, s), "copying");
}

static void work_out(Stage *st, long what, size_t turn)
{
    (void)turn;
    copy(st, copy_bytes[what], 0);
}

static void work_in(Stage *st, long what, size_t turn)
{
    (void)turn;
    copy(st, copy_bytes[what], 1);
}

/* The other direction is queued first, so that it is under way. */
static void work_out_both(Stage *st, long what, size_t turn)
{
    work_in(st, what, turn);
    work_out(st, what, turn);
}

static void work_in_both(Stage *st, long what, size_t turn)
{
    work_out(st, what, turn);
    work_in(st, what, turn);
}

static void time_rows(Stage *st, Time *quiet, Time *busy)
{
    const Work w = {work_row, stream_of(st)};
    int first = all.sharing ? 1 : all.sharing + 1, last = all.sharing ? all.sharing : all.sharing + 1;
    for (int r = 0; r < row_count; r++) {
        say_at(&all.done, all.whole, "op", r);
        tune(st, r);
        quiet[r] = measure(st, &w, r, REPEATS);
    }
    others(first, last, all.sharing ? MIX : COPY);
    for (int r = 0; r < row_count; r++)
        busy[r] = measure_said(st, &w, r, "op", r);
    others(first, last, REST);
    for (int r = 0; r < row_count; r++)
        say("op", r, quiet[r], busy[r]);
}

/* No tensor is larger than the arena of all operands. */
static void time_copies(Stage *st)
{
    const Device *d = device_of(st);
    const Work one[] = {{work_out, d->out}, {work_in, d->in}}, both[] = {{work_out_both, d->out}, {work_in_both, d->in}};
    static const char *const name[] = {"copy-out", "copy-in"};
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < COPIES && (size_t)copy_bytes[i] <= arena_bytes; i++) {
            Time quiet = measure_said(st, &one[way], i, name[way], copy_bytes[i]);
            Time busy = measure_said(st, &both[way], i, name[way], copy_bytes[i]);
            must(cudaStreamSynchronize(d->in), "copying");
            must(cudaStreamSynchronize(d->out), "copying");
            say(name[way], copy_bytes[i], quiet, busy);
        }
}

static void time_overlap(Stage *st)
{
    const Work w = {work_mix, stream_of(st)};
    others(1, all.sharing, MIX);
    Time without = measure_said(st, &w, 0, "compute", batch);
    others(all.sharing + 1, all.sharing + 1, COPY);
    Time with = measure_said(st, &w, 0, "compute", batch);
    others(1, all.sharing + 1, REST);
    say("compute", batch, without, with);
}

static void open_copies(void)
{
    size_t n = smaller((size_t)copy_bytes[COPIES - 1], arena_bytes);
    for (int i = 0; i < 2; i++) {
        must(cudaHostAlloc((void **)&all.host[i], n, cudaHostAllocDefault), "pinned memory for copies");
        must(cudaMalloc((void **)&all.device[i], n), "memory for copies");
        must(cudaMemset(all.device[i], 1, n), "memory for copies");
        memset(all.host[i], 1, n);
    }
}

static int kernels_main(void)
{
    Time *quiet = calloc((size_t)row_count + 1, sizeof *quiet), *busy = calloc((size_t)row_count + 1, sizeof *busy);
    Worker *w = &all.other[0].worker;
    int gpus = 0;
    if (!quiet || !busy)
        return complain(STATUS_RUN, "no memory for times");
    must(cudaGetDeviceCount(&gpus), "counting GPUs");
    all.sharing = ranks || gpus < 1 ? 0 : (stages - 1) / gpus;
    if (all.sharing > MOST_OTHERS - 2)
        all.sharing = MOST_OTHERS - 2;
    all.whole = row_count * 2 + 4 * COPIES + 2;
    operands.workspace = (arena_bytes + 255) / 256 * 256;
    operands.workspace_bytes = workspace_bytes;
    operands.arena = operands.workspace + workspace_bytes;
    int status = open_operands(w);
    open_clock();
    open_copies();
    if (status == DONE)
        status = start_others(all.sharing + 1);
    if (status != DONE)
        return status;
    time_rows(&w->stage, quiet, busy);
    time_copies(&w->stage);
    time_overlap(&w->stage);
    others(1, all.sharing + 1, END);
    for (int i = 1; i <= all.sharing + 1; i++)
        pthread_join(all.other[i].thread, NULL);
    return DONE;
}

/* ---- messages -------------------------------------------------------------------------------------------------------- */

static Worker pair[2];          /* by stage; of other processes: not opened */

static void begin_half(Stage *st, int sending, long bytes)
{
    if (sending)
        send_begin(st, st->arena, 0, !st->index, 0, bytes);
    else
        recv_begin(st, st->arena, 0, !st->index, 0, bytes);
}

/* From that stage to the other; both halves begin before one is waited for. */
static void one_way(const Run *run, int from, long bytes)
{
    for (int i = run->first; i < run->first + run->count; i++)
        begin_half(&pair[i].stage, i == from, bytes);
    for (int i = run->first; i < run->first + run->count; i++)
        transfer_wait(&pair[i].stage, 0);
}

static void work_round(Stage *st, long what, size_t turn)
{
    (void)turn;
    one_way(st->worker->run, 0, message_bytes[what]);
    one_way(st->worker->run, 1, message_bytes[what]);
}

/* Every process does the same rounds; the clock of stage 0 counts. */
static void ask(const Run *run)
{
    Stage *st = &pair[run->first].stage;
    const Work w = {work_round, stream_of(st)};
    size_t turn = 0;
    for (int i = 0; i < MESSAGES && (i == 0 || (size_t)message_bytes[i] <= arena_bytes); i++) {
        double sample[REPEATS];
        int rounds = message_bytes[i] <= PIECE ? ROUNDS : FEW_ROUNDS;
        say_at(&all.done, all.whole, "message", message_bytes[i]);
        repetition(st, &w, i, rounds, &turn);
        for (int k = 0; k < REPEATS; k++)
            sample[k] = repetition(st, &w, i, rounds, &turn) / (2.0 * rounds);
        Time t = summary(sample, REPEATS);
        if (run->first == 0)
            say("message", message_bytes[i], t, t);
    }
}

static int talk(int argc, char **argv)
{
    int status = DONE;
    StageInfo info = {.name = "messages", .arena = smaller((size_t)message_bytes[MESSAGES - 1], arena_bytes + 256)};
    Link *link = link_open(2, NULL, &argc, &argv, &status);
    if (!link)
        return status;
    Run run = {.job = &job, .link = link, .first = link_first(link), .count = link_count(link)};
    run.worker = &pair[run.first];
    for (int i = run.first; i < run.first + run.count && status == DONE; i++) {
        pair[i] = (Worker){.stage = {.index = i, .count = 2, .link = link, .at = -1, .worker = &pair[i]}, .run = &run,
                           .info = &info};
        status = arena_open(&pair[i]);
    }
    if (status == DONE)
        arena_enter(&pair[run.first]);
    if (status == DONE)
        status = link_connect(link, &job);
    if (status != DONE)
        return status;
    all.whole = MESSAGES;
    open_clock();
    ask(&run);
    fflush(stdout);
    link_close(link);
    return DONE;
}

/* The launcher of two ranks that this program is to itself, before either of them has seen a GPU. */
static void become_rank(int rank, pid_t first, const char *program)
{
    char number[12], name[24], meeting[4096];
    unsetenv("OMPI_COMM_WORLD_SIZE");       /* the one that would count more: rt/cuda/meeting.c */
    snprintf(number, sizeof number, "%d", rank);
    snprintf(name, sizeof name, "%ld", (long)first);
    snprintf(meeting, sizeof meeting, "%s.meeting", program);
    setenv("PMI_SIZE", "2", 1);
    setenv("PMI_RANK", number, 1);
    setenv("MPI_LOCALRANKID", number, 1);
    setenv("PMI_JOBID", name, 1);
    setenv("DPGEN_RENDEZVOUS", meeting, 1);
}

static int messages_main(int argc, char **argv)
{
    if (!ranks)
        return talk(argc, argv);
    fflush(stdout);
    pid_t first = getpid(), second = fork();
    if (second < 0)
        return complain(STATUS_RUN, "no process for a second stage; check `ulimit -u`");
    become_rank(second == 0, first, argv[0]);
    int status = talk(argc, argv), of_second = 0;
    if (second == 0)
        _exit(status);
    waitpid(second, &of_second, 0);
    return status != DONE ? status : WIFEXITED(of_second) ? WEXITSTATUS(of_second) : STATUS_RUN;
}

/* ---- the machine ------------------------------------------------------------------------------------------------------ */

/* What dpgen signs a profile with, and how many GPUs there are for messages. */
static int sign_main(void)
{
    char name[300];
    size_t left = 0, total = 0;
    int gpus = 0, driver = 0, runtime = 0;
    const char *libraries = strchr(kernels_version(), ',');
    must(cudaGetDeviceCount(&gpus), "counting GPUs");
    must(cudaMemGetInfo(&left, &total), "asking the GPU");
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    gpu_name(0, name, sizeof name);
    printf("sign device %s, %zu MiB\n", name, total >> 20);
    printf("sign compiler CUDA %d.%d, driver for %d.%d\n", runtime / 1000, runtime / 10 % 100, driver / 1000,
           driver / 10 % 100);
    printf("sign kernels cuda%s\nsign gpus %d\n", libraries ? libraries : "", gpus);
    return DONE;
}

int main(int argc, char **argv)
{
    char why[512];
    const char *mode = argc == 2 ? argv[1] : "";
    if (strcmp(mode, "sign") && strcmp(mode, "kernels") && strcmp(mode, "messages"))
        return complain(STATUS_USAGE, "train sign | kernels | messages");
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);     /* as kernels_start() does, which would wake the driver before fork() */
    if (!strcmp(mode, "messages"))
        return messages_main(argc, argv);
    if (kernels_start(threads, why, sizeof why) != 0)
        return complain(STATUS_MACHINE, "%s", why);
    must(cudaSetDevice(0), "choosing the GPU");
    return !strcmp(mode, "sign") ? sign_main() : kernels_main();
}
