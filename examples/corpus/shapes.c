/* SPDX-License-Identifier: CC0-1.0
 *
 * shapes.c: pictures of ten shapes in random colours, places and sizes, with noise, as arrays of NumPy: examples/cifar.yaml.
 *
 *     shapes PREFIX FIRST COUNT       PREFIX-images.npy [COUNT, 32, 32, 3] f32 and PREFIX-labels.npy [COUNT] i32
 *
 * Picture i is the same in every call, so ranges that do not overlap keep training and evaluation apart.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 32, CLASSES = 10 };

static uint64_t state;

/* From 0 to below 1 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014) */
static float draw(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (float)((z ^ z >> 31) >> 40) * 0x1p-24f;
}

static float size_of(float x) { return x < 0 ? -x : x; }

/* Is the point in the shape?  u and v are -1 to 1 inside its square. */
static int inside(int shape, float u, float v)
{
    float a = size_of(u), b = size_of(v), r = u * u + v * v;
    if (a > 1 || b > 1)
        return 0;
    switch (shape) {
    case 0: return r < 1;                                       /* disc */
    case 1: return 1;                                           /* square */
    case 2: return 2 * a < v + 1;                               /* triangle */
    case 3: return r < 1 && r > 0.36f;                          /* ring */
    case 4: return a < 0.3f || b < 0.3f;                        /* cross */
    case 5: return (int)((v + 1) * 2.5f) % 2 == 0;              /* bars that lie */
    case 6: return (int)((u + 1) * 2.5f) % 2 == 0;              /* bars that stand */
    case 7: return size_of(a - b) < 0.35f;                      /* an X */
    case 8: return ((int)((u + 1) * 2) + (int)((v + 1) * 2)) % 2 == 0;      /* a chequer */
    default: return a > 0.6f || b > 0.6f;                       /* frame */
    }
}

static void picture(float *to, int shape)
{
    float back[3], fore[3], far = 0, half = 8 + 5 * draw(), x = half + (SIDE - 2 * half) * draw(),
          y = half + (SIDE - 2 * half) * draw();
    while (far < 0.8f)
        for (int c = far = 0; c < 3; c++) {
            back[c] = 2 * draw() - 1;
            fore[c] = 2 * draw() - 1;
            far += size_of(back[c] - fore[c]);
        }
    for (int i = 0; i < SIDE * SIDE; i++) {
        const float *colour = inside(shape, ((float)(i % SIDE) + 0.5f - x) / half, ((float)(i / SIDE) + 0.5f - y) / half)
            ? fore : back;
        for (int c = 0; c < 3; c++)
            *to++ = colour[c] + 0.25f * (draw() + draw() - 1);
    }
}

/* The header fills 128 bytes: magic, version, its length, a dictionary, spaces, a line end. */
static FILE *array(const char *prefix, const char *what, const char *type, const char *shape)
{
    char name[4096], head[119];
    snprintf(name, sizeof name, "%s-%s.npy", prefix, what);
    snprintf(head, sizeof head, "{'descr': '<%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    FILE *f = fopen(name, "wb");
    if (!f) {
        perror(name);
        exit(1);
    }
    fwrite("\x93NUMPY\1\0\x76\0", 1, 10, f);
    fprintf(f, "%-117.*s\n", 117, head);
    return f;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: shapes PREFIX FIRST COUNT\n");
        return 2;
    }
    long first = atol(argv[2]), count = atol(argv[3]);
    char images[64], labels[32];
    snprintf(images, sizeof images, "%ld, %d, %d, 3", count, SIDE, SIDE);
    snprintf(labels, sizeof labels, "%ld,", count);
    FILE *f = array(argv[1], "images", "f4", images), *g = array(argv[1], "labels", "i4", labels);
    for (long i = first; i < first + count; i++) {
        float pixel[SIDE * SIDE * 3];
        state = (uint64_t)i * 0xd1342543de82ef95u;
        int32_t shape = (int32_t)(CLASSES * draw());
        picture(pixel, shape);
        fwrite(pixel, sizeof pixel, 1, f);
        fwrite(&shape, sizeof shape, 1, g);
    }
    return fclose(f) | fclose(g) ? 1 : 0;
}
