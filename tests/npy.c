/* SPDX-License-Identifier: Apache-2.0
 *
 * npy.c: an array of random numbers in the format of NumPy, version 1.0, so that tests need no Python.
 *
 *     npy FILE i4|f4 LOW HIGH DIM...      whole numbers, or floats, from LOW to below HIGH
 *
 * The numbers come from a linear congruential generator (Knuth, The Art of Computer Programming, volume 2, 3.3.4) that
 * starts from the file's name: the same file everywhere.  Little-endian machines only.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static double draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

/* The header fills 128 bytes: magic, version, its length, a dictionary, spaces, a line end. */
static void write_header(FILE *f, const char *type, int dims, char **dim)
{
    char shape[64] = "", head[119];
    for (int i = 0; i < dims; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s, ", dim[i]);
    int n = snprintf(head, sizeof head, "{'descr': '<%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    fwrite("\x93NUMPY\1\0\x76\0", 1, 10, f);
    fprintf(f, "%-117.*s\n", n, head);
}

int main(int argc, char **argv)
{
    if (argc < 6 || argc > 9) {
        fprintf(stderr, "usage: npy FILE i4|f4 LOW HIGH DIM...\n");
        return 2;
    }
    double low = strtod(argv[3], NULL), high = strtod(argv[4], NULL);
    FILE *f = fopen(argv[1], "wb");
    long n = 1;
    for (int i = 5; i < argc; i++)
        n *= strtol(argv[i], NULL, 10);
    for (const char *c = argv[1]; *c; c++)
        state = state * 31 + (unsigned char)*c;
    if (!f)
        return 1;
    write_header(f, argv[2], argc - 5, argv + 5);
    for (long i = 0; i < n; i++) {
        double x = low + draw() * (high - low);
        int32_t whole = (int32_t)(x - low) + (int32_t)low;
        float real = (float)x;
        fwrite(argv[2][0] == 'i' ? (void *)&whole : (void *)&real, 4, 1, f);
    }
    return fclose(f) != 0;
}
