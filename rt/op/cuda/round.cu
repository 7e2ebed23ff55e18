/* SPDX-License-Identifier: Apache-2.0
 *
 * Round: rt/op/round.c, with its bits.  A team finds the scale of a record, then a thread has 16 codes, which are whole words.
 */
#include "kernel.h"
#include "drop.h"
#include "../../few.h"

template <int TEAM>
static __global__ void round_scale(int32_t *code, const real *x, long rows, long width, long words, int bits)
{
    long r = ROW_OF(TEAM);
    float most = 0;
    if (r >= rows)
        return;
    for (long i = threadIdx.x % TEAM; i < width; i += TEAM) {
        uint32_t u = float_bits(one(x, r * width + i)) & 0x7fffffff;
        most = fmaxf(most, bits_float(u < 0x7f800000 ? u : 0x7f800000));        /* what is not finite comes first */
    }
    most = team_max<TEAM>(most);
    if (threadIdx.x % TEAM == 0)
        code[r * words] = (int32_t)float_bits(scale_of(float_bits(most) < 0x7f800000 ? most : bits_float(0x7fc00000),
                                                       few_levels(bits)));
}

static __global__ void round_codes(int32_t *code, const real *x, const Values *vals, long first, long per, long rows,
                                   long width, long words, int bits, float drop, int64_t site)
{
    long groups = (width + FEW_GROUP - 1) / FEW_GROUP;
    Drop d = drop_of(vals, 0, 0, site);
    bool draws = drop != 0 && vals->eval == 0;
    GRID(g, rows * groups) {
        long row = quotient(g, groups), from = (g - row * groups) * FEW_GROUP, block = -1, drawn = -1;
        uint32_t u[FEW_GROUP], word[FEW_WORDS];
        float scale = bits_float((uint32_t)code[row * words]);
        Philox r = {{0, 0, 0, 0}};
        for (int i = 0; i < FEW_GROUP; i++) {
            long e = row * width + from + i, sample = quotient(e, per), at = e - sample * per;
            u[i] = 0;
            if (from + i >= width)
                continue;
            if (draws && (block != at / 4 || drawn != sample)) {
                d.sample = (uint32_t)(first + sample);
                r = drop_block(&d, at / 4);
                block = at / 4;
                drawn = sample;
            }
            u[i] = draws ? few_drawn(one(x, e), scale, few_levels(bits), word_of(r, (int)(at & 3)))
                : few_near(one(x, e), scale, few_levels(bits));
        }
        few_pack(word, u, bits);
        for (int i = 0; i < bits / 2; i++)
            code[row * words + 1 + from / FEW_GROUP * (bits / 2) + i] = (int32_t)word[i];
    }
}

static __global__ void unpack(real *y, const int32_t *code, long rows, long width, long words, int bits)
{
    long groups = (width + FEW_GROUP - 1) / FEW_GROUP;
    GRID(g, rows * groups) {
        long row = quotient(g, groups), from = (g - row * groups) * FEW_GROUP;
        uint32_t u[FEW_GROUP], word[FEW_WORDS];
        for (int i = 0; i < bits / 2; i++)
            word[i] = (uint32_t)code[row * words + 1 + from / FEW_GROUP * (bits / 2) + i];
        few_unpack(u, word, bits);
        for (int i = 0; i < FEW_GROUP; i++)
            if (from + i < width)
                set(y, row * width + from + i, few_value(u[i], bits_float((uint32_t)code[row * words]), few_levels(bits)));
    }
}

void round_forward(Stage *st, int32_t *code, const real *x, const Values *vals, int mb, long batch, long rows, long width,
                   long words, int bits, float drop, int64_t site)
{
    LAUNCH_ROWS(round_scale, rows, width, st, code, x, rows, width, words, bits);
    LAUNCH(round_codes, blocks_for(rows * ceil_div(width, FEW_GROUP)), (unsigned)BLOCK, st, code, x, vals, (long)mb * batch,
           rows * width / batch, rows, width, words, bits, drop, site);
}

void unpack_forward(Stage *st, real *y, const int32_t *code, long rows, long width, long words, int bits)
{
    LAUNCH(unpack, blocks_for(rows * ceil_div(width, FEW_GROUP)), (unsigned)BLOCK, st, y, code, rows, width, words, bits);
}

/* ---- the same, where the gradient is rounded on its way back --------------------------------------------------------- */

void round_both_forward(Stage *st, int32_t *code, const real *x, const Values *vals, int mb, long batch, long rows, long width,
                        long words, int bits, int back, long back_words, float drop, int64_t site)
{
    (void)back, (void)back_words;
    round_forward(st, code, x, vals, mb, batch, rows, width, words, bits, drop, site);
}

void round_both_backward(Stage *st, real *dx, const int32_t *dcode, long rows, long width, long back_words, int back)
{
    unpack_forward(st, dx, dcode, rows, width, back_words, back);
}

void unpack_both_forward(Stage *st, real *y, const int32_t *code, long batch, long rows, long width, long words, int bits,
                         int back, long back_words, float drop, int64_t site)
{
    (void)batch, (void)back, (void)back_words, (void)drop, (void)site;
    unpack_forward(st, y, code, rows, width, words, bits);
}

void unpack_both_backward(Stage *st, int32_t *dcode, const real *dy, const Values *vals, int mb, long batch, long rows,
                          long width, long back_words, int back, float drop, int64_t site)
{
    round_forward(st, dcode, dy, vals, mb, batch, rows, width, back_words, back, drop, site);
}
