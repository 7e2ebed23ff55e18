/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_twin_run.h: transfers, copies to the host, and runs of all stages.  A part of verify_twin.c.
 */
/* ---- transfers ------------------------------------------------------------------------------------------------------- */

static void pass_on(Twin *t)
{
    swapcontext(&t->context, &scheduler);
}

static void transfer(Stage *st, const void *p, int request, int peer, int tag, long bytes, bool sends)
{
    Twin *t = of(st);
    int first = st->index - st->index % stages;
    if (request < 0 || request > 255 || peer < 0 || peer >= stages || peer + first == st->index || bytes <= 0)
        refuse("a transfer that nobody has");
    peer += first;              /* the same device of the other stage */
    Request *r = &t->request[request];
    if (r->busy)
        refuse("a request that was not waited for");
    int64_t lo = touch(t, p, bytes, !sends);
    Pair *q = sends ? &pairs[st->index * all + peer] : &pairs[peer * all + st->index];
    if (q->n[!sends] == QUEUE)
        refuse("too many messages");
    Half *h = &q->half[!sends][q->n[!sends]];
    *r = (Request){true, sends, peer, q->n[!sends]++, {lo, lo + bytes, !sends}};
    *h = (Half){NULL, lo, bytes, tag};
    if (sends) {
        fold(t->at, lo, lo + bytes, 0);
        h->bytes = malloc((size_t)bytes * sizeof *h->bytes);
        memcpy(h->bytes, t->at + lo, (size_t)bytes * sizeof *h->bytes);
    }
    own(t->own, &t->owns, r->own);
}

void send_begin(Stage *st, const void *from, int request, int peer, int tag, long bytes)
{
    transfer(st, from, request, peer, tag, bytes, true);
}

void recv_begin(Stage *st, void *to, int request, int peer, int tag, long bytes)
{
    transfer(st, to, request, peer, tag, bytes, false);
}

void transfer_wait(Stage *st, int request)
{
    Twin *t = of(st);
    if (request < 0 || request > 255 || !t->request[request].busy)
        refuse("a wait for nothing");
    Request *r = &t->request[request];
    Pair *q = r->sends ? &pairs[st->index * all + r->peer] : &pairs[r->peer * all + st->index];
    while (r->number >= q->n[0] || r->number >= q->n[1])
        pass_on(t);
    t->moved = true;
    Half *a = &q->half[0][r->number], *b = &q->half[1][r->number];
    if (a->n != b->n || a->tag != b->tag)
        refuse("halves of a message that differ");
    r->busy = false;
    disown(t->own, &t->owns, r->own);
    if (!r->sends)
        memcpy(t->at + b->lo, a->bytes, (size_t)a->n * sizeof *a->bytes);
}

static void host_copy(Stage *st, const void *p, size_t host, int number, long bytes, bool out)
{
    Twin *t = of(st);
    if (number < 0 || number >= COPIES || t->copy[number].busy || bytes <= 0 || host + (size_t)bytes > t->info.host)
        refuse("a copy that nobody has");
    int64_t lo = touch(t, p, bytes, !out), h = (int64_t)host;
    HostCopy *c = &t->copy[number];
    *c = (HostCopy){true, out, {lo, lo + bytes, !out}, {h, h + bytes, out}};
    not_owned(t->host_own, t->host_owns, h, h + bytes, out);
    fold(out ? t->at : t->host, out ? lo : h, (out ? lo : h) + bytes, 0);
    own(t->own, &t->owns, c->here);
    own(t->host_own, &t->host_owns, c->there);
}

void offload_begin(Stage *st, const void *from, size_t host, int copy, long bytes)
{
    host_copy(st, from, host, copy, bytes, true);
}

void fetch_begin(Stage *st, void *to, size_t host, int copy, long bytes)
{
    host_copy(st, to, host, copy, bytes, false);
}

void copy_wait(Stage *st, int copy)
{
    Twin *t = of(st);
    if (copy < 0 || copy >= COPIES || !t->copy[copy].busy)
        refuse("a wait for nothing");
    HostCopy *c = &t->copy[copy];
    size_t bytes = (size_t)(c->here.hi - c->here.lo) * sizeof *t->at;
    c->busy = false;
    disown(t->own, &t->owns, c->here);
    disown(t->host_own, &t->host_owns, c->there);
    memcpy(c->out ? t->host + c->there.lo : t->at + c->here.lo, c->out ? t->at + c->here.lo : t->host + c->there.lo, bytes);
}

/* ---- runs ------------------------------------------------------------------------------------------------------------ */

enum { KINDS = 7 };

static size_t place(const Parameter *p, int kind)
{
    const size_t at[KINDS] = {p->param, p->copy, p->grad, p->moment1, p->moment2, p->centre, p->drift};
    return at[kind] && at[kind] != EMPTY ? at[kind] : 0;
}

/* Bytes of a state, where they begin in the whole, and its versions.  Of several devices one has a part of each stretch: its
 * byte b is byte b mod `each` of the part of stretch b / `each`, of which `run` are all. */
typedef struct { int64_t at, bytes, from, stride, each, run; int kept; } Where;

