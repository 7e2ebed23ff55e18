/* SPDX-License-Identifier: Apache-2.0
 *
 * report.html: the plan for a person.  One file, inline SVG, no script, nothing from elsewhere.
 *
 *   stages    operators, arena by kind, bound, limit, slack, predicted time; under the table which operators are one call
 *   schedule  one row a stage, time across, as the simulator sees it
 *             and under it its copies to the host and back
 *   memory    bytes alive over the calls of the step, the arena and the lower bound; what is alive at the peak
 *
 * Coordinates are integers; the model's names are checked identifiers and need no escaping.
 */
#include "emit.h"
#include <inttypes.h>
#include <stdlib.h>

enum { WIDE = 960, ROW = 26, TALL = 140, LEFT = 60 };

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title><style>\n"
    "body{font:14px/1.5 sans-serif;max-width:1060px;margin:2em auto;padding:0 1em;color:#222}\n"
    "table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}\n"
    "td:first-child,th:first-child,td.name{text-align:left}code{background:#f4f4f4;padding:0 .2em}\n"
    "svg{display:block;margin:.5em 0}text{font:11px sans-serif;fill:#444}\n"
    ".f{fill:#6baed6}.b{fill:#fd8d3c}.r{fill:#fdd0a2}.w{fill:#e6550d}.u{fill:#74c476}.m{fill:#bdbdbd}\n"
    ".o{fill:#9e9ac8}.i{fill:#dadaeb}\n"
    ".live{fill:#9ecae1;stroke:#3182bd}.arena{stroke:#a50f15;stroke-dasharray:4 3}.bound{stroke:#31a354}\n"
    "</style></head><body>\n";

static Bytes part_of(const Plan *p, int device, StateKind a, StateKind b)
{
    Bytes n = 0;
    for (int i = 0; i < p->buf.n; i++) {
        const Buf *x = &p->buf.at[i];
        if (x->device != device || x->state < 0 || x->birth != AT_ALWAYS)
            continue;
        StateKind k = p->g->state.at[x->state].kind;
        int slots = x->pool >= 0 ? p->pool.at[x->pool].count : 1;
        n += k == a || k == b ? x->bytes * slots : 0;
    }
    return n;
}

static Bytes offloaded(const Plan *p, int device)
{
    Bytes sum = 0;
    for (int i = 0; i < p->host.n; i++)
        sum += p->host.at[i].device == device ? p->host.at[i].bytes : 0;
    return sum;
}

static void print_stages(FILE *f, const Plan *p)
{
    fprintf(f, "<h2>Stages</h2>\n<table><tr><th>stage</th><th>first .. last operator</th><th>parameters</th><th>gradients</th>"
            "<th>moments</th><th>arena</th><th>lower bound</th><th>limit</th><th>slack</th><th>busy</th>%s</tr>\n",
            p->host.n ? "<th>offloaded a micro-batch</th><th>in the host</th>" : "");
    for (int d = 0; d < p->devices; d++) {
        const DevicePlan *x = &p->dev.at[d];
        fprintf(f, "<tr><td>%d</td><td class=\"name\">%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td>"
                "<td>%s</td><td>%s</td><td>%" PRId64 " %%</td>%s</tr>\n", d, covers_text(p, d),
                size_text(part_of(p, d, S_PARAM, S_COPY)), size_text(part_of(p, d, S_GRAD, S_GRAD)),
                size_text(part_of(p, d, S_MOMENT1, S_MOMENT2)), size_text(x->arena), size_text(x->bound), size_text(x->limit),
                size_text(x->limit - x->arena), p->step ? 100 * x->busy / p->step : 0,
                p->host.n ? strf("<td>%s</td><td>%s</td>", size_text(offloaded(p, d)), size_text(x->host)) : "");
    }
    fprintf(f, "</table>\n");
}

static void print_joined(FILE *f, const Graph *g)
{
    const char *text = "";
    int n = 0;
    for (int i = 0; i < g->nf; i++) {
        const Op *o = &g->op.at[i];
        if (o->with && *o->with)
            text = strf("%s%s<code>%s</code> in <code>%s</code>", text, n++ ? ", " : "", o->with, o->name);
    }
    if (n)
        fprintf(f, "<p>Operators that are joined to one call with the addition behind them: %s.</p>\n", text);
}

static const char *class_of(ActionKind k)
{
    switch (k) {
    case K_F: return "f";
    case K_B: case K_I: return "b";
    case K_W: return "w";
    case K_R: return "r";
    case K_U: case K_FOLD: return "u";
    default:  return NULL;
    }
}

/* At the foot of the stage's row: when the link has it. */
static void print_copy(FILE *f, const Plan *p, int device, const Action *k)
{
    bool in = k->kind == K_IN;
    int from = LEFT + (int)(k->wire_from * WIDE / p->step), to = LEFT + (int)(k->wire_to * WIDE / p->step);
    fprintf(f, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"3\"><title>%s, %.3f ms</title></rect>\n",
            in ? "i" : "o", from, device * ROW + ROW - (in ? 5 : 9), to > from ? to - from : 1, action_text(p, k),
            (double)(k->wire_to - k->wire_from) / 1e6);
}

