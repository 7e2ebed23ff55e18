/* SPDX-License-Identifier: Apache-2.0
 *
 * library.c: a program with two jobs of examples/library, for tests/library.sh.
 *
 *     library data        arrays of the data of all steps, in the format of NumPy, for the programs of the same jobs
 *     library turn N      N steps of both in turn, then the hash of each; pages of memory at step 10 and at the end are equal
 *     library refuse      each call that is to be refused: its status, its text, and that the job goes on
 *     library lost        digits.c has a message of a wrong tag: its step fails with a text, and both jobs go on
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../examples/library/digits.h"
#include "digits/digits.h"
#include "xor/xor.h"

enum { POINTS = DIGITS_STEP_SAMPLES * DIGIT_POINTS };
static const float bits[8] = {0, 0, 0, 1, 1, 0, 1, 1};
static const int32_t differ[4] = {0, 1, 1, 0};
static float points[POINTS];
static int32_t label[DIGITS_STEP_SAMPLES];
static int failed;

static void draw(int64_t step)
{
    for (int i = 0; i < DIGITS_STEP_SAMPLES; i++)
        label[i] = digit_draw(points + i * DIGIT_POINTS, (uint32_t)(step * DIGITS_STEP_SAMPLES + i));
}

enum { CYCLE = 60 };            /* steps; then the data come again, as a program reads its files again */

/* ---- data -------------------------------------------------------------------------------------------------------------- */

static FILE *array(const char *name, const char *type, long rows, const char *rest)
{
    char head[119];
    FILE *f = fopen(name, "wb");
    int n = snprintf(head, sizeof head, "{'descr': '<%s', 'fortran_order': False, 'shape': (%ld,%s), }", type, rows, rest);
    if (!f)
        exit(2);
    fwrite("\x93NUMPY\1\0\x76\0", 1, 10, f);
    fprintf(f, "%s%*s\n", head, 117 - n, "");
    return f;
}

static void data(void)
{
    FILE *x = array("bits.npy", "f4", 4, "2"), *y = array("differ.npy", "i4", 4, "");
    FILE *p = array("points.npy", "f4", CYCLE * DIGITS_STEP_SAMPLES, "64");
    FILE *l = array("label.npy", "i4", CYCLE * DIGITS_STEP_SAMPLES, "");
    fwrite(bits, 1, sizeof bits, x);
    fwrite(differ, 1, sizeof differ, y);
    for (long i = 0; i < CYCLE; i++) {
        draw(i);
        fwrite(points, 1, sizeof points, p);
        fwrite(label, 1, sizeof label, l);
    }
    fclose(x), fclose(y), fclose(p), fclose(l);
}

/* ---- two jobs in turn -------------------------------------------------------------------------------------------------- */

static const xor_array *xor_in(void)
{
    static xor_array in[XOR_INPUTS];
    in[XOR_INPUT_bits] = (xor_array){bits, 8, XOR_F32};
    in[XOR_INPUT_label] = (xor_array){differ, 4, XOR_I32};
    return in;
}

static const digits_array *digits_in(void)
{
    static digits_array in[DIGITS_INPUTS];
    in[DIGITS_INPUT_points] = (digits_array){points, POINTS, DIGITS_F32};
    in[DIGITS_INPUT_label] = (digits_array){label, DIGITS_STEP_SAMPLES, DIGITS_I32};
    return in;
}

static long pages(void)
{
    long n = 0;
#ifdef __SANITIZE_THREAD__      /* which keeps what it has seen */
    return n;
#endif
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld", &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n;
}

static long threads(void)
{
    char line[256];
    long n = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "Threads: %ld", &n);
    if (f)
        fclose(f);
    return n;
}

static void need(int good, const char *what, const char *why)
{
    if (!good)
        printf("not so: %s: %s\n", what, why);
    failed += !good;
}

#ifndef THREADS                 /* of both jobs, besides that of main() */
#define THREADS 0
#endif

static void turn(int64_t steps)
{
    char hex[65], why[XOR_TEXT] = "";
    long early = 0;
    xor_job *x = xor_open(NULL, 0, why);
    digits_job *d = digits_open(NULL, 0, why);
    if (!x || !d) {
        need(0, "open", why);
        return;
    }
    for (int64_t i = 0; i < steps; i++) {
        digits_array wrong[DIGITS_INPUTS];
        memcpy(wrong, digits_in(), sizeof wrong);
        wrong[0].n--;
        draw(i % CYCLE);
        need(i % 1000 || digits_step(d, wrong, NULL) == DIGITS_USE, "a wrong shape", digits_why(d));
        need(!xor_step(x, xor_in(), NULL) && !digits_step(d, digits_in(), NULL), "a step", xor_why(x));
        if (i == 10)
            early = pages();
    }
    need(steps <= 10 || pages() == early, "memory", "it grows");
    need(xor_steps(x) == steps && digits_steps(d) == steps, "steps", "another number");
    xor_hash(x, hex);
    printf("sha256 %s\n", hex);
    digits_hash(d, hex);
    printf("sha256 %s\n", hex);
    long open = threads();
    xor_close(x);
    digits_close(d);
    need(open - threads() == THREADS, "threads", "not all of them have ended");
}

