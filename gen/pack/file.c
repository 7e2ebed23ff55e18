/* SPDX-License-Identifier: Apache-2.0
 *
 * file.c: dpgen pack FILE.csv: a published instance, packed and proven.
 *
 * The file is that of google/minimalloc: a line `id,lower,upper,size`, then one block a line, alive while lower <= t < upper.
 * The answer repeats it with the column `offset`.  What is printed is checked by verify.c before.
 *
 * fails   status 3 at file:line:col for what cannot be read; 4 when it is proven that the blocks do not fit; 1 when the budget
 *         ends before either is known.
 */
#include "pack.h"
#include "budgets.h"
#include <errno.h>

enum { COLUMNS = 4 };
static const char *const columns[COLUMNS] = {"id", "lower", "upper", "size"};
enum { ID, LOWER, UPPER, SIZE };

typedef struct { const char *at; int n, line, col; } PackFileCell;
typedef struct { const char *id; Loc loc; int index; } Name;
typedef struct {
    int file, line;
    const char *at, *end;
    int column[COLUMNS];        /* which column of the file it is */
    int width;
    VEC(Block) block;
    VEC(Name) name;
    Name *by_id;
    Bytes sum;
} Csv;

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* The cells of the next line that is not empty; 0 at the end. */
static int next_line(Csv *c, PackFileCell *cell, int most)
{
    while (c->at < c->end) {
        const char *stop = memchr(c->at, '\n', (size_t)(c->end - c->at)), *from = c->at;
        stop = stop ? stop : c->end;
        c->at = stop < c->end ? stop + 1 : stop;
        c->line++;
        if (stop > from && stop[-1] == '\r')
            stop--;
        int n = 0;
        for (const char *p = from; p < stop || n > 0; p++) {
            const char *comma = p < stop ? memchr(p, ',', (size_t)(stop - p)) : NULL;
            const char *last = comma ? comma : stop;
            if (n < most)
                cell[n] = (PackFileCell){p, (int)(last - p), c->line, (int)(p - from) + 1};
            n++;
            p = last;
            if (!comma)
                break;
        }
        if (n > 0)
            return n;
    }
    return 0;
}

static Loc loc_of(const Csv *c, const PackFileCell *x)
{
    return (Loc){c->file, x->line, x->col};
}

static bool is(const PackFileCell *x, const char *word)
{
    return (size_t)x->n == strlen(word) && !memcmp(x->at, word, (size_t)x->n);
}

enum { MOST_COLUMNS = 16 };

static void read_head(Csv *c)
{
    PackFileCell cell[MOST_COLUMNS];
    c->width = next_line(c, cell, MOST_COLUMNS);
    if (c->width == 0)
        err((Loc){c->file, 1, 1}, "id,lower,upper,size", "the file is empty");
    for (int k = 0; k < COLUMNS; k++) {
        c->column[k] = -1;
        for (int i = 0; i < c->width && i < MOST_COLUMNS; i++)
            if (is(&cell[i], columns[k])) {
                if (c->column[k] >= 0)
                    err(loc_of(c, &cell[i]), NULL, "a second column %s", columns[k]);
                c->column[k] = i;
            }
        if (c->column[k] < 0)
            err(loc_of(c, &cell[0]), "id,lower,upper,size", "the first line names no column %s", columns[k]);
    }
}

static int64_t number(const Csv *c, const PackFileCell *x, const char *what)
{
    int64_t v = 0;
    int i = x->n > 1 && x->at[0] == '-';
    if (x->n == i)
        err(loc_of(c, x), "a whole number", "%s is empty", what);
    for (; i < x->n; i++) {
        int digit = x->at[i] - '0';
        if (digit < 0 || digit > 9)
            err((Loc){c->file, x->line, x->col + i}, NULL, "%s is not a whole number", what);
        if (v > (INT64_MAX / 8 - digit) / 10)
            err(loc_of(c, x), NULL, "%s is too large", what);
        v = v * 10 + digit;
    }
    return x->at[0] == '-' ? -v : v;
}

