/* SPDX-License-Identifier: Apache-2.0
 *
 * overlap.c: which version of the weights a micro-batch reads, where steps overlap: the written rules of docs/schedules.md.
 *
 * Micro-batch k, counted through all steps of m, reads version floor((k - l) / m) on stage i of p, perhaps predicted s updates
 * further or back.  The lag l and s follow from the schedule.  Where stages differ in copies, k and m count those of a device.
 */
#include "verify.h"
#include <string.h>

typedef enum { NEWEST, BEHIND, DEPTH, STEP, FIRST } Lag;        /* 0, p-1-i, p-1, m, p-1-i of the step's first micro-batch */
typedef enum { NO_AHEAD, OWN, TURN, BACK } AheadKind;           /* s: 0; the lag; the lag and i/2; backward goes back instead */
typedef struct { const char *name; Lag forward, backward; AheadKind ahead; } OverlapRule;

static const OverlapRule rules[] = {
    {"2bw", STEP, STEP, NO_AHEAD}, {"pipedream", BEHIND, BEHIND, NO_AHEAD}, {"vertical", DEPTH, DEPTH, NO_AHEAD},
    {"nag", BEHIND, BEHIND, NO_AHEAD}, {"timeprest", BEHIND, NEWEST, NO_AHEAD}, {"spectrain", BEHIND, NEWEST, TURN},
    {"spectrain-once", BEHIND, BEHIND, OWN}, {"pb", BEHIND, NEWEST, OWN}, {"xpipe", FIRST, NEWEST, TURN},
    {"pipemare", BEHIND, NEWEST, BACK},
};

static const OverlapRule *rule_of(const char *versions)
{
    size_t n = strcspn(versions, " ");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strlen(rules[i].name) == n && !strncmp(rules[i].name, versions, n))
            return &rules[i];
    return NULL;
}

bool overlap_known(const char *versions)
{
    return rule_of(versions) != NULL;
}

/* Micro-batches of a step that a device of the stage has. */
static int share(const Folder *f, int stage)
{
    return (int)f->micro / f->replicas * f->stage[stage].turns;
}

/* Copies of a stage: each copy of the model has as many micro-batches under way as devices from the stage on, shared out. */
static int lag_in(const Folder *f, Lag lag, int stage)
{
    int last = (f->homes ? f->homes : f->stages) - 1, n = 0;
    for (int d = 0; f->homes && d < f->stages; d++)
        n += f->stage[d].like >= f->stage[stage].like;
    int behind = f->homes ? (n + f->replicas - 1) / f->replicas * f->stage[stage].turns - 1 : last - stage;
    return lag == BEHIND || lag == FIRST ? behind : lag == DEPTH ? last : lag == STEP ? share(f, stage) : 0;
}

static int up(int a, int m)
{
    return (a + m - 1) / m;
}

Reads overlap_reads(const Folder *f, int stage, bool forward, int mb)
{
    Reads r = {0, 0, 0};
    const OverlapRule *o = f->versions ? rule_of(f->versions) : NULL;
    if (!o)
        return r;
    Lag kind = forward ? o->forward : o->backward;
    int m = share(f, stage), turns = f->stage[stage].turns, each = m / turns, turn = mb % each * turns + mb / each % turns;
    int lag = lag_in(f, kind, stage), k = (kind == FIRST ? 0 : turn) - lag;
    r.version = k < 0 ? -up(-k, m) : k / m;
    if (o->ahead == TURN)
        r.ahead = up(lag + stage / 2, m);
    else if (o->ahead == OWN)
        r.ahead = up(lag, m);
    else if (o->ahead == BACK && !forward)
        r.behind = lag_in(f, BEHIND, stage);
    return r;
}

int overlap_back(const Folder *f)
{
    int most = f->versions ? 1 : 0;
    for (int d = 0; d < f->stages; d++)
        for (int k = 0; k < 2; k++) {
            int back = -overlap_reads(f, d, k, 0).version;
            most = back + 2 > most && f->versions ? back + 2 : most;
        }
    return most;
}

/* A version lies in its own slot.  The prediction of one for forward lies where the version before it was; that of the newest
 * for backward, where it is another, where the next one will be. */
Reads overlap_slot(const Folder *f, int stage, int kept, int older)
{
    Reads forward = overlap_reads(f, stage, true, 0), backward = overlap_reads(f, stage, false, 0), none = {-older, 0, 0};
    const OverlapRule *o = f->versions ? rule_of(f->versions) : NULL;
    bool apart = o && o->forward != o->backward && (backward.ahead || backward.behind);
    if (kept == 1)
        return none;
    if (apart && older == kept - 1)
        return (Reads){0, backward.ahead, backward.behind};
    return forward.ahead && older > 0 ? (Reads){1 - older, forward.ahead, 0} : none;
}

int overlap_late(const Folder *f, int stage)
{
    return lag_in(f, BEHIND, stage);
}
