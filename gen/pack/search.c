/* SPDX-License-Identifier: Apache-2.0
 *
 * search.c: do these blocks fit in this capacity?  Exact search.
 *
 * Problem: static memory allocation, also called dynamic storage allocation.  Each block has a lifetime and a size; two that
 * are alive together must not share a byte.  NP-complete (Garey and Johnson, 1979, SR2).
 *
 * Known: MiniMalloc (M. D. Moffitt, ASPLOS 2023) places blocks in ascending address, each at the lowest place that the blocks
 * beneath leave ("canonical" solutions).  It infers per section of time whether the rest still fits, and splits where no
 * block crosses.  The next block follows a fixed order.
 *
 * Here the same canonical solutions are searched another way round.  The question is not "which block is next" but "which
 * block lies on the floor of this section".  Time is cut into sections, one for each maximal set of blocks that are alive
 * together.  A section has a floor, below which nothing more can go.  In a section that is a local minimum, exactly one of
 * two things is true. Some block of it lies on the floor, and then its address is known.  Or none does, and the floor of that
 * section alone rises to the lowest address that a block there can have.  The slack of a section is its capacity, less its
 * floor, less the blocks still to go there; it pays for every rise.  The section with fewest answers is asked first, then the
 * one with least slack.  Instances that are packed to the last byte, which are hard for a fixed order, become nearly forced.
 *
 *   floors    a block starts at or above the highest floor it covers; a section's floor is at least the lowest such start
 *             of its blocks; to a fixed point
 *   rise      the lowest start of a block that is not on the floor: its highest floor, or, where that is this floor, the
 *             top of a block that carries it, which cannot be one of this section
 *   parts     blocks that share no section with others are a question of their own; the smaller part first
 *   memory    parts that failed, by the set of blocks and the floors: they are met again by other ways
 *   twins     of blocks alike in lifetime and size only the first is asked
 *   failures  a section that often had no room is asked earlier (after the weighted degree of F. Boussemart, F. Hemery,
 *             C. Lecoutre, L. Sais, Boosting Systematic Search by Weighting Constraints, ECAI 2004)
 *
 * Complete: of all solutions take one where no block can sink.  In a section that is asked, its lowest block is on the floor,
 * or is carried at or above the rise.  Both ways are searched, and the rest is again such a solution.  A local minimum always
 * exists: the lowest floor of all.
 *
 * Cost: a step is one look at a block in a section.  Not handled: alignment other than by sizes; blocks with a given address.
 */
#include "pack.h"
#include "budgets.h"

typedef struct { uint64_t a, b; } Hash;
typedef struct { int section; Bytes floor; } Undo;

struct PackSearch {
    Block *block;
    int n, sections;
    int *first, *last;          /* sections of a block */
    Bytes capacity;
    Bytes *floor;               /* [section] */
    Bytes *rest;                /* [section]: bytes still to go there */
    Bytes *low;                 /* [block]: highest floor it covers */
    Bytes *least;               /* [section]: scratch */
    int *who;                   /* the blocks to place; a part is a slice */
    int *count;                 /* [section]: blocks that may lie on the floor; -1: one hangs over a lower floor elsewhere */
    int *lies, *hangs;          /* [section]: how many more do than in the section before */
    int *same_floor, *next;     /* [section]: the last one with its floor; the next one on whose floor nothing lies or hangs */
    int64_t looks;              /* of one pass over all blocks */
    int *reach;                 /* [section]: scratch of split */
    int64_t *failures;          /* [section]: how often it had no room, and 1 */
    Ints ask;                   /* stack of candidates */
    VEC(Undo) undo;
    Hash *failed;
    uint64_t mask;              /* entries of failed, less 1 */
    int luck, depth;
    int64_t steps, most;
};

/* ---- sections ---------------------------------------------------------------------------------------------------- */

typedef struct { int64_t at; int block; bool end; } PackEvent;

ORDER(by_time, PackEvent, order_of(x->at, y->at), order_of(y->end, x->end), order_of(x->block, y->block))

/* ---- floors ------------------------------------------------------------------------------------------------------ */

static void raise(PackSearch *w, int section, Bytes to)
{
    *PUSH(&w->undo) = (Undo){section, w->floor[section]};
    w->floor[section] = to;
}