static Where where(const Parameter *p, int kind)
{
    int64_t n = 1;
    for (int i = 0; i < 6 && p->shape[i]; i++)
        n *= p->shape[i];
    int64_t size = kind == 1 ? 2 : 4, run = p->outer ? size * n / p->outer : size * n, each = p->outer ? size * p->room : run;
    Where w = {(int64_t)place(p, kind) - 1, p->outer ? p->outer * each : run, 0, 0, each, run, 1};
    int kept = kind == 0 ? p->versions.kept : kind == 1 ? p->versions.copies : 1;
    if (kept > 1)
        w.kept = kept, w.stride = (int64_t)p->versions.stride;
    if (p->cut && kind > 2)
        w.from = 4 * p->from, w.bytes = 4 * p->part;
    return w;
}

static void put_states(Twin *t, int first)
{
    for (int i = 0; i < t->info.parameters; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            const Parameter *p = &t->info.parameter[i];
            Where w = where(p, kind);
            for (int k = 0; place(p, kind) && kind != 2 && k < w.kept; k++) {
                int64_t lo = w.at + ((first - k) % w.kept + w.kept) % w.kept * w.stride;
                uint64_t h = mix(mix(text_bits(p->name), (uint64_t)kind), (uint64_t)k);
                for (int64_t b = 0; b < w.bytes; b++) {
                    int64_t of = w.from + b;
                    of = of / w.each * w.run + t->st.shard * w.each * (p->outer > 0) + of % w.each;
                    t->at[lo + b] = mix(h, (uint64_t)of) | 1;
                }
            }
        }
}

static uint64_t digest(uint64_t h)
{
    for (int d = 0; d < all; d++) {
        const Twin *t = &twin[d];
        for (int i = 0; i < t->info.parameters; i++)
            for (int kind = 0; kind < KINDS; kind++) {
                const Parameter *p = &t->info.parameter[i];
                Where w = where(p, kind);
                for (int k = 0; place(p, kind) && kind != 2 && k < w.kept; k++)
                    for (int64_t b = 0; b < w.bytes; b++)
                        h = mix(h, t->at[w.at + k * w.stride + b]);
            }
        h = mix(mix(h, t->told), (uint64_t)t->steps);
    }
    return h;
}

static void body(int d)
{
    for (int i = 0; i < twin[d].todos; i++)
        twin[d].todo[i](&twin[d].st);
    twin[d].ended = true;
    for (;;)
        pass_on(&twin[d]);
}

static void play(void)
{
    for (bool any = true; any;) {
        any = false;
        for (int d = 0; d < all; d++) {
            Twin *t = &twin[d];
            if (t->ended)
                continue;
            t->moved = false;
            swapcontext(&scheduler, &t->context);
            any |= t->moved || t->ended;
        }
    }
    for (int d = 0; d < all; d++) {
        if (!twin[d].ended)
            refuse("all stages wait");
        if (twin[d].owns || twin[d].host_owns)
            refuse("a transfer is not waited for");
    }
}

enum { PROLOGUE, PERIOD, EPILOGUE, ALONE, PIECES = 5 };

static void piece(Twin *t, int step, int which)
{
    t->todo[t->todos++] = t->info.piece[step % t->info.phases * PIECES + which];
}

static void one_run(int first, int steps, bool alone)
{
    memset(pairs, 0, sizeof *pairs * (size_t)(all * all));
    for (int d = 0; d < all; d++) {
        Twin *t = &twin[d];
        StageInfo info = t->info;
        free(t->at), free(t->host);
        char *stack = t->stack;
        unsigned char *arena = t->st.arena;
        memset(t, 0, sizeof *t);
        t->info = info;
        t->stack = stack;
        t->st.arena = arena;
        t->st.index = d;
        t->st.shards = all / stages;
        t->st.shard = d / stages;
        t->first = true;
        t->at = calloc(info.arena + 1, sizeof *t->at);
        t->host = calloc(info.host + 1, sizeof *t->host);
        put_states(t, first);
        if (!job->overlap) {
            t->todo[t->todos++] = info.step;
        } else if (alone) {
            piece(t, first, ALONE);
        } else {
            piece(t, first, PROLOGUE);
            for (int k = 0; k < steps - job->overlap; k++)
                piece(t, first + k, PERIOD);
            piece(t, first + steps - job->overlap, EPILOGUE);
        }
        getcontext(&t->context);
        t->context.uc_stack.ss_sp = t->stack;
        t->context.uc_stack.ss_size = STACK;
        makecontext(&t->context, (void (*)(void))body, 1, d);
    }
    play();
    sum = digest(sum);
}

int job_main(const Job *j, int argc, char **argv)
{
    (void)argc, (void)argv;
    job = j;
    stages = j->stages;
    all = stages * (j->team ? j->team : 1);
    Stages to = {.stage = calloc((size_t)stages, sizeof *to.stage)};
    twin = calloc((size_t)all, sizeof *twin);
    pairs = calloc((size_t)(all * all), sizeof *pairs);
    for (int d = 0; d < all; d++) {
        if (d < stages)
            j->source[d](&to);
        twin[d].info = to.stage[d % stages];
        twin[d].stack = malloc(STACK);
        twin[d].st.arena = malloc(twin[d].info.arena + 4096);
    }
    int phases = 1;
    for (int d = 0; d < stages && j->overlap; d++)
        phases = twin[d].info.phases > phases ? twin[d].info.phases : phases;
    one_run(0, j->overlap ? j->overlap + 2 * phases : 1, false);
    for (int k = 0; k < phases && phases > 1; k++)
        one_run(k, j->overlap + 3, false);
    for (int k = 0; k < phases && j->overlap > 1; k++)
        one_run(k, 1, true);
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
