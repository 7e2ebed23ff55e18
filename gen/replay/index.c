/* SPDX-License-Identifier: Apache-2.0
 *
 * index.c: a graph and its ordered lists, prepared for walk.c, which asks for thousands of runs.
 *
 *   operands    of each call, each tensor once, in one array; backward calls by forward operator
 *   readers     of each tensor: the first and the last forward operator with calls that read it.  So the messages over the
 *               borders of a run are seen without looking outside
 *   stages      with Choice.far, the distance of a reader: of the given cuts, or where all stages take equal times
 *   moments     the computations before and after each computation of a chunk in the list of its device, and the number of
 *               micro-batches at rest then: a handful of different ones, whatever the number of micro-batches
 *
 * Cost: linear in the operands of the graph and in the lists.
 */
#include "index.h"
#include "list/transport.h"

/* ---- once for a graph ------------------------------------------------------------------------------------------- */

static void find_readers(Live *x)
{
    const Graph *g = x->g;
    for (int t = 0; t < g->tensor.n; t++) {
        const Tensor *y = &g->tensor.at[t];
        x->least[t] = g->nf;
        x->most[t] = x->reader[t] = -1;
        x->bytes[t] = aligned(y->bytes);
        x->grad[t] = y->kind == T_GRAD;
    }
    for (int o = 0; o < g->nb; o++)
        for (int i = x->op[o].read.from; i < x->op[o].read.to; i++) {
            int t = x->touched.at[i], fwd = g->op.at[o].fwd;
            x->least[t] = fwd < x->least[t] ? fwd : x->least[t];
            x->most[t] = fwd > x->most[t] ? fwd : x->most[t];
            if (o >= g->nf && !x->grad[t] && (x->reader[t] < 0 || fwd < x->reader[t]))
                x->reader[t] = fwd;
        }
}

static void find_calls(Live *x)
{
    const Graph *g = x->g;
    for (int f = 0; f < g->nf; f++) {
        x->made_from[f] = x->made.n;
        for (int i = x->op[f].write.from; i < x->op[f].write.to; i++) {
            x->made_at[x->touched.at[i]] = x->made.n;
            *PUSH(&x->made) = x->touched.at[i];
        }
    }
    x->made_from[g->nf] = x->made.n;
    for (int f = g->nf - 1, o = g->nf; f >= 0; f--) {
        x->begin[f] = o;
        while (o < g->nb && g->op.at[o].fwd == f)
            o++;
        x->end[f] = o;
    }
}

/* Of a row that has most of it. */
Bytes index_part(const Live *x, int s)
{
    Bytes most = 0;
    for (int row = 0; row < 1 << plan_levels(x->p); row++) {
        Extent part = plan_piece(x->p, row, s);
        most = part.until - part.from > most ? part.until - part.from : most;
    }
    return aligned(most);
}

Bytes index_home(const Live *x, int s)
{
    return x->drops && plan_drops(x->p, s) ? index_part(x, s) : aligned(x->g->state.at[s].bytes);
}

static void take_state(Live *x, int s)
{
    const State *y = &x->g->state.at[s];
    Bytes bytes = aligned(y->bytes);
    switch (y->kind) {
    case S_PARAM:
        if (copy_alone(x->g, s))
            break;
        x->room[s] += plan_room(x->p, s) ? bytes : 0;
        x->owner[s] += plan_parted(x->p, s) ? index_part(x, s) : bytes;
        if (x->guest[s] == 0)
            x->guest[s] = bytes;
        break;
    case S_COPY:                /* in bf16 a foreign use reads the copy alone, unless its row wants f32 */
        *(plan_room(x->p, s) ? &x->room[y->param] : &x->owner[y->param]) += bytes;
        x->guest[y->param] = bytes;
        break;
    case S_MOMENT1: case S_MOMENT2: case S_CENTRE: case S_DRIFT:
        x->owner[y->param] += index_part(x, s);
        break;
    case S_GRAD:
        x->uses[y->param] += index_home(x, s);
        *PUSH(&x->use[y->op]) = s;
        break;
    case S_NORM: case S_CLIP: case S_BLOCKS:
        *(y->param < 0 ? &x->norms : &x->owner[y->param]) += bytes;
        break;
    case S_VALUES:
        x->fixed += bytes;
        break;
    default:
        break;
    }
}

