/* SPDX-License-Identifier: Apache-2.0
 *
 * infer.c: plan.mode: infer: what it asks of the other sections, and what it leaves of them.
 *
 * The graph has no backward, so nothing of the file that only training reads has a meaning.  A file that says `mode: infer`
 * itself may not hold it.  --mode infer takes what it can of a file for training, so one file serves both.
 *
 * needs   all sections   fills   Model.train, data, eval, ckpt, plan as a job without training has them   fails   with bad()
 */
#include "schema.h"

/* Values of an option stand in another text than the file. */
static bool said_in(const Node *root, const Node *value)
{
    return value && value->loc.file == root->loc.file;
}

/* What dpgen has no inference for.  asked: the schedule is no leftover of a file for training. */
static void check_plan(const Model *m, bool asked)
{
    const PlanSpec *p = &m->plan;
    if (p->widths.n || p->widths_auto)
        bad(p->mode_at, "delete plan.widths", "plan.mode: infer has one device a stage, and plan.widths asks for copies");
    const char *what = p->widths.n ? NULL : p->replicas > 1 || p->replicas_auto ? "plan.replicas"
        : (p->map.n && !p->table) || (p->chunks_said && (p->chunks > 1 || p->chunks_auto)) ? "plan.chunks" : NULL;
    if (what)
        bad(p->mode_at, strf("set %s to 1", what), "plan.mode: infer has one pipeline, of one chunk a stage, and %s asks "
            "for several", what);
    if (p->positions != POSITIONS_WHOLE)
        bad(p->positions_at, "plan.positions: whole", "plan.mode: infer has all rows on each device of a stage");
    if (m->outputs.n > MAXINPUT)
        bad(p->mode_at, NULL, "%d outputs; at most %d are written", m->outputs.n, MAXINPUT);
    if (m->devices.n && target_of(&m->devices.at[0])->gpu)
        bad(p->mode_at, "name devices of kind cpu", "plan.mode: infer is for processors, and '%s' is of kind %s",
            m->devices.at[0].name, m->devices.at[0].kind);
    if (asked && !schedule_open(p->schedule) && !schedule_of(p->schedule)->infers)
        bad(p->mode_at, "delete plan.schedule", "plan.mode: infer has no backward, and schedule %s orders one", p->schedule);
    if (m->train.fp8)
        bad(p->mode_at, "train.precision.compute: bf16 or f32", "plan.mode: infer has no products in fp8: their scales follow "
            "training steps");
}

static void infer(Model *m)
{
    Train *t = &m->train;
    PlanSpec *p = &m->plan;
    t->groups = 1;
    t->steps = 1;
    t->clip = 0;
    t->shard = SHARD_NONE;
    t->opt = OPT_SGD;
    t->momentum = 0;
    t->nesterov = t->centered = false;
    memset(&t->freeze, 0, sizeof t->freeze);
    memset(&t->no_decay, 0, sizeof t->no_decay);
    memset(&t->param_group, 0, sizeof t->param_group);
    memset(&m->data, 0, sizeof m->data);
    memset(&m->eval, 0, sizeof m->eval);
    const Schedule *k = schedules;
    while (!k->infers)
        k++;
    p->schedule = k->name;                      /* and not what another schedule brought */
    p->table = NULL;
    p->map = (Ints){0};
    p->chunks = 1;
    p->group = p->waves = 0;
    p->any_row = false;
    p->warmup = WARMUP_A;
    p->recompute = RECOMPUTE_NONE;
    p->offload = OFFLOAD_NONE;
    p->disk = false;
    p->names = p->away = p->keep = (Strs){0};       /* operators that no output depends on may be named there */
}

void model_mode(Model *m, Node *root)
{
    const Node *mode = node_at(root, "plan.mode");
    Node *file = node_get(root, "model");
    if (infers(m)) {
        if (!m->outputs.n)
            bad(m->plan.mode_at, "name them: model.outputs: [NAME], or --set model.outputs=NAME", "plan.mode: infer, and the "
                "model has no outputs");
        if (said_in(root, mode)) {
            static const char *const unread[] = {
                "train.steps", "train.optimizer", "train.schedule", "train.clip_norm", "train.clip_scope", "train.shard",
                "train.freeze", "train.batch.groups", "data", "checkpoint", "plan.recompute", "plan.offload", "plan.warmup" };
            for (int i = 0; i < COUNT(unread); i++) {
                const Node *n = node_at(root, unread[i]);
                if (said_in(root, n))
                    bad(n->loc, "delete it; or keep it, and give --mode infer as an option instead of plan.mode",
                        "plan.mode: infer trains nothing, and %s is of training", unread[i]);
            }
        }
        const Node *schedule = node_at(root, m->plan.table ? "plan.order" : "plan.schedule");
        check_plan(m, said_in(root, mode) || !said_in(root, schedule));
        infer(m);
        return;
    }
    if (file && file->kind == MAP)
        want_key(file, "loss", "model");
    if (schedule_of(m->plan.schedule)->infers)
        bad(m->plan.loc, "plan.mode: infer, or another schedule", "schedule %s has forwards alone, and this job trains",
            m->plan.schedule);
}
