/* SPDX-License-Identifier: Apache-2.0
 *
 * mutate.c: a file of text, slightly wrong.
 *
 *     mutate SEED FILE [OTHER] > FILE'
 *
 * One to eight changes: bytes are flipped, taken out, doubled, or replaced by what matters to YAML; numbers become other
 * numbers, the large and the negative too; words change places; lines are taken out, doubled, moved, indented; pieces of
 * OTHER are put in.  Blind to what the text means, so that nothing is spared.  Method of Miller, Fredriksen, So, An
 * Empirical Study of the Reliability of UNIX Utilities, 1990, with the mutations of AFL's first stages (Zalewski, 2013).
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 20 };

static uint64_t state;
static char text[ROOM + 64], other[ROOM], hold[ROOM];
static size_t n, others;

static uint64_t draw(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static size_t below(size_t k) { return k ? (size_t)(draw() % k) : 0; }

static size_t read_file(const char *path, char *to)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(2);
    }
    size_t k = fread(to, 1, ROOM / 2, file);
    fclose(file);
    return k;
}

/* text[from, from + old) becomes k bytes of `with`. */
static void replace(size_t from, size_t old, const char *with, size_t k)
{
    if (from + old > n || n - old + k > ROOM)
        return;
    memmove(text + from + k, text + from + old, n - from - old);
    memcpy(text + from, with, k);
    n = n - old + k;
}

/* The line, the word or the number around or behind a random place: its start, and its length. */
static size_t line_at(size_t *k)
{
    size_t from = below(n), to = from;
    while (from && text[from - 1] != '\n')
        from--;
    while (to < n && text[to++] != '\n')
        continue;
    *k = to - from;
    return from;
}

static size_t run_at(int (*kind)(int), size_t *k)
{
    size_t from = below(n), tried = 0;
    while (tried++ < n && !kind((unsigned char)text[from]))
        from = (from + 1) % n;
    while (from && kind((unsigned char)text[from - 1]))
        from--;
    size_t to = from;
    while (to < n && kind((unsigned char)text[to]))
        to++;
    *k = to - from;
    return from;
}

static void flip(void) { text[below(n)] ^= (char)(1 << below(8)); }

static void sign(void)
{
    static const char signs[] = "{}[],:#&*!|>'\"%@`-? \t\n\r\0\\_.0/+()<~=\x7f\x80\xff\xc3\xe2";
    replace(below(n), below(2), &signs[below(sizeof signs - 1)], 1);
}

static void number(void)
{
    static const char *const list[] = {
        "0", "1", "-1", "2", "3", "7", "65536", "2147483648", "4294967296", "9223372036854775807", "-9223372036854775808",
        "1e9", "1e400", "1e-400", "0.5", "-0.0", "4096", "1048576", "281474976710656", "D", "1/0", "2*B", "((1))", "16", "33",
    };
    size_t k, from = run_at(isdigit, &k);
    const char *with = list[below(sizeof list / sizeof *list)];
    replace(from, k, with, strlen(with));
}

static void word(void)
{
    size_t k, from = run_at(isalpha, &k), m, at = run_at(isalpha, &m);
    memcpy(hold, text + at, m);
    replace(from, k, hold, m);
}

static void cut_line(void) { size_t k, from = line_at(&k); replace(from, k, "", 0); }

static void move_line(void)
{
    size_t k, from = line_at(&k), m, to;
    memcpy(hold, text + from, k);
    if (draw() & 1)
        replace(from, k, "", 0);
    to = line_at(&m);
    replace(to, 0, hold, k);
}

static void indent(void)
{
    size_t k, from = line_at(&k);
    replace(from, text[from] == ' ' ? below(3) : 0, "    ", below(4));
}

static void piece(void)
{
    size_t from = below(n), k = below(64) + 1, to = below(n);
    if (from + k > n)
        k = n - from;
    memcpy(hold, text + from, k);
    replace(to, draw() & 1 ? below(k) : 0, hold, k);
}

static void foreign(void)
{
    size_t from = below(others), k = 1 + below(200);
    replace(below(n), below(40), other + from, from + k > others ? others - from : k);
}

static void end(void) { n = below(n) + 1; }

int main(int argc, char **argv)
{
    static void (*const list[])(void) = {
        flip, sign, sign, number, number, number, number, word, word, word, cut_line, cut_line, move_line, indent, piece,
        foreign,
    };
    if (argc < 3) {
        fprintf(stderr, "usage: mutate SEED FILE [OTHER]\n");
        return 2;
    }
    state = strtoull(argv[1], NULL, 0) * 0x2545f4914f6cdd1du;
    n = read_file(argv[2], text);
    others = argc > 3 ? read_file(argv[3], other) : 0;
    for (size_t i = 1 + below(8); i && n > 1; i--)
        list[below(sizeof list / sizeof *list)]();
    if (n > 1 && !below(50))
        end();
    fwrite(text, 1, n, stdout);
    return 0;
}
