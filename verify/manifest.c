/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest.c: is every file what MANIFEST says?  SHA-256 as in FIPS 180-4, section 6.2.
 */
#include "verify.h"
#include <string.h>

static uint32_t turned(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

/* The first 32 bits of the fractions of the cube roots of the first 64 primes, and of the square roots of the first 8. */
static const uint32_t cube[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
static const uint32_t square[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static void block(uint32_t *h, const unsigned char *at)
{
    uint32_t w[64];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)at[4 * t] << 24 | (uint32_t)at[4 * t + 1] << 16 | (uint32_t)at[4 * t + 2] << 8 | at[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = turned(w[t - 15], 7) ^ turned(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = turned(w[t - 2], 17) ^ turned(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], z = h[7];
    for (int t = 0; t < 64; t++) {
        uint32_t big1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25), choice = (e & f) ^ (~e & g);
        uint32_t big0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22), most = (a & b) ^ (a & c) ^ (b & c);
        uint32_t t1 = z + big1 + choice + cube[t] + w[t];
        z = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + big0 + most;
    }
    const uint32_t done[8] = {a, b, c, d, e, f, g, z};
    for (int i = 0; i < 8; i++)
        h[i] += done[i];
}

const char *file_hash(const Source *s)
{
    uint32_t h[8];
    unsigned char last[128] = {0};
    size_t whole = s->n / 64 * 64, left = s->n - whole, ends = left < 56 ? 64 : 128;
    memcpy(h, square, sizeof h);
    for (size_t at = 0; at < whole; at += 64)
        block(h, (const unsigned char *)s->at + at);
    memcpy(last, s->at + whole, left);
    last[left] = 0x80;
    for (int i = 0; i < 8; i++)
        last[ends - 1 - (size_t)i] = (unsigned char)((uint64_t)s->n * 8 >> 8 * i);
    for (size_t at = 0; at < ends; at += 64)
        block(h, last + at);
    return joined_text("%08x%08x%08x%08x%08x%08x%08x%08x", h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]);
}

int manifest_check(const char *dir)
{
    Source list, s;
    int n = 0;
    if (!source_read(&list, dir, "MANIFEST"))
        stop(NOT_READ, "%s has no MANIFEST: it is no folder of dpgen", dir);
    for (const char *at = list.at; *at; n++) {
        size_t length = strcspn(at, "\n");
        bool whole = length >= 67 && at[64] == ' ' && at[65] == ' ';
        const char *name = whole ? name_of(at + 66, length - 66) : "..";
        if (strstr(name, ".."))                             /* nor does a name lead out of the folder */
            stop(NOT_READ, "MANIFEST:%d: a line is a SHA-256, two spaces and a name", n + 1);
        if (!source_read(&s, dir, name))
            stop(FOREIGN, "%s is in MANIFEST and not in the folder", name);
        if (strncmp(file_hash(&s), at, 64))
            stop(FOREIGN, "%s differs from MANIFEST; --edited proves a folder that was edited", name);
        at += length + (at[length] == '\n');
    }
    return n;
}
