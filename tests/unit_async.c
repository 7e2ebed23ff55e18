/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_async.c: asynchronous schedules against their rules.
 *
 *   versions    2bw for p 1..8, m p..3p: delay 1, min(m, p-i) in flight; weight stashing and vertical sync for m 1..p+2:
 *               (p-1-i)/m and (p-1)/m rounded up.  pipedream reads the newest version when its forward runs, over 30 steps.
 *               check_order replays runs of every length; two weight versions serve from m = p-1 on, and at m = p-2 it names
 *               the one that is not made yet
 *   line        spectrain with a constant gradient sees the very weights it aims at; p-i copies, and the predicted ones
 *   example     loss w*w/2, lr 1/4, w0 = 1, by the versions that the lists name: the paper's recurrence, in exact fractions
 *   1f1b*       micro-batches held at a target period, in closed form; simulated, the period is what was asked for
 *   checkers    each lie told to check_order must be found
 */
#include "world.h"
#include "sched/sched.h"
#include "tune/tune.h"

static const Ns ones[] = {1, 1, 1, 1, 1, 1, 1, 1};

static World *ordered(const char *schedule, int stages, int micro, double clip)
{
    World *w = chain(stages, micro, false);
    forward_units = backward_units = ones;
    set_times(w, unit_ns);
    set_plan(w, schedule, stages);
    w->m.train.clip = clip;
    if (order(&w->p))
        check(false, "%s p=%d m=%d: no order", schedule, stages, micro);
    return w;
}

/* decisions, checks 7: copies of a version are delay + 1.  With lag l: 1 + ceil(l/m). */
static void test_versions(void)
{
    static const char *const names[] = {"2bw", "pipedream", "vertical", "nag"};
    for (int k = 0; k < 4; k++)
        for (int p = 1; p <= 8; p++)
            for (int m = k ? 1 : p; m <= (k ? p + 2 : 3 * p); m++) {
                World *w = ordered(names[k], p, m, k ? 0 : m % 2);
                check_order(&w->p);
                for (int i = 0; i < p; i++) {
                    int lag = k == 0 ? m : k == 2 ? p - 1 : p - 1 - i, delay = (lag + m - 1) / m;
                    check(order_delay(&w->p, i) == delay && order_flight(&w->p, i) == p - i,
                          "%s p=%d m=%d: delay %d, %d in flight on %d", names[k], p, m, order_delay(&w->p, i),
                          order_flight(&w->p, i), i);
                }
            }
}

/* Micro-batch k of 30 steps reads the number of updates that the backwards before its forward have completed: the lists are
 * run without their versions, and those are compared with what they say.  pipedream reads the newest of them; vertical and
 * 2bw the newest of stage 0, and of the step before. */
static void test_newest(void)
{
    for (int p = 1; p <= 4; p++)
        for (int m = 1; m <= 5; m++)
            for (int i = 0; i < p; i++) {
                World *w = ordered("pipedream", p, m, 0);
                Actions run = order_run(&w->p, &w->p.dev.at[i].order, 30);
                int updates = 0, forward[30 * 5];
                for (int k = 0; k < run.n; k++) {
                    const Action *a = &run.at[k];
                    int q = a->step * m + a->mb, says = a->version > 0 ? a->version : 0;
                    if (a->kind == K_F)
                        forward[q] = updates;
                    if (a->kind == K_F || a->kind == K_B)
                        check(says == forward[q] && says == (q > p - 1 - i ? (q - (p - 1 - i)) / m : 0),
                              "pipedream p=%d m=%d stage %d: micro-batch %d reads version %d", p, m, i, q, says);
                    updates += a->kind == K_U && a->update == U_STEP;
                }
                check(updates == 30, "pipedream p=%d m=%d: %d updates", p, m, updates);
            }
}

/* The same of rules that read what is newest: timeprest in forward and in backward, xpipe in the forward of a step's first
 * micro-batch, for all of that step, and in backward.  xpipe aims as far as spectrain, in micro-batches: that many updates as
 * hold them. */
