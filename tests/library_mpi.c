/* SPDX-License-Identifier: Apache-2.0
 *
 * library_mpi.c: a program of MPI with two jobs over its two ranks, for tests/library.sh.  A receive of the program that takes
 * any message is open all the time.
 *
 *     mpirun -n 2 library_mpi N       N steps of both in turn, calls that one rank refuses between, then the hash of each
 */
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
static int failed, rank;

static void need(int good, const char *what, const char *why)
{
    if (!good)
        fprintf(stderr, "rank %d: not so: %s: %s\n", rank, what, why);
    failed += !good;
}

static void refused(digits_job *d)
{
    const digits_array in[DIGITS_INPUTS] = {{points, POINTS - (rank == 1), DIGITS_F32},
                                            {label, DIGITS_STEP_SAMPLES, DIGITS_I32}};
    float few[3];
    need(digits_step(d, in, NULL) == DIGITS_USE && strstr(digits_why(d), "input points: 1023 elements"), "a shape",
         digits_why(d));
    need(rank == 1 || strstr(digits_why(d), "rank 1 refuses this call: "), "the rank is named", digits_why(d));
    need(digits_read(d, "scores.bias", few, rank ? 3 : 10) == DIGITS_USE, "a read", digits_why(d));
}

/* What is saved comes back, and each rank has the same scores. */
static void around(digits_job *d)
{
    const digits_array in[DIGITS_INPUTS] = {{points, POINTS, DIGITS_F32}, {NULL, 0, 0}};
    char first[65], second[65];
    size_t n = digits_saved();
    void *bytes = malloc(n);
    float score[10 * DIGITS_STEP_SAMPLES], sum[10 * DIGITS_STEP_SAMPLES];
    need(!digits_hash(d, first) && !digits_save(d, bytes, n) && !digits_restart(d) && !digits_hash(d, second) &&
         strcmp(first, second), "restart", digits_why(d));
    need(!digits_load(d, bytes, n) && !digits_hash(d, second) && !strcmp(first, second), "load", digits_why(d));
    need(!digits_forward(d, in, "scores", score, sizeof score / sizeof *score), "forward", digits_why(d));
    memcpy(sum, score, sizeof sum);
    MPI_Bcast(sum, sizeof sum, MPI_BYTE, 0, MPI_COMM_WORLD);
    need(!memcmp(sum, score, sizeof sum), "scores", "another rank has others");
    free(bytes);
}

static void turn(long steps)
{
    char why[DIGITS_TEXT] = "", hex[65] = "";
    const digits_array in[DIGITS_INPUTS] = {{points, POINTS, DIGITS_F32}, {label, DIGITS_STEP_SAMPLES, DIGITS_I32}};
    const xor_array two[XOR_INPUTS] = {{bits, 8, XOR_F32}, {differ, 4, XOR_I32}};
    static _Alignas(DIGITS_ALIGN) unsigned char arena[DIGITS_ARENA];
    need(!digits_open_on(MPI_COMM_SELF, NULL, 0, why) && strstr(why, "as many ranks"), "a rank alone", why);
    need(!digits_open(arena, sizeof arena - 64 * (rank == 1), why) && strstr(why, "and this job needs"), "a small arena", why);
    need(!digits_open(arena + 4 * rank, sizeof arena, why) &&
         strstr(why, "begins 4 bytes behind") && (rank == 1 || strstr(why, "rank 1 has no part")), "one arena", why);
    digits_job *d = digits_open(arena, sizeof arena, why);
    xor_job *x = xor_open_on(MPI_COMM_WORLD, NULL, 0, why);
    need(d && x, "open", why);
    for (long i = 0; i < steps && d && x; i++) {
        for (int k = 0; k < DIGITS_STEP_SAMPLES; k++)
            label[k] = digit_draw(points + k * DIGIT_POINTS, (uint32_t)(i * DIGITS_STEP_SAMPLES + k));
        if (i % 10 == 0)
            refused(d);
        need(!digits_step(d, in, NULL) && !xor_step(x, two, NULL), "a step", digits_why(d));
    }
    if (d && x)
        around(d);
    for (int k = 0; k < 2 && d && x; k++) {
        need(!(k ? digits_hash(d, hex) : xor_hash(x, hex)), "hash", digits_why(d));
        if (rank == 0)
            printf("sha256 %s\n", hex);
    }
    xor_close(x);
    digits_close(d);
}

int main(int argc, char **argv)
{
    char why[DIGITS_TEXT], got[8];
    MPI_Request any;
    need(!digits_open(NULL, 0, why) && strstr(why, "between MPI_Init"), "before MPI_Init", why);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Irecv(got, sizeof got, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any);
    turn(argc > 1 ? atol(argv[1]) : 1);
    MPI_Send("program", 8, MPI_BYTE, rank, 5, MPI_COMM_WORLD);
    MPI_Wait(&any, MPI_STATUS_IGNORE);
    need(!strcmp(got, "program"), "the program's own message", got);
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failed > 0;
}
