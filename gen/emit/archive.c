/* SPDX-License-Identifier: Apache-2.0
 *
 * archive.c: plan.json and the predicted trace, the plan as data, output only.
 *
 * Every number is an integer, in bytes or nanoseconds, in a fixed order, so that two plans can be compared with diff.
 * trace.json is Trace Event JSON, as Perfetto and chrome://tracing read it: one process a stage, times in microseconds.
 */
#include "emit.h"

typedef struct { Bytes from, to; } ArchiveRange;

ORDER(by_from, ArchiveRange, order_of(x->from, y->from), order_of(x->to, y->to))

typedef VEC(ArchiveRange) Ranges;

static void add_range(Ranges *used, const Plan *p, int b, int slot)
{
    const Buf *x = &p->buf.at[b];
    Bytes at = x->offset + slot * (x->pool >= 0 ? p->pool.at[x->pool].stride : 0);
    *PUSH(used) = (ArchiveRange){at, at + x->bytes};
}

/* By the slots that a list names. */
static void add_named(Ranges *used, const Plan *p, const Actions *list)
{
    for (EACH(const Action, k, *list)) {
        const Routine *r = k->routine >= 0 ? &p->routine.at[k->routine] : NULL;
        if (k->buf >= 0)
            add_range(used, p, k->buf, k->slot);
        for (int c = 0; r && c < r->call.n; c++)
            for (int j = 0; j < r->call.at[c].buf.n; j++) {
                int b = r->call.at[c].buf.at[j], slot = 0;
                for (int x = 0; x < r->pool.n && b >= 0; x++)
                    slot = r->pool.at[x] == p->buf.at[b].pool ? k->slots.at[x] : slot;
                if (b >= 0)
                    add_range(used, p, b, slot);
            }
    }
}

/* Bytes of the arena that no buffer ever owns: what a run must leave as it found it.  States have all their slots, and
 * where steps overlap everything has. */
static void print_gaps(FILE *f, const Plan *p, int device)
{
    Room *scratch = mem_room(), *room = mem_in(scratch);
    Ranges used = {0};
    bool overlap = order_overlap(p) > 0;
    for (int b = 0; b < p->buf.n; b++) {
        const Buf *x = &p->buf.at[b];
        int slots = x->pool >= 0 ? p->pool.at[x->pool].count : 1;
        for (int s = 0; x->device == device && x->last >= x->first && s < slots && (overlap || x->birth == AT_ALWAYS); s++)
            add_range(&used, p, b, s);
    }
    if (!overlap) {
        add_named(&used, p, &p->dev.at[device].list);
        add_named(&used, p, &p->dev.at[device].eval);
    }
    SORT(used.at, used.n, by_from);
    Bytes end = 0;
    const char *comma = "";
    fprintf(f, "     \"gaps\": [");
    for (int i = 0; i <= used.n; i++) {
        Bytes from = i < used.n ? used.at[i].from : p->dev.at[device].arena;
        if (from > end) {
            fprintf(f, "%s[%" PRId64 ", %" PRId64 "]", comma, end, from - end);
            comma = ", ";
        }
        if (i < used.n && used.at[i].to > end)
            end = used.at[i].to;
    }
    fprintf(f, "]");
    mem_in(room);
    mem_drop(scratch);
}

static void print_buffer(FILE *f, const char *comma, const char *name, Bytes bytes, Bytes offset, int slots, Bytes stride,
                         int first, int last)
{
    fprintf(f, "%s\n      {\"name\": %s, \"bytes\": %" PRId64 ", \"offset\": %" PRId64 ", \"slots\": %d, \"stride\": %" PRId64
            ", \"first\": %d, \"last\": %d}", comma, quote_json(name), bytes, offset, slots, stride, first, last);
}

static void print_bufs(FILE *f, const Plan *p, int device)
{
    const char *comma = "";
    fprintf(f, "     \"buffers\": [");
    for (EACH(const Buf, x, p->buf)) {
        if (x->device != device || x->last < x->first)
            continue;
        const Pool *pool = x->pool >= 0 ? &p->pool.at[x->pool] : NULL;
        print_buffer(f, comma, x->name, x->bytes, x->offset, pool ? pool->count : 1, pool ? pool->stride : 0,
                     x->first, x->last);
        comma = ",";
    }
    fprintf(f, "],\n");
}

static void print_host(FILE *f, const Plan *p, int device)
{
    const DevicePlan *d = &p->dev.at[device];
    const char *comma = "";
    fprintf(f, "     \"offload_bytes\": %" PRId64 ", \"host_bytes\": %" PRId64 ", \"host_bound_bytes\": %" PRId64
            ", \"copies\": %d,\n     \"host\": [", emit_offloaded(p, device), d->host, d->host_bound, d->copies);
    for (EACH(const HostBuf, x, p->host)) {
        if (x->device != device)
            continue;
        print_buffer(f, comma, x->name, x->bytes, x->offset, x->count, x->stride, x->first, x->last);
        comma = ",";
    }
    fprintf(f, "],\n");
}