static void read_block(Csv *c, const PackFileCell *cell, int n)
{
    if (n != c->width)
        err(loc_of(c, &cell[0]), NULL, "%d columns; the first line has %d", n, c->width);
    const PackFileCell *id = &cell[c->column[ID]], *upper = &cell[c->column[UPPER]], *size = &cell[c->column[SIZE]];
    Block b = {.from = number(c, &cell[c->column[LOWER]], "lower"), .to = number(c, upper, "upper"),
               .size = number(c, size, "size")};
    if (id->n == 0)
        err(loc_of(c, id), NULL, "a block without an id");
    for (const char *p = id->at; p < id->at + id->n; p++)
        if (*p < 0x20 || *p > 0x7e)
            err((Loc){c->file, id->line, id->col + (int)(p - id->at)}, NULL, "an id is printable ASCII");
    if (b.to <= b.from)
        err(loc_of(c, upper), "lower < upper: the lifetime is [lower, upper)", "the block never lives");
    if (b.size <= 0)
        err(loc_of(c, size), NULL, "the size of a block is at least 1");
    if (b.size > INT64_MAX / 8 - c->sum)
        err(loc_of(c, size), NULL, "the sizes add up to more than 2^60 bytes");
    c->sum += b.size;
    *PUSH(&c->name) = (Name){strf("%.*s", id->n, id->at), loc_of(c, id), c->block.n};
    *PUSH(&c->block) = b;
}

ORDER(by_id, Name, strcmp(x->id, y->id), order_of(x->index, y->index))

static void sort_ids(Csv *c)
{
    Name *list = c->by_id = alloc(sizeof *list * (size_t)(c->name.n + 1));
    if (c->name.n)
        memcpy(list, c->name.at, sizeof *list * (size_t)c->name.n);
    SORT(list, c->name.n, by_id);
    for (int i = 1; i < c->name.n; i++)
        if (!strcmp(list[i].id, list[i - 1].id))
            err(list[i].loc, strf("line %d", list[i - 1].loc.line), "a second block with id %s", list[i].id);
}

static void read_csv(Csv *c, const char *path)
{
    size_t n;
    c->at = file_read(path, "an instance is a file with the columns id,lower,upper,size", &n);
    c->end = c->at + n;
    c->file = diag_file(path, c->at, n);
    read_head(c);
    PackFileCell cell[MOST_COLUMNS];
    for (int k; (k = next_line(c, cell, MOST_COLUMNS)) > 0;)
        read_block(c, cell, k);
    sort_ids(c);
}

