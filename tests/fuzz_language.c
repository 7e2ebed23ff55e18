/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_language.c: operators of language models for a random model: fuzz_ops.c has their weights.
 */
#include "fuzz.h"
#include <stdio.h>

bool make_rotary(void)
{
    Value *x = choose(sequence, NULL);
    if (!x || width(&x->s) % 2)
        return false;
    int heads = chance(50) && width(&x->s) % 4 == 0 ? 2 : 1;
    int wide = width(&x->s) / heads, dims = wide > 2 && chance(40) ? 2 : wide;
    static const char *const scaling[] = {"", ", scaling: linear, factor: 2", ", scaling: llama3, factor: 8, original: 16",
        ", scaling: yarn, factor: 4, high: 32, original: 400", ", scaling: yarn-exact, factor: 3, original: 90"};
    if (dims <= 6 && chance(30)) {
        char name[24];
        name_table(name, sizeof name, "turns");
        line("op: RotaryTable, name: %s, in: %s, width: %d, dims: %d, theta: %d, pairs: %s, init: turns%d, as: %s", name,
             use(x), wide, dims, 10 + below(10000), chance(50) ? "half" : "adjacent", dims / 2, fresh(x->s, x->loud + 1)->name);
        return true;
    }
    line("op: Rotary, in: %s, width: %d, dims: %d, theta: %d, pairs: %s%s, as: %s", use(x), wide, dims, 10 + below(10000),
         chance(50) ? "half" : "adjacent", scaling[below(5)], fresh(x->s, x->loud + 1)->name);
    return true;
}

/* What changes the scores of an Attention. */
const char *attention_scores(int heads, int query, int key, bool causal)
{
    static char text[128];
    char name[24];
    int n = 0;
    text[0] = 0;
    if ((causal || query == key) && chance(40))
        n += snprintf(text + n, sizeof text - (size_t)n, ", window: %d", below(key + 2));
    if (chance(20))
        n += snprintf(text + n, sizeof text - (size_t)n, ", softcap: %d", 1 + below(4));
    if (query == key && chance(15))
        n += snprintf(text + n, sizeof text - (size_t)n, ", alibi: 0.%d", 1 + below(9));
    if (chance(15)) {
        name_table(name, sizeof name, "sinks");
        Value *sinks = fresh((Shape){2, {f.batch, heads}}, 0);
        line("op: Parameter, name: %s, shape: [1, %d], as: %s", name, heads, sinks->name);
        owns(name, false);
        snprintf(text + n, sizeof text - (size_t)n, ", sinks: %s", use(sinks));
    }
    return text;
}

/* x, and x without a gradient */
bool make_stop(void)
{
    Value *x = choose(NULL, NULL);
    if (!x)
        return false;
    const char *stopped = fresh(x->s, x->loud)->name;
    line("op: StopGradient, in: %s, as: %s", use(x), stopped);
    line("op: Add, in: [%s, %s], as: %s", stopped, use(x), fresh(x->s, x->loud + 1)->name);
    return true;
}

bool make_round(void)
{
    Value *x = choose(of_sample, NULL);
    if (!x)
        return false;
    char back[24] = "";
    if (chance(40))
        snprintf(back, sizeof back, ", gradient: %d", 2 + 2 * below(4));
    line("op: Round, in: %s, bits: %d%s%s%s, as: %s", use(x), 2 + 2 * below(4), chance(30) ? ", scale: tensor" : "",
         chance(50) ? ", mode: stochastic" : "", back, fresh(x->s, x->loud + 1)->name);
    return true;
}

bool make_gate(void)
{
    static const char *const act[] = {"silu", "gelu", "gelu_tanh", "relu", "sigmoid"};
    Value *a = choose(quiet, NULL), *b = a ? choose(equal, a) : NULL;
    if (!b || b->loud > LOUD / 2)
        return false;
    line("op: Gate, in: [%s, %s], act: %s, as: %s", use(a), use(b), act[below(5)], fresh(a->s, a->loud + b->loud)->name);
    return true;
}

bool make_lstm(void)
{
    Value *x = choose(sequence, NULL);
    if (!x || x->loud > LOUD / 2)
        return false;
    int loud = 0, hidden = small();
    bool both = chance(30);
    Shape s = with_width(x->s, both ? 2 * hidden : hidden);
    if (!fits(&s) || 4 * size(&s) > ELEMENTS)
        return false;
    char name[24];
    name_table(name, sizeof name, "steps");
    const char *mask = optional_mask(x->s.d[1]), *rule = start(hidden, &loud);
    line("op: LSTM, name: %s, in: %s, hidden: %d, bidirectional: %s, bias: %s, weight_dropout: 0.%d%s%s, as: %s", name, use(x),
         hidden, both ? "true" : "false", yes(60), chance(f.drop) ? 1 + below(5) : 0, mask, rule, fresh(s, 0)->name);
    owns(name, false);
    return true;
}

bool make_scores(void)
{
    Value *q = choose(sequence, NULL), *k = q ? choose(beside, q) : NULL;
    if (!k || q->s.d[1] * k->s.d[1] > 100)
        return false;
    char name[24];
    name_table(name, sizeof name, "scores");
    line("op: AdditiveScores, name: %s, in: [%s, %s], as: %s", name, use(q), use(k),
         fresh((Shape){3, {f.batch, q->s.d[1], k->s.d[1]}}, 3)->name);
    owns(name, false);
    return true;
}

/* To experts and back: each has one product, sometimes two with a gate between. */
bool make_experts(void)
{
    Value *x = choose(of_sample, NULL);
    if (!x || x->s.n < 2 || x->s.n > 4 || x->loud > LOUD / 2)
        return false;
    int experts = 1 + below(5), top = 1 + below(experts), n = size(&x->s) / width(&x->s) * top, out = small(), loud = x->loud;
    Shape y = with_width(x->s, out);
    Value *logits = n * width(&x->s) <= ELEMENTS && n * out <= ELEMENTS && fits(&y) ? linear(x, experts) : NULL;
    if (!logits)
        return false;
    char name[24];
    name_table(name, sizeof name, "experts");
    bool groups = experts == 4 && top <= 2 && chance(50), corrected = chance(20);
    line("op: Route, name: %s_c, in: %s, top: %d, normalize: %s, scores: %s%s%s, as: [%s_p, %s_e, %s_s, %s_o]", name,
         use(logits), top, yes(50), chance(30) ? "sigmoid" : "softmax", groups ? chance(50) ? ", groups: 2" :
         ", groups: 2, best: 2" : "", corrected ? ", correction: true, init: weight" : "", name, name, name, name);
    line("op: Dispatch, in: [%s, %s_s], as: %s_r", use(x), name, name);
    const char *bias = yes(40);
    line("op: GroupedLinear, name: %s, in: [%s_r, %s_o], experts: %d, out: %d, bias: %s%s, as: %s_y", name, name, name,
         experts, out, bias, start(width(&x->s), &loud), name);
    owns(name, *bias == 't');
    line("op: Combine, in: [%s_y, %s_p, %s_s], as: %s", name, name, name, fresh(y, loud + 1)->name);
    return true;
}
