/* SPDX-License-Identifier: Apache-2.0
 *
 * weights_described.c: what a section `weights` may say of published weights: tensors that nobody wants, those that hold a
 * parameter once more; and tensors of four bits.
 *
 * These are MXFP4 (Open Compute Project, Microscaling formats, 2023).  NAME_blocks has 32 numbers of 4 bits in 16 bytes, the
 * lower bits first, and NAME_scales a power of two for each of them, in the order of the parameter.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include "real.h"
#include "weights.h"

/* NAME_blocks or NAME_scales */
static Listed *part_of_four(const Weights *x, const Published *p, const char *what)
{
    char name[2 * WEIGHTS_NAME];
    return (size_t)snprintf(name, sizeof name, "%s_%s", p->in.file, what) < sizeof name ? weights_prefixed(x, name) : NULL;
}

static bool take_four(const Weights *x, const Published *p)
{
    Listed *blocks = part_of_four(x, p, "blocks"), *scales = blocks ? part_of_four(x, p, "scales") : NULL;
    if (scales)
        blocks->used = scales->used = true;
    return scales != NULL;
}

/* 4 bits are a sign, and a number of these; 255 is the scale of no number. */
static void widen_four(float *to, const unsigned char *blocks, const unsigned char *scales, int64_t n)
{
    static const float number[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (int64_t i = 0; i < n; i++) {
        unsigned bits = blocks[i / 2] >> (i % 2 * 4) & 15, scale = scales[i / 32];
        float power = scale == 255 ? bits_float(0x7fc00000) : scale ? bits_float((uint32_t)scale << 23) : bits_float(1u << 22);
        to[i] = power * (bits & 8 ? -number[bits & 7] : number[bits & 7]);
    }
}

static int read_four(Weights *x, const StateInfo *s, const Published *p, float *values)
{
    static const char *const part[] = {"blocks", "scales"};
    const unsigned char *at[2];
    for (int i = 0; i < 2; i++) {
        Shard *shard;
        const SafeTensor *t;
        int status = weights_find_tensor(x, part_of_four(x, p, part[i]), &shard, &t, NULL);
        if (status != DONE)
            return status;
        Published want = place_of(NULL, s);
        int last = want.ndim - 1;
        if (last < 0 || last > 4 || want.dim[last] % 32)
            return weights_refuse(&shard->file, t, &want, false);
        want.dim[last] /= 32;
        want.dim[want.ndim] = 16;
        want.ndim += !i;
        if (t->ndim != want.ndim || memcmp(t->dim, want.dim, (size_t)want.ndim * sizeof *want.dim))
            return weights_refuse(&shard->file, t, &want, false);
        if (strcmp(t->type, "U8"))
            return complain(STATUS_STALE, "%s: tensor `%s` is %s; bytes, U8, hold numbers of 4 bits and their scales",
                            shard->path, t->name, t->type);
        at[i] = safe_numbers(&shard->file, t);
    }
    widen_four(values, at[0], at[1], s->n);
    return DONE;
}

static bool ignored(const Weights *x, const char *name)
{
    for (const char *const *pattern = x->job->ignored; pattern && *pattern; pattern++)
        if (fnmatch(*pattern, name, 0) == 0)
            return true;
    return false;
}

/* Another tensor that holds a parameter once more. */
static bool copies(const Weights *x, const Listed *tensor)
{
    for (const CopyInfo *c = x->job->copied; c && c->file; c++)
        if (weights_prefixed(x, c->file) == tensor)
            return true;
    return false;
}

static bool passes(const Weights *x, const Listed *tensor)
{
    return ignored(x, tensor->name) || copies(x, tensor);
}

/* Tied in the model, and perhaps not in the file: what would be lost by passing over it is worth a word. */
static int compare_copy(Weights *x, const CopyInfo *c, const StateInfo *s, const float *values)
{
    enum { SOME = 1024 };
    float some[SOME];
    const Listed *listed = weights_prefixed(x, c->file);
    Published p = place_of(NULL, s);
    Shard *shard;
    const SafeTensor *t;
    char type;
    if (!listed || listed->used)
        return DONE;
    int status = weights_find_tensor(x, listed, &shard, &t, &type);
    if (status != DONE)
        return status;
    bool same = t->ndim == p.ndim && !memcmp(t->dim, p.dim, (size_t)p.ndim * sizeof *p.dim);
    int size = type == 'f' ? 4 : type == 'i' ? 8 : 2;
    for (long i = 0, n; same && i < s->n; i += n) {
        n = s->n - i < SOME ? s->n - i : SOME;
        safe_widen(some, safe_numbers(&shard->file, t) + i * size, type, 1, n);
        same = !memcmp(some, values + i, (size_t)n * sizeof *some);
    }
    return same ? DONE : complain(STATUS_STALE, "%s: tensor `%s` differs from `%s`, and this model has one parameter for both; "
                                  "generate the job from a model file that does not tie them (config.json: "
                                  "tie_word_embeddings)", shard->path, listed->name, s->name);
}

static int compare(Weights *x, const StateInfo *s, const float *values)
{
    int status = DONE;
    for (const CopyInfo *c = x->job->copied; status == DONE && c && c->file; c++)
        if (!strcmp(c->name, s->name))
            status = compare_copy(x, c, s, values);
    return status;
}

const Described weights_described = {take_four, read_four, ignored, passes, compare};
