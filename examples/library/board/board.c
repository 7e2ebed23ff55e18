/* SPDX-License-Identifier: Apache-2.0
 *
 * board.c: two jobs learn side by side on a board, and tell the hashes of their parameters.  The same file runs on a desktop,
 * where board/host.c has board_say(): the hashes are the same, for a library has the same bits everywhere.
 *
 * Behind the run, weights that no input reaches are made subnormal.  They stay as they are only where the processor does not
 * flush them to zero.
 */
#include "board.h"
#include "../digits.h"
#include "digits/digits.h"
#include "xor/xor.h"

static _Alignas(XOR_ALIGN) unsigned char xor_arena[XOR_ARENA];
static _Alignas(DIGITS_ALIGN) unsigned char digits_arena[DIGITS_ARENA];
static float points[DIGITS_STEP_SAMPLES * DIGIT_POINTS], weight[24 * DIGIT_POINTS];
static int32_t label[DIGITS_STEP_SAMPLES];
static uint32_t drawn;

static void say_number(const char *what, uint64_t n)
{
    char text[24], *at = text + sizeof text - 1;
    *at = 0;
    do
        *--at = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    board_say(what);
    board_say(at);
    board_say("\n");
}

static int stop(const char *why)
{
    board_say(why);
    board_say("\n");
    return 1;
}

static int xor_steps_of(xor_job *job, int steps)
{
    static const float bits[] = {0, 0, 0, 1, 1, 0, 1, 1};
    static const int32_t differ[] = {0, 1, 1, 0};
    const xor_array in[XOR_INPUTS] = {[XOR_INPUT_bits] = {bits, 8, XOR_F32}, [XOR_INPUT_label] = {differ, 4, XOR_I32}};
    int status = 0;
    for (int i = 0; i < steps && !status; i++)
        status = xor_step(job, in, NULL);
    return status;
}

static void draw(int n)
{
    for (int i = 0; i < n; i++)
        label[i] = digit_draw(points + i * DIGIT_POINTS, drawn++);
}

static int digits_steps_of(digits_job *job, int steps)
{
    const digits_array in[DIGITS_INPUTS] = {
        [DIGITS_INPUT_points] = {points, sizeof points / sizeof *points, DIGITS_F32},
        [DIGITS_INPUT_label] = {label, DIGITS_STEP_SAMPLES, DIGITS_I32}};
    int status = 0;
    for (int i = 0; i < steps && !status; i++) {
        draw(DIGITS_STEP_SAMPLES);
        status = digits_step(job, in, NULL);
    }
    return status;
}

/* Of 160 digits that it has not seen, how many it knows. */
static int known(digits_job *job)
{
    static float score[DIGITS_STEP_SAMPLES * 10];
    digits_array in[DIGITS_INPUTS] = {[DIGITS_INPUT_points] = {points, sizeof points / sizeof *points, DIGITS_F32}};
    int right = 0;
    for (int k = 0; k < 10; k++) {
        draw(DIGITS_STEP_SAMPLES);
        if (digits_forward(job, in, "scores", score, sizeof score / sizeof *score))
            return -1;
        for (int i = 0; i < DIGITS_STEP_SAMPLES; i++) {
            int best = 0;
            for (int d = 1; d < 10; d++)
                best = score[i * 10 + d] > score[i * 10 + best] ? d : best;
            right += best == label[i];
        }
    }
    return right;
}

static int make_subnormal(digits_job *job)
{
    int status = digits_read(job, "hidden.weight", weight, sizeof weight / sizeof *weight);
    for (int i = 0; i < 24 * DIGIT_POINTS; i += 8)      /* the left column */
        weight[i] = 0x1p-140f * (float)(i + 1);
    return status ? status : digits_write(job, "hidden.weight", weight, sizeof weight / sizeof *weight);
}

int board_main(int steps)
{
    char why[XOR_TEXT], hex[65];
    xor_job *x = xor_open(xor_arena, sizeof xor_arena, why);
    if (!x)
        return stop(why);
    digits_job *d = digits_open(digits_arena, sizeof digits_arena, why);
    if (!d)
        return stop(why);
    for (int i = 0; i < steps; i++) {
        uint64_t at = board_instructions();
        if (xor_steps_of(x, 1))
            return stop(xor_why(x));
        uint64_t between = board_instructions();
        if (digits_steps_of(d, 1))
            return stop(digits_why(d));
        if (i == 1 && at) {
            say_number("xor instructions ", between - at);
            say_number("digits instructions ", board_instructions() - between);
        }
    }
    xor_hash(x, hex);
    board_say("xor ");
    board_say(hex);
    digits_hash(d, hex);
    board_say("\ndigits ");
    board_say(hex);
    say_number("\nknown ", (uint64_t)known(d));
    if (make_subnormal(d) || digits_steps_of(d, 3))
        return stop(digits_why(d));
    digits_hash(d, hex);
    board_say("subnormal ");
    board_say(hex);
    board_say("\n");
    return 0;
}