static int kind_of(const Action *k, int chunk)
{
    bool here = k->chunk == chunk;
    if (!here)
        return NONE;
    return k->kind == K_F ? FORWARD : k->kind == K_B || k->kind == K_I ? BACKWARD : k->kind == K_W ? WEIGHT : NONE;
}

/* Of moments between the same computations those where most rests. */
static void add_moment(Moments *list, ReplayMoment m)
{
    for (EACH(ReplayMoment, y, *list)) {
        if (memcmp(y, &m, offsetof(ReplayMoment, rest)))
            continue;
        if (y->rest >= m.rest && y->hold >= m.hold)
            return;
        if (y->rest <= m.rest && y->hold <= m.hold) {
            *y = m;
            return;
        }
    }
    *PUSH(list) = m;
}

/* Are at least as many computations' sends under way at b, of each kind, and as many with those that are waited for? */
static bool sends_more(const ReplayMoment *b, const ReplayMoment *a)
{
    bool more = true;
    for (int k = 0; k < KINDS; k++)
        more &= b->out.near[k] >= a->out.near[k] && b->out.near[k] + b->due.near[k] >= a->out.near[k] + a->due.near[k];
    for (int i = 0; i < FARS; i++)
        for (int k = 0; k <= GONE; k++)
            more &= b->out.far[i][k] >= a->out.far[i][k]
                 && b->out.far[i][k] + b->due.far[i][k] >= a->out.far[i][k] + a->due.far[i][k];
    return more;
}

/* Has every run as many bytes at b as at a? */
static bool is_worse(const ReplayMoment *b, const ReplayMoment *a)
{
    return b->now == a->now && b->sends == a->sends && b->sums >= a->sums && b->rest >= a->rest && b->hold >= a->hold
        && (b->after == a->after || a->after == NONE) && (b->later == a->later || a->later == NONE) && sends_more(b, a);
}

static void find_worst(const Moments *all, Moments *worst)
{
    for (EACH(const ReplayMoment, a, *all)) {
        bool less = false;
        for (EACH(const ReplayMoment, b, *all))
            less |= b != a && is_worse(b, a) && (b < a || !is_worse(a, b));
        if (!less)
            *PUSH(worst) = *a;
    }
}

/* The kind of a, if it belongs to b's micro-batch. */
static int same_in(const Action *a, const Action *b, int chunk)
{
    return b && a->mb == b->mb && a->step == b->step ? kind_of(a, chunk) : NONE;
}

/* The kind of computation `k` of the first n, seen from the one at hand, which is the next. */
static int past(const Action *const *was, int k, int n, const Action *now, int chunk)
{
    int kind = kind_of(was[k], chunk), at = same_in(now, was[k], chunk);
    bool input = false, weight = false;
    for (int i = k + 1; i < n && (kind == FORWARD || kind == BACKWARD); i++) {
        input |= same_in(was[i], was[k], chunk) == BACKWARD;
        weight |= same_in(was[i], was[k], chunk) == WEIGHT;
    }
    if (kind == FORWARD)
        return weight ? PAST : input ? GONE : at == BACKWARD ? OWN : kind;
    return kind != BACKWARD ? kind : weight ? DONE : at == WEIGHT ? NEAR : kind;
}

/* The kind of the computation `ahead` places behind that at i. */
static int coming(const Actions *run, int i, int ahead, int overlap, int chunk)
{
    int k = i + 1;
    while (k < run->n && (!transport_beat(&run->at[k], overlap) || --ahead > 0))
        k++;
    int kind = k < run->n ? kind_of(&run->at[k], chunk) : NONE;
    for (; kind == WEIGHT && i < k; i++)
        if (same_in(&run->at[i], &run->at[k], chunk) == BACKWARD)
            return WEIGHT;
    return kind == WEIGHT ? DONE : kind;
}