/* A.1048576.csv: the number between two dots is the capacity; 0: there is none. */
static Bytes capacity_in(const char *path)
{
    const char *name = strrchr(path, '/');
    Bytes found = 0;
    for (const char *p = name ? name : path; (p = strchr(p, '.'));) {
        Bytes v = 0;
        size_t n = strspn(++p, "0123456789");
        for (size_t i = 0; i < n && n < 18; i++)
            v = v * 10 + (p[i] - '0');
        if (n > 0 && n < 18 && p[n] == '.')
            found = v;
    }
    return found;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static const char *status(const Packing *r)
{
    if (r->height <= r->live)
        return "optimal: as high as the bytes alive at once";
    if (r->height <= r->bound)
        return "optimal: searched, nothing lower exists";
    if (r->answer == PACK_FITS)
        return "fits";
    return strf("%snot proven: at most %.2f %% above the least", busy_stopped() ? "interrupted, " : "",
                100.0 * (double)(r->height - r->bound) / (double)r->bound);
}

static void print_summary(FILE *f, const char *path, const Csv *c, const Packing *r, Bytes capacity)
{
    fprintf(f, "%s: %d blocks, height %" PRId64 ", live bytes %" PRId64 ", lower bound %" PRId64,
            quote_terminal(path), c->block.n, r->height, r->live, r->bound);
    if (capacity)
        fprintf(f, ", capacity %" PRId64, capacity);
    fprintf(f, "; %s; %" PRId64 " steps\n", status(r), r->steps);
}

static void print_answer(const char *path, const char *out, const Csv *c, const Packing *r, Bytes capacity)
{
    if (out)
        file_rewrites(path);            /* all columns are in the answer */
    FILE *f = out ? file_begin(out) : stdout;
    fprintf(f, "id,lower,upper,size,offset\n");
    for (int i = 0; i < c->block.n; i++) {
        const Block *b = &c->block.at[i];
        fprintf(f, "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", c->name.at[i].id, b->from, b->to, b->size,
                b->offset);
    }
    if (out)
        file_end(f, out);
    else if (fflush(f) != 0 || ferror(f))
        fail(EXIT_RUN, "cannot write the standard output: %s", strerror(errno));
    print_summary(out ? stdout : stderr, path, c, r, capacity);
}

/* In the order of their ids: two alike have the same addresses whatever the order of the lines. */
static Packing pack_blocks(Csv *c, Bytes capacity)
{
    const int n = c->block.n;
    Block *b = alloc(sizeof *b * (size_t)(n + 1));
    for (int i = 0; i < n; i++)
        b[i] = c->block.at[c->by_id[i].index];
    Packing r = pack_fit(b, n, capacity, PACK_STEPS);
    for (int i = 0; i < n; i++)
        c->block.at[c->by_id[i].index].offset = b[i].offset;
    return r;
}

static int pack_file(const char *path, const char *out, Bytes capacity)
{
    Csv c = {0};
    read_csv(&c, path);
    capacity = capacity ? capacity : capacity_in(path);
    busy_with("packing");
    busy_heeds(true);
    Packing r = pack_blocks(&c, capacity);
    busy_end();
    if (capacity && r.answer == PACK_UNKNOWN && busy_stopped())
        fail(EXIT_STOPPED, "%s: interrupted: no packing in %" PRId64 " bytes was found yet; %" PRId64 " are alive at once, "
             "and %" PRId64 " would do", path, capacity, r.live, r.height);
    if (capacity && r.answer == PACK_CANNOT)
        fail(EXIT_NOFIT, "%s: proven not to fit in %" PRId64 " bytes: at least %" PRId64 " are needed%s", path, capacity,
             r.bound, r.live > capacity ? ", so many are alive at once" : "; every packing was searched");
    if (capacity && r.answer == PACK_UNKNOWN)
        fail(EXIT_RUN, "%s: no packing in %" PRId64 " bytes was found in %" PRId64 " steps, nor proven that there is none; %"
             PRId64 " are alive at once, and %" PRId64 " would do", path, capacity, r.steps, r.live, r.height);
    const char *fault = pack_fault(c.block.at, c.block.n, capacity ? capacity : r.height);
    if (fault)
        die("pack: %s", fault);
    print_answer(path, out, &c, &r, capacity);
    return busy_stopped() && r.answer == PACK_UNKNOWN ? EXIT_STOPPED : 0;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static NORETURN void misuse(const char *why)
{
    fail(EXIT_USAGE, "pack: %s; write dpgen pack FILE.csv [-o OUT.csv] [--capacity BYTES]", why);
}

typedef struct { const char *out, *capacity; } PackFileAsked;
static const Option table[] = {{"-o", "OUT.csv", REWRITES_FILE, offsetof(PackFileAsked, out)},
    {"--capacity", "BYTES", TAKES_TEXT, offsetof(PackFileAsked, capacity)}, {0}};

int pack_command(int argc, char **argv)
{
    PackFileAsked x = {0};
    Strs file = option_words(table, &x, argc, argv, "the file", 1, misuse);
    if (file.n == 0)
        misuse("which file");
    SizeFault fault = {"nothing fits into it", "write it like 1MiB"};
    double capacity = x.capacity ? size_read(x.capacity, size_bytes, "", "1MiB", &fault) : 0;
    if (x.capacity && capacity < 1)
        misuse(strf("--capacity: %s: %s", fault.why, fault.hint));
    return pack_file(file.at[0], x.out, (Bytes)capacity);
}