static void print_operators(FILE *f, const Plan *p, int device)
{
    const char *comma = "";
    fprintf(f, "     \"operators\": [");
    for (int o = 0; o < p->g->nf; o++) {
        if (!runs_on(p, o, device))
            continue;
        fprintf(f, "%s%s", comma, quote_json(p->g->op.at[o].name));
        comma = ", ";
    }
    fprintf(f, "],\n");
}

static void print_device(FILE *f, const Plan *p, int device)
{
    const DevicePlan *d = &p->dev.at[device];
    const Device *x = &p->m->devices.at[device];
    fprintf(f, "    {\"device\": %s", quote_json(x->name));
    if (d->entry)
        fprintf(f, ", \"place\": %d, \"rank\": %d", d->entry - 1, emit_rank(p, device));
    if (p->g->team)
        team_json(f, p, device);
    fprintf(f, ", \"kind\": %s, \"threads\": %d,\n     \"arena_bytes\": %" PRId64 ", \"bound_bytes\": %" PRId64
            ", \"proven_bytes\": %" PRId64 ", \"unpooled_bytes\": %" PRId64 ", \"state_bytes\": %" PRId64
            ", \"limit_bytes\": %" PRId64 ", \"busy_ns\": %" PRId64 ", \"requests\": %d,\n",
            quote_json(x->kind), x->threads, d->arena, d->bound, d->proven, d->unpooled, d->state, d->limit, d->busy,
            d->requests);
    print_operators(f, p, device);
    /* Operators of the model that are no call of their own, and the one whose call does their work. */
    const char *comma = "";
    fprintf(f, "     \"joined\": {");
    for (int i = 0; i < p->g->nf; i++) {
        const Op *o = &p->g->op.at[i];
        if (!runs_on(p, i, device) || !o->with || !*o->with)
            continue;
        fprintf(f, "%s%s: %s", comma, quote_json(o->with), quote_json(o->name));
        comma = ", ";
    }
    fprintf(f, "},\n");
    print_host(f, p, device);
    print_bufs(f, p, device);
    print_gaps(f, p, device);
    fprintf(f, "}");
}

static void print_fates(FILE *f, const Plan *p, Fate fate)
{
    const char *comma = "";
    fprintf(f, "[");
    for (int t = 0; t < p->g->tensor.n; t++)
        if (p->fate.at[t] == (int)fate) {
            fprintf(f, "%s%s", comma, quote_json(p->g->tensor.at[t].name));
            comma = ", ";
        }
    fprintf(f, "]");
}

void emit_plan_json(FILE *f, const Plan *p)
{
    const Proof proof = plan_proof(p);
    fprintf(f, "{\"dpgen\": \"%s\", \"license\": \"" EMIT_TAG "\",\n \"model\": %s,\n \"numeric_key\": %s,\n \"schedule\": %s, "
            "\"transport\": %s", DPGEN_VERSION, quote_json(p->g->name), quote_json(p->key), quote_json(p->schedule),
            quote_json(p->m->plan.transport));
    if (p->g->team)
        fprintf(f, ", \"tensor\": %d", p->g->team);
    if (plan_uneven(p))
        fprintf(f, ", \"widths\": [%s]", widths_text(&p->m->plan.widths));
    fprintf(f, ", \"devices\": %d, \"replicas\": %d, \"chunks\": %d, \"micro_batch\": %" PRId64
            ", \"micro_batches\": %" PRId64 ", \"groups\": %" PRId64 ",\n \"map\": [",
            p->devices, plan_replicas(p), p->chunks, p->g->batch, p->g->micro, p->g->groups);
    for (int c = 0; c < plan_chunks(p); c++)
        fprintf(f, "%s%d", c ? ", " : "", stage_of(p, c));
    fprintf(f, "],\n \"times\": \"%s\", \"step_ns\": %" PRId64 ", \"step_bound_ns\": %" PRId64 ", \"bound_over\": %s,\n"
            " \"note\": %s", p->c->how, p->step, proof.bound, quote_json(proof.space ? proof.space : ""),
            quote_json(proof.note ? proof.note : ""));
    if (p->m->plan.objective == BOTTLENECK)
        fprintf(f, ",\n \"bottleneck_ns\": %" PRId64 ", \"bottleneck_bound_ns\": %" PRId64
                ", \"bottleneck_all_prefixes\": %s", p->m->plan.longest, p->m->plan.longest_bound,
                p->m->plan.longest_all ? "true" : "false");
    if (infers(p->m))
        fprintf(f, ",\n \"latency_ns\": %" PRId64 ", \"period_ns\": %" PRId64, stream_times(p).latency, stream_times(p).period);
    fprintf(f, ",\n \"recompute\": ");
    print_fates(f, p, FATE_RECOMPUTE);
    fprintf(f, ",\n \"offload\": ");
    print_fates(f, p, FATE_OFFLOAD);
    fprintf(f, ",\n \"offload_to\": \"%s\",\n \"stages\": [\n", p->m->plan.disk ? "disk" : "host");
    for (int d = 0; d < p->devices; d++) {
        print_device(f, p, d);
        fprintf(f, "%s\n", d + 1 < p->devices ? "," : "");
    }
    fprintf(f, " ]}\n");
}

