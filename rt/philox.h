/* SPDX-License-Identifier: Apache-2.0
 *
 * philox.h: random numbers without state.
 *
 * Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011.  Philox4x32-10 maps a
 * counter of 128 bits and a key of 64 bits to 128 random bits, by ten rounds of two multiplications.  The mask of a dropout
 * is therefore a pure function of the element's place.  Recomputing it gives the same bits, in any order, on any number of
 * threads, and it need not be stored.
 *
 * Element e of sample s of operator `site` in step t takes word e % 4 of philox at
 *
 *     key      low(seed) ^ high(site),  high(seed) ^ low(site)
 *     counter  e / 4, s, low(t), high(t)         s counts over the whole step: micro-batch * batch + sample in it;
 *                                              of a weight: the micro-batch
 *
 * and is kept if that word is at or above drop * 2^32.  Bound: 2^34 elements a sample, 2^32 samples a step.
 */
#ifndef PHILOX_H
#define PHILOX_H
#include "real.h"

typedef struct { uint32_t v[4]; } Philox;
typedef struct { uint32_t key[2], sample, step[2], threshold; float keep; } Drop;

FN Philox philox(Philox c, uint32_t k0, uint32_t k1)
{
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)c.v[0] * 0xd2511f53u, q = (uint64_t)c.v[2] * 0xcd9e8d57u;
        uint32_t a = (uint32_t)(q >> 32) ^ c.v[1] ^ k0, b = (uint32_t)(p >> 32) ^ c.v[3] ^ k1;
        c.v[0] = a, c.v[1] = (uint32_t)q, c.v[2] = b, c.v[3] = (uint32_t)p;
        k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
    }
    return c;
}

/* What the elements of one sample share. */
FN Drop drop_of(const Values *vals, long sample, float drop, int64_t site)
{
    uint64_t seed = vals->seed, at = (uint64_t)site, step = (uint64_t)vals->step;
    Drop d;
    d.key[0] = (uint32_t)seed ^ (uint32_t)(at >> 32), d.key[1] = (uint32_t)(seed >> 32) ^ (uint32_t)at;
    d.sample = (uint32_t)sample;
    d.step[0] = (uint32_t)step, d.step[1] = (uint32_t)(step >> 32);
    d.threshold = (uint32_t)((double)drop * 4294967296.0);
    d.keep = 1.0f / (1.0f - drop);
    return d;
}

/* The factors 0 or 1/(1 - drop) of elements e .. e+n-1.  Blocks of 4 are made 16 at a time, word by word, so that the
 * rounds are vectorised; the bits are those of philox(). */
FN void drop_factors(float *to, const Drop *d, long e, long n)
{
    for (long first = e / 4; first * 4 < e + n; first += 16) {
        uint32_t c0[16], c1[16], c2[16], c3[16];
        for (int j = 0; j < 16; j++) {
            Philox c = {{(uint32_t)first + (uint32_t)j, d->sample, d->step[0], d->step[1]}};
            Philox r = philox(c, d->key[0], d->key[1]);
            c0[j] = r.v[0], c1[j] = r.v[1], c2[j] = r.v[2], c3[j] = r.v[3];
        }
        const uint32_t *word[4] = {c0, c1, c2, c3};
        long from = first * 4 > e ? first * 4 : e, end = first * 4 + 64 < e + n ? first * 4 + 64 : e + n;
        for (long i = from; i < end; i++)
            to[i - e] = word[i & 3][i / 4 - first] >= d->threshold ? d->keep : 0.0f;
    }
}
#endif
