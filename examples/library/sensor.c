/* SPDX-License-Identifier: Apache-2.0
 *
 * sensor.c: a program that learns to foresee its own sensor.  It trains while it reads, keeps what it has learned in memory,
 * and tells readings that it did not expect.
 *
 *     dpgen examples/library/sensor.yaml --library -o sensor && make -C sensor
 *     cc -I. -o foresee examples/library/sensor.c sensor/libsensor.a && ./foresee
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sensor/sensor.h"

enum { PAST = 16, READINGS = 12000, KNOCK = 11000 };

/* The sensor: a swing that a spring keeps up, some noise, and a knock. */
static float reading(int number)
{
    static double place = 0.8, speed;
    static uint32_t noise = 1;
    noise = noise * 1664525u + 1013904223u;         /* Knuth, The Art of Computer Programming 2, 3.3.4 */
    speed -= 0.09 * place + (number == KNOCK ? 1.5 : 0);
    place += speed;
    return (float)(place + (double)(noise >> 16) * (0.02 / 65536));
}

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "sensor: %s: %s\n", what, why);
    return 1;
}

/* The newest readings as samples: the last PAST of each, and the one behind them. */
static void take(float *past, float *next, const float *read, int newest)
{
    for (int i = 0; i < SENSOR_STEP_SAMPLES; i++) {
        const float *at = read + newest - SENSOR_STEP_SAMPLES + 1 + i - PAST;
        memcpy(past + i * PAST, at, PAST * sizeof *past);
        next[i] = at[PAST];
    }
}

int main(void)
{
    static float read[READINGS];
    static _Alignas(SENSOR_ALIGN) unsigned char arena[SENSOR_ARENA];
    float past[SENSOR_STEP_SAMPLES * PAST], next[SENSOR_STEP_SAMPLES], guess;
    char why[SENSOR_TEXT];
    double early = 0, late = 0;
    int told = 0;
    sensor_result r;
    sensor_job *job = sensor_open(arena, sizeof arena, why);
    void *kept = malloc(sensor_saved());
    if (!job || !kept)
        return fail("open", job ? "no memory" : why);
    const sensor_array in[SENSOR_INPUTS] = {
        [SENSOR_INPUT_past] = {past, sizeof past / sizeof *past, SENSOR_F32},
        [SENSOR_INPUT_next] = {next, sizeof next / sizeof *next, SENSOR_F32}};
    for (int i = 0; i < READINGS; i++) {
        const sensor_array now[SENSOR_INPUTS] = {[SENSOR_INPUT_past] = {read + i - PAST, PAST, SENSOR_F32}};
        read[i] = reading(i);
        if (i > 10000 && i < READINGS - 1 && !sensor_forward(job, now, "guess", &guess, 1) &&
            (read[i] - guess) * (read[i] - guess) > 0.25f && !told++)
            printf("reading %d: %.2f where %.2f was expected\n", i, (double)read[i], (double)guess);
        if (i < PAST + SENSOR_STEP_SAMPLES || i % SENSOR_STEP_SAMPLES || i > 10000)
            continue;
        take(past, next, read, i);
        if (sensor_step(job, in, &r))
            return fail("step", sensor_why(job));
        early += r.step <= 50 ? r.loss / 50 : 0;
        late += r.step > 1150 && r.step <= 1200 ? r.loss / 50 : 0;
    }
    if (sensor_save(job, kept, sensor_saved()) || sensor_restart(job) || sensor_load(job, kept, sensor_saved()))
        return fail("what was kept", sensor_why(job));
    printf("after %d steps: loss %.5f, at first %.5f\n", (int)sensor_steps(job), late, early);
    sensor_close(job);
    free(kept);
    return late < early / 50 && told ? 0 : fail("learning", "the loss did not fall, or the knock was not seen");
}
