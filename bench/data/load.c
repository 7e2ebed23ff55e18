/* SPDX-License-Identifier: Apache-2.0
 *
 * load.c: the time that data_load() takes for a micro-batch of pictures, from each kind of file that has them.
 *
 *   load DIR PICTURES SIDE ROUNDS
 *
 * Files of as many pictures of SIDE x SIDE x 3 are made in DIR, and read once before anything is timed, so that they lie in the
 * page cache.  The cases take turns, one load each in a round.  A line has the case, and the median of the rounds in
 * milliseconds.  For a GPU bytes are only put where it fetches them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "run.h"

enum { CHANNELS = 3, MOST = 101 };
static const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
static const ByteInfo bytes = {CHANNELS, mean, deviation};
static const char *const role[] = {"image"};
static const int feeds[] = {0};

typedef struct { const char *what, *file; int gpu; const ByteInfo *bytes; } Case;
static const Case cases[] = {
    {"from floats", "floats.npy", 0, NULL}, {"from bytes", "bytes.npy", 0, &bytes}, {"bytes for a GPU", "bytes.npy", 1, &bytes},
};
enum { CASES = sizeof cases / sizeof *cases };
typedef struct { Run run; Job job; InputInfo input; const char *path[1]; char name[4096]; Stage st; double ms[MOST]; } Set;
static Set sets[CASES];

static void write_file(const char *dir, const char *name, const char *type, long pictures, long side, size_t width)
{
    char path[4096], head[118];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    int n = snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%ld, %ld, %ld, %d), }", type,
                     pictures, side, side, CHANNELS);
    memset(head + n, ' ', sizeof head - (size_t)n);
    head[sizeof head - 1] = '\n';
    bool good = f && fwrite("\x93NUMPY\1\0v\0", 1, 10, f) == 10 && fwrite(head, 1, sizeof head, f) == sizeof head;
    for (long i = 0; good && i < pictures * side * side * CHANNELS; i++) {
        unsigned byte = (unsigned)i * 2654435761u >> 24;
        float number = (float)byte / 255.0f;
        good = fwrite(width == 1 ? (void *)&(unsigned char){(unsigned char)byte} : (void *)&number, width, 1, f) == 1;
    }
    if (!good || fclose(f) != 0)
        exit(fprintf(stderr, "cannot write %s\n", path) != 0);
}

static void open_case(Set *s, const Case *c, const char *dir, long pictures, long side)
{
    int status = DONE;
    snprintf(s->name, sizeof s->name, "%s/%s", dir, c->file);
    s->path[0] = s->name;
    s->input = (InputInfo){.name = "image", .type = JOB_F32, .per = side * side * CHANNELS, .bytes = c->bytes};
    s->job = (Job){.inputs = 1, .input = &s->input, .batch = pictures, .micro = 1,
                   .train = {.format = "npy", .roles = 1, .role = role, .input = feeds, .path = s->path}};
    s->run.job = &s->job;
    s->st.device = c->gpu ? s : NULL;
    s->st.loader = data_open(&s->run, &status);
    if (status != DONE)
        exit(1);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc != 5 || atol(argv[4]) < 1 || atol(argv[4]) > MOST)
        return 2;
    long pictures = atol(argv[2]), side = atol(argv[3]), rounds = atol(argv[4]), n = pictures * side * side * CHANNELS;
    void *to = malloc((size_t)n * 4);
    Values vals = {.seed = 1, .micro = 1, .batch = (int32_t)pictures};
    write_file(argv[1], "floats.npy", "<f4", pictures, side, 4);
    write_file(argv[1], "bytes.npy", "|u1", pictures, side, 1);
    for (int c = 0; c < CASES; c++)
        open_case(&sets[c], &cases[c], argv[1], pictures, side);
    for (long r = -1; to && r < rounds; r++)
        for (int c = 0; c < CASES; c++) {
            double begin = seconds();
            data_load(&sets[c].st, to, &vals, 0, 0, n * 4);
            if (r >= 0)
                sets[c].ms[r] = 1000 * (seconds() - begin);
        }
    for (int c = 0; c < CASES; c++) {
        qsort(sets[c].ms, (size_t)rounds, sizeof *sets[c].ms, ascending);
        printf("%-16s %8.2f ms\n", cases[c].what, sets[c].ms[rounds / 2]);
    }
    return !to;
}
