/* SPDX-License-Identifier: Apache-2.0
 *
 * replica.c: r copies of the pipeline, each with its own micro-batches, that end every step with the same gradient.
 *
 * Problem: data parallelism adds up gradients of replicas.  Every library's all-reduce adds in an order of its own, by rings
 * and trees that depend on the number of replicas.  So the bits of a job change with its width.  Users of PyTorch's and
 * Megatron-LM's data parallelism ask for the same bits at other widths, and are told that there are none.
 *
 * Method: the order of additions belongs to the model.  `train.batch.groups` cuts the micro-batches of a step into g groups,
 * added by a fixed binary tree (order.c).  Replica q of r owns groups q g/r .. (q+1) g/r - 1, a whole subtree, and sums it by
 * itself.  At each of the log2 r levels above it, replicas q and q xor 2^l add their two sums, each a half of the elements
 * (share.c).  An element is added in the order of the tree, whoever does it, and a+b is b+a in IEEE 754.  So all get the same
 * sum, that of r = 1: the numeric key does not know r.  Every replica then updates its own copy of the parameters; ties, norms
 * and clipping stay inside the replica.  With train.shard it updates the part that it has summed up.
 *
 * With plan.widths a stage may have fewer copies than the model has rows.  Its devices are in several neighbouring rows each,
 * and take micro-batches of them in turn.  Each row has accumulators of its own there, since its groups are a subtree.  What is
 * above that on the device is folds, and above the device messages: the same tree.  Uses of a tied parameter go up and down
 * the tree each by itself, as stages halve a gradient in different parts.
 *
 * A row is one copy of the model, with micro-batches of its own.  Plan.home names the device of each (row, chunk); order.c
 * fills it, and nothing else computes a device.  A replica is the rows that share its devices: one, or one a direction of the
 * pipeline.  The tree is over rows; the plan counts replicas.  Without plan.widths no device has the same chunk in two rows.
 * Numbers of micro-batches are those of the whole step, so data, dropout and losses follow from them as ever.
 *
 * Source: Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in MPICH, 2005, section 4.4.
 *
 * Cost: 2 (r-1) / r times the gradient over each replica's wire and direction, the least of any all-reduce, in 2 log2 r turns.
 *
 * Replicas exchange behind the last computation of the step, or behind pieces of it (Choice.buckets).  Of two directions, with
 * Choice.early, a chunk is exchanged behind its own last computation: the devices of a chunk are as far as each other then.
 *
 * Not handled: replicas on devices of different speed (stages are cut for the first replica, under the least memory of all).
 */
#include "sched.h"

int plan_replicas(const Plan *p)
{
    return p->replicas > 1 ? p->replicas : 1;
}

int plan_stages(const Plan *p)
{
    return plan_uneven(p) ? p->m->plan.widths.n : p->devices / plan_replicas(p);
}

bool plan_uneven(const Plan *p)
{
    return p->m && p->m->plan.widths.n > 0;
}

int plan_copies(const Plan *p, int chunk)
{
    return plan_uneven(p) && chunk >= 0 ? p->m->plan.widths.at[stage_of(p, chunk)] : 1 << plan_levels(p);
}

int plan_turns(const Plan *p, int chunk)
{
    return plan_uneven(p) && chunk >= 0 ? p->m->plan.replicas / plan_copies(p, chunk) : 1;
}

int plan_copy(const Plan *p, int device, int chunk)
{
    return plan_row_of(p, device, chunk) / plan_turns(p, chunk);
}

int plan_depth(const Plan *p, int chunk)
{
    int n = 0;
    while (1 << n < plan_copies(p, chunk))
        n++;
    return n;
}

int plan_rows(const Plan *p)
{
    return p->home.n ? p->home.n : plan_replicas(p) * schedule_ways(schedule_of(p->schedule));
}

int plan_ways(const Plan *p)
{
    return plan_rows(p) / plan_replicas(p);
}

int plan_chunks(const Plan *p)
{
    return p->home.n ? p->home.at[0].n : 0;
}

void plan_settle(Plan *p, int row, int device)
{
    while (p->home.n <= row)
        *PUSH(&p->home) = (Ints){0};
    *PUSH(&p->home.at[row]) = device;
}

int plan_chunk_at(const Plan *p, int row, int device)
{
    for (int c = 0; c < plan_chunks(p); c++)
        if (plan_home(p, row, c) == device)
            return c;
    return -1;
}

static int row_of(const Plan *p, int device, int chunk)
{
    int q = 0;
    while (q < p->home.n && plan_home(p, q, chunk) != device)
        q++;
    return q < p->home.n ? q : -1;
}

bool plan_holds(const Plan *p, int device, int chunk)
{
    return row_of(p, device, chunk) >= 0;
}

int plan_row_of(const Plan *p, int device, int chunk)
{
    int row = row_of(p, device, chunk);
    if (row < 0)
        die("replica: device %d has no chunk %d", device, chunk);
    return row;
}

