/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c: report.html, the plan for a person.  One file, inline SVG, nothing from elsewhere, readable without its script.
 *
 *   stages    operators, arena by kind, bound, limit, slack, predicted time; under the table which operators are one call
 *   schedule  one row a stage, time across, as the simulator sees it; at its foot the copies to the host and back
 *   measured  a mark: `dpgen report` writes a measured step there
 *   memory    bytes alive over the step by kind, the packing as address against time, what is alive at the peak
 *
 * The script (templates/report.js) adds the zoom, the calls of an action and what is alive at any instant; it reads them from
 * one JSON object.  All text is escaped.
 */
#include "emit.h"

static Bytes part_of(const Plan *p, int device, StateKind a, StateKind b)
{
    Bytes n = 0;
    for (EACH(const Buf, x, p->buf)) {
        if (x->device != device || x->state < 0 || x->birth != AT_ALWAYS)
            continue;
        StateKind k = p->g->state.at[x->state].kind;
        int slots = x->pool >= 0 ? p->pool.at[x->pool].count : 1;
        n += k == a || k == b ? x->bytes * slots : 0;
    }
    return n;
}

/* ---- in figures -------------------------------------------------------------------------------------------------------- */

static void print_card(FILE *f, const char *name, const char *value, const char *more)
{
    fprintf(f, "<div><dt>%s</dt><dd>%s<small>%s</small></dd></div>\n", name, quote_html(value), quote_html(more));
}

static void print_cards(FILE *f, const Plan *p)
{
    int most = 0;
    for (int d = 0; d < p->devices; d++)
        most = p->dev.at[d].arena > p->dev.at[most].arena ? d : most;
    double rate = p->step ? (double)(p->g->batch * p->g->micro) * 1e9 / (double)p->step : 0;
    fprintf(f, "<dl class=\"cards\">\n");
    print_card(f, "predicted step", strf("%.3f ms", (double)p->step / 1e6), strf("%s times", p->c->how));
    print_card(f, "samples a second", strf("%.1f", rate), strf("predicted, %" PRId64 " a step", p->g->batch * p->g->micro));
    print_card(f, "schedule", order_name(p), strf("%s of %s", count_text(p->g->micro, "micro-batch"),
                                                  count_text(p->g->batch, "sample")));
    print_card(f, "largest arena", size_text(p->dev.at[most].arena),
               strf("stage %s, of %s", list_name(p, most), size_text(p->dev.at[most].limit)));
    Ns bound = plan_proof(p).bound;
    if (bound > 0)
        print_card(f, "proven bound", strf("%.3f ms", (double)bound / 1e6),
                   strf("the step is %.1f %% above", 100.0 * (double)(p->step - bound) / (double)bound));
    fprintf(f, "</dl>\n");
}

static void print_stage(FILE *f, const Plan *p, int d)
{
    const DevicePlan *x = &p->dev.at[d];
    int64_t busy = p->step ? 100 * x->busy / p->step : 0;
    fprintf(f, "<tr><td>%s</td><td class=\"left\">%s</td><td class=\"wrap\">%s</td><td>%" PRId64 " %%</td>", list_name(p, d),
            quote_html(team_text(p->m, d)), quote_html(covers_text(p, d)), busy);
    page_bar(f, (double)busy / 100, -1);
    fprintf(f, "<td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td>",
            size_text(part_of(p, d, S_PARAM, S_COPY)), size_text(part_of(p, d, S_GRAD, S_GRAD)),
            size_text(part_of(p, d, S_MOMENT1, S_DRIFT)), size_text(x->arena), size_text(x->bound), size_text(x->limit),
            size_text(x->limit - x->arena));
    if (p->host.n)
        fprintf(f, "<td>%s</td><td>%s</td>", size_text(emit_offloaded(p, d)), size_text(x->host));
    if (p->g->team)
        fprintf(f, "<td>%s</td>", size_text(team_sent(p, d)));
    fprintf(f, "</tr>\n");
}

static void print_stages(FILE *f, const Plan *p)
{
    fprintf(f, "<h2>Stages</h2>\n");
    page_table(f, "stages");
    fprintf(f, "<tr><th>stage</th><th class=\"left\">device</th>"
            "<th class=\"left\">first .. last operator</th><th class=\"left\" colspan=\"2\">busy</th><th>parameters</th>"
            "<th>gradients</th><th>moments</th><th>arena</th>"
            "<th>lower bound</th><th>limit</th><th>slack</th>%s%s</tr>\n",
            p->host.n ? "<th>offloaded a micro-batch</th><th>in the host</th>" : "",
            p->g->team ? "<th>sent to its team a step</th>" : "");
    for (int d = 0; d < p->devices; d++)
        print_stage(f, p, d);
    fprintf(f, "</table></div>\n");
    if (p->g->team)
        fprintf(f, "<p class=\"soft\">Each of the %d devices of a stage has such an arena, makes such calls, and sends as much."
                "</p>\n", p->g->team);
}

/* ---- schedule ---------------------------------------------------------------------------------------------------------- */

/* ---- for the script ------------------------------------------------------------------------------------------------------ */