static void check_newest(const char *schedule, int p, int m, int i)
{
    World *w = ordered(schedule, p, m, 0);
    check_order(&w->p);
    bool first = !strcmp(schedule, "xpipe");
    Actions run = order_run(&w->p, &w->p.dev.at[i].order, 30);
    int updates = 0, newest = 0, oldest = 0, forward = 0, backward = 0;
    for (; first && forward * m < p - 1 - i + i / 2; forward++)
        backward += forward * m < i / 2;
    for (int k = 0; k < run.n; k++) {
        const Action *a = &run.at[k];
        int says = a->version > 0 ? a->version : 0;
        if (a->kind == K_F && (!first || a->mb == 0))
            newest = updates;
        if (a->kind == K_F || a->kind == K_B)
            check(says == (a->kind == K_F ? newest : updates), "%s p=%d m=%d stage %d: step %d, micro-batch %d reads %d",
                  schedule, p, m, i, a->step, a->mb, says);
        oldest = a->kind == K_F && updates - a->version > oldest ? updates - a->version : oldest;
        updates += a->kind == K_U && a->update == U_STEP;
    }
    check(order_ahead(&w->p, i, K_F) == forward && order_ahead(&w->p, i, K_B) == backward, "%s p=%d m=%d stage %d: %d and %d "
          "updates further", schedule, p, m, i, order_ahead(&w->p, i, K_F), order_ahead(&w->p, i, K_B));
    check(order_copies(&w->p, i) == 1 + oldest + (forward > 0) + (backward > 0), "%s p=%d m=%d stage %d: %d copies", schedule,
          p, m, i, order_copies(&w->p, i));
}

/* pipemare moves backward's weights back by as many updates as forward's are behind. */
static void test_back(void)
{
    for (int p = 1; p <= 8; p++)
        for (int i = 0; i < p; i++) {
            World *w = ordered("pipemare", p, 1, 0);
            check_order(&w->p);
            Actions run = order_run(&w->p, &w->p.dev.at[i].order, 30);
            int updates = 0, moved = 0, read[30] = {0}, back = order_ahead(&w->p, i, K_B);
            for (int k = 0; k < run.n; k++) {
                const Action *a = &run.at[k];
                if (a->kind == K_F)
                    read[a->step] = a->version;
                moved = a->kind == K_PREDICT ? a->version : moved;
                if (a->kind == K_B)
                    check(a->version == updates && a->version - back == read[a->step] && (back == 0 || moved == updates),
                          "pipemare p=%d stage %d: step %d goes back by %d", p, i, a->step, back);
                updates += a->kind == K_U && a->update == U_STEP;
            }
            check(order_late(&w->p, i) == p - 1 - i && order_ahead(&w->p, i, K_F) == 0 && order_copies(&w->p, i) == p - i +
                  (back > 0), "pipemare p=%d stage %d: %d copies", p, i, order_copies(&w->p, i));
        }
}

static void test_newest_each(void)
{
    for (int p = 1; p <= 5; p++)
        for (int m = 1; m <= 6; m++)
            for (int i = 0; i < p; i++) {
                check_newest("timeprest", p, m, i);
                check_newest("xpipe", p, m, i);
            }
}

/* Weights that move by one an update, whatever is read: the prediction of every micro-batch is the version that the paper aims
 * at, once there was an update to predict from.  It is made behind the update that makes its version, from that and the one
 * before. */