/* One computation `ago` computations before the one at hand, whose sends have so much slack. */
static void count_sends(const Live *x, ReplayMoment *m, int kind, int ago, int slack)
{
    for (int far = 0; far <= x->fars; far++) {
        int least = transport_slack(x->p, slack, 0, 1 + far);
        Sends *to = transport_due(0, ago, least) ? &m->due : &m->out;
        if (ago > least + 1)
            continue;
        if (far)
            to->far[far - 1][kind]++;
        else
            to->near[kind]++;
        m->sends |= to == &m->out && kind == (m->now == BACKWARD ? OWN : m->now == WEIGHT ? NEAR : KINDS);
    }
}

/* Counts the computations before the one at hand whose sends are under way, and those whose sends are waited for. */
static void find_sends(const Live *x, ReplayMoment *m, const Action *const *was, int n, const Action *now, int chunk)
{
    const int *slack = &x->p->slack.at[2 * chunk];
    int most = transport_slack(x->p, slack[0] > slack[1] ? slack[0] : slack[1], 0, 1 + x->fars);
    for (int k = n - 1; k >= 0 && n - k <= most + 1; k--)
        if (kind_of(was[k], chunk) != NONE)
            count_sends(x, m, past(was, k, n, now, chunk), n - k, slack[was[k]->kind != K_F]);
}

/* When gradients of a chunk are added up: from its first backward to its last, or to the update where they stand together until
 * then. */
static void find_apart(Live *x, int chunk, const Actions *list)
{
    int left = 0;
    bool begun = false;
    for (int i = 0; i < list->n; i++)
        left += list->at[i].chunk == chunk && kind_of(&list->at[i], chunk) > FORWARD;
    x->alone[chunk] = x->apart[chunk] = true;
    for (EACH(const Action, k, *list)) {
        bool other = kind_of(k, k->chunk) != NONE && k->chunk != chunk;
        begun |= kind_of(k, chunk) > FORWARD;
        left -= kind_of(k, chunk) > FORWARD;
        x->alone[chunk] &= !other;
        x->apart[chunk] &= !other || !begun || (left == 0 && plan_buckets(x->p) > 1);
    }
}

/* Each computation of the device's list, with its neighbours and the micro-batches at rest: as a beat, or NULL as a moment. */
static void read_list(Live *x, int chunk, Beats *beats)
{
    int overlap = order_overlap(x->p), rest = 0, hold = 0, n = 0, sums = 0;
    const Actions *step = &x->p->dev.at[stage_of(x->p, chunk)].order;
    Actions run = overlap ? order_run(x->p, step, overlap + 2) : *step;
    const Action **was = alloc(sizeof *was * (size_t)run.n);
    for (int i = 0; i < run.n; i++) {
        const Action *k = &run.at[i];
        if (!transport_beat(k, overlap))
            continue;
        ReplayMoment m = {.now = kind_of(k, chunk), .after = coming(&run, i, 1, overlap, chunk),
                          .later = x->slack == 2 ? coming(&run, i, 2, overlap, chunk) : NONE};
        m.sums = sums || m.now <= FORWARD || !x->drops || !x->apart[chunk] ? sums : SUMS_COME;
        sums = m.sums ? SUMS_HERE : SUMS_NONE;
        find_sends(x, &m, was, n, k, chunk);
        m.rest = rest -= m.now == BACKWARD;
        m.hold = hold -= m.now == WEIGHT;
        if (beats)
            *PUSH(beats) = (Beat){k->mb, m};
        else
            add_moment(&x->moment[chunk], m);
        rest += m.now == FORWARD;
        hold += m.now == BACKWARD && k->kind == K_I;
        x->split[chunk] |= m.now == WEIGHT;
        was[n++] = k;
    }
}

void index_moments(Live *x, int chunk)
{
    if (x->known[chunk])
        return;
    x->known[chunk] = true;
    find_apart(x, chunk, &x->p->dev.at[stage_of(x->p, chunk)].order);
    read_list(x, chunk, NULL);
    find_worst(&x->moment[chunk], &x->worst[chunk]);
}

const Beats *index_beats(Live *x, int chunk)
{
    if (x->beat[chunk].n == 0)
        read_list(x, chunk, &x->beat[chunk]);
    return &x->beat[chunk];
}