static void print_schedule(FILE *f, const Plan *p)
{
    fprintf(f, "<h2>Schedule</h2>\n<p>%s, predicted step %.3f ms (%s). Blue forward, orange backward, pale recomputation, "
            "green update; the number is the micro-batch.%s</p>\n<svg width=\"%d\" height=\"%d\">\n",
            order_name(p), (double)p->step / 1e6, strf("%s costs", p->c->how),
            p->host.n ? " Below: copies to the host, and back." : "", WIDE + LEFT, ROW * p->devices + 4);
    for (int d = 0; d < p->devices; d++) {
        fprintf(f, "<text x=\"0\" y=\"%d\">stage %d</text>\n", d * ROW + 17, d);
        for (int i = 0; i < p->dev.at[d].list.n; i++) {
            const Action *k = &p->dev.at[d].list.at[i];
            const char *class = class_of(k->kind);
            if ((k->kind == K_OUT || k->kind == K_IN) && p->step > 0)
                print_copy(f, p, d, k);
            if (!class || p->step == 0)
                continue;
            int from = LEFT + (int)(k->from * WIDE / p->step), to = LEFT + (int)(k->to * WIDE / p->step);
            fprintf(f, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"><title>%s, %.3f ms</title></rect>\n",
                    class, from, d * ROW + 2, to > from ? to - from : 1, ROW - 4,
                    action_text(p, k), (double)(k->to - k->from) / 1e6);
            if (to - from > 14 && k->mb >= 0)
                fprintf(f, "<text x=\"%d\" y=\"%d\">%d</text>\n", (from + to) / 2 - 4, d * ROW + 17, k->mb);
        }
    }
    fprintf(f, "</svg>\n");
}

static int height(const DevicePlan *d, Bytes n)
{
    return TALL - (int)(n * (TALL - 8) / d->arena);
}

static void print_level(FILE *f, const char *class, int y)
{
    fprintf(f, "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", class, LEFT, LEFT + WIDE, y, y);
}

/* The most that is alive in each of at most WIDE columns. */
static void print_memory(FILE *f, const Plan *p, int device)
{
    const DevicePlan *d = &p->dev.at[device];
    fprintf(f, "<h3>Stage %d</h3>\n<svg width=\"%d\" height=\"%d\">\n<path class=\"live\" d=\"M%d %d",
            device, WIDE + LEFT, TALL + 2, LEFT, TALL);
    int columns = d->ticks < WIDE ? d->ticks : WIDE;
    for (int c = 0; c < columns; c++) {
        Bytes most = 0;
        for (int t = (int)((int64_t)c * d->ticks / columns); t < (int)((int64_t)(c + 1) * d->ticks / columns); t++)
            most = d->live[t] > most ? d->live[t] : most;
        int y = height(d, most);
        fprintf(f, "L%d %dL%d %d", LEFT + c * WIDE / columns, y, LEFT + (c + 1) * WIDE / columns, y);
    }
    fprintf(f, "L%d %dZ\"/>\n", LEFT + WIDE, TALL);
    print_level(f, "arena", height(d, d->arena));
    print_level(f, "bound", height(d, d->bound));
    fprintf(f, "<text x=\"0\" y=\"14\">%s</text>\n</svg>\n", size_text(d->arena));
}

typedef struct { int buf; Bytes bytes; } Big;

static int by_bytes(const void *a, const void *b)
{
    const Big *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : x->buf - y->buf;
}

static void print_peak(FILE *f, const Plan *p, int device)
{
    const DevicePlan *d = &p->dev.at[device];
    const Bytes *alive = mem_at_peak(p, device);
    VEC(Big) big = {0};
    for (int b = 0; b < p->buf.n; b++)
        if (alive[b] > 0)
            *PUSH(&big) = (Big){b, alive[b]};
    qsort(big.at, (size_t)big.n, sizeof *big.at, by_bytes);
    fprintf(f, "<p>Peak at call %d of %d. The largest of what is alive there:</p>\n<table>", d->peak, d->ticks);
    for (int i = 0; i < big.n && i < 8; i++) {
        const Buf *x = &p->buf.at[big.at[i].buf];
        Loc at = x->tensor >= 0 ? p->g->tensor.at[x->tensor].loc :
                 x->state >= 0 ? p->g->state.at[x->state].loc : (Loc){0, 0, 0};
        fprintf(f, "<tr><td><code>%s</code></td><td>%s</td><td>model.yaml:%d</td></tr>\n", x->name, size_text(big.at[i].bytes),
                at.line);
    }
    fprintf(f, "</table>\n");
}

void emit_report(FILE *f, const Plan *p)
{
    fprintf(f, head, p->g->name);
    fprintf(f, "<h1>%s</h1>\n<p>%s%s, %s of %s. Numeric key: <code>%s</code>. "
            "No plan has a step shorter than %.3f ms (%s).</p>\n",
            p->g->name, count_text(plan_stages(p), "stage"),
            plan_replicas(p) > 1 ? strf(" in %d replicas", plan_replicas(p)) : "", count_text(p->g->micro, "micro-batch"),
            count_text(p->g->batch, "sample"), p->key, (double)plan_proof(p).bound / 1e6,
            plan_proof(p).space ? plan_proof(p).space : "");
    print_stages(f, p);
    print_joined(f, p->g);
    print_schedule(f, p);
    fprintf(f, "<h2>Memory</h2>\n<p>Bytes alive over the calls of one step and one evaluation, in program order. Dashed: "
            "the arena. Green: the lower bound, the most that is ever alive.</p>\n");
    for (int d = 0; d < p->devices; d++) {
        print_memory(f, p, d);
        print_peak(f, p, d);
    }
    fprintf(f, "</body></html>\n");
}
