/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt_spill: copies to the host and back.  A stage sends and fetches tensors of many sizes in orders drawn at random, with
 * up to all numbers under way, while it writes over what is gone; each byte tells whose it must be.  To memory and to a
 * file, with a thread for each direction and with one for both.  Then every misuse must end the process, and say what it is.
 */
#include "unit_rt.h"
#include "rt/run.h"

enum { NUMBERS = 24, PLACES = 40, ROUNDS = 3000, LONGEST = 3 << 19, SLOT = 3 << 19 };

typedef struct { long bytes; int state, number; unsigned seed; unsigned char *device; } Thing;     /* state as in the reader */

static Run run;
static Worker worker;
static StageInfo info = {.name = "stage0", .copies = NUMBERS};
static Job job = {.stages = 1};
static unsigned seed = 1;

static unsigned draw(unsigned below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static void fill(unsigned char *at, long n, unsigned from)
{
    for (long i = 0; i < n; i++)
        at[i] = (unsigned char)((from + (unsigned)i) * 2654435761u >> 24);
}

static int differs(const unsigned char *at, long n, unsigned from)
{
    for (long i = 0; i < n; i++)
        if (at[i] != (unsigned char)((from + (unsigned)i) * 2654435761u >> 24))
            return 1;
    return 0;
}

static Stage *open_stage(int disk, int lanes)
{
    info.host = (size_t)PLACES * SLOT;
    info.lanes = lanes;
    info.copies = NUMBERS;
    job.disk = disk;
    job.stage = &info;
    run = (Run){.job = &job, .opt = {.fill = 0}};
    worker = (Worker){.run = &run, .info = &info};
    worker.stage = (Stage){.count = 1, .worker = &worker};
    if (job_parts.offload->open(&worker) != DONE)
        exit(9);
    return &worker.stage;
}

/* A few steps of one thing: away, gone, asked for, back. */
static void turn(Stage *st, Thing *x, int place, int number)
{
    size_t host = (size_t)place * SLOT;
    switch (x->state++) {
    case 0:
        x->bytes = 1 + (long)draw(draw(4) ? 5000 : LONGEST);
        x->seed = draw(1u << 20);
        x->number = number;
        fill(x->device, x->bytes, x->seed);
        offload_begin(st, x->device, host, number, x->bytes);
        break;
    case 1:
        copy_wait(st, x->number);
        memset(x->device, 0xee, (size_t)x->bytes);
        break;
    case 2:
        x->number = number;
        fetch_begin(st, x->device, host, number, x->bytes);
        break;
    default:
        copy_wait(st, x->number);
        check(!differs(x->device, x->bytes, x->seed), "place %d: %ld bytes came back as something else", place, x->bytes);
        x->state = 0;
    }
}

/* One turn of thing i, if there is a number for it. */
static void step(Stage *st, Thing *thing, int i, int *busy)
{
    int number = (int)draw(NUMBERS);
    bool begins = thing[i].state % 2 == 0;
    for (int k = 0; k < NUMBERS && busy[number]; k++)
        number = (number + 1) % NUMBERS;
    if (begins && busy[number])
        return;
    busy[begins ? number : thing[i].number] = begins;
    turn(st, &thing[i], i, number);
}

static void exchange(int disk, int lanes)
{
    static Thing thing[PLACES];
    int busy[NUMBERS] = {0};
    Stage *st = open_stage(disk, lanes);
    for (int i = 0; i < PLACES; i++)
        thing[i] = (Thing){.device = malloc(LONGEST + 1)};
    for (int round = 0; round < ROUNDS; round++)
        step(st, thing, (int)draw(PLACES), busy);
    for (int i = 0; i < PLACES; i++) {
        for (int k = i; thing[i].state; k = k + 1 < PLACES ? k + 1 : i)
            if (thing[k].state % 2 || (k == i && thing[k].state))      /* ends what is begun, so that there is a number */
                step(st, thing, k, busy);
        free(thing[i].device);
    }
    job_parts.offload->close(&worker);
}

/* ---- misuse ------------------------------------------------------------------------------------------------------ */

static unsigned char room[64];

static int begin_twice(void *with)
{
    Stage *st = open_stage(0, 2);
    (void)with;
    offload_begin(st, room, 0, 3, 64);
    offload_begin(st, room, 64, 3, 64);
    return 0;
}

static int wait_for_nothing(void *with)
{
    (void)with;
    copy_wait(open_stage(0, 2), 3);
    return 0;
}

static int outside(void *with)
{
    (void)with;
    offload_begin(open_stage(0, 2), room, (size_t)PLACES * SLOT - 63, 0, 64);
    return 0;
}

static int no_number(void *with)
{
    (void)with;
    fetch_begin(open_stage(0, 2), room, 0, NUMBERS, 64);
    return 0;
}

static int no_folder(void *with)
{
    job.spill_dir = with;
    open_stage(1, 2);
    return 0;
}

int main(void)
{
    refuse("a copy begun twice", begin_twice, NULL, STATUS_RUN, "begins again before its end");
    refuse("a wait for nothing", wait_for_nothing, NULL, STATUS_RUN, "was not begun");
    refuse("bytes outside", outside, NULL, STATUS_RUN, "out of range");
    refuse("a number too high", no_number, NULL, STATUS_RUN, "out of range");
    refuse("a folder that is not there", no_folder, (void *)(uintptr_t)"./not/there", 9, "cannot make a file for offloaded");
    job.spill_dir = NULL;
    for (int disk = 0; disk < 2; disk++)
        for (int lanes = 1; lanes < 3; lanes++)
            exchange(disk, lanes);
    return finish("unit_rt_spill");
}