/* What index_far() and index_company() read. */
static void find_stages(Live *x)
{
    const Ints *cut = plan_cuts(x->p);
    const Ns *time = live_times(x, 0);
    int nf = x->g->nf;
    int beyond = plan_chunks(x->p) - 2;
    if (cut->n == plan_chunks(x->p) - 1) {
        x->stage = alloc(sizeof(int) * (size_t)nf);
        for (int o = 0, s = 0; o < nf; s += s < cut->n && o == cut->at[s], o++)
            x->stage[o] = s;
    }
    if (!x->p->ask.choice.far || beyond <= 0)
        return;
    x->fars = beyond < FARS ? beyond : FARS;
    x->until_op = alloc(sizeof(Ns) * (size_t)(nf + 1));
    for (int o = 0; o < x->g->nb; o++)
        x->until_op[x->g->op.at[o].fwd + 1] += time[o];
    for (int o = 0; o < nf; o++)
        x->until_op[o + 1] += x->until_op[o];
}

static void make_room(Live *x)
{
    size_t nf = sizeof(int) * (size_t)(x->g->nf + 1), nt = sizeof(int) * (size_t)x->g->tensor.n;
    size_t no = (size_t)(x->g->nb + x->g->nf + 2);
    x->begin = alloc(nf), x->end = alloc(nf), x->made_from = alloc(nf);
    x->reader = alloc(nt);
    x->least = alloc(nt), x->most = alloc(nt);
    x->seen = alloc(2 * nt), x->from = alloc(2 * nt), x->to = alloc(2 * nt), x->sequence = alloc(2 * nt);
    x->met = alloc(sizeof(int) * (size_t)x->g->state.n);
    x->matters = alloc((size_t)x->g->tensor.n);
    x->until = alloc(nt), x->made_at = alloc(nt);
    x->bytes = alloc(sizeof(Bytes) * (size_t)x->g->tensor.n);
    x->grad = alloc((size_t)x->g->tensor.n);
    x->use = alloc(sizeof *x->use * (size_t)x->g->nf);
    x->owner = alloc(sizeof(Bytes) * (size_t)x->g->state.n);
    x->room = alloc(sizeof(Bytes) * (size_t)x->g->state.n);
    x->guest = alloc(sizeof(Bytes) * (size_t)x->g->state.n);
    x->version = alloc(sizeof(Bytes) * (size_t)x->g->state.n);
    x->uses = alloc(sizeof(Bytes) * (size_t)x->g->state.n);
    x->line = alloc(sizeof(int) * no);
    x->weights = alloc(sizeof(int) * no);
    x->alive = alloc(sizeof(Bytes) * no), x->other = alloc(sizeof(Bytes) * no);
    x->change = alloc(sizeof(Bytes) * no), x->tmp = alloc(sizeof(Bytes) * no);
    x->accumulators = alloc(sizeof(int) * (size_t)plan_chunks(x->p));
    x->delay = alloc(sizeof(int) * (size_t)plan_chunks(x->p));
    x->steps = alloc(sizeof(int) * (size_t)plan_chunks(x->p));
    x->split = alloc((size_t)plan_chunks(x->p));
    x->apart = alloc((size_t)plan_chunks(x->p)), x->alone = alloc((size_t)plan_chunks(x->p));
    x->known = alloc((size_t)plan_chunks(x->p));
    x->beat = alloc(sizeof *x->beat * (size_t)plan_chunks(x->p));
    x->moment = alloc(sizeof *x->moment * (size_t)plan_chunks(x->p));
    x->worst = alloc(sizeof *x->worst * (size_t)plan_chunks(x->p));
}

Live *live_open(const Plan *p)
{
    Live *x = alloc(sizeof *x);
    *x = (Live){.p = p, .g = p->g, .first = -1, .read_first = -1, .operands = operands_of(p->g)};
    x->merges = p->m->plan.replicas * schedule_ways(schedule_of(p->schedule)) > 1;
    x->op = x->operands.op, x->touched = x->operands.tensor, x->maker = x->operands.maker;
    x->back = rebuild_open(p->g, &x->operands);
    make_room(x);
    for (int s = 0; s < p->g->state.n; s++)
        x->drops |= plan_drops(p, s);
    find_readers(x);
    find_calls(x);
    for (int s = 0; s < p->g->state.n; s++)
        take_state(x, s);
    away_open(x);
    replay_open(x);
    for (int s = 0; s < p->g->state.n; s++)
        if (p->g->state.at[s].versions)
            x->version[p->g->state.at[s].param] += aligned(p->g->state.at[s].bytes);
    find_stages(x);
    x->slack = order_slack(p);
    for (int c = 0; c < plan_chunks(p); c++) {
        int device = stage_of(p, c);
        x->delay[c] = order_copies(p, c) - 1;
        x->steps[c] = order_steps(p, device);
        x->accumulators[c] = order_accumulators(p, c) * (order_holds(p, device) ? 2 : 1);
    }
    return x;
}