/* The first row that the device holds a chunk of. */
static int first_row(const Plan *p, int device)
{
    for (int q = 0; q < p->home.n; q++)
        if (plan_chunk_at(p, q, device) >= 0)
            return q;
    die("replica: device %d has no chunk", device);
}

/* Asked for each action: the rows are looked at where there is a choice. */
int plan_replica(const Plan *p, int device)
{
    return plan_replicas(p) == 1 ? 0 : first_row(p, device) / plan_ways(p);
}

int plan_twin(const Plan *p, int device, int replica)
{
    if (plan_replicas(p) == 1)
        return device;
    int row = first_row(p, device), ways = plan_ways(p);
    return plan_home(p, replica * ways + row % ways, plan_chunk_at(p, row, device));
}

int plan_stage(const Plan *p, int device)
{
    return plan_twin(p, device, 0);
}

bool plan_across(const Plan *p, int device, const Action *k)
{
    return plan_ways(p) > 1 ? k->pipeline == 0 : plan_stage(p, k->peer) == plan_stage(p, device);
}

int plan_micro(const Plan *p)
{
    return (int)p->g->micro / plan_rows(p);
}

int plan_first(const Plan *p, int device, int chunk)
{
    return plan_row_of(p, device, chunk) * plan_micro(p);
}

int plan_share_of(const Plan *p, int chunk)
{
    return plan_micro(p) * plan_turns(p, chunk);
}

int plan_nth(const Plan *p, int device, int chunk, int n)
{
    int turns = plan_turns(p, chunk), each = plan_micro(p);
    return (plan_row_of(p, device, chunk) + n % turns) * each + n / turns;
}

int plan_turn(const Plan *p, int chunk, int mb)
{
    int turns = plan_turns(p, chunk), each = plan_micro(p);
    return mb % each * turns + mb / each % turns;
}

int plan_flight(const Plan *p, int chunk)
{
    int n = 0, w = plan_copies(p, chunk);
    for (int c = chunk; c < plan_chunks(p); c++)
        n += plan_copies(p, c);
    /* Where steps overlap, as many of each row: at a cut no neighbour is further than one ahead. */
    int turns = schedule_of(p->schedule)->async ? plan_turns(p, chunk) : 1, all = w * turns;
    return (n + all - 1) / all * turns;
}

int plan_row_at(const Plan *p, int device, int mb)
{
    return mb >= 0 && plan_uneven(p) ? mb / plan_micro(p) : plan_replica(p, device);
}

int plan_levels(const Plan *p)
{
    int n = p->tree_depth;
    while (!p->tree_depth && 1 << n < plan_rows(p))
        n++;
    return n;
}

/* Two pipelines in a replica have Choice.early; asynchronous schedules have no replicas.  With plan.widths it is not built. */
bool plan_may_bucket(const Plan *p)
{
    return plan_levels(p) > 0 && plan_ways(p) == 1 && !plan_uneven(p);
}

int plan_buckets(const Plan *p)
{
    return p->ask.choice.buckets > 1 && plan_may_bucket(p) ? p->ask.choice.buckets : 1;
}

int plan_partner(const Plan *p, int device, int chunk, int level)
{
    return plan_home(p, (plan_copy(p, device, chunk) ^ 1 << level) * plan_turns(p, chunk), chunk);
}

void plan_keep_row(Plan *p)
{
    DevicePlan *dev = alloc(sizeof *dev * (size_t)p->devices);
    memcpy(dev, p->dev.at, sizeof *dev * (size_t)p->devices);
    p->dev.at = dev;
    p->dev.n = p->devices;
    for (int d = 0; d < p->devices; d++) {
        Actions list = {0};
        for (int i = 0; i < p->dev.at[d].order.n; i++)
            if (stage_of(p, p->dev.at[d].order.at[i].chunk) == d && p->dev.at[d].order.at[i].mb < p->g->micro)
                *PUSH(&list) = p->dev.at[d].order.at[i];
        p->dev.at[d].order = list;
    }
}

/* Copies the lists of replica 0 to the others. */
void sched_replicate(Plan *p)
{
    int stages = plan_stages(p);
    for (int d = stages; d < p->devices && !plan_uneven(p); d++) {
        const Actions *first = &p->dev.at[plan_stage(p, d)].order;
        for (int i = 0; i < first->n; i++) {
            Action *k = PUSH(&p->dev.at[d].order);
            *k = first->at[i];
            k->mb += k->mb >= 0 ? plan_replica(p, d) * plan_ways(p) * plan_micro(p) : 0;
        }
    }
    for (int d = 0; d < p->devices; d++)
        for (EACH(Action, k, p->dev.at[d].order))
            if (k->kind == K_MERGE || k->kind == K_SHARE)
                k->from_device = plan_partner(p, d, k->chunk, k->tree_level);
}
