/* SPDX-License-Identifier: Apache-2.0
 *
 * prepared.c: which calls a library of kernels prepares before the first step, in stageN_open.
 *
 * Portable kernels and paced jobs prepare nothing, oneDNN every call that has a handle, but attention with shared keys and
 * LinearCrossEntropy over a divided vocabulary, which are portable.  On GPUs products are cuBLASLt's, and attention is cuDNN's
 * where rt/op/cuda/attention.c leaves it to it, by the same rule; to plan a graph takes cuDNN half a second of a processor,
 * and a job without one is not linked with cuDNN.  Convolutions in bf16 are cuDNN's too; those in f32, and recurrent layers,
 * are own kernels.  On chips where no engine of cuDNN is proven to give the same bits in every run, all of its calls are own
 * kernels.
 */
#include "prof.h"

static bool absent(const Op *o, const char *token)
{
    const Arg *a = op_arg(o, token);
    return a && a->kind == ARG_NONE;
}

/* An evaluation drops nothing.  Packed operands have one gradient, without which there is no call. */
static bool attention_planned(const Model *m, const Graph *g, const Op *o, bool eval)
{
    int64_t width = op_arg(o, "width")->i;
    bool plain = absent(o, "bias") && absent(o, "mask") && (eval || (float)op_arg(o, "drop")->f == 0);
    bool whole = !absent(o, "dq") && !absent(o, "dk") && !absent(o, "dv");
    return g->compute == BF16 && width % 8 == 0 && width <= widest_head(&m->devices.at[0]) && plain && whole;
}

/* Images are never cut: no pad is below zero, in front or behind the last window. */
static bool conv_planned(const Model *m, const Graph *g, const Op *o, bool eval)
{
    static const char *axes[][4] = {{"height", "yheight", "kheight", "top"}, {"width", "ywidth", "kwidth", "left"}};
    bool whole = g->compute == BF16 && cudnn_proven(&m->devices.at[0]);
    (void)eval;
    for (int i = 0; i < 2; i++) {
        int64_t n = op_arg(o, axes[i][0])->i, made = op_arg(o, axes[i][1])->i, kernel = op_arg(o, axes[i][2])->i;
        int64_t before = op_arg(o, axes[i][3])->i, stride = op_arg(o, "stride")->i, apart = op_arg(o, "dilate")->i;
        whole &= before >= 0 && (made - 1) * stride + apart * (kernel - 1) + 1 - n - before > -stride;
    }
    return whole;
}

/* Calls with a handle that a library leaves to its other kernels, by the beginning of their names; the first row counts. */
static const struct {
    bool graphs;                /* of the library: Library.graphs */
    const char *call;
    bool (*prepares)(const Model *m, const Graph *g, const Op *o, bool eval);   /* NULL: never */
} others[] = {
    {false, "attention_shared_", NULL},
    {false, "linear_xent_part_", NULL},
    {true, "conv_", conv_planned},
    {true, "recur_", NULL},
    {true, "attention_", attention_planned},
};

bool cost_prepared(const Model *m, const Graph *g, const Op *o, bool eval)
{
    const Library *k = library_linked(&m->devices.at[0]);
    if (!op_arg(o, "h") || !k->handles)
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].graphs == k->graphs && !strncmp(o->call, others[i].call, strlen(others[i].call)))
            return others[i].prepares && others[i].prepares(m, g, o, eval);
    return true;
}

bool cost_unproven(const Model *m, const Graph *g, const Op *o)
{
    Device device = m->devices.at[0];
    Model proven = *m;
    proven.devices.at = &device;
    device.arch = "sm_90";
    return !cudnn_proven(&m->devices.at[0]) && !cost_prepared(m, g, o, false) && cost_prepared(&proven, g, o, false);
}

Bytes cost_images(const Model *m, const Graph *g, const Op *o)
{
    if (strncmp(o->call, "conv_", 5) || !cost_prepared(m, g, o, false))
        return 0;
    int64_t in = op_arg(o, "in")->i, wide = (in + 7) / 8 * 8;
    bool whole = in == wide || op_arg(o, "groups")->i > 1;
    return whole ? 0 : op_arg(o, "batch")->i * op_arg(o, "height")->i * op_arg(o, "width")->i * 2 * wide;
}