static void undo(PackSearch *w, int mark)
{
    while (w->undo.n > mark) {
        Undo u = w->undo.at[--w->undo.n];
        w->floor[u.section] = u.floor;
    }
}

typedef struct { int from, to, a, b; } Slice;       /* who[from .. to), sections a .. b */

static Slice slice(const PackSearch *w, int from, int to)
{
    Slice s = {from, to, w->sections, -1};
    for (int i = from; i < to; i++) {
        s.a = w->first[w->who[i]] < s.a ? w->first[w->who[i]] : s.a;
        s.b = w->last[w->who[i]] > s.b ? w->last[w->who[i]] : s.b;
    }
    return s;
}

/* A block on its highest floors: all of it, or it hangs over lower ones. */
static void lie_down(PackSearch *w, int j)
{
    Bytes low = 0;
    for (int s = w->first[j]; s <= w->last[j]; s = w->same_floor[s] + 1)
        low = w->floor[s] > low ? w->floor[s] : low;
    w->low[j] = low;
    if (w->same_floor[w->first[j]] >= w->last[j]) {
        w->lies[w->first[j]]++;
        w->lies[w->last[j] + 1]--;
        return;
    }
    for (int s = w->first[j]; s <= w->last[j]; s = w->same_floor[s] + 1)
        if (w->floor[s] == low) {
            w->hangs[s]++;
            w->hangs[(w->same_floor[s] < w->last[j] ? w->same_floor[s] : w->last[j]) + 1]--;
        }
}

/* Blocks that lie on each floor, in `count`.  `next`: the sections where none does, nor hangs.  False: there are none. */
static bool find_bare(PackSearch *w, Slice x)
{
    int lies = 0, hangs = 0, bare = x.b + 1;
    for (int s = x.a; s <= x.b; s++) {
        lies += w->lies[s];
        hangs += w->hangs[s];
        w->count[s] = hangs ? -1 : lies;
    }
    for (int s = x.b; s >= x.a; s--) {
        bare = w->count[s] == 0 && w->rest[s] > 0 ? s : bare;
        w->next[s] = bare;
        w->least[s] = INT64_MAX;
    }
    w->next[x.b + 1] = x.b + 1;
    return bare <= x.b;
}

/* The lowest start of every block, and floors that follow; did one rise? */
static bool settle_once(PackSearch *w, Slice x)
{
    size_t sections = (size_t)(x.b - x.a + 2);
    memset(&w->lies[x.a], 0, sizeof *w->lies * sections);
    memset(&w->hangs[x.a], 0, sizeof *w->hangs * sections);
    /* Where the floor is the same from each section on. */
    for (int s = x.b; s >= x.a; s--)
        w->same_floor[s] = s < x.b && w->floor[s + 1] == w->floor[s] ? w->same_floor[s + 1] : s;
    w->looks = 0;
    for (int i = x.from; i < x.to; i++) {
        int j = w->who[i];
        lie_down(w, j);
        w->looks += w->last[j] - w->first[j] + 1;
    }
    w->steps += w->looks;
    if (!find_bare(w, x))
        return false;
    for (int i = x.from; i < x.to; i++)
        for (int j = w->who[i], s = w->next[w->first[j]]; s <= w->last[j]; s = w->next[s + 1])
            w->least[s] = w->low[j] < w->least[s] ? w->low[j] : w->least[s];
    for (int s = w->next[x.a]; s <= x.b; s = w->next[s + 1])
        raise(w, s, w->least[s]);
    return true;
}

/* False: some section has not enough room left. */
static bool settle(PackSearch *w, Slice x)
{
    /* Bytes still to go to each section. */
    memset(&w->rest[x.a], 0, sizeof *w->rest * (size_t)(x.b - x.a + 2));
    for (int i = x.from; i < x.to; i++) {
        int j = w->who[i];
        w->rest[w->first[j]] += w->block[j].size;
        w->rest[w->last[j] + 1] -= w->block[j].size;
    }
    for (int s = x.a + 1; s <= x.b; s++)
        w->rest[s] += w->rest[s - 1];
    while (settle_once(w, x))
        continue;
    for (int s = x.a; s <= x.b; s++)
        if (w->rest[s] > 0 && w->floor[s] + w->rest[s] > w->capacity) {
            w->failures[s]++;
            return false;
        }
    return true;
}