/* ---- calls that are refused -------------------------------------------------------------------------------------------- */

static _Alignas(XOR_ALIGN) unsigned char room[XOR_ARENA + XOR_ALIGN];
static char before[65];

static void refused(xor_job *j, int status, int want, const char *text)
{
    char hex[65];
    need(status == want, text, xor_why(j));
    need(strstr(xor_why(j), text) != NULL, text, xor_why(j));
    need(!xor_hash(j, hex) && !strcmp(hex, before), text, "the job has changed");
}

static void no_job(xor_job *j, const char *why, const char *text)
{
    need(!j && strstr(why, text), text, why);
}

static void refuse_open(void)
{
    char why[XOR_TEXT];
    no_job(xor_open(room + 4, sizeof room - 4, why), why, "begins 4 bytes behind a multiple of 64");
    no_job(xor_open(room, XOR_ARENA - 1, why), why, "and this job needs");
    need(!xor_open(room, 0, NULL), "no text asked for", "");
    need(xor_step(NULL, xor_in(), NULL) == XOR_USE && xor_steps(NULL) == -1, "a step of NULL", "");
    need(strstr(xor_why(NULL), "no such job") != NULL, "a text of NULL", "");
    xor_job *j = xor_open(room, sizeof room, why);
    need(j && !xor_step(j, xor_in(), NULL), "an arena of the caller", why);
    xor_close(j);
    need(xor_step(j, xor_in(), NULL) == XOR_USE, "a step of a closed job", xor_why(j));
    xor_close(j);
    xor_close(NULL);
}

static void refuse_arrays(xor_job *j)
{
    const int32_t far[4] = {0, 1, 2, 0};
    float to[8];
    xor_array in[2] = {xor_in()[0], xor_in()[1]};
    in[0].n = 7;
    refused(j, xor_step(j, in, NULL), XOR_USE, "input bits: 7 elements, and 4 samples of 2 are 8");
    in[0] = (xor_array){bits, 8, XOR_I32};
    refused(j, xor_step(j, in, NULL), XOR_USE, "not float");
    in[0] = (xor_array){(const char *)bits + 1, 8, XOR_F32};
    refused(j, xor_step(j, in, NULL), XOR_USE, "not aligned");
    in[0] = (xor_array){NULL, 8, XOR_F32};
    refused(j, xor_step(j, in, NULL), XOR_USE, "no array is given");
    in[0] = xor_in()[0];
    in[1] = (xor_array){far, 4, XOR_I32};
    refused(j, xor_step(j, in, NULL), XOR_DATA, "input label: element 2 is 2, outside 0 .. 1");
    refused(j, xor_step(j, NULL, NULL), XOR_USE, "no arrays");
    refused(j, xor_forward(j, xor_in(), "nothing", to, 8), XOR_USE, "no output nothing");
    refused(j, xor_forward(j, xor_in(), "scores", to, 7), XOR_USE, "room for 7 floats, and 4 samples of 2 are 8");
    in[0] = (xor_array){bits, 0, XOR_F32};
    in[1] = (xor_array){far, 0, XOR_I32};
    refused(j, xor_forward(j, in, "scores", to, 0), XOR_USE, "no samples are given");
    refused(j, xor_read(j, "scores.weight", to, 8), XOR_USE, "has 16 elements, not 8");
    refused(j, xor_write(j, "scores", to, 8), XOR_USE, "no parameter scores");
    refused(j, xor_hash(j, NULL), XOR_USE, "65 characters");
}

static void refuse_saved(xor_job *j)
{
    size_t n = xor_saved();
    unsigned char *bytes = calloc(n, 1), *foreign = calloc(digits_saved(), 1);
    digits_job *d = digits_open(NULL, 0, NULL);
    refused(j, xor_save(j, bytes, n - 1), XOR_USE, "and this job saves");
    need(!xor_save(j, bytes, n) && !digits_save(d, foreign, digits_saved()), "save", xor_why(j));
    refused(j, xor_load(j, foreign, digits_saved()), XOR_FOREIGN, "another numeric key");
    refused(j, xor_load(j, bytes, n - 1), XOR_FOREIGN, "bytes are given");
    refused(j, xor_load(j, bytes, 3), XOR_FOREIGN, "too few");
    for (size_t i = 0; i < n; i += i < 170 ? 1 : 29) {
        bytes[i] ^= 0x10;
        need(xor_load(j, bytes, n) == XOR_FOREIGN, "a damaged byte", "it was loaded");
        bytes[i] ^= 0x10;
    }
    need(!xor_load(j, bytes, n), "load", xor_why(j));
    digits_close(d);
    free(bytes), free(foreign);
}

