/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_lists.c: lists of schedules, cell by cell, against the programs that made them known.
 *
 * Each function below follows the order in which another system issues its work, and shares no code with gen/sched/.  I and W
 * of one micro-batch that follow each other are one B, on both sides.
 *
 *   1f1b             DeepSpeed: at step s of a lock-step a stage computes the micro-batch that the parities of s and i give
 *   interleaved      Megatron-LM: a table of (micro-batch, chunk), read forward and by chunks backward, any group
 *   interleaved-zb   PyTorch: the weight gradient of the n-th backward comes `rank` pairs later; one chunk is zb-h1
 *   zb-v             PyTorch: two warm-ups, a steady phase, two cool-downs
 *   breadth-first    Fast-LLM: chunk after chunk, and back
 *   dualpipe, -v     DeepSeek: eight loops and a queue of weight gradients
 *   row              a row of the model file, with the lead and lag of interleaved and interleaved-zb
 */
#include "world.h"

typedef struct { char kind; int chunk, mb; } Cell;
typedef struct { Cell at[4096]; int n; int done[3][3]; } Cells;     /* done: by chunk F, I, W, for those who count */

static bool same(const Cell *a, const Cell *b)
{
    return a->kind == b->kind && a->chunk == b->chunk && a->mb == b->mb;
}

static void put(Cells *l, char kind, int chunk, int mb)
{
    Cell *last = l->n ? &l->at[l->n - 1] : NULL;
    if (kind == 'W' && last && last->kind == 'I' && last->chunk == chunk && last->mb == mb)
        last->kind = 'B';
    else
        l->at[l->n++] = (Cell){kind, chunk, mb};
}

/* ---- theirs ------------------------------------------------------------------------------------------------------ */

typedef struct { int p, m, v, g, i; } Numbers;          /* devices, micro-batches, chunks a device, group, the device */

static void deepspeed(Cells *l, const Numbers *x)
{
    for (int s = 0; s < 2 * (x->m + x->p - 1); s++) {
        bool forward = s % 2 == x->i % 2;
        int mb = forward ? (s - x->i) / 2 : (s + x->i + 1) / 2 - x->p;
        if ((forward ? s >= x->i : mb >= 0) && mb < x->m)
            put(l, forward ? 'F' : 'B', 0, mb);
    }
}

static void megatron(Cells *l, const Numbers *x)
{
    static Cell table[4096];
    int n = 0, ahead = (x->v - 1) * x->g + 2 * (x->p - 1 - x->i);
    for (int from = 0; from < x->m; from += x->g)
        for (int c = 0; c < x->v; c++)
            for (int mb = from; mb < x->m && mb < from + x->g; mb++)
                table[n++] = (Cell){'F', c, mb};
    ahead = ahead < n ? ahead : n;
    for (int k = 0; k < ahead; k++)
        put(l, 'F', table[k].chunk, table[k].mb);
    for (int k = 0; k < n; k++) {
        if (k + ahead < n)
            put(l, 'F', table[k + ahead].chunk, table[k + ahead].mb);
        put(l, 'B', x->v - 1 - table[k].chunk, table[k].mb);
    }
}

/* The k-th cell of a direction, where g divides m. */
static void torch_cell(Cells *l, const Numbers *x, char kind, int k)
{
    int chunk = k / x->g % x->v;
    put(l, kind, kind == 'F' ? chunk : x->v - 1 - chunk, k / (x->g * x->v) * x->g + k % x->g);
}

static void torch_zero_bubble(Cells *l, const Numbers *x)
{
    int total = x->m * x->v, ahead = (x->v - 1) * x->g + x->p - 1 - x->i, weights = 0;
    ahead = ahead < total ? ahead : total;
    for (int k = 0; k < ahead; k++)
        torch_cell(l, x, 'F', k);
    for (int k = 0; k < total; k++) {
        if (k + ahead < total)
            torch_cell(l, x, 'F', k + ahead);
        torch_cell(l, x, 'I', k);
        if (k >= x->i)
            torch_cell(l, x, 'W', weights++);
    }
    while (weights < total)
        torch_cell(l, x, 'W', weights++);
}

/* The next micro-batch of that kind and chunk. */
static void next(Cells *l, char kind, int chunk)
{
    put(l, kind, chunk, l->done[chunk][kind == 'F' ? 0 : kind == 'I' ? 1 : 2]++);
}