/* ---- what failed before ------------------------------------------------------------------------------------------ */

uint64_t pack_mix(uint64_t x)         /* splitmix64 */
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* Two sums of 64 bits each: nobody will see two parts share both. */
static Hash hash_of(const PackSearch *w, Slice x)
{
    Hash h = {1, 1};
    for (int i = x.from; i < x.to; i++) {
        h.a += pack_mix((uint64_t)w->who[i] * 2 + 1);
        h.b += pack_mix((uint64_t)w->who[i] * 2 + 0x5851f42d4c957f2d);
    }
    for (int s = x.a; s <= x.b; s++)
        if (w->rest[s] > 0) {
            uint64_t v = pack_mix((uint64_t)w->floor[s]) + (uint64_t)s;
            h.a += pack_mix(v + 0x9e3779b97f4a7c15);
            h.b += pack_mix(v ^ 0xd1342543de82ef95);
        }
    return h;
}

/* ---- which section to ask ---------------------------------------------------------------------------------------- */

static bool covers(const PackSearch *w, int j, int s)
{
    return w->first[j] <= s && s <= w->last[j];
}

/* The blocks that may lie on the floor of s: how many, and the first and last section that one of them covers. */
typedef struct { int n, a, b; } Lying;

static Lying lying(const PackSearch *w, Slice x, int s)
{
    Lying all = {0, s, s};
    for (int i = x.from; i < x.to; i++) {
        int j = w->who[i];
        if (!covers(w, j, s) || w->low[j] > w->floor[s])
            continue;
        all.n++;
        all.a = w->first[j] < all.a ? w->first[j] : all.a;
        all.b = w->last[j] > all.b ? w->last[j] : all.b;
    }
    return all;
}

/* The lowest top of a block that could carry one of them without being in section s: all of them cover s, so such a block is
 * on one side of it and reaches the widest of them there. */
static Bytes carried(const PackSearch *w, Slice x, Lying all, int s)
{
    Bytes best = INT64_MAX;
    for (int i = x.from; i < x.to; i++) {
        int k = w->who[i];
        bool beside = (w->last[k] < s && w->last[k] >= all.a) || (w->first[k] > s && w->first[k] <= all.b);
        if (beside && w->low[k] + w->block[k].size < best)
            best = w->low[k] + w->block[k].size;
    }
    return best;
}

/* To where the floor of s rises when nothing lies on it; above `most`: not possible. */
static Bytes rise_of(PackSearch *w, Slice x, int s, Bytes most)
{
    Bytes best = INT64_MAX;
    for (int i = x.from; i < x.to; i++) {
        int j = w->who[i];
        if (covers(w, j, s) && w->low[j] > w->floor[s] && w->low[j] < best)
            best = w->low[j];
    }
    w->steps += (x.to - x.from) / 2;
    if (most <= w->floor[s])
        return best;
    Lying all = lying(w, x, s);
    Bytes top = carried(w, x, all, s);
    w->steps += all.n * ((x.to - x.from) / 4);
    return top < best ? top : best;
}

typedef struct { int section, ways; Bytes slack, rise; } PackQuestion;  /* rise -1: something must lie on the floor */

static bool easier(const PackSearch *w, const PackQuestion *a, const PackQuestion *b)
{
    if (w->luck % PACK_STYLES == 2 && w->floor[a->section] != w->floor[b->section])
        return w->floor[a->section] < w->floor[b->section];
    int64_t x = a->ways * w->failures[b->section], y = b->ways * w->failures[a->section];
    if (a->ways <= 1 || b->ways <= 1 || x == y)
        return a->ways != b->ways ? a->ways < b->ways : a->slack < b->slack;
    return x < y;
}

