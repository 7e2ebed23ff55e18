/* SPDX-License-Identifier: Apache-2.0
 *
 * greedy.c: tests/models/tiny-gpt.yaml with a head of its own, from its formulas, in f64: the likeliest token after a text,
 * again and again.
 *
 *     greedy WEIGHTS.safetensors TEXT N
 *
 * Nothing is shared with kernels, stages or sample.c but the reader of the file.  Only positions of the text exist: nothing is
 * padded.  Writes the text with N bytes behind it; fails where the two best scores are nearer than f32 can tell apart.
 */
#include <math.h>
#include "rt/safetensors.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { V = 256, T = 16, D = 24, H = 3, L = 3, W = D / H, MOST = 512 };
static SafeFile file;

static const float *weight(const char *form, int layer)
{
    char name[64];
    snprintf(name, sizeof name, form, layer);
    const SafeTensor *t = safe_find(&file, name);
    if (!t) {
        fprintf(stderr, "greedy: no %s\n", name);
        exit(1);
    }
    float *copy = malloc((size_t)(t->to - t->from));
    memcpy(copy, file.at + file.data + t->from, (size_t)(t->to - t->from));
    return copy;
}

static void norm(double *y, const double *x, const float *scale, const float *shift)
{
    double mean = 0, square = 0;
    for (int i = 0; i < D; i++)
        mean += x[i] / D;
    for (int i = 0; i < D; i++)
        square += (x[i] - mean) * (x[i] - mean) / D;
    for (int i = 0; i < D; i++)
        y[i] = (x[i] - mean) / sqrt(square + 1e-5) * (double)scale[i] + (double)shift[i];
}

static void linear(double *y, const double *x, const float *w, const float *b, int in, int out)
{
    for (int o = 0; o < out; o++) {
        y[o] = b ? (double)b[o] : 0;
        for (int i = 0; i < in; i++)
            y[o] += x[i] * (double)w[o * in + i];
    }
}

static void attend(double *y, double qkv[T][3 * D], int at)
{
    for (int h = 0; h < H; h++) {
        double p[T], sum = 0;
        const double *q = qkv[at] + h * W;
        for (int j = 0; j <= at; j++) {
            double dot = 0;
            for (int i = 0; i < W; i++)
                dot += q[i] * qkv[j][D + h * W + i];
            sum += p[j] = exp(dot / sqrt(W));
        }
        for (int i = 0; i < W; i++) {
            y[h * W + i] = 0;
            for (int j = 0; j <= at; j++)
                y[h * W + i] += p[j] / sum * qkv[j][2 * D + h * W + i];
        }
    }
}

static void block(double x[T][D], int n, int l)
{
    double qkv[T][3 * D], a[D], b[4 * D];
    for (int t = 0; t < n; t++) {
        norm(a, x[t], weight("h.%d.ln_1.weight", l), weight("h.%d.ln_1.bias", l));
        linear(qkv[t], a, weight("h.%d.attn.c_attn.weight", l), weight("h.%d.attn.c_attn.bias", l), D, 3 * D);
    }
    for (int t = 0; t < n; t++) {
        attend(a, qkv, t);
        linear(b, a, weight("h.%d.attn.c_proj.weight", l), weight("h.%d.attn.c_proj.bias", l), D, D);
        for (int i = 0; i < D; i++)
            x[t][i] += b[i];
        norm(a, x[t], weight("h.%d.ln_2.weight", l), weight("h.%d.ln_2.bias", l));
        linear(b, a, weight("h.%d.mlp.c_fc.weight", l), weight("h.%d.mlp.c_fc.bias", l), D, 4 * D);
        for (int i = 0; i < 4 * D; i++)
            b[i] *= 0.5 * (1 + tanh(0.79788456080286535588 * (b[i] + 0.044715 * b[i] * b[i] * b[i])));
        linear(a, b, weight("h.%d.mlp.c_proj.weight", l), weight("h.%d.mlp.c_proj.bias", l), 4 * D, D);
        for (int i = 0; i < D; i++)
            x[t][i] += a[i];
    }
}

static int likeliest(const unsigned char *text, int n)
{
    double x[T][D], last[D], score[V];
    const float *token = weight("wte.weight", 0), *place = weight("wpe.weight", 0);
    for (int t = 0; t < n; t++)
        for (int i = 0; i < D; i++)
            x[t][i] = (double)token[text[t] * D + i] + (double)place[t * D + i];
    for (int l = 0; l < L; l++)
        block(x, n, l);
    norm(last, x[n - 1], weight("ln_f.weight", 0), weight("ln_f.bias", 0));
    linear(score, last, weight("lm_head.weight", 0), NULL, D, V);
    int best = 0, second = 1;
    for (int v = 1; v < V; v++)
        if (score[v] > score[best])
            second = best, best = v;
        else if (v != second && score[v] > score[second])
            second = v;
    if (score[best] - score[second] < 1e-5)
        fprintf(stderr, "greedy: tokens %d and %d are too near\n", best, second), exit(1);
    return best;
}

int main(int argc, char **argv)
{
    if (argc != 4 || safe_open(&file, argv[1]) != 0)
        return 2;
    unsigned char text[MOST];
    int n = (int)strlen(argv[2]), end = n + atoi(argv[3]);
    memcpy(text, argv[2], (size_t)n);
    for (; n < end; n++) {
        int seen = n < T ? n : T;
        text[n] = (unsigned char)likeliest(text + n - seen, seen);
    }
    fwrite(text, 1, (size_t)n, stdout);
    if (text[n - 1] != '\n')
        putchar('\n');
    return 0;
}