static int nested;
static void again(void *with, int stage, const char *action)
{
    nested |= stage == 0 && action && xor_step(with, xor_in(), NULL) == XOR_USE && strstr(xor_why(with), "under way");
}

/* What is saved goes on as if nothing had been; a parameter that is written is read; a forward is that of the whole batch. */
static void works(xor_job *j)
{
    size_t n = xor_saved();
    unsigned char *bytes = calloc(n, 1);
    char first[65], second[65];
    float all[8], one[2], was[16], is[16];
    xor_array in[2] = {{bits + 2, 2, XOR_F32}, {NULL, 0, 0}};
    xor_result r = {0, 0, 0, 0}, step;
    xor_about about;
    need(!xor_save(j, bytes, n) && !xor_step(j, xor_in(), &step), "a step", xor_why(j));
    xor_hash(j, first);
    xor_restart(j);
    need(xor_steps(j) == 0 && !xor_load(j, bytes, n) && !xor_step(j, xor_in(), &r), "a step from what is saved", xor_why(j));
    xor_hash(j, second);
    need(!strcmp(first, second) && r.loss == step.loss && r.step == step.step, "what is saved", "another hash");
    need(!xor_forward(j, xor_in(), "scores", all, 8) && !xor_forward(j, in, "scores", one, 2), "forward", xor_why(j));
    need(!memcmp(all + 2, one, sizeof one), "one sample alone", "other scores");
    need(!xor_evaluate(j, xor_in(), &r) && !xor_step(j, xor_in(), &step) && r.loss == step.loss, "evaluate",
         "another loss than that of the step on the same samples");
    need(!xor_read(j, "hidden.weight", was, 16), "read", xor_why(j));
    was[3] = 0x1p-140f;
    need(!xor_write(j, "hidden.weight", was, 16) && !xor_read(j, "hidden.weight", is, 16) && !memcmp(was, is, sizeof is),
         "write", xor_why(j));
    need(!xor_parameter(1, &about) && !strcmp(about.name, "hidden.weight") && about.n == 16 && about.axes == 2 &&
         about.shape[0] == 8 && about.shape[1] == 2 && xor_parameter(4, &about) == XOR_USE, "parameter", "another");
    xor_listen(j, again, j);
    need(!xor_step(j, xor_in(), NULL) && nested, "a call out of order", xor_why(j));
    xor_listen(j, NULL, NULL);
    is[0] = NAN;
    need(!xor_write(j, "scores.weight", is, 16) && xor_step(j, xor_in(), NULL) == XOR_NOT_FINITE, "not finite", xor_why(j));
    free(bytes);
}

static void refuse(void)
{
    char why[XOR_TEXT] = "";
    refuse_open();
    xor_job *j = xor_open(NULL, 0, why);
    need(j && !xor_step(j, xor_in(), NULL) && !xor_hash(j, before), "open", why);
    refuse_arrays(j);
    refuse_saved(j);
    works(j);
    xor_close(j);
}

static void lost(void)
{
    char first[65], hex[65], why[DIGITS_TEXT] = "";
    float x[10];
    size_t n = digits_saved();
    void *bytes = malloc(n);
    xor_job *other = xor_open(NULL, 0, why);
    digits_job *d = digits_open(NULL, 0, why);
    need(d && other && !digits_save(d, bytes, n) && !digits_hash(d, first), "open", why);
    for (int i = 0; i < 3; i++) {
        draw(i);
        need(digits_step(d, digits_in(), NULL) == DIGITS_LOST && strstr(digits_why(d), "stage 0 sends tag 77, "), "a wrong tag",
             digits_why(d));
        need(digits_read(d, "scores.bias", x, 10) == DIGITS_LOST && strstr(digits_why(d), "load what was saved, or restart"),
             "a read of what is lost", digits_why(d));
        need(!xor_step(other, xor_in(), NULL), "the other job", xor_why(other));
        need(!(i % 2 ? digits_load(d, bytes, n) : digits_restart(d)) && !digits_hash(d, hex) && !strcmp(first, hex),
             "it goes on", digits_why(d));
        need(!digits_forward(d, digits_in(), "scores", x, 0) || strstr(digits_why(d), "room for 0"), "forward", digits_why(d));
    }
    digits_close(d);
    xor_close(other);
    free(bytes);
}

int main(int argc, char **argv)
{
    long n = argc > 2 ? atol(argv[2]) : 0;
    if (argc > 1 && !strcmp(argv[1], "data"))
        data();
    else if (argc > 1 && !strcmp(argv[1], "turn"))
        turn(n);
    else if (argc > 1 && !strcmp(argv[1], "lost"))
        lost();
    else
        refuse();
    return failed > 0;
}
