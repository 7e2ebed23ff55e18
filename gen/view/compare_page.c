/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_page.c: planners side by side in a browser: a row a planner, a bar where rows are to be told apart.
 *
 * Steps of good planners differ by parts of a per cent, so their bars show what is above the shortest step, and the head of the
 * column says how much the longest bar is.  Bars of micro-batches and of memory begin at zero.  The largest arena fills its
 * bar, or the limit does where it is near.  Rows stand by step.
 */
#include "compare.h"

typedef struct { Ns least, most; int64_t b; } CompareRange; /* of steps; the largest b* */

static CompareRange range_of(const Compare *c)
{
    CompareRange r = {INT64_MAX, 0, 0};
    for (EACH(const CompareEntry, e, c->entry)) {
        r.b = e->most.b > r.b ? e->most.b : r.b;
        if (!e->here.fits)
            continue;
        r.least = e->here.step < r.least ? e->here.step : r.least;
        r.most = e->here.step > r.most ? e->here.step : r.most;
    }
    return r;
}

static double above(Ns step, Ns least)
{
    return least > 0 ? 100 * (double)(step - least) / (double)least : 0;
}

static void print_head(FILE *f, const Compare *c, const CompareRange *r)
{
    fprintf(f, "<tr><th>planner</th><th>step, ms</th>"
            "<th class=\"left\" colspan=\"2\">above the shortest; a full bar: %+.2f %%</th>"
            "<th>samples/s</th><th>above the bound</th><th>recomputed</th><th>offloaded</th>",
            r->most ? above(r->most, r->least) : 0.0);
    if (!c->quick)
        fprintf(f, "<th class=\"left\" colspan=\"2\">largest micro-batch, b*; a full bar: %" PRId64 "</th>"
                "<th>samples of its step, batch*</th><th>its samples/s</th>", r->b);
    fprintf(f, "<th>planning, s</th></tr>\n");
}

static void print_row(FILE *f, const Compare *c, const CompareEntry *e, const CompareRange *r)
{
    const Outcome *o = &e->here;
    fprintf(f, "<tr%s><td>%s</td>", o->fits && o->step == r->least ? " class=\"best\"" : "", quote_html(e->planner->name));
    if (o->fits) {
        fprintf(f, "<td>%.3f</td><td>%+.2f %%</td>", (double)o->step / 1e6, above(o->step, r->least));
        page_bar(f, r->most > r->least ? (double)(o->step - r->least) / (double)(r->most - r->least) : 0, -1);
        fprintf(f, "<td>%.1f</td><td>%s</td><td>%s</td><td>%s</td>", o->rate, compare_gap(c, e), size_text(o->dropped),
                size_text(o->moved));
    } else {
        fprintf(f, "<td class=\"no\" colspan=\"7\">%s</td>", quote_html(o->why));
    }
    if (!c->quick) {
        fprintf(f, "<td>%" PRId64 "</td>", e->most.b);
        page_bar(f, r->b ? (double)e->most.b / (double)r->b : 0, -1);
        fprintf(f, "<td>%" PRId64 "</td><td>%.1f</td>", e->most.b * c->micro, compare_rate(e->most.at_b));
    }
    fprintf(f, "<td>%.3f</td></tr>\n", e->seconds);
}

static void print_planners(FILE *f, const Compare *c)
{
    CompareRange r = range_of(c);
    page_table(f, "planners");
    print_head(f, c, &r);
    for (int i = 0; i < c->entry.n; i++)
        print_row(f, c, &c->entry.at[i], &r);
    fprintf(f, "</table></div>\n");
    if (c->bound > 0)
        fprintf(f, "<p>The proven bound is %.3f ms: no plan of the space of %s has a shorter step%s.</p>\n",
                (double)c->bound / 1e6, planners->name, c->m->plan.replicas_auto ? ", of as many stages and replicas" : "");
    if (!c->quick)
        fprintf(f, "<p class=\"soft\">b* is the largest micro-batch that fits at a rate above half the best, with as many in "
                "a step; batch* the samples of such a step. Both are planned like every row.</p>\n");
}

