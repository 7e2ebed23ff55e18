/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_offload: the placing of copies, against brute force, and what may not follow from times.
 *
 *   windows   offload_in() against every order of up to six fetches: none begins its last k fetches later, for any k;
 *             offload_out() against the link simulated by the nanosecond
 *   times     the list being fixed, other times for every call and link leave each byte of both arenas where it is
 *   copies    random chains under 1f1b and gpipe: with a link that takes no time, at most two copies of a tensor on its
 *             device at once, one for the next micro-batch, whatever is in flight; with one that takes all time, never more
 *             than that
 *   places    the same on a slow link in each hurry: never more copies at once than there are places.  Where a copy takes as
 *             long as computing, two places take less than one, and one less than none
 */
#include "world.h"

/* ---- windows ----------------------------------------------------------------------------------------------------- */

enum { MOST = 6, CALLS = 40 };

static int falling(const void *a, const void *b)
{
    Ns x = *(const Ns *)a, y = *(const Ns *)b;
    return x > y ? -1 : x < y;
}

/* Begin times of fetches done in this order, each as late as it may; falling. */
static void begins(const int *order, int n, const Ns *due, const Ns *ns, Ns *out)
{
    Ns next = INT64_MAX / 4;
    for (int i = n - 1; i >= 0; i--) {
        int k = order[i];
        next = (next < due[k] ? next : due[k]) - ns[k];
        out[k] = next;
    }
    qsort(out, (size_t)n, sizeof *out, falling);
}

static void all_orders(int *order, int at, int n, const Ns *due, const Ns *ns, const Ns *best)
{
    if (at == n) {
        Ns out[MOST];
        begins(order, n, due, ns, out);
        for (int k = 0; k < n; k++)
            check(out[k] <= best[k], "another order begins its last %d fetches at %lld, not %lld", k + 1, (long long)out[k],
                  (long long)best[k]);
        return;
    }
    for (int i = at; i < n; i++) {
        int keep = order[at];
        order[at] = order[i];
        order[i] = keep;
        all_orders(order, at + 1, n, due, ns, best);
        order[i] = order[at];
        order[at] = keep;
    }
}

/* The call before which a fetch begins: the last one not after its time; -1: before all. */
static int call_at(const Ns *at, int calls, Ns time)
{
    int i = calls;
    while (i >= 0 && at[i] > time)
        i--;
    return i;
}

static void test_in(void)
{
    for (int round = 0; round < 300; round++) {
        Ns at[CALLS + 1] = {0}, ns[MOST], due[MOST], best[MOST];
        Ns over[MOST];
        int n = 1 + dice(MOST), first[MOST], in[MOST], order[MOST];
        for (int i = 0; i < CALLS; i++)
            at[i + 1] = at[i] + dice(20);
        bool equal = dice(2);           /* copies of one size: then no order at all is better */
        for (int i = 0; i < n; i++) {
            first[i] = i > 0 ? first[i - 1] + dice(6) : dice(10);
            ns[i] = equal ? 17 : 1 + dice(40);
            due[i] = at[first[i]];
            order[i] = i;
        }
        offload_in(at, CALLS, n, first, ns, in, over);
        Ns next = INT64_MAX / 4;
        for (int i = n - 1; i >= 0; i--) {
            next = (next < due[i] ? next : due[i]) - ns[i];
            check(in[i] == (call_at(at, CALLS, next) < first[i] ? call_at(at, CALLS, next) : first[i]),
                  "fetch %d begins before call %d, not at %lld", i, in[i], (long long)next);
            check(over[i] == (next < 0 ? -next : 0), "fetch %d begins %lld early, not at %lld", i, (long long)over[i],
                  (long long)next);
            best[i] = next;
        }
        qsort(best, (size_t)n, sizeof *best, falling);
        if (equal)
            all_orders(order, 0, n, due, ns, best);
    }
}