/* Where stages take equal times, the one of `part` of the time of n stages, counted from 1. */
static int in_share(Ns part, Ns all, int n)
{
    int at = all > 0 ? 1 + (int)(part * n / all) : 1;
    return at < n ? at : n;
}

/* How many stages the operator is from the run at hand. */
static int stages_to(const Live *x, int op)
{
    const Ns *time = x->until_op;
    if (x->stage)
        return x->stage[op] > x->chunk ? x->stage[op] - x->chunk : x->chunk - x->stage[op];
    if (op > x->last)
        return in_share(time[op] - time[x->last + 1], time[x->g->nf] - time[x->last + 1], plan_chunks(x->p) - 1 - x->chunk);
    return in_share(time[x->first] - time[op + 1], time[x->first], x->chunk);
}

int index_far(const Live *x, int t)
{
    if (!x->fars)
        return 0;
    int ahead = x->most[t] > x->last ? stages_to(x, x->most[t]) : 1;
    int back = x->least[t] < x->first ? stages_to(x, x->least[t]) : 1;
    int far = (ahead > back ? ahead : back) - 1;
    return far < 0 ? 0 : far < x->fars ? far : x->fars;
}

/* Does a call between the two, but no weight gradient, read a tensor that this device makes? */
static bool comes_from(const Live *x, int device, int begin, int end)
{
    for (int o = begin; o < end; o++)
        for (int i = x->op[o].read.from; i < x->op[o].read.to && x->g->op.at[o].phase != PH_W; i++) {
            int t = x->touched.at[i], maker = x->maker[t];
            if (maker >= 0 && !index_own(x, t) && stage_of(x->p, x->stage[maker]) == device)
                return true;
        }
    return false;
}

Company index_company(const Live *x, int t)
{
    if (!x->stage || x->maker[t] < 0)
        return UNKNOWN;
    int device = stage_of(x->p, x->stage[x->maker[t]]);
    bool others = comes_from(x, device, x->first, x->last + 1) || comes_from(x, device, x->begin[x->last], x->end[x->first]);
    return others ? ALONG : ALONE;
}

void border_own(Border *b)
{
    b->out[OWN] = b->out[FORWARD];
    for (int i = 0; i < b->fars; i++)
        b->far[i][OWN] = b->far[i][FORWARD];
}

int live_others(Live *x, int chunk)
{
    int most = 0;
    index_moments(x, chunk);
    for (int i = 0; i < x->moment[chunk].n; i++)
        most = x->moment[chunk].at[i].rest > most ? x->moment[chunk].at[i].rest : most;
    return most;
}

bool live_alike(Live *x, int a, int b)
{
    index_moments(x, a);
    index_moments(x, b);
    const Moments *m = &x->moment[a], *n = &x->moment[b];
    if (x->fars && a != b)              /* as far from the ends no other chunk is */
        return false;
    bool states = x->delay[a] == x->delay[b] && x->steps[a] == x->steps[b] && x->accumulators[a] == x->accumulators[b];
    return states && m->n == n->n && (!m->n || !memcmp(m->at, n->at, sizeof *m->at * (size_t)m->n));
}

const int *live_made(const Live *x, int first, int last, int *n)
{
    *n = x->made_from[last + 1] - x->made_from[first];
    return x->made.at + x->made_from[first];
}

const int *live_until(Live *x, int first, int last)
{
    int n;
    const int *made = live_made(x, first, last, &n);
    for (int i = 0; i < n; i++)
        x->until[i] = x->maker[made[i]];
    for (int o = first; o <= last; o++)
        for (int i = x->op[o].read.from; i < x->op[o].read.to; i++)
            if (x->maker[x->touched.at[i]] >= first)
                x->until[x->made_at[x->touched.at[i]] - x->made_from[first]] = o;
    return x->until;
}