static PackQuestion question(PackSearch *w, Slice x)
{
    PackQuestion best = {.section = -1};
    w->steps += w->looks;
    for (int s = x.a; s <= x.b; s++) {
        if (w->rest[s] == 0 || w->count[s] < 0)
            continue;
        PackQuestion q = {s, w->count[s], w->capacity - w->floor[s] - w->rest[s], -1};
        if (best.section >= 0 && !easier(w, &q, &best))
            continue;
        Bytes rise = rise_of(w, x, s, w->floor[s] + q.slack);
        if (rise - w->floor[s] <= q.slack) {
            q.rise = rise;
            q.ways++;
        }
        if (best.section < 0 || easier(w, &q, &best))
            best = q;
    }
    return best;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* Which block is tried first, in fixed point; from the second round on with luck: up to twice as heavy. */
static int64_t weight(const PackSearch *w, int j)
{
    const Block *b = &w->block[j];
    int64_t length = w->last[j] - w->first[j] + 1;
    int64_t favour = 1024 + (w->luck < PACK_STYLES ? 0 : (int64_t)(pack_mix((uint64_t)w->luck << 32 | (uint64_t)j) % 1024));
    switch (w->luck % PACK_STYLES) {
    case 0:  return b->size > INT64_MAX / 2048 ? b->size : b->size * favour;
    case 1:  return b->size > INT64_MAX / 2048 / length ? b->size : b->size * length * favour;
    default: return length * favour;
    }
}

static bool twins(const PackSearch *w, int i, int j)
{
    return w->first[i] == w->first[j] && w->last[i] == w->last[j] && w->block[i].size == w->block[j].size;
}

/* The blocks that may lie on the floor of s, the heaviest first, on the stack `ask`. */
static void push_candidates(PackSearch *w, Slice x, int s)
{
    int base = w->ask.n;
    for (int i = x.from; i < x.to; i++) {
        int j = w->who[i];
        bool again = !covers(w, j, s) || w->low[j] != w->floor[s];
        for (int k = base; k < w->ask.n && !again; k++)
            if (twins(w, w->ask.at[k], j)) {
                w->ask.at[k] = j < w->ask.at[k] ? j : w->ask.at[k];
                again = true;
            }
        if (!again)
            *PUSH(&w->ask) = j;
    }
    for (int i = base + 1; i < w->ask.n; i++)
        for (int k = i; k > base; k--) {
            int a = w->ask.at[k - 1], b = w->ask.at[k];
            Bytes wa = weight(w, a), wb = weight(w, b);
            if (wa > wb || (wa == wb && a < b))
                break;
            w->ask.at[k - 1] = b;
            w->ask.at[k] = a;
        }
}

static PackAnswer solve(PackSearch *w, int from, int to);

/* Blocks reach from section to section: those left of a section that none crosses, and those right of it. */
static int split(PackSearch *w, Slice x)
{
    for (int s = x.a; s <= x.b; s++)
        w->reach[s] = s;
    for (int i = x.from; i < x.to; i++) {
        int j = w->who[i];
        if (w->reach[w->first[j]] < w->last[j])
            w->reach[w->first[j]] = w->last[j];
    }
    int end = w->reach[x.a];
    for (int s = x.a; s <= end; s++)
        end = w->reach[s] > end ? w->reach[s] : end;
    if (end == x.b)
        return x.to;
    int cut = x.from;
    for (int i = x.from; i < x.to; i++) {
        int j = w->who[i];
        if (w->last[j] > end)
            continue;
        w->who[i] = w->who[cut];
        w->who[cut++] = j;
    }
    return cut;
}

static PackAnswer solve_both(PackSearch *w, Slice x, int cut)
{
    bool left = cut - x.from <= x.to - cut;
    PackAnswer first = left ? solve(w, x.from, cut) : solve(w, cut, x.to);
    return first != PACK_FITS ? first : left ? solve(w, cut, x.to) : solve(w, x.from, cut);
}

/* Block j on the floor h, and the rest. */
static PackAnswer solve_with(PackSearch *w, Slice x, int j, Bytes h)
{
    int i = x.from;
    while (w->who[i] != j)
        i++;
    w->who[i] = w->who[x.to - 1];
    w->who[x.to - 1] = j;
    w->block[j].offset = h;
    for (int s = w->first[j]; s <= w->last[j]; s++)
        raise(w, s, h + w->block[j].size);
    return solve(w, x.from, x.to - 1);
}

static PackAnswer branch(PackSearch *w, Slice x)
{
    PackQuestion q = question(w, x);
    if (q.section < 0)
        die("pack: no section is a local minimum");
    Bytes h = w->floor[q.section];
    int base = w->ask.n, mark = w->undo.n;
    PackAnswer answer = PACK_CANNOT;
    push_candidates(w, x, q.section);
    for (int end = w->ask.n, i = base; i < end && answer == PACK_CANNOT; i++) {
        answer = solve_with(w, x, w->ask.at[i], h);
        undo(w, mark);
    }
    w->ask.n = base;
    if (answer == PACK_CANNOT && q.rise >= 0) {
        raise(w, q.section, q.rise);
        answer = solve(w, x.from, x.to);
    }
    return answer;
}

/* The blocks who[from .. to) above the floors as they are. */
static PackAnswer solve(PackSearch *w, int from, int to)
{
    if (from == to)
        return PACK_FITS;
    if (w->steps > w->most || w->depth > PACK_DEPTH)
        return PACK_UNKNOWN;
    Slice x = slice(w, from, to);
    int cut = split(w, x), mark = w->undo.n;
    if (cut < to)
        return solve_both(w, x, cut);
    PackAnswer answer = PACK_CANNOT;
    if (settle(w, x)) {
        Hash h = hash_of(w, x), *known = &w->failed[pack_mix(h.a) & w->mask];
        if (known->a != h.a || known->b != h.b) {
            w->depth++;
            answer = branch(w, x);
            w->depth--;
            if (answer == PACK_CANNOT)
                *known = h;
        }
    }
    undo(w, mark);
    return answer;
}

PackSearch *pack_search(Block *b, int n, Bytes capacity)
{
    PackSearch *w = alloc(sizeof *w);
    size_t blocks = (size_t)n + 1;
    *w = (PackSearch){.block = b, .n = n, .capacity = capacity};
    w->first = alloc(sizeof(int) * blocks);
    w->last = alloc(sizeof(int) * blocks);
    /* A set of blocks alive together is maximal where an end follows a start. */
    PackEvent *e = alloc(sizeof *e * 2 * (size_t)w->n);
    for (int i = 0; i < w->n; i++) {
        e[2 * i] = (PackEvent){w->block[i].from, i, false};
        e[2 * i + 1] = (PackEvent){w->block[i].to, i, true};
    }
    SORT(e, 2 * w->n, by_time);
    for (int i = 0; i < 2 * w->n; i++) {
        w->sections += i > 0 && e[i].end && !e[i - 1].end;
        if (e[i].end)
            w->last[e[i].block] = w->sections - 1;
        else
            w->first[e[i].block] = w->sections;
    }
    w->low = alloc(sizeof(Bytes) * blocks);
    w->who = alloc(sizeof(int) * blocks);
    w->floor = alloc(sizeof(Bytes) * blocks);           /* sections are at most as many as blocks */
    w->rest = alloc(sizeof(Bytes) * blocks);
    w->least = alloc(sizeof(Bytes) * blocks);
    w->count = alloc(sizeof(int) * blocks);
    w->lies = alloc(sizeof(int) * blocks);
    w->hangs = alloc(sizeof(int) * blocks);
    w->same_floor = alloc(sizeof(int) * blocks);
    w->next = alloc(sizeof(int) * blocks);
    w->reach = alloc(sizeof(int) * blocks);
    w->failures = alloc(sizeof(int64_t) * blocks);
    for (int s = 0; s < w->sections; s++)
        w->failures[s] = 1;
    w->mask = 255;
    while (w->mask + 1 < MOST_STATES && w->mask < (uint64_t)n * (uint64_t)n * 8)
        w->mask = 2 * w->mask + 1;
    w->failed = alloc(sizeof(Hash) * (w->mask + 1));
    return w;
}

PackAnswer pack_try(PackSearch *w, int luck, int64_t steps, int64_t *done)
{
    for (int i = 0; i < w->n; i++)
        w->who[i] = i;
    w->luck = luck;
    w->steps = 0;
    w->most = steps;
    PackAnswer answer = solve(w, 0, w->n);
    *done += w->steps;
    return answer;
}
