/* SPDX-License-Identifier: Apache-2.0
 *
 * expand_lstm.c: an LSTM as rows.
 *
 *   NAME.ih      Linear: what the inputs give to the gates, for all steps at once
 *   NAME         Recur: the steps, one after the other
 *
 * With `bidirectional` each direction has these two: NAME.ih, NAME.steps, NAME.ih_reverse and NAME.steps_reverse.  A Concat
 * called NAME puts the results side by side.  Parameters have the names of PyTorch's torch.nn.LSTM with one layer, two biases
 * among them: NAME.weight_ih_l0, NAME.bias_hh_l0_reverse.
 */
#include "build.h"

static const char *const of_inputs[] = {"weight_ih_l0", "bias_ih_l0"}, *const of_steps[] = {"weight_hh_l0", "bias_hh_l0"};
static const char *const of_inputs_back[] = {"weight_ih_l0_reverse", "bias_ih_l0_reverse"};
static const char *const of_steps_back[] = {"weight_hh_l0_reverse", "bias_hh_l0_reverse"};

/* One direction; its last operator. */
static int direction(Scope *s, const Node *line, const char *path, const Op *o, const char *name, bool reverse)
{
    Op inputs = {.attr = {NULL, 0, 0}, .owner = path, .par_name = reverse ? of_inputs_back : of_inputs};
    Op steps = {.attr = {NULL, 0, 0}, .owner = path, .par_name = reverse ? of_steps_back : of_steps};
    int64_t hidden = attr_int(o, "hidden");
    *PUSH(&inputs.in) = o->in.at[0];
    attr_set(&inputs, "out", 4 * hidden);
    int first = op_new(s, line, path_join(path, reverse ? "ih_reverse" : "ih"), row_find("Linear"), inputs);
    *PUSH(&steps.in) = s->b->g->op.at[first].out.at[0];
    *PUSH(&steps.in) = o->in.at[1];
    ATTRS(&steps, {"hidden", hidden}, {"reverse", reverse});
    attr_set_float(&steps, "drop", attr_find(o, "drop")->f);
    return op_new(s, line, name, row_find("Recur"), steps);
}

int lstm(Scope *s, const Node *line, const char *path, Op o)
{
    enum { MOST = 1 << 30 };
    if (attr_int(&o, "hidden") > MOST) {
        WRONG(s->b, line->loc, NULL, "hidden is at most %d, not %lld", MOST, (long long)attr_int(&o, "hidden"));
        attr_set(&o, "hidden", 1);
    }
    if (!attr_int(&o, "bidirectional"))
        return direction(s, line, path, &o, path, false);
    Op both = {.attr = {NULL, 0, 0}};
    for (int reverse = 0; reverse < 2; reverse++) {
        int op = direction(s, line, path, &o, path_join(path, reverse ? "steps_reverse" : "steps"), reverse);
        *PUSH(&both.in) = s->b->g->op.at[op].out.at[0];
    }
    while (both.in.n < row(row_find("Concat"))->in.n)
        *PUSH(&both.in) = -1;
    attr_set(&both, "axis", -1);
    return op_new(s, line, path, row_find("Concat"), both);
}