const Plan *live_plan(const Live *x)
{
    return x->p;
}

int live_tensors(const Live *x)
{
    return x->g->tensor.n;
}

int live_calls(const Live *x, int first, int last)
{
    return last - first + 1 + x->end[first] - x->begin[last];
}

const int *live_reads(const Live *x, int op, int *n)
{
    *n = x->op[op].read.to - x->op[op].read.from;
    return x->touched.at + x->op[op].read.from;
}

int live_maker(const Live *x, int tensor)
{
    return x->maker[tensor];
}

Bytes live_size(const Live *x, int tensor)
{
    return x->bytes[tensor];
}

int live_reader(const Live *x, int tensor)
{
    return x->reader[tensor];
}

Bytes live_operands(const Live *x, int op)
{
    const Touched *c = &x->op[op];
    Bytes sum = aligned(x->g->op.at[op].tmp);
    for (int i = c->read.from; i < c->write.to; i++)
        sum += x->bytes[x->touched.at[i]];
    for (int i = c->write.from; i < c->write.to; i++)       /* an operand that is a result too */
        for (int k = c->read.from; k < c->read.to; k++)
            sum -= x->touched.at[i] == x->touched.at[k] ? x->bytes[x->touched.at[i]] : 0;
    return sum;
}

States live_home(const Live *x, int op)
{
    States sum = {0};
    for (int i = 0; i < x->use[op].n; i++) {
        const State *s = &x->g->state.at[x->use[op].at[i]];
        bool first = x->g->state.at[s->param].op == op;
        for (int k = 0; k < i; k++)
            first &= x->g->state.at[x->use[op].at[k]].param != s->param;
        sum.sums += aligned(s->bytes);
        sum.once += first ? x->owner[s->param] : 0;
        sum.version += first ? x->version[s->param] : 0;
    }
    return sum;
}

Visits live_visits(const Live *x)
{
    Visits all = {0};
    int *last = alloc(sizeof *last * (size_t)(x->g->state.n + 1));      /* by parameter: its last use, + 1 */
    for (int o = 0; o < x->g->nf; o++)
        for (int i = 0; i < x->use[o].n; i++) {
            const State *s = &x->g->state.at[x->use[o].at[i]];
            int home = x->g->state.at[s->param].op;
            if (home < o)
                *PUSH(&all) = (Visit){o, last[s->param] ? last[s->param] - 1 : home, home, x->guest[s->param],
                                      x->drops ? 0 : aligned(s->bytes)};
            last[s->param] = o + 1;
        }
    return all;
}

Bytes live_states(const Live *x, int chunk, States sum)
{
    return sum.once + (x->drops ? 0 : x->accumulators[chunk] * sum.sums) + x->delay[chunk] * sum.version;
}

const Ns *live_times(const Live *x, int chunk)
{
    const Cost *c = x->p->c;
    return c->ns[c->of.at[stage_of(x->p, chunk)]];
}

const Ns *live_alone(const Live *x, int chunk)
{
    const Cost *c = x->p->c;
    return c->alone ? c->alone[c->of.at[stage_of(x->p, chunk)]] : live_times(x, chunk);
}

const char *live_matters(Live *x, int first, int last, const char *may)
{
    int n;
    const int *made = live_made(x, first, last, &n);
    for (int i = 0; i < n; i++)
        x->matters[made[i]] = LIVE_IDLE;
    for (int o = x->begin[last]; o < x->end[first]; o++)
        for (int i = x->op[o].read.from; i < x->op[o].read.to; i++)
            x->matters[x->touched.at[i]] = LIVE_READ;
    for (int o = last; o >= first; o--) {
        bool again = false;
        for (int i = x->op[o].write.from; i < x->op[o].write.to; i++)
            again |= x->matters[x->touched.at[i]] && (may[x->touched.at[i]] & MAY_DROP);
        for (int i = x->op[o].read.from; again && i < x->op[o].read.to; i++)
            if (!x->matters[x->touched.at[i]])
                x->matters[x->touched.at[i]] = LIVE_NEEDED;
    }
    return x->matters;
}