static void test_line(void)
{
    static const char *const names[] = {"spectrain", "spectrain-once", "pb"};
    for (int k = 0; k < 3; k++)
        for (int p = 1; p <= 8; p++)
            for (int i = 0; i < p; i++) {
                World *w = ordered(names[k], p, 1, 0);
                check_order(&w->p);
                Actions run = order_run(&w->p, &w->p.dev.at[i].order, 30);
                int turn = k ? 0 : i / 2, once = k == 1, further[] = {once ? p - 1 - i : turn, turn + p - 1 - i};
                int updates = 0, seen[2][40] = {{0}};
                for (int j = 0; j < run.n; j++) {
                    const Action *a = &run.at[j];
                    bool forward = a->kind == K_F, reads = forward || a->kind == K_B;
                    int part = forward || once, v = a->version > 0 ? a->version : 0, aim = a->step + turn;
                    if (a->kind == K_PREDICT)
                        seen[a->forward][a->version] = updates + order_ahead(&w->p, i, a->forward ? K_F : K_B);
                    if (reads)
                        check(order_ahead(&w->p, i, a->kind) == further[part], "%s p=%d stage %d: %d updates further", names[k],
                              p, i, order_ahead(&w->p, i, a->kind));
                    if (reads && v > 0)
                        check((further[part] ? seen[part][v] : v) == aim, "%s p=%d stage %d: micro-batch %d sees %d, not %d",
                              names[k], p, i, a->step, seen[part][v], aim);
                    updates += a->kind == K_U && a->update == U_STEP;
                }
                int copies = p - i + (further[1] > 0) + (!once && further[0] > 0), late = k == 2 ? p - 1 - i : 0;
                check(order_copies(&w->p, i) == copies, "%s p=%d stage %d: %d copies", names[k], p, i, order_copies(&w->p, i));
                check(order_late(&w->p, i) == late, "%s p=%d stage %d: %d updates late", names[k], p, i, order_late(&w->p, i));
            }
}

typedef struct { int stages, micro; } Two;

/* Lists of two weight versions, whatever m is, with as many in flight as 1f1b has. */
static void judge_two(void *with)
{
    const Two *t = with;
    World *w = chain(t->stages, t->micro, false);
    set_plan(w, "2bw", t->stages);
    for (int d = 0; d < t->stages; d++)
        PUSH(&w->p.dev)->device = d;
    for (int d = 0; d < t->stages; d++)
        plan_settle(&w->p, 0, d);
    for (int d = 0; d < t->stages; d++) {
        int warm = t->stages - d;
        sched_async(&w->p, d, (SchedPace){.warm = warm, .overlap = (t->stages + t->micro - 1) / t->micro});
        Actions *list = &w->p.dev.at[d].order;
        for (int i = 0; i < list->n; i++)
            list->at[i].acc = list->at[i].kind == K_B && list->at[i].mb > 0;
    }
    check_order(&w->p);
}

