/* SPDX-License-Identifier: Apache-2.0
 *
 * zip.c: the files of a zip archive, where they are stored as they are (method 0), as torch.export writes them.
 *
 * Source: PKWARE, APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.14 to 4.3.16, with the 64-bit records.  The directory at the end
 * is read, and every number of it is checked against the bytes that are there.  CRC-32 of each file is checked.
 */
#include "net.h"

enum { END = 0x06054b50, END_64 = 0x06064b50, ENTRY = 0x02014b50, LOCAL = 0x04034b50, END_SIZE = 22, ENTRY_SIZE = 46 };
typedef struct { const Net *g; const unsigned char *at; uint64_t n; } Zip;

/* A fuzzer would never come behind the sums. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { TRUSTED = 1 };
#else
enum { TRUSTED = 0 };
#endif

static NORETURN void broken(const Zip *z, const char *why)
{
    net_refuse(z->g, "this is no zip archive of torch.export, or it is cut short: %s", why);
}

static void check(const Zip *z, uint64_t at, uint64_t bytes)
{
    if (at > z->n || bytes > z->n - at)
        broken(z, "a record lies behind the end");
}

static uint64_t number(const Zip *z, uint64_t at, int bytes)
{
    check(z, at, (uint64_t)bytes);
    return number_little(z->at + at, bytes);
}

static uint32_t crc_of(const unsigned char *at, uint64_t n)
{
    uint32_t table[256], crc = 0xffffffff;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
    }
    for (uint64_t i = 0; i < n; i++)
        crc = crc >> 8 ^ table[(crc ^ at[i]) & 0xff];
    return ~crc;
}

/* The record at the end; behind it there may be a comment. */
static uint64_t find_end(const Zip *z)
{
    for (uint64_t back = END_SIZE; back <= z->n && back <= END_SIZE + 0xffff; back++)
        if (number(z, z->n - back, 4) == END)
            return z->n - back;
    broken(z, "there is no directory");
}

/* Sizes and the place of a file that do not fit into 32 bits stand in an extra field, in this order. */
static void widen(const Zip *z, uint64_t extra, uint64_t bytes, uint64_t *to[3])
{
    for (uint64_t at = extra, end = extra + bytes; at < end && end - at >= 4;) {
        uint64_t id = number(z, at, 2), n = number(z, at + 2, 2), next = at + 4 + n, from = at + 4;
        for (int i = 0; id == 1 && i < 3; i++)
            if (*to[i] == 0xffffffff && next <= end && next - from >= 8) {
                *to[i] = number(z, from, 8);
                from += 8;
            }
        at = next;
    }
}

static Packed read_entry(const Zip *z, uint64_t at, uint64_t *next)
{
    if (number(z, at, 4) != ENTRY)
        broken(z, "its directory is damaged");
    uint64_t method = number(z, at + 10, 2), crc = number(z, at + 16, 4), packed = number(z, at + 20, 4);
    uint64_t size = number(z, at + 24, 4), name = number(z, at + 28, 2), extra = number(z, at + 30, 2);
    uint64_t place = number(z, at + 42, 4);
    uint64_t *wide[] = {&size, &packed, &place};
    check(z, at + ENTRY_SIZE, name);
    widen(z, at + ENTRY_SIZE + name, extra, wide);
    *next = at + ENTRY_SIZE + name + extra + number(z, at + 32, 2);
    Packed p = {.name = strf("%.*s", (int)name, (const char *)z->at + at + ENTRY_SIZE)};
    if (method != 0 || packed != size)
        net_refuse(z->g, "file '%s' of the archive is compressed, and torch.export stores files as they are", p.name);
    if (place > z->n || number(z, place, 4) != LOCAL)
        broken(z, "a file does not begin where the directory says");
    uint64_t from = place + 30 + number(z, place + 26, 2) + number(z, place + 28, 2);
    if (from > z->n || size > z->n - from)
        broken(z, "a file lies behind the end");
    p.at = z->at + from;
    p.n = (size_t)size;
    if (crc_of(p.at, size) != crc && !TRUSTED)
        net_refuse(z->g, "file '%s' of the archive is damaged: its CRC-32 is another one", p.name);
    return p;
}

Archive zip_open(const Net *g, const unsigned char *at, size_t n)
{
    Zip z = {g, at, n};
    Archive a = {0};
    uint64_t end = find_end(&z), files = number(&z, end + 10, 2), from = number(&z, end + 16, 4);
    bool wide = files == 0xffff || from == 0xffffffff;
    if (wide && end >= 20 && number(&z, end - 20, 4) == 0x07064b50) {
        uint64_t record = number(&z, end - 12, 8);
        if (record > n || number(&z, record, 4) != END_64)
            broken(&z, "its directory of 64 bits is damaged");
        files = number(&z, record + 32, 8);
        from = number(&z, record + 48, 8);
    }
    for (uint64_t i = 0; i < files; i++)
        *PUSH(&a) = read_entry(&z, from, &from);
    return a;
}

const Packed *zip_find(const Archive *a, const char *name)
{
    for (int i = 0; i < a->n; i++) {
        const char *slash = strchr(a->at[i].name, '/');
        if (slash && !strcmp(slash + 1, name))
            return &a->at[i];
    }
    return NULL;
}
