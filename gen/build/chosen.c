/* SPDX-License-Identifier: Apache-2.0
 *
 * chosen.c: parameters that patterns of section `train` choose: which decay, which are frozen, in which group they are.
 *
 * The first group with a pattern for it takes a parameter, so that the order of the file decides, as the first rule that
 * matches does elsewhere.  A group that gets none says so: in PyTorch an empty group trains on in silence.
 *
 * A shared parameter has the name of its first use, and a tied operator's own name for it is an alias.  A pattern that means an
 * alias alone would leave out what the user sees in the other framework under that name, so it is refused: PyTorch's
 * parameter groups take such a parameter once and say nothing, and a frozen head of a tied table then learns.
 *
 * A pattern that names no parameter is a slip of the pen: something would be decayed, or would learn, that should not.
 *
 * needs   all lines read.  fills   State.decay, State.frozen, State.group.  fails   with bad(), at the pattern.
 */
#include "build.h"

static bool learns(const State *s)
{
    return s->kind == S_PARAM && !s->tracked;
}

/* What to name for the weight of a tied operator: the parameter that it shares, the first of several. */
static const char *shared_by(const Builder *b, const char *pattern)
{
    int first = -1;
    for (int i = 0; i < b->alias.n; i++)
        if (match(pattern, b->alias.at[i].text) && (first < 0 || b->alias.at[i].value < first))
            first = b->alias.at[i].value;
    return first < 0 ? NULL : strf("a tied operator shares the parameter of another; write '%s'", b->g->state.at[first].name);
}

static bool names_any(const Builder *b, const char *pattern)
{
    for (int s = 0; s < b->g->state.n; s++)
        if (learns(&b->g->state.at[s]) && match(pattern, b->g->state.at[s].name))
            return true;
    return false;
}

static bool check_named(const Builder *b, const Strs *patterns, const char *key)
{
    Strs names = {0};
    bool all = true;
    for (int s = 0; s < b->g->state.n; s++)
        if (learns(&b->g->state.at[s]))
            *PUSH(&names) = b->g->state.at[s].name;
    for (int i = 0; i < patterns->n; i++) {
        bool any = names_any(b, patterns->at[i]);
        all &= any;
        const char *shared = shared_by(b, patterns->at[i]);
        if (!any)
            bad(mark_of(b->m, patterns->at[i], (Loc){0, 0, 0}), shared ? shared : names_remedy(patterns->at[i], &names),
                "%s: no parameter is named '%s'", key, patterns->at[i]);
    }
    return all;
}

/* A tied parameter is frozen by its first name, not by another one alone. */
static void check_ties(const Builder *b, const Strs *patterns, const char *key)
{
    for (int i = 0; i < b->alias.n; i++) {
        const char *name = b->g->state.at[b->alias.at[i].value].name, *pattern = match_any(patterns, b->alias.at[i].text);
        if (pattern && names_any(b, pattern) && !match_any(patterns, name))
            bad(mark_of(b->m, pattern, (Loc){0, 0, 0}), strf("name '%s' too, or neither", name),
                "%s: '%s' takes %s, which is tied to %s, and not that", key, pattern, b->alias.at[i].text, name);
    }
}

/* 1 + the first group that takes it; 0: none. */
static int group_of(const Train *t, const char *name)
{
    for (int i = 0; i < t->param_group.n; i++)
        if (match_any(&t->param_group.at[i].match, name))
            return i + 1;
    return 0;
}

static void check_groups(const Builder *b)
{
    const Train *t = &b->m->train;
    int count[MAX_PARAM_GROUPS] = {0}, faults = b->failed;
    for (int i = 0; i < t->param_group.n; i++)
        faults |= !check_named(b, &t->param_group.at[i].match, strf("train.optimizer.groups[%d].match", i));
    for (int s = 0; s < b->g->state.n; s++)
        if (b->g->state.at[s].group && !b->g->state.at[s].frozen)
            count[b->g->state.at[s].group - 1]++;
    for (int i = 0; i < t->param_group.n && !faults; i++)
        if (!count[i])
            bad(t->param_group.at[i].loc, "the first group that names it takes a parameter", "train.optimizer.groups[%d]: all "
                "that it names is frozen, or in a group in front of it", i);
    for (int i = 0; i < b->alias.n && !faults; i++) {
        const State *s = &b->g->state.at[b->alias.at[i].value];
        int other = group_of(t, b->alias.at[i].text);
        if (other && other != s->group)
            bad(t->param_group.at[other - 1].loc, strf("name '%s' in the same group, or '%s' in none", s->name,
                b->alias.at[i].text), "train.optimizer.groups[%d] takes %s, which is tied to %s, and that is in %s", other - 1,
                b->alias.at[i].text, s->name, s->group ? strf("groups[%d]", s->group - 1) : "none");
    }
}

void choose_params(Builder *b)
{
    const Train *t = &b->m->train;
    for (EACH(State, s, b->g->state)) {
        s->frozen |= infers(b->m) && s->kind == S_PARAM;       /* running statistics too */
        if (!learns(s))
            continue;
        s->group = group_of(t, s->name);
        s->frozen |= match_any(&t->freeze, s->name) ||
            (b->m->adapt.match.n && !s->adapter && !match_any(&b->m->adapt.learn, s->name));
        s->decay = !match_any(&t->no_decay, s->name);
    }
    check_named(b, &t->no_decay, "train.optimizer.no_decay");
    check_named(b, &t->freeze, "train.freeze");
    check_ties(b, &t->freeze, "train.freeze");
    check_named(b, &b->m->adapt.learn, "adapt.learn");
    check_ties(b, &b->m->adapt.learn, "adapt.learn");
    check_groups(b);
    const Strs *freeze = &b->m->train.freeze;
    int all = 0, learn = 0;
    for (int s = 0; s < b->g->state.n; s++) {
        all += learns(&b->g->state.at[s]);
        learn += learns(&b->g->state.at[s]) && !b->g->state.at[s].frozen;
    }
    if (freeze->n && !learn)
        bad(mark_of(b->m, freeze->at[0], (Loc){0, 0, 0}), "leave out what is to learn",
            "train.freeze: all %d parameters are frozen: nothing is left to train", all);
}