/* status and words of a call */
static int said_of(void (*call)(void *), void *with, char *said, size_t n)
{
    int pipes[2], status = 0;
    if (pipe(pipes))
        return -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], 2);
        call(with);
        _exit(0);
    }
    close(pipes[1]);
    size_t all = 0;
    for (ssize_t got; all < n - 1 && (got = read(pipes[0], said + all, n - 1 - all)) > 0;)
        all += (size_t)got;
    said[all] = 0;
    close(pipes[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void test_too_few(void)
{
    char said[512];
    for (int p = 3; p <= 8; p++) {
        Two enough = {p, p - 1}, few = {p, p - 2};
        check(said_of(judge_two, &enough, said, sizeof said) == 0, "two versions, p=%d m=%d: %s", p, p - 1, said);
        int status = said_of(judge_two, &few, said, sizeof said);
        check(status == 70 && strstr(said, "version 1 of the weights, which is not made yet"),
              "two versions, p=%d m=%d: status %d: %s", p, p - 2, status, said);
    }
}

/* ---- the scalar example -------------------------------------------------------------------------------------------- */

/* Weights are sixteenths of a power: numerators over 4^6.  w(t+1) = w(t) - w(v)/4, v what the list of the chunk names. */
static void test_example(void)
{
    static const struct { const char *schedule; int stages, chunk; int64_t want[6]; } cases[] = {
        {"2bw", 1, 0, {1024, 768, 512, 320}},           /* 1, 3/4, 1/2, 5/16 */
        {"2bw", 4, 3, {1024, 768, 512, 320}},
        {"vertical", 3, 0, {1024, 768, 512, 256, 64}},  /* 1, 3/4, 1/2, 1/4, 1/16 */
        {"vertical", 3, 2, {1024, 768, 512, 256, 64}},
        {"pipedream", 3, 0, {1024, 768, 512, 256, 64}},
        {"pipedream", 3, 1, {1024, 768, 512, 320}},
        {"pipedream", 3, 2, {1024, 768, 576, 432}},     /* no delay: (3/4)^n */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        World *w = ordered(cases[i].schedule, cases[i].stages, cases[i].schedule[0] == '2' ? cases[i].stages : 1, 0);
        Actions run = order_run(&w->p, &w->p.dev.at[cases[i].chunk].order, 6);
        int64_t value[8] = {1024};
        for (int k = 0; k < run.n; k++) {
            const Action *a = &run.at[k];
            int read = a->version > 0 ? a->version : 0;
            if (a->kind == K_B && a->mb == 0)
                value[a->step + 1] = value[a->step] - value[read] / 4;
        }
        for (int t = 0; t < 5 && cases[i].want[t]; t++)
            check(value[t] == cases[i].want[t], "%s, chunk %d: weight %d is %lld/1024, not %lld", cases[i].schedule,
                  cases[i].chunk, t, (long long)value[t], (long long)cases[i].want[t]);
    }
}

/* ---- 1F1B* --------------------------------------------------------------------------------------------------------- */

/* decisions, checks 6: equal stages t: T = j t holds ceil((p-x+1)/j) on stage x; links of load t at T = t: 2(p-x)+1. */
static void test_star_depths(void)
{
    Ns load[15];
    int depth[8];
    for (int p = 1; p <= 8; p++)
        for (int j = 1; j <= p; j++) {
            for (int i = 0; i < 2 * p - 1; i++)
                load[i] = i % 2 ? 0 : 7;
            star_depths(load, p, 7 * j, depth);
            for (int x = 1; x <= p; x++)
                check(depth[x - 1] == (p - x + j) / j, "1f1b* p=%d T=%dt: %d held by stage %d", p, j, depth[x - 1], x);
        }
    for (int p = 1; p <= 8; p++) {
        for (int i = 0; i < 2 * p - 1; i++)
            load[i] = 7;
        star_depths(load, p, 7, depth);
        for (int x = 1; x <= p; x++)
            check(depth[x - 1] == 2 * (p - x) + 1, "1f1b* p=%d, links: %d held by stage %d", p, depth[x - 1], x);
    }
}

static Ns star_step(int p, int m, Ints depth)
{
    static const Ns two[] = {2, 2, 2, 2, 2, 2, 2, 2};
    World *w = chain(p, m, false);
    Bytes limit[8];
    for (int d = 0; d < 8; d++)
        limit[d] = INT64_MAX / 4;
    forward_units = ones;
    backward_units = two;
    set_times(w, unit_ns);
    set_plan(w, "1f1b*", p);
    w->p.ask.choice.depth = &depth;
    if (order(&w->p) || part(&w->p, limit) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p))
        check(false, "1f1b* p=%d m=%d: no plan", p, m);
    check_order(&w->p);
    return w->p.step;
}

/* What the depths are for: at T = j t a micro-batch more takes T, whatever j; without a link no less memory would do. */
static void test_star_period(void)
{
    for (int p = 2; p <= 6; p++)
        for (int j = 1; j <= p; j++) {
            Ns load[15] = {0};
            Ints depth = {alloc(sizeof(int) * 8), p, p};
            for (int i = 0; i < p; i++)
                load[2 * i] = (Ns)3 * UNIT;
            star_depths(load, p, 3 * (Ns)UNIT * j, depth.at);
            int n = 12;
            Ns took = (star_step(p, 3 * n, depth) - star_step(p, 2 * n, depth)) / (UNIT / 4);
            check(took <= 4 * 3 * j * n && took >= 4 * 3 * n, "1f1b* p=%d T=%dt: %lld quarters for %d micro-batches", p, j,
                  (long long)took, n);
            if (p % j == 0)
                check(took == 4 * 3 * j * n, "1f1b* p=%d T=%dt: %lld quarters, not the period", p, j, (long long)took);
        }
}

/* ---- lies ---------------------------------------------------------------------------------------------------------- */

static Action *find(World *w, int device, ActionKind kind, Piece piece)
{
    Actions *list = &w->p.dev.at[device].order;
    for (int i = 0; i < list->n; i++)
        if (list->at[i].kind == kind && list->at[i].piece == piece)
            return &list->at[i];
    return NULL;
}

static void lie_nothing(World *w) { (void)w; }
static void lie_newer(World *w) { find(w, 1, K_F, PIECE_PERIOD)->version++; }
static void lie_backward(World *w) { find(w, 1, K_B, PIECE_PERIOD)->version++; }
static void lie_stale(World *w) { find(w, 1, K_F, PIECE_EPILOGUE)->version--; }
static void lie_step(World *w) { find(w, 1, K_B, PIECE_PERIOD)->step++; }
static void lie_update(World *w) { find(w, 2, K_U, PIECE_PERIOD)->update = U_NORM; }
static void lie_copy(World *w) { find(w, 0, K_VERSION, PIECE_PERIOD)->version--; }
static void lie_name(World *w) { w->p.schedule = "vertical"; }
static void lie_sync(World *w) { w->p.schedule = "1f1b"; }
static void lie_lost(World *w)
{
    Actions *list = &w->p.dev.at[0].order;
    Action *k = find(w, 0, K_VERSION, PIECE_PERIOD);
    for (list->n--; k < &list->at[list->n]; k++)
        k[0] = k[1];
}

static void lie_unpredicted(World *w)
{
    Actions *list = &w->p.dev.at[0].order;
    for (Action *k = find(w, 0, K_PREDICT, PIECE_PERIOD), *end = &list->at[--list->n]; k < end; k++)
        k[0] = k[1];
}
static void lie_part(World *w) { find(w, 2, K_PREDICT, PIECE_PERIOD)->forward ^= 1; }
static void lie_early(World *w) { find(w, 1, K_PREDICT, PIECE_PERIOD)->version--; }

typedef struct { const char *what; void (*lie)(World *); int status; const char *schedule; } Lie;

static void judge(void *with)
{
    const char *schedule = ((const Lie *)with)->schedule;
    World *w = ordered(schedule ? schedule : "2bw", 3, schedule ? 1 : 3, 0);
    ((const Lie *)with)->lie(w);
    check_order(&w->p);
}

static void test_checker(void)
{
    static const Lie lies[] = {
        {"nothing", lie_nothing, 0, NULL}, {"a newer version", lie_newer, 70, NULL},
        {"a backward on other weights", lie_backward, 70, NULL}, {"an older version", lie_stale, 70, NULL},
        {"another step", lie_step, 70, NULL}, {"the update's parts", lie_update, 70, NULL},
        {"a copy of another version", lie_copy, 70, NULL}, {"another schedule", lie_name, 70, NULL},
        {"a synchronous one", lie_sync, 70, NULL}, {"an update that keeps no copy", lie_lost, 70, NULL},
        {"nothing", lie_nothing, 0, "spectrain"}, {"a prediction left out", lie_unpredicted, 70, "spectrain"},
        {"backward's for forward", lie_part, 70, "spectrain"}, {"an older prediction", lie_early, 70, "spectrain-once"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        Lie lie = lies[i];
        int status = status_of(judge, &lie);
        check(status == lie.status, "a checker was told of %s: status %d, not %d", lie.what, status, lie.status);
    }
}

int main(void)
{
    test_name = "unit_async";
    test_checker();             /* forks, so it goes first: nothing is freed in between */
    test_too_few();
    test_versions();
    test_newest();
    test_newest_each();
    test_back();
    test_line();
    test_example();
    test_star_depths();
    test_star_period();
    printf("unit_async: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
