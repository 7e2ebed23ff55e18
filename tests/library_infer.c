/* SPDX-License-Identifier: Apache-2.0
 *
 * library_infer.c: a library of plan.mode infer as a filter: samples of input 0 in, f32 of an output out, for tests/serve.sh.
 * Compiled with -DJOB=NAME and -include NAME.h.
 *
 *     library_infer OUTPUT WIDTH PER < SAMPLES > RESULTS         WIDTH: numbers of a sample; PER: of its result
 */
#include <stdio.h>
#include <stdlib.h>

#define JOINED(a, b) a##_##b
#define NAMED(a, b) JOINED(a, b)
#define CALL(b) NAMED(JOB, b)
enum { MOST = 1 << 16, INPUTS = 8 };

int main(int argc, char **argv)
{
    static float x[MOST], y[MOST], again[MOST];
    char why[192];
    size_t width = argc > 3 ? (size_t)atol(argv[2]) : 1, per = argc > 3 ? (size_t)atol(argv[3]) : 1;
    size_t n = fread(x, sizeof *x, MOST, stdin), rows = n / width;
    CALL(array) in[INPUTS] = {{x, rows * width, 1}};
    CALL(job) *job = CALL(open)(NULL, 0, why);
    if (!job || CALL(forward)(job, in, argv[1], y, rows * per)) {
        fputs(job ? CALL(why)(job) : why, stderr);
        return 1;
    }
    in[0].n = width;            /* one sample alone */
    if (CALL(forward)(job, in, argv[1], again, per) || again[0] != y[0])
        return 2;
    if (CALL(step)(job, in, NULL) != 2 || CALL(evaluate)(job, in, NULL) != 2)
        return 3;
    fwrite(y, sizeof *y, rows * per, stdout);
    CALL(close)(job);
    return 0;
}
