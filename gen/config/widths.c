/* SPDX-License-Identifier: Apache-2.0
 *
 * widths.c: plan.widths, stages that several devices have a copy of, not all stages as many.
 *
 * Problem: a stage that takes twice as long as its neighbours wants twice as many devices.  PipeDream, DAPPLE and SPP plan such
 * stages: each device has a copy, and takes its share of the micro-batches.
 *
 * Method: the widest stage says how many copies of the model there are, plan.replicas.  A narrower one has fewer devices, each
 * for as many neighbouring copies: sched/replica.c.  Widths that are equal are plan.replicas, and nothing else.
 *
 * With auto the search asks for all widths that the devices and the gradient groups allow (search/offers.c), equal ones too.
 * A list, and auto, may be wrong for the schedule or for other words of plan: that is said at the list.
 *
 * Cost: linear in the stages; with auto, in the lists of widths, MOST_WIDTHS at most.
 */
#include "schema.h"
#include "budgets.h"

void read_widths(const Spot *s)
{
    const Field one = {NULL, NULL, 0, s->field->lo, s->field->hi, NULL};
    Ints *widths = s->to;
    s->m->plan.widths_at = s->value->loc;
    s->m->plan.widths_auto = is_word(s->value, "auto");
    if (s->m->plan.widths_auto || !want(s, LIST, "auto, or a list of devices, one number for each stage"))
        return;
    for (int i = 0; i < s->value->n; i++) {
        int n = 1;
        const Spot *item = spot_item(s, i, &one, &n);
        read_count(item);
        if (n & (n - 1)) {
            int below = n;
            while (below & (below - 1))
                below &= below - 1;
            bad(item->value->loc, strf("%d", 3 * below < 2 * n ? 2 * below : below),
                "%s: %d is no power of two: sums of copies are a binary tree", item->path, n);
            n = below;
        }
        *PUSH(widths) = n;
    }
}

const char *widths_text(const Ints *widths)
{
    const char *text = "";
    for (int s = 0; s < widths->n; s++)
        text = strf("%s%s%d", text, s ? ", " : "", widths->at[s]);
    return text;
}

int devices_for(const Model *m, int stages)
{
    int all = 0;
    for (int i = 0; i < m->plan.widths.n; i++)
        all += m->plan.widths.at[i];
    return all ? all : stages * m->plan.replicas;
}

void widths_end(Model *m, const Node *plan)
{
    PlanSpec *p = &m->plan;
    if (p->widths_auto && node_get(plan, "replicas"))
        err(p->replicas_at, "delete it", "plan.replicas: plan.widths: auto chooses how many copies of the model there are");
    if (!p->widths.n)
        return;
    int most = 1, least = p->widths.at[0];
    for (int i = 0; i < p->widths.n; i++) {
        most = p->widths.at[i] > most ? p->widths.at[i] : most;
        least = p->widths.at[i] < least ? p->widths.at[i] : least;
    }
    if (node_get(plan, "replicas") && (p->replicas_auto || p->replicas != most))
        err(p->replicas_at, "delete it", "plan.replicas: plan.widths says that there are %d copies of the model", most);
    if (node_get(plan, "stages") && p->stages_max && (p->stages_min > p->widths.n || p->stages_max < p->widths.n))
        err(p->widths_at, strf("plan.stages: %d, or none", p->widths.n), "plan.widths: %s, and other stages are asked for",
            count_text(p->widths.n, "stage"));
    p->stages_min = p->stages_max = p->widths.n;
    p->replicas = most;
    p->replicas_auto = false;
    p->replicas_at = p->widths_at;
    if (least == most)
        p->widths = (Ints){0};
}

/* ---- auto ---------------------------------------------------------------------------------------------------------- */

const Model *with_widths(const Model *m, const Ints *widths)
{
    Model *with = COPY(m);
    PlanSpec *p = &with->plan;
    p->widths_auto = false;
    p->stages_min = p->stages_max = widths->n;
    p->widths = (Ints){0};
    p->replicas = widths->at[0];
    for (int i = 1; i < widths->n; i++) {
        if (widths->at[i] != widths->at[0])
            p->widths = *widths;
        p->replicas = widths->at[i] > p->replicas ? widths->at[i] : p->replicas;
    }
    p->replicas_at = p->widths_at;
    return with;
}