static void print_data(FILE *f, const Plan *p, Ns length)
{
    fprintf(f, "<script type=\"application/json\" id=\"data\">\n{\"length\":%" PRId64 ",\"kinds\":[", length);
    for (int k = 0; k < H_KINDS; k++)
        fprintf(f, "%s\"%s\"", k ? "," : "", holding_name[k]);
    fprintf(f, "],");
    /* The calls of every routine: operator and time there. */
    fprintf(f, "\"calls\":[");
    for (int r = 0; r < p->routine.n; r++) {
        const Routine *x = &p->routine.at[r];
        fprintf(f, "%s\n[", r ? "," : "");
        for (int i = 0; i < x->call.n && !x->eval; i++) {
            const Call *c = &x->call.at[i];
            const Op *o = &p->g->op.at[c->op];
            const char *name = strf("%s%s%s", o->name, o->phase == PH_W ? ", weights" : "", c->again ? ", again" : "");
            fprintf(f, "%s%s,%" PRId64, i ? "," : "", quote_json(name), line_time(p, x, i));
        }
        fprintf(f, "]");
    }
    fprintf(f, "]");
    fprintf(f, ",\n\"stages\":[\n");
    for (int d = 0; d < p->devices; d++) {
        report_lives(f, p, d, length);
        fprintf(f, "%s\n", d + 1 < p->devices ? "," : "");
    }
    fprintf(f, "]}\n</script>\n");
}

const char report_mark[] = "<!-- measured -->";

void emit_report(FILE *f, const Plan *p, const char *plan_hash)
{
    Ns length = lists_length(p);
    page_begin(f, p->g->name, plan_hash);
    fprintf(f, "<h1>%s</h1>\n<p>%s%s%s, %s of %s. Numeric key: <code>%s</code></p>\n", quote_html(p->g->name),
            count_text(plan_stages(p), "stage"), team_shape(p),
            plan_replicas(p) > 1 && !plan_uneven(p) ? strf(" in %d replicas", plan_replicas(p)) : "",
            count_text(p->g->micro, "micro-batch"), count_text(p->g->batch, "sample"), quote_html(p->key));
    print_cards(f, p);
    Proof proof = plan_proof(p);
    if (proof.bound > 0)
        fprintf(f, "<p class=\"soft\">No plan has a step shorter than %.3f ms (%s).</p>\n", (double)proof.bound / 1e6,
                quote_html(proof.space ? proof.space : ""));
    print_stages(f, p);
    if (plan_uneven(p)) {
        /* Stages down, copies of the model across: a device covers those that it is in. */
        page_table(f, "copies");
        fprintf(f, "<tr><th>stage</th>");
        for (int q = 0; q < plan_rows(p); q++)
            fprintf(f, "<th>copy %d</th>", q);
        fprintf(f, "<th>micro-batches a device</th></tr>\n");
        for (int s = 0; s < plan_stages(p); s++) {
            fprintf(f, "<tr><td>%d</td>", s);
            for (int q = 0; q < plan_rows(p); q += plan_turns(p, s))
                fprintf(f, "<td colspan=\"%d\">%s</td>", plan_turns(p, s), quote_html(team_text(p->m, plan_home(p, q, s))));
            fprintf(f, "<td>%d</td></tr>\n", plan_share_of(p, s));
        }
        fprintf(f, "</table></div>\n");
    }
    const char *text = "";
    int n = 0;
    for (int i = 0; i < p->g->nf; i++) {
        const Op *o = &p->g->op.at[i];
        if (o->with && *o->with)
            text = strf("%s%s<code>%s</code> in <code>%s</code>", text, n++ ? ", " : "", quote_html(o->with),
                        quote_html(o->name));
    }
    if (n)
        fprintf(f, "<p>Operators that are joined to one call with the addition behind them: %s.</p>\n", text);
    int tall = LIST_ROW * p->devices;
    fprintf(f, "<h2>Schedule</h2>\n<p>%s, predicted step %.3f ms (%s costs). The number in a box is the micro-batch.%s</p>\n",
            quote_html(order_name(p)), (double)p->step / 1e6, p->c->how, order_overlap(p) == 0 ? "" :
            " Steps overlap: this is a run of one period from drained to drained, and a step alone.");
    page_legend(f, lists_classes(p));
    fprintf(f, "<div class=\"tools\" data-for=\"schedule\"></div>\n<div class=\"plot\"><svg height=\"%d\">", tall + AXIS);
    lists_names(f, p);
    fprintf(f, "</svg><div class=\"scroll\"><div><svg class=\"time\" id=\"schedule\" tabindex=\"0\" role=\"group\" "
            "aria-label=\"schedule, predicted\" data-length=\"%" PRId64 "\" height=\"%d\">\n", length, tall + AXIS);
    lists_draw(f, p, length);
    fprintf(f, "</svg></div></div></div>\n<div class=\"panel calls\" data-for=\"schedule\"><p class=\"soft\">The calls of a "
            "box stand here: point at it, or use the arrow keys in the picture.</p></div>\n%s\n", report_mark);
    fprintf(f, "<h2>Memory</h2>\n<p>Bytes alive while the step runs, by kind, and below that the packing: the addresses of the "
            "arena that each buffer owns, from its first use to its last. The time is that of the schedule.</p>\n");
    for (int d = 0; d < p->devices; d++)
        report_memory(f, p, d, length);
    print_data(f, p, length);
    page_end(f, true);
}
