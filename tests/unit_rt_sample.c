/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt_sample: choose.c against the definition of each of its rules, and how often it takes a token against e^score.
 */
#include <math.h>
#include "unit_rt.h"
#include "rt/sample/choose.h"

enum { N = 5, DRAWS = 20000 };
static const double score[N] = {1.0, 3.0, -INFINITY, 3.0, 0.5};

static long take(Taste t, int64_t at)
{
    Ranked room[N];
    return choose_token(score, N, &t, at, room);
}

/* How often each is taken, in parts of all draws. */
static void frequencies(Taste t, double part[N])
{
    memset(part, 0, N * sizeof *part);
    for (int i = 0; i < DRAWS; i++)
        part[take(t, i)] += 1.0 / DRAWS;
}

/* kept: tokens that stay, as digits */
static void test_rule(const char *what, Taste t, const char *kept)
{
    double part[N], sum = 0;
    frequencies(t, part);
    for (const char *c = kept; *c; c++)
        sum += exp(score[*c - '0'] / t.temperature);
    for (int i = 0; i < N; i++) {
        double want = strchr(kept, '0' + i) ? exp(score[i] / t.temperature) / sum : 0;
        double may = 4.5 * sqrt(want * (1 - want) / DRAWS);     /* deviations of a count */
        check(fabs(part[i] - want) <= may + 1e-9, "%s: token %d: %g of the draws, not %g", what, i, part[i], want);
    }
}

int main(void)
{
    test_rule("plain", (Taste){1, 1, 0, 7}, "0134");
    test_rule("another seed", (Taste){1, 1, 0, 8}, "0134");
    test_rule("hot", (Taste){2.5, 1, 0, 7}, "0134");
    test_rule("cold", (Taste){0.5, 1, 0, 7}, "0134");
    test_rule("top-k 3", (Taste){1, 1, 3, 7}, "013");
    test_rule("top-k 1, of equals the lower", (Taste){1, 1, 1, 7}, "1");
    test_rule("top-k above all", (Taste){1, 1, 9, 7}, "0134");
    test_rule("top-p 0.4: one is enough", (Taste){1, 0.4, 0, 7}, "1");      /* 0.4497 each of the two best */
    test_rule("top-p 0.46: one is not", (Taste){1, 0.46, 0, 7}, "13");
    test_rule("top-p 0.5 of the two that top-k leaves", (Taste){1, 0.5, 2, 7}, "1");
    test_rule("top-p 0.51 of them", (Taste){1, 0.51, 2, 7}, "13");
    test_rule("top-p 0", (Taste){1, 0, 0, 7}, "1");
    int same = 0;
    for (int i = 0; i < 100; i++) {
        check(take((Taste){0, 1, 0, 7}, i) == 1, "temperature 0 at %d", i);
        check(take((Taste){1, 1, 0, 7}, i) == take((Taste){1, 1, 0, 7}, i), "place %d twice", i);
        same += take((Taste){1, 1, 0, 7}, i) == take((Taste){1, 1, 0, 8}, i);
    }
    check(same < 70, "two seeds agree in %d of 100 places", same);
    const double bad[] = {1, NAN}, high[] = {1, INFINITY};
    Ranked room[2];
    check(choose_token(bad, 2, &(Taste){1, 1, 0, 7}, 0, room) == -1, "a score that is no number");
    check(choose_token(high, 2, &(Taste){1, 1, 0, 7}, 0, room) == -1, "an infinite score");
    printf("unit_rt_sample: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