int widths_most(const Model *m)
{
    const int64_t groups = m->train.groups;
    return groups & (groups - 1) ? 1 : (int)groups;
}

/* All lists that go on with more stages on so many devices, counted, up to one more than MOST_WIDTHS. */
static void add_lists(int *width, int n, int stages, int devices, int most, int *count, WidthLists *all)
{
    Ints one = {0};
    for (int s = 0; n == stages && all && s < stages; s++)
        *PUSH(&one) = width[s];
    if (one.n)
        *PUSH(all) = one;
    *count += n == stages;
    for (int w = 1; n < stages && w <= most && w <= devices - (stages - n - 1) && *count <= MOST_WIDTHS; w *= 2) {
        width[n] = w;
        add_lists(width, n + 1, stages, devices - w, most, count, all);
    }
}

int widths_lists(const Model *m, int stages, WidthLists *all)
{
    int count = 0;
    add_lists(alloc(sizeof(int) * (size_t)stages), 0, stages, m->devices.n, widths_most(m), &count, all);
    return count;
}

/* How many micro-batches of each copy of the model are under way at a stage where steps overlap (sched/replica.c). */
static int under_way(const PlanSpec *p, int stage)
{
    int n = p->replicas - 1;
    for (int i = stage; i < p->widths.n; i++)
        n += p->widths.at[i];
    return n / p->replicas;
}

/* An update waits for the sums of all devices of its stage.  A later stage with fewer devices ends a step for the last of them
 * only behind forwards of the next step, as many of each copy as it has under way.  The first device sends those behind its
 * update, unless it has more under way itself. */
static const char *circle(const PlanSpec *p)
{
    for (int i = 0; i < p->widths.n; i++)
        for (int j = i + 1; j < p->widths.n; j++)
            if (p->widths.at[j] < p->widths.at[i] && under_way(p, i) <= under_way(p, j))
                return strf("updates of stage %d and forwards of stage %d would wait for each other; take as many devices for "
                            "stage %d as for stage %d, or 1f1b or gpipe", i, j, i, j);
    return NULL;
}

const char *widths_refuse(const Model *m, const Schedule *s)
{
    const char *less = m->plan.widths_auto ? "take plan.replicas: auto in place of plan.widths" : "delete plan.widths";
    if (!s->widths)
        return strf("its copies of a stage are as many as those of the others; %s, or take 1f1b%s", less,
                    m->plan.widths_auto ? " or gpipe" : ", gpipe, pipedream or 2bw");
    if (s->async && m->plan.widths_auto)
        return "its steps overlap; list the widths, or take 1f1b or gpipe";
    if (s->async && m->train.clip != 0 && !m->train.clip_each)
        return "with plan.widths no norm of the whole gradient goes from step to step; set train.clip_scope: parameter, or "
               "train.clip_norm: 0";
    const char *waits = s->async ? circle(&m->plan) : NULL;
    if (waits)
        return waits;
    if (m->plan.chunks > 1 || m->plan.map.n)
        return "with plan.widths a device has one chunk; delete plan.chunks and plan.map";
    if (m->train.shard)
        return "with plan.widths each copy of a stage has all of its states; set train.shard: none";
    return NULL;
}

void widths_check(const Model *m)
{
    const PlanSpec *p = &m->plan;
    const Schedule *k = schedule_of(p->schedule);
    const char *why = p->widths_auto || p->widths.n ? widths_refuse(m, k) : NULL;
    if (why) {
        const char *remedy = strchr(why, ';');
        err(p->widths_at, strf("%s", remedy + 2), "plan.widths%s: schedule %s: %.*s", p->widths_auto ? ": auto" : "", k->name,
            (int)(remedy - why), why);
    }
    for (int stages = p->stages_min, all = 0; p->widths_auto && stages <= p->stages_max; stages++)
        if ((all += widths_lists(m, stages, NULL)) > MOST_WIDTHS)
            err(p->widths_at, stages > p->stages_min ? strf("plan.stages: {min: %d, max: %d}", p->stages_min, stages - 1)
                : "plan.replicas: auto, or a list", "plan.widths: auto: %d devices have more than %d lists of widths of up to "
                "%s", m->devices.n, MOST_WIDTHS, count_text(stages, "stage"));
}
