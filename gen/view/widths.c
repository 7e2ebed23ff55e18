/* SPDX-License-Identifier: Apache-2.0
 *
 * widths.c: plans of graphs of other systems whose stages have widths, as a table, as data, and those of several planners.
 *
 * Such a plan is not laid out or simulated: copies and degrees may be any number, and the file has no kernels.
 */
#include "compare.h"

static double ms_of(Ps ps)
{
    return (double)ps / 1e9;
}

static void print_bound(const Widths *w, const WidthPlan *p)
{
    const char *proof = p->bound == p->value ? "the least there is" : p->bound ? strf("none is below %.6f ms", ms_of(p->bound))
        : "nothing is proven";
    printf("  bottleneck %.6f ms a micro-batch; %s; over %s%d %s, %s, copies that divide %" PRId64 " micro-batches\n",
           ms_of(p->value), proof, p->all ? "all " : "", p->prefixes, p->all ? "downward-closed prefixes"
           : "prefixes of one order", count_text(w->degrees, "degree"), w->micro);
    if (p->claim != p->value)
        printf("  %.6f ms by the planner's own objective\n", ms_of(p->claim));
}

static void table(const Foreign *f, const Widths *w, const WidthPlan *p)
{
    int devices = 0;
    for (EACH(const WidthStage, s, p->stage))
        devices += s->copies * s->degree;
    printf("%s: %s on %d of %s of %s, %" PRId64 " micro-batches\n", f->name, count_text(p->stage.n, "stage"), devices,
           count_text(w->devices, "device"), size_text(w->memory), w->micro);
    printf("stage  nodes  copies  tensor  again        memory            ms  first .. last\n");
    for (int i = 0, first = 0; i < p->stage.n; first = p->stage.at[i++].last + 1) {
        const WidthStage *s = &p->stage.at[i];
        printf("%5d %6d %7d %7d %6d %13s %13.6f  %s .. %s\n", i, s->last + 1 - first, s->copies, s->degree, s->again,
               size_text(s->memory), ms_of(s->time), f->node.at[p->sequence[first]].name,
               f->node.at[p->sequence[s->last]].name);
    }
    print_bound(w, p);
}

static void print_json(const Foreign *f, const Widths *w, const WidthPlan *p)
{
    printf("{\"devices\": %d, \"bottleneck_ps\": %" PRId64 ", \"bottleneck_bound_ps\": %" PRId64
           ", \"bottleneck_all_prefixes\": %s, \"claim_ps\": %" PRId64 ", \"prefixes\": %d, \"stages\": [", w->devices,
           p->value, p->bound, p->all ? "true" : "false", p->claim, p->prefixes);
    for (int i = 0, first = 0; i < p->stage.n; i++) {
        const WidthStage *s = &p->stage.at[i];
        printf("%s\n  {\"copies\": %d, \"tensor\": %d, \"memory_bytes\": %" PRId64 ", \"ps\": %" PRId64 ", \"nodes\": [",
               i ? "," : "", s->copies, s->degree, s->memory, s->time);
        for (int k = first; k <= s->last; k++)
            printf("%s%s", k > first ? ", " : "", quote_json(f->node.at[p->sequence[k]].id));
        printf("], \"again\": [");
        for (int k = first, n = 0; k <= s->last; k++)
            if (p->choice[p->sequence[k]])
                printf("%s%s", n++ ? ", " : "", quote_json(f->node.at[p->sequence[k]].id));
        printf("]}");
        first = s->last + 1;
    }
    printf("]}");
}

static void print_row(const Widths *w, const Planner *k, const WidthPlan *p)
{
    Bytes most = 0;
    printf("%-22s %15.6f ", k->name, ms_of(p->value));
    for (int i = 0; i < p->stage.n; i++) {
        printf(" %dx%d", p->stage.at[i].copies, p->stage.at[i].degree);
        most = p->stage.at[i].memory > most ? p->stage.at[i].memory : most;
    }
    printf("%s\n", most > w->memory ? strf("; does not fit: %s", size_text(most)) : "");
    if (k->complete)
        print_bound(w, p);
}

static int compare(const Options *x, const Foreign *f, const Widths *w)
{
    int found = 0, rows = 0;
    const bool *asked = compare_planners(x->planners);
    if (x->json)
        printf("{\"planners\": [");
    else
        printf("%s on %s of %s, %" PRId64 " micro-batches\n%-22s %15s  stages: copies x tensor\n", f->name,
               count_text(w->devices, "device"), size_text(w->memory), w->micro, "planner", "bottleneck ms");
    for (const Planner *k = planners; k->name; k++) {
        WidthPlan p = {0};
        if (!k->widths || !asked[k - planners])
            continue;
        bool any = k->widths(w, &p);
        found += any;
        if (x->json)
            printf("%s\n{\"planner\": \"%s\", \"plan\": %s", rows++ ? "," : "", k->name, any ? "" : "null");
        if (any && x->json)
            print_json(f, w, &p);
        else if (any)
            print_row(w, k, &p);
        else if (!x->json)
            printf("%-22s %15s%s%s\n", k->name, "no plan", p.lacks ? "  " : "", p.lacks ? p.lacks : "");
        printf("%s", x->json ? "}" : "");
    }
    printf("%s", x->json ? "]}\n" : "");
    return found ? 0 : EXIT_NOFIT;
}

int view_widths(const Options *x, const Model *m)
{
    const Foreign *f = x->foreign;
    bool compares = x->verb && !strcmp(x->verb, "compare");
    if (x->dump || x->out || (!compares && (!x->verb || strcmp(x->verb, "plan"))))
        err(f->head, "dpgen plan or dpgen compare", "stages of any width are planned, and neither laid out nor generated");
    Widths w = widths_of(f, m);
    if (compares)
        return compare(x, f, &w);
    WidthPlan p = {0};
    const Planner *k = planner_named(m->plan.planner);
    if (!k->widths)
        err(m->plan.loc, "--planner exact or piper", "planner %s has no stages of several widths", k->name);
    const bool any = k->widths(&w, &p);
    if (p.lacks)
        fail(EXIT_RUN, "planner %s: %s; exact and piper have no such limit", k->name, p.lacks);
    if (!any)
        fail(EXIT_NOFIT, "%s: no plan fits: %s of %s", x->from, count_text(w.devices, "device"), size_text(w.memory));
    if (x->json)
        print_json(f, &w, &p), printf("\n");
    else
        table(f, &w, &p);
    return 0;
}