/* A queue's copy i ends at the largest, over j up to i, of the begin of j and all copies j .. i behind each other (Lindley). */
static void test_out(void)
{
    for (int round = 0; round < 300; round++) {
        Ns at[CALLS + 1] = {0}, ns[MOST];
        Ns over[MOST];
        int n = 1 + dice(MOST), after[MOST], out[MOST];
        for (int i = 0; i < CALLS; i++)
            at[i + 1] = at[i] + dice(5);
        for (int i = 0; i < n; i++) {
            after[i] = i > 0 ? after[i - 1] + dice(7) : dice(3);
            ns[i] = 1 + dice(40);
        }
        offload_out(at, CALLS, n, after, ns, out, over);
        for (int i = 0; i < n; i++) {
            Ns end = 0;
            int call = after[i];
            for (int j = 0; j <= i; j++) {
                Ns sum = at[after[j]];
                for (int k = j; k <= i; k++)
                    sum += ns[k];
                end = sum > end ? sum : end;
            }
            while (call <= CALLS && at[call] < end)
                call++;
            check(out[i] == call, "copy %d of %d is gone before call %d, not %d", i, n, out[i], call);
            check(over[i] == (end > at[CALLS] ? end - at[CALLS] : 0), "copy %d of %d takes %lld more", i, n,
                  (long long)over[i]);
        }
    }
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static Ns unit(World *w, int op)
{
    (void)w, (void)op;
    return 1000;
}

/* A chain of n operators whose backward reads what each made, all of it offloaded. */
static World *away(int n, int micro, const char *schedule, int devices, double rate)
{
    World *w = chain(n, micro, true);
    for (int t = 0; t < n; t++)
        w->g.tensor.at[t].bytes = 1000;
    set_times(w, unit);
    set_plan(w, schedule, devices);
    w->c.host = rate;
    w->m.plan.offload = OFFLOAD_LIST;
    *PUSH(&w->m.plan.away) = "*";
    w->m.hosts = 1;
    for (int d = 0; d < devices; d++)
        *PUSH(&w->m.devices) = (Device){.name = strf("d%d", d), .kind = "cpu", .kernels = "portable", .memory = INT64_MAX / 4};
    for (int d = 0; d < devices; d++)
        PUSH(&w->p.dev)->device = d;
    return w;
}

static void plan_to_comm(World *w)
{
    Plan *p = &w->p;
    Bytes *limit = alloc(sizeof *limit * (size_t)p->devices);
    for (int d = 0; d < p->devices; d++)
        limit[d] = INT64_MAX / 4;
    if (order(p) || part(p, limit) || keep(p) || comm(p))
        die("no plan");
    check_comm(p);
}

static char *text_of_memory(const Plan *p)
{
    Text t;
    print_plan(text_open(&t), p, 'm');
    text_close(&t);
    return t.at;
}

/* lower and mem of the same lists again, under other times. */
static void test_times(void)
{
    for (int round = 0; round < 40; round++) {
        World *w = away(4 + dice(9), 1 + dice(8), dice(2) ? "1f1b" : "gpipe", 1 + dice(3), 1e8 * (1 + dice(100)));
        Plan *p = &w->p;
        plan_to_comm(w);
        VEC(Actions) kept = {0};
        for (int d = 0; d < p->devices; d++) {
            Actions copy = {0};
            for (int i = 0; i < p->dev.at[d].list.n; i++)
                *PUSH(&copy) = p->dev.at[d].list.at[i];
            *PUSH(&kept) = copy;
        }
        char *first = NULL;
        Ns step = 0;
        for (int turn = 0; turn < 2; turn++) {
            p->buf.n = p->pool.n = p->routine.n = p->host.n = 0;
            for (int d = 0; d < p->devices; d++)
                p->dev.at[d].list = kept.at[d];
            kept.n = 0;
            for (int d = 0; d < p->devices; d++) {
                Actions copy = {0};
                for (int i = 0; i < p->dev.at[d].list.n; i++)
                    *PUSH(&copy) = p->dev.at[d].list.at[i];
                *PUSH(&kept) = copy;
            }
            for (int d = 0; d < p->devices; d++)
                p->dev.at[d].busy = 0;
            p->step = 0;
            if (lower(p) || mem(p))
                die("no plan");
            check_mem(p);
            char *text = text_of_memory(p);
            sim(p);
            check(!first || !strcmp(first, text), "other times, other bytes");
            check(!first || p->step != step, "other times, and the same step: nothing was perturbed");
            first = text;
            step = p->step;
            for (int o = 0; o < w->g.op.n; o++)
                w->c.ns[0][o] += dice(5000);
            w->c.host /= 3;
        }
    }
}

typedef struct { int first, last; } Life;

static void touch(Life *l, int tick)
{
    l->first = l->last < l->first ? tick : l->first;
    l->last = tick;
}

/* From first to last touch, by micro-batch, straight from the list.  Slots do not tell how many copies there are: they are
 * where packing finds room, and may be many addresses that share bytes. */
static void find_lives(const Plan *p, int device, int b, Life *life)
{
    const Actions *list = &p->dev.at[device].list;
    for (int mb = 0; mb < p->g->micro; mb++)
        life[mb] = (Life){0, -1};
    for (int i = 0; i < list->n; i++) {
        const Action *k = &list->at[i];
        if (k->buf == b)
            touch(&life[k->mb], k->tick);
        const Routine *r = k->routine >= 0 ? &p->routine.at[k->routine] : NULL;
        for (int c = 0; r && c < r->call.n; c++)
            for (int j = 0; j < r->call.at[c].buf.n; j++)
                if (r->call.at[c].buf.at[j] == b)
                    touch(&life[k->mb], k->tick + c);
    }
}

/* Most micro-batches alive at a tick: where most are, one of them begins. */
static int most_alive(const Life *life, int micro)
{
    int most = 0;
    for (int i = 0; i < micro; i++) {
        int n = 0;
        for (int j = 0; j < micro && life[i].last >= life[i].first; j++)
            n += life[j].first <= life[i].first && life[i].first <= life[j].last;
        most = n > most ? n : most;
    }
    return most;
}

/* The most copies of an offloaded tensor on the device at once, going or coming, but for those that are sent as well. */
static int copies(const Plan *p, int device)
{
    const Actions *list = &p->dev.at[device].list;
    Life *life = alloc(sizeof *life * (size_t)p->g->micro);
    int most = 0;
    for (int b = 0; b < p->buf.n; b++) {
        const Buf *x = &p->buf.at[b];
        bool moves = x->device == device && x->tensor >= 0 && (x->origin == FETCHED || x->death == AT_OUT);
        for (int i = 0; i < list->n; i++)
            moves &= list->at[i].kind != K_SEND || list->at[i].buf != b;
        if (!moves)
            continue;
        find_lives(p, device, b, life);
        int n = most_alive(life, (int)p->g->micro);
        most = n > most ? n : most;
    }
    return most;
}

static void test_copies(void)
{
    for (int round = 0; round < 40; round++) {
        int n = 6 + dice(6), micro = 2 + dice(7), devices = 1 + dice(3);
        const char *schedule = dice(2) ? "1f1b" : "gpipe";
        for (int slow = 0; slow < 2; slow++) {
            World *w = away(n, micro, schedule, devices, slow ? 1e4 : 1e15);
            plan_to_comm(w);
            if (lower(&w->p) || mem(&w->p))
                die("no plan");
            check_mem(&w->p);
            for (int d = 0; d < devices; d++) {
                int most = copies(&w->p, d), flight = order_flight(&w->p, d);
                check(slow ? most <= flight : most <= 2, "%s, device %d of %d: %d copies of one tensor, %d in flight, %s link",
                      schedule, d, devices, most, flight, slow ? "a slow" : "a fast");
            }
            for (int h = 0; h < w->p.host.n; h++)
                check(w->p.host.at[h].count <= order_flight(&w->p, w->p.host.at[h].device),
                      "more places in the host than in flight");
        }
    }
}

/* The step of one device in such a hurry, by simulation. */
static Ns step_in(World *w, CopySlack hurry, int places)
{
    Plan *p = &w->p;
    p->ask.choice.copy_slack = hurry;
    plan_to_comm(w);
    if (lower(p) || mem(p))
        die("no plan");
    check_mem(p);
    for (int d = 0; d < p->devices; d++)
        check(copies(p, d) <= places, "%s, device %d: %d copies of one tensor in %d places", p->schedule, d, copies(p, d),
              places);
    sim(p);
    return p->step;
}

static void test_places(void)
{
    for (int round = 0; round < 40; round++) {
        int n = 6 + dice(6), micro = 4 + dice(6), devices = 1 + dice(3);
        const char *schedule = dice(2) ? "1f1b" : "gpipe";
        step_in(away(n, micro, schedule, devices, 1e4), COPY_SLACK_SECOND, 2);
        step_in(away(n, micro, schedule, devices, 1e4), COPY_SLACK_NEXT, 1);
        step_in(away(n, micro, schedule, devices, 1e4), COPY_SLACK_NONE, 1);
        Ns second = step_in(away(n, micro, "gpipe", 1, 1e9), COPY_SLACK_SECOND, 2);
        Ns next = step_in(away(n, micro, "gpipe", 1, 1e9), COPY_SLACK_NEXT, 1);
        Ns now = step_in(away(n, micro, "gpipe", 1, 1e9), COPY_SLACK_NONE, 1);
        check(second < next && next < now, "%d operators, %d micro-batches: %lld ns in two places, %lld in one, %lld in none",
              n, micro, (long long)second, (long long)next, (long long)now);
    }
}

int main(void)
{
    test_name = "unit_offload";
    test_in();
    test_out();
    test_times();
    test_copies();
    test_places();
    printf("unit_offload: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
