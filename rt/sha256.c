/* SPDX-License-Identifier: Apache-2.0
 *
 * sha256.c: SHA-256 (FIPS 180-4).  About 200 MB/s a core in portable C.
 */
#include <string.h>
#include "sha256.h"

static const uint32_t constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

static uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void expand(uint32_t w[64], const unsigned char *block)
{
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
}

static void mix(uint32_t h[8], const unsigned char *block)
{
    uint32_t w[64];
    expand(w, block);
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], last = h[7];
    for (int i = 0; i < 64; i++) {
        uint32_t p = last + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + constant[i] + w[i];
        uint32_t q = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        last = g, g = f, f = e, e = d + p;
        d = c, c = b, b = a, a = p + q;
    }
    const uint32_t end[8] = {a, b, c, d, e, f, g, last};
    for (int i = 0; i < 8; i++)
        h[i] += end[i];
}

void digest_start(Digest *d)
{
    static const uint32_t start[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
    };
    memset(d, 0, sizeof *d);
    memcpy(d->h, start, sizeof start);
}

void digest_add(Digest *d, const void *data, size_t n)
{
    const unsigned char *at = data;
    while (n > 0) {
        size_t used = d->n % 64, k = 64 - used < n ? 64 - used : n;
        if (k == 64) {
            mix(d->h, at);
        } else {
            memcpy(d->block + used, at, k);
            if (used + k == 64)
                mix(d->h, d->block);
        }
        d->n += k;
        at += k;
        n -= k;
    }
}

void digest_end(Digest *d, char hex[65])
{
    static const char digit[] = "0123456789abcdef";
    uint64_t bits = d->n * 8;
    unsigned char tail[8];
    for (int i = 0; i < 8; i++)
        tail[i] = (unsigned char)(bits >> (56 - 8 * i));
    digest_add(d, "\x80", 1);
    while (d->n % 64 != 56)
        digest_add(d, "", 1);
    digest_add(d, tail, 8);
    for (int i = 0; i < 64; i++)
        hex[i] = digit[d->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = 0;
}

void digest_of(const void *data, size_t n, char hex[65])
{
    Digest d;
    digest_start(&d);
    digest_add(&d, data, n);
    digest_end(&d, hex);
}
