/* SPDX-License-Identifier: Apache-2.0
 *
 * place.c: where the numbers of a parameter stand in a file of published weights, and in which type.
 *
 * Jobs read and write such files with it, and so does dpgen export.
 */
#include "place.h"
#include "real.h"

Published place_of(const StoredInfo *stored, const StateInfo *s)
{
    Published p = {.in = {.name = s->name, .file = s->name, .groups = 1}, .n = 1};
    if (stored)
        p.in = *stored;
    int skip = p.in.pieces > 0;
    p.ndim = s->ndim - skip;
    for (int d = 0, from = skip; d < p.ndim; d++, from++)       /* the axis of the parameter */
        p.dim[d] = s->dim[p.in.turn && from >= s->ndim - 2 ? 2 * s->ndim - 3 - from : from];
    if (p.in.rows)
        p.dim[0] = p.in.rows * p.in.groups;
    for (int d = 0; d < p.ndim; d++)
        p.n *= p.dim[d];
    return p;
}

Rows place_rows(const Published *p, const StateInfo *s)
{
    int piece = p->in.pieces > 0;
    Rows r = {.rows = s->ndim > piece ? s->dim[piece] : 1, .step = 1};
    if (p->in.turn)             /* of each matrix */
        r = (Rows){.rows = s->n / p->dim[p->ndim - 2], .step = p->dim[p->ndim - 1]};
    r.width = r.rows ? (piece ? p->n : s->n) / r.rows : 0;
    return r;
}

int64_t place_first(const Published *p)
{
    return p->in.piece * p->n;
}

int64_t place_row(const Published *p, const Rows *r, int64_t i)
{
    int64_t each = p->in.rows ? r->rows / p->in.groups : r->rows;
    int64_t row = p->in.rows ? i / each * p->in.rows + p->in.from + i % each : i;
    return p->in.turn ? row / r->step * r->step * r->width + row % r->step : row * r->width;
}

float half_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, rest = h & 0x3ff;
    if (exponent == 31)
        return bits_float(sign | 0x7f800000 | rest << 13);
    if (exponent)
        return bits_float(sign | (exponent + 112) << 23 | rest << 13);
    float small = (float)rest * 0x1p-24f;       /* subnormal, exact */
    return sign ? -small : small;
}

uint16_t float_half(float f)
{
    uint32_t u = float_bits(f), sign = u >> 16 & 0x8000, x = u & 0x7fffffff;
    if (x > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (x >> 13 & 0x3ff));
    if (x >= 0x477ff000)                        /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (x < 0x38800000) {                       /* subnormal: the sum rounds at its last bit */
        float sum = bits_float(x) + 0.5f;
        return (uint16_t)(sign | (float_bits(sum) - 0x3f000000));
    }
    return (uint16_t)(sign | ((x - 0x38000000 + 0xfff + (x >> 13 & 1)) >> 13));
}

void place_narrow(unsigned char *to, const float *from, int type, int64_t step, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t u = type == JOB_F32 ? float_bits(from[i]) : type == JOB_F16 ? float_half(from[i]) : float_bf16(from[i]);
        int size = type == JOB_F32 ? 4 : 2;
        for (int k = 0; k < size; k++)
            to[i * step * size + k] = (unsigned char)(u >> (8 * k));
    }
}
