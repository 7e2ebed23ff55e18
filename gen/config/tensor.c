/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor.c: plan.tensor: how many devices share a stage, and which.
 *
 * The devices of a stage are neighbours in the list, and alike.  All that plans sees the first of each: the others hold as
 * much, make the same calls, and send what it sends.  Model.listed has them all, for links, hosts and names.
 *
 * With auto the search asks for the model of each number (search.c).  One that there cannot be is refused here as one that the
 * user names, so both have one reason.
 *
 * needs   train, devices, the rest of plan    fills   Model.devices anew, listed    fails   status 3
 */
#include "schema.h"

void read_tensor(const Spot *s)
{
    PlanSpec *p = &s->m->plan;
    read_some(s, &p->tensor, &p->tensor_auto);
}

static bool alike(const Device *a, const Device *b)
{
    return !strcmp(a->kind, b->kind) && !strcmp(a->kernels, b->kernels) && a->memory == b->memory && a->threads == b->threads;
}

/* Stages of t devices, t above 1. */
static void take_teams(Model *m, int t)
{
    PlanSpec *p = &m->plan;
    int power = 1;
    while (2 * power <= t)
        power *= 2;
    int most = power, blocks = (int)m->train.blocks;
    if (t != most)
        err(p->tensor_at, strf("%d", most), "plan.tensor: %d is no power of two", t);
    if (blocks < t)
        err(p->tensor_at, blocks > 1 ? strf("%d, or train.blocks: %d", blocks, t) : strf("train.blocks: %d", t),
            "plan.tensor: %d devices share sums of train.blocks: %d", t, blocks);
    if (m->device_order == ORDER_FREE)
        err(m->order_at, "order: given, or plan.tensor: 1",
            "devices.order: free chooses one device for a stage, and plan.tensor wants %d", p->tensor);
    if (m->devices.n % t)
        err(p->tensor_at, strf("list %d devices", (m->devices.n / t + 1) * t), "plan.tensor: %d, and %d devices", t,
            m->devices.n);
    m->listed = m->devices;
    memset(&m->devices, 0, sizeof m->devices);
    for (int i = 0; i < m->listed.n; i++) {
        const Device *d = &m->listed.at[i], *first = &m->listed.at[i - i % t];
        if (!alike(d, first))
            err(d->loc, "give both the same", "%s and %s share a stage, plan.tensor: %d, and differ in kind, kernels, memory "
                "or threads", first->name, d->name, t);
        if (d == first)
            *PUSH(&m->devices) = *d;
    }
}

const Model *with_team(const Model *m, TeamForm form)
{
    const int devices = form.devices;
    Model *with = COPY(m);
    with->plan.positions = form.rows;
    with->plan.experts = form.experts;
    with->devices = m->listed.n ? m->listed : m->devices;
    memset(&with->listed, 0, sizeof with->listed);
    with->plan.tensor = devices;
    with->plan.tensor_auto = false;
    if (devices > 1)
        take_teams(with, devices);
    int most = with->plan.widths.n ? with->plan.stages_max : with->devices.n / with->plan.replicas;
    if (with->plan.stages_max > most)
        with->plan.stages_max = most;
    if (with->plan.stages_max > 0 && with->plan.stages_min > most)
        err(m->plan.tensor_at, NULL, "plan.tensor: %d, and %s of so many devices want %d of %d", devices,
            count_text(with->plan.stages_min, "stage"), with->plan.stages_min * with->plan.replicas * devices,
            m->listed.n ? m->listed.n : m->devices.n);
    return with;
}

void tensor_end(Model *m)
{
    const PlanSpec *p = &m->plan;
    if (p->tensor_auto && m->train.blocks == 1)
        warn(p->tensor_at, "plan.tensor: auto: sums of train.blocks: 1 are of one device; set train.blocks to a power of two, "
             "which is another numeric key");
    const bool everywhere = p->positions == POSITIONS_EVERYWHERE;
    if ((p->positions == POSITIONS_DIVIDED || everywhere) && p->tensor < 2 && !p->tensor_auto)
        err(p->positions_at, "set plan.tensor, or delete it", "plan.positions: %s: a stage of one device has all rows",
            everywhere ? "everywhere" : "divided");
    if (everywhere && (p->tensor_auto || p->experts == EXPERTS_AUTO))
        err(p->positions_at, "set both",
            "plan.positions: everywhere wants a number for plan.tensor, and no auto for plan.experts");
    if (p->experts == EXPERTS_DEVICES && p->tensor < 2 && !p->tensor_auto)
        err(p->experts_at, "set plan.tensor, or delete it", "plan.experts: devices: a stage of one device has all experts");
    if (p->tensor > 1)
        take_teams(m, p->tensor);
}

bool team_open(const Model *m)
{
    return m->plan.widths_auto || m->plan.tensor_auto || m->plan.positions == POSITIONS_AUTO || m->plan.experts == EXPERTS_AUTO;
}

/* Is the second of two ways an offer for stages of t devices, or the first? */
static bool offered(int asked, int any, int way, int t)
{
    return asked == any ? t > 1 || way == 0 : way == asked;
}

Teams team_offers(const Model *m)
{
    const PlanSpec *p = &m->plan;
    Teams all = {0};
    for (int t = 1; t <= MOST_TEAM; t *= 2)
        for (int way = 0; way < 4 && (p->tensor_auto || t == p->tensor); way++)
            if (offered((int)p->positions, POSITIONS_AUTO, way % 2, t) && offered((int)p->experts, EXPERTS_AUTO, way / 2, t))
                *PUSH(&all) = (TeamForm){t, way % 2, way / 2};
    return all;
}

typedef struct { const Model *m; TeamForm form; const Model *with; } TeamTrial;

static void try_team(void *ctx)
{
    TeamTrial *t = ctx;
    t->with = with_team(t->m, t->form);
}

Models team_models(const Model *m)
{
    const Teams forms = team_offers(m);
    Models all = {0};
    for (int i = 0; i < forms.n && team_open(m); i++) {
        TeamTrial one = {m, forms.at[i], m};
        if (diag_accepts(try_team, &one))
            *PUSH(&all) = one.with;
    }
    if (!team_open(m))
        *PUSH(&all) = m;
    return all;
}

/* ---- the devices of a stage ---------------------------------------------------------------------------------------- */

const Device *team_member(const Model *m, int device, int member)
{
    const Device *d = &m->devices.at[device];
    return m->listed.n ? &m->listed.at[d->entry + member] : d;
}

const char *team_text(const Model *m, int device)
{
    int n = m->plan.tensor;
    const char *first = team_member(m, device, 0)->name;
    return n > 1 ? strf("%s%s%s", first, n > 2 ? " .. " : ", ", team_member(m, device, n - 1)->name) : first;
}

int host_of(const Model *m, const Device *d)
{
    return (int)((int64_t)d->entry * m->hosts / (m->listed.n ? m->listed.n : m->devices.n));
}

const char *host_text(const Model *m, int device)
{
    int first = host_of(m, team_member(m, device, 0)), last = host_of(m, team_member(m, device, m->plan.tensor - 1));
    return m->hosts < 2 ? NULL : first == last ? strf("host %d", first) : strf("hosts %d to %d", first, last);
}
