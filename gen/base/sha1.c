/* SPDX-License-Identifier: Apache-2.0
 *
 * sha1.c: two hashes beside SHA-256, which dpgen shares with its jobs (rt/sha256.c).
 *
 * SHA-1 is what SPDX 2.3 wants beside any other sum of a file; nothing here relies on it.  Source: FIPS PUB 180-4, Secure Hash
 * Standard, 2015, sections 4.1.1, 4.2.1, 5.1.1, 5.3.1, 6.1.  FNV-1a (64 bits) turns the name of an operator into the key of its
 * random numbers: it must be the same in every build for ever, and need not resist an attacker.  Source: Fowler, Noll, Vo,
 * Eastlake, The FNV Non-Cryptographic Hash Algorithm, sections 2 and 5.  Cost: one pass over the bytes.
 */
#include "base.h"

static uint32_t turn(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

static void block(uint32_t h[5], const unsigned char *at)
{
    uint32_t w[80], v[5];
    memcpy(v, h, sizeof v);
    for (int t = 0; t < 80; t++)
        w[t] = t < 16 ? (uint32_t)at[4 * t] << 24 | (uint32_t)at[4 * t + 1] << 16 | (uint32_t)at[4 * t + 2] << 8 | at[4 * t + 3]
                      : turn(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    for (int t = 0; t < 80; t++) {
        static const uint32_t k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
        uint32_t b = v[1], c = v[2], d = v[3];
        uint32_t f = t < 20 ? (b & c) | (~b & d) : t < 40 || t >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
        uint32_t next = turn(v[0], 5) + f + v[4] + k[t / 20] + w[t];
        v[4] = d;
        v[3] = c;
        v[2] = turn(b, 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (int i = 0; i < 5; i++)
        h[i] += v[i];
}

void sha1_of(const void *data, size_t n, char hex[41])
{
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    unsigned char last[128] = {0};
    size_t whole = n / 64 * 64, rest = n - whole, room = rest < 56 ? 64 : 128;
    for (size_t i = 0; i < whole; i += 64)
        block(h, (const unsigned char *)data + i);
    if (rest)
        memcpy(last, (const unsigned char *)data + whole, rest);
    last[rest] = 0x80;
    for (size_t i = 0; i < 8; i++)
        last[room - 1 - i] = (unsigned char)((uint64_t)n * 8 >> (8 * i));
    for (size_t i = 0; i < room; i += 64)
        block(h, last + i);
    for (int i = 0; i < 5; i++)
        snprintf(hex + 8 * i, 9, "%08x", (unsigned)h[i]);
}

uint64_t hash64(const char *text)
{
    uint64_t h = 0xcbf29ce484222325;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3;
    return h;
}