static void torch_zb_v(Cells *l, const Numbers *x)
{
    for (int k = 0; k < 2 * (x->p - x->i) - 1; k++)
        next(l, 'F', 0);
    for (int k = 0; k < x->i; k++)
        next(l, 'F', 1), next(l, 'F', 0);
    for (int k = 0; k < x->p - x->i; k++)
        next(l, 'F', 1), next(l, 'I', 1), next(l, 'W', 1);
    while (l->done[1][0] < l->done[0][0] || l->done[0][0] < x->m) {
        if (l->done[0][0] < x->m)
            next(l, 'F', 0);
        next(l, 'I', 0), next(l, 'W', 0), next(l, 'F', 1), next(l, 'I', 1), next(l, 'W', 1);
    }
    for (int k = 0; k < x->i; k++)
        next(l, 'I', 0), next(l, 'I', 1);
    for (int k = 0; k < x->p - x->i; k++)
        next(l, 'I', 0), next(l, 'W', 0);
    for (int c = 1; c >= 0; c--)
        while (l->done[c][2] < l->done[c][1])
            next(l, 'W', c);
}

static void fast_llm(Cells *l, const Numbers *x)
{
    for (int c = 0; c < x->v; c++)
        for (int mb = 0; mb < x->m; mb++)
            put(l, 'F', c, mb);
    for (int c = x->v; c-- > 0;)
        for (int mb = 0; mb < x->m; mb++)
            put(l, 'B', c, mb);
}

/* A backward, whose weight gradient is done at once or queued; the oldest one of the queue. */
typedef struct { int at[4096], from, n; } Queue;

static void back(Cells *l, Queue *q, int chunk, bool apart)
{
    next(l, 'I', chunk);
    if (apart)
        q->at[q->n++] = chunk;
    else
        next(l, 'W', chunk);
}

static void oldest(Cells *l, Queue *q)
{
    next(l, 'W', q->at[q->from++]);
}

/* n ranks in a row of which this is number r; each of two directions, or of two chunks, has m micro-batches.  own: which one
 * of them is phase 0. */
static void eight_loops(Cells *l, int n, int r, int m, int own)
{
    static Queue queue;
    Queue *q = &queue;
    queue = (Queue){.n = 0};
    int other = !own, rest = n - r - 1;
    for (int k = 0; k < 2 * rest; k++)
        next(l, 'F', own);
    for (int k = 0; k < r + 1; k++)
        next(l, 'F', own), next(l, 'F', other);
    for (int k = 0; k < rest; k++)
        back(l, q, other, true), oldest(l, q), next(l, 'F', other);
    for (int k = 0; k < m - 2 * n + r + 1; k++)
        next(l, 'F', own), back(l, q, other, false), next(l, 'F', other), back(l, q, own, false);
    for (int k = 0; k < rest; k++)
        back(l, q, other, false), next(l, 'F', other), back(l, q, own, false);
    bool apart = false;
    for (int k = 0; k < r + 1; k++) {
        apart |= k == (r + 1) / 2 && r % 2 == 1;
        back(l, q, other, apart);
        apart |= k == (r + 1) / 2 && r % 2 == 0;
        back(l, q, own, apart);
    }
    for (int k = 0; k < rest; k++)
        oldest(l, q), back(l, q, own, true);
    for (int k = 0; k < r + 1; k++)
        oldest(l, q);
}

static void deepseek(Cells *l, const Numbers *x)
{
    bool second = x->i >= x->p / 2;
    eight_loops(l, x->p / 2, second ? x->p - 1 - x->i : x->i, x->m / 2, second);
}

static void deepseek_v(Cells *l, const Numbers *x)
{
    eight_loops(l, x->p, x->i, x->m, 0);
}

/* ---- ours -------------------------------------------------------------------------------------------------------- */

static Ns unit_time(World *w, int op)
{
    (void)w;
    (void)op;
    return 1;
}

/* Chunks of a device are numbered as a micro-batch meets them; of two directions, by direction. */
static void ours(Cells *l, const Plan *p, const Numbers *x, bool two)
{
    const Actions *list = &p->dev.at[x->i].order;
    int half = x->m / 2;
    for (int k = 0; k < list->n; k++) {
        const Action *a = &list->at[k];
        char kind = a->kind == K_F ? 'F' : a->kind == K_B ? 'B' : a->kind == K_I ? 'I' : a->kind == K_W ? 'W' : 0;
        if (kind && two)
            put(l, kind, a->mb >= half, a->mb % half);
        else if (kind)
            put(l, kind, a->chunk / x->p, a->mb);
    }
}

typedef void Theirs(Cells *l, const Numbers *x);

/* A row of the model file, as config/schedules.c reads it. */
static void write_row(World *w, const char *word, const char *lead, const char *lag, const char *group)
{
    w->m.plan.custom = (OwnRow){.word = word, .lead = lead, .lag = lag, .group = group};
    w->m.plan.replicas = 1;
}