/* Devices of a plan may stand in another order than those of the first: then its cell names them. */
static void print_arenas(FILE *f, const Outcome *o, const Outcome *head, Bytes full)
{
    for (int d = 0; o->fits && d < o->devices; d++) {
        const Device *x = &o->m->devices.at[d];
        bool same = !strcmp(x->name, head->m->devices.at[d].name);
        page_bar(f, (double)o->arenas[d] / (double)full, (double)x->memory / (double)full);
        fprintf(f, "<td class=\"left\">%s%s</td>", size_text(o->arenas[d]), same ? "" : strf(" on %s", quote_html(x->name)));
    }
    if (!o->fits)
        fprintf(f, "<td class=\"no\" colspan=\"%d\">%s</td>", 2 * head->devices, quote_html(o->why));
}

static void print_memory(FILE *f, const Compare *c)
{
    const Outcome *head = NULL;
    for (int i = 0; i < c->entry.n; i++) {
        const Outcome *o = &c->entry.at[i].here;
        head = o->fits && (!head || o->devices > head->devices) ? o : head;
    }
    if (!head)
        return;
    /* A full bar: the largest arena, or the largest limit where that is not much more. */
    Bytes most = 1, limit = 0;
    for (int i = 0; i < c->entry.n; i++) {
        const Outcome *o = &c->entry.at[i].here;
        for (int d = 0; o->fits && d < o->devices; d++) {
            most = o->arenas[d] > most ? o->arenas[d] : most;
            limit = o->m->devices.at[d].memory > limit ? o->m->devices.at[d].memory : limit;
        }
    }
    Bytes full = limit / 8 < most / 5 ? limit : most;
    fprintf(f, "<h2>Memory of each device</h2>\n<p>The arena; a full bar is %s. A red line is the limit, where it is not "
            "further to the right.</p>\n", size_text(full));
    page_table(f, "memory");
    fprintf(f, "<tr><th>planner</th>");
    for (int d = 0; d < head->devices; d++)
        fprintf(f, "<th class=\"left\" colspan=\"2\">%s, limit %s</th>", quote_html(head->m->devices.at[d].name),
                size_text(head->m->devices.at[d].memory));
    fprintf(f, "</tr>\n");
    for (int i = 0; i < c->entry.n; i++) {
        fprintf(f, "<tr><td>%s</td>", quote_html(c->entry.at[i].planner->name));
        print_arenas(f, &c->entry.at[i].here, head, full);
        fprintf(f, "</tr>\n");
    }
    fprintf(f, "</table></div>\n");
}

static void print_spaces(FILE *f, const Compare *c, int64_t batch)
{
    fprintf(f, "<h2>The space of each planner</h2>\n");
    page_table(f, "spaces");
    for (EACH(const CompareEntry, e, c->entry))
        fprintf(f, "<tr><td>%s</td><td class=\"wrap\">%s%s%s%s</td></tr>\n", quote_html(e->planner->name),
                quote_html(planner_space(e->planner, &(Plan){.m = c->m})), quote_html(compare_choice(c, e, batch)),
                e->here.note ? "; " : "", quote_html(e->here.note ? e->here.note : ""));
    fprintf(f, "</table></div>\n");
}

void compare_page(const Compare *c, int64_t batch, const char *path)
{
    FILE *f = file_begin(path);
    page_begin(f, strf("%s: planners side by side", c->m->name), NULL);
    fprintf(f, "<h1>%s: planners side by side</h1>\n<p>%s, %s, %" PRId64 " micro-batches of %" PRId64 " samples. Every "
            "row is planned, laid out and simulated by the same passes. Steps and rates are predictions from %s times; "
            "nothing ran.</p>\n",
            quote_html(c->m->name), view_width(c->m, devices_for(c->m, c->m->plan.stages_max)), quote_html(c->schedule),
            c->micro, batch, compare_times(c));
    print_planners(f, c);
    print_memory(f, c);
    print_spaces(f, c, batch);
    page_end(f, false);
    file_end(f, path);
}
