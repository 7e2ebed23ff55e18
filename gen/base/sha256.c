/* SPDX-License-Identifier: Apache-2.0
 *
 * sha256.c: the two hashes of the generator.
 *
 * SHA-256 names what an emitted folder contains and which model, plan and profile it came from.  Source: FIPS PUB
 * 180-4, Secure Hash Standard, 2015, sections 4.1.2, 4.2.2, 5.1.1, 5.3.3, 6.2.  FNV-1a (64 bits) turns the name of an
 * operator into the key of its random numbers: it must be the same in every build for ever, and need not resist an
 * attacker. Source: Fowler, Noll, Vo, Eastlake, The FNV Non-Cryptographic Hash Algorithm, sections 2 and 5.
 *
 * Cost: one pass over the bytes.  Not handled: messages of 2^61 bytes and more.
 */
#include "base.h"

/* the first 32 bits of the fractional parts of the cube roots of the first 64 primes */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void block_add(uint32_t h[8], const unsigned char *block)
{
    uint32_t w[64];
    for (int i = 0; i < 16; i++, block += 4)
        w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 | block[3];
    for (int i = 16; i < 64; i++) {
        uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + (turn(x, 7) ^ turn(x, 18) ^ x >> 3) + w[i - 7] + (turn(y, 17) ^ turn(y, 19) ^ y >> 10);
    }
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], last = h[7];
    for (int i = 0; i < 64; i++) {
        uint32_t one = last + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
        uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        last = g, g = f, f = e, e = d + one;
        d = c, c = b, b = a, a = one + two;
    }
    const uint32_t end[8] = {a, b, c, d, e, f, g, last};
    for (int i = 0; i < 8; i++)
        h[i] += end[i];
}

void sha256_start(Sha256 *s)
{
    /* the first 32 bits of the fractional parts of the square roots of the first eight primes */
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    memset(s, 0, sizeof *s);
    memcpy(s->h, start, sizeof start);
}

void sha256_add(Sha256 *s, const void *data, size_t n)
{
    const unsigned char *p = data;
    while (n > 0) {
        size_t used = s->n % 64, part = n < 64 - used ? n : 64 - used;
        memcpy(s->block + used, p, part);
        s->n += part;
        p += part;
        n -= part;
        if (used + part == 64)
            block_add(s->h, s->block);
    }
}

/* A one bit, zeros to the end of a block less eight bytes, the length in bits. */
void sha256_end(Sha256 *s, char hex[65])
{
    static const unsigned char pad[64] = { 0x80 };
    uint64_t bits = 8 * s->n;
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(s, pad, 1 + (119 - s->n % 64) % 64);
    sha256_add(s, length, 8);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", (unsigned)s->h[i]);
}

uint64_t hash64(const char *text)
{
    uint64_t h = 0xcbf29ce484222325;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3;
    return h;
}