static void compare(const char *schedule, Numbers x, Theirs *theirs)
{
    static Cells mine, yours;
    void *mark = mem_mark();
    World *w = chain(x.p * x.v, x.m, false);
    const Schedule *k = schedule_of(schedule);
    if (k->custom && theirs == megatron)
        write_row(w, schedule, "(v-1)*g + 2*(p-1-i)", NULL, strf("%d", x.g));
    else if (k->custom)
        write_row(w, schedule, "(v-1)*g+p-1-i", "i", strf("%d", x.g));
    set_times(w, unit_time);
    set_plan(w, schedule, x.p);
    w->g.groups = schedule_ways(k);
    w->p.chunks = w->m.plan.chunks = x.v;
    w->m.plan.group = k->grouped ? x.g : 0;
    if (order(&w->p))
        check(false, "%s: no list for p=%d m=%d v=%d g=%d", schedule, x.p, x.m, x.v, x.g);
    else
        for (x.i = 0; x.i < x.p; x.i++) {
            mine.n = yours.n = 0;
            memset(yours.done, 0, sizeof yours.done);
            ours(&mine, &w->p, &x, k->ways > 1);
            theirs(&yours, &x);
            int at = 0;
            while (at < mine.n && at < yours.n && same(&mine.at[at], &yours.at[at]))
                at++;
            const Cell *a = &mine.at[at], *b = &yours.at[at];
            check(at && at == mine.n && at == yours.n, "%s p=%d m=%d v=%d g=%d: cell %d of device %d is %c%d.%d, not %c%d.%d; "
                  "%d and %d cells", schedule, x.p, x.m, x.v, x.g, at, x.i, a->kind, a->chunk, a->mb, b->kind, b->chunk, b->mb,
                  mine.n, yours.n);
        }
    mem_release(mark);
}

static void test_rows(int p, int m)
{
    compare("1f1b", (Numbers){p, m, 1, m, 0}, deepspeed);
    compare("zb-h1", (Numbers){p, m, 1, m, 0}, torch_zero_bubble);
    for (int v = 1; v <= 4; v++)
        compare("breadth-first", (Numbers){p, m, v, m, 0}, fast_llm);
    for (int v = 2; v <= 4; v++)
        for (int g = p; g <= m; g++) {
            if (m % g == 0 || m % g >= p)
                compare("row", (Numbers){p, m, v, g, 0}, megatron);
            if (m % g == 0)
                compare("row", (Numbers){p, m, v, g, 0}, torch_zero_bubble);
            if (m % g == 0 || m % g >= p)
                compare("interleaved", (Numbers){p, m, v, g, 0}, megatron);
            if (m % g == 0)
                compare("interleaved-zb", (Numbers){p, m, v, g, 0}, torch_zero_bubble);
        }
    if (m >= 2 * p - 1)
        compare("zb-v", (Numbers){p, m, 2, m, 0}, torch_zb_v);
    if (m >= 2 * p)
        compare("dualpipe-v", (Numbers){p, m, 2, m, 0}, deepseek_v);
    if (m >= 2 * p && p % 2 == 0 && m % 2 == 0)
        compare("dualpipe", (Numbers){p, m, 1, m, 0}, deepseek);
}

/* There and back, with one lead on all devices: the number that a refusal asks for is the least that ends. */
static void test_own(int p, int m, int g)
{
    void *mark = mem_mark();
    World *w = chain(2 * p, m, false);
    int more = 0;
    const char *why;
    set_times(w, unit_time);
    set_plan(w, "row-v", p);
    w->p.chunks = w->m.plan.chunks = 2;
    write_row(w, "row-v", "0", "i", strf("%d", g));
    for (int lead = 0; (why = order_refuses(&w->g, &w->m, schedule_of("row-v"), p)); lead++) {
        const char *number = strstr(why, "larger by ");
        int by = number ? atoi(number + strlen("larger by ")) : 0;
        check(by > 0 && (lead == 0 || lead + by == more), "row-v p=%d m=%d g=%d, lead %d: %s", p, m, g, lead, why);
        more = lead + by;
        w->m.plan.custom.lead = strf("%d", lead + 1);
        if (by <= 0)
            break;
    }
    check(atoi(w->m.plan.custom.lead) == more, "row-v p=%d m=%d g=%d: lead %s runs, and %d was asked for", p, m, g,
          w->m.plan.custom.lead, more);
    check(!order(&w->p), "row-v p=%d m=%d g=%d: no list", p, m, g);
    check_order(&w->p);
    mem_release(mark);
}

int main(void)
{
    test_name = "unit_lists";
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 20; m++)
            test_rows(p, m);
    for (int p = 1; p <= 5; p++)
        for (int m = 1; m <= 8; m++)
            for (int g = 1; g <= m; g++)
                test_own(p, m, g);
    printf("unit_lists: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