static void print_event(FILE *f, const Plan *p, const Action *k, int thread, Ns from, Ns to)
{
    fprintf(f, "{\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"ts\": %" PRId64 ".%03d, \"dur\": %" PRId64 ".%03d, \"name\": ",
            thread, from / 1000, (int)(from % 1000), (to - from) / 1000, (int)((to - from) % 1000));
    json_text(f, action_text(p, k));
    fprintf(f, ", \"cat\": \"%s\"},\n", k->kind == K_WAIT ? "wait" : k->kind == K_SEND || k->kind == K_RECV ? "message" :
            k->kind == K_OUT || k->kind == K_IN ? "copy" : k->kind == K_LOAD ? "data" : "compute");
}

/* From the action that begins a send to the wait of its receiver: viewers draw an arrow between the two. */
static void print_flow(FILE *f, const Flow *m, int number)
{
    struct { char kind; int thread; Ns at; const char *more; } end[] = {
        {'s', m->from, m->send->from, ""}, {'f', m->to, m->wait->to, ", \"bp\": \"e\""}};
    for (int i = 0; i < 2; i++)
        fprintf(f, "{\"ph\": \"%c\", \"pid\": 1, \"tid\": %d, \"ts\": %" PRId64 ".%03d, \"id\": %d, \"name\": \"message\", "
                "\"cat\": \"message\"%s},\n", end[i].kind, end[i].thread, end[i].at / 1000, (int)(end[i].at % 1000), number,
                end[i].more);
}

/* A thread for each direction of the link to the host, as in the trace of a run. */
static void print_copies(FILE *f, const Plan *p, int device, ActionKind kind)
{
    enum { COPIES = 1000 };
    const Actions *list = &p->dev.at[device].list;
    int thread = COPIES + 2 * device + (kind == K_IN);
    if (p->dev.at[device].copies == 0)
        return;
    fprintf(f, "{\"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"name\": \"thread_name\", "
            "\"args\": {\"name\": \"stage %d, %s the host\"}},\n", thread, device, kind == K_IN ? "from" : "to");
    for (int i = 0; i < list->n; i++)
        if (list->at[i].kind == kind)
            print_event(f, p, &list->at[i], thread, list->at[i].wire_from, list->at[i].wire_to);
}

void emit_trace(FILE *f, const Plan *p)
{
    fprintf(f, "{\"license\": \"" EMIT_TAG "\", \"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    for (int d = 0; d < p->devices; d++) {
        fprintf(f, "{\"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"name\": \"thread_name\", "
                "\"args\": {\"name\": \"stage %d\"}},\n", d, d);
        for (EACH(const Action, k, p->dev.at[d].list))
            if (k->to > k->from || k->kind == K_SEND)
                print_event(f, p, k, d, k->from, k->to);
        const Alive *a = report_alive(p, d);
        for (int i = 0; i < a->n; i++)
            if (i == 0 || a->at[i].bytes != a->at[i - 1].bytes)
                fprintf(f, "{\"ph\": \"C\", \"pid\": 1, \"tid\": %d, \"ts\": %" PRId64 ".%03d, \"name\": \"arena of stage "
                        "%d\", \"args\": {\"bytes\": %" PRId64 "}},\n", d, a->at[i].at / 1000, (int)(a->at[i].at % 1000), d,
                        a->at[i].bytes);
        print_copies(f, p, d, K_OUT);
        print_copies(f, p, d, K_IN);
    }
    Flows all = lists_flows(p);
    for (int i = 0; i < all.n; i++)
        print_flow(f, &all.at[i], i + 1);
    fprintf(f, "{\"ph\": \"M\", \"pid\": 1, \"name\": \"process_sort_index\", \"args\": {\"sort_index\": 1}},\n"
            "{\"ph\": \"M\", \"pid\": 1, \"name\": \"process_name\", \"args\": {\"name\": \"predicted\"}}\n]}\n");
}
