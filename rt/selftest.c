/* SPDX-License-Identifier: Apache-2.0
 *
 * selftest.c: --selftest, each distinct call of a step once against f64 on the host.
 *
 * A stage's source tells of every call (hooks.h).  The first one with certain numbers is looked at: its operands are copied to
 * the host, the call runs where it always runs, its results are copied behind it, and some elements of each are compared with
 * answers_*.c, which compute them one by one from the operands, in f64.  So a call is tried as the job makes it: its shape, its
 * algorithm, its addresses, with results that lie on operands.
 *
 * A result may differ by one rounding to its type, by 2^-19 of the sum of its terms' sizes, for sums in f32, in bf16 by a
 * rounding of each term as often as the library rounds inside, and in tf32 by the roundings of a product's factors.  An answer
 * costs what its sum has terms: seconds in all, whatever the model.  Not handled: calls without an answer, which are named.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "real.h"
#include "selftest.h"

enum { SEEN = 512, SAMPLES = 64 };
#define NARROW (sizeof(real) != sizeof(float))
static const double f32_last = 0x1p-22, real_last = NARROW ? 0x1p-8 : 0x1p-22,
    real_round = NARROW ? 0x1p-8 : 0;

typedef struct { char text[240]; } Line;
typedef struct {
    Line seen[SEEN], unknown[SEEN];
    int calls, unknowns, good, bad;
    bool open;                  /* `call` is under way */
    Call call;
} Test;

/* ---- operands ---------------------------------------------------------------------------------------------------- */

const Operand *part_of(const Call *c, const char *name)
{
    for (int i = 0; i < c->parts; i++)
        if (!strcmp(c->operand[i].name, name))
            return c->operand[i].kind >= OF_NUMBER || c->operand[i].given.p ? &c->operand[i] : NULL;
    return NULL;
}

double number_of(const Call *c, const char *name)
{
    const Operand *p = part_of(c, name);
    return !p ? 0 : p->kind == OF_FRACTION ? p->given.f : (double)p->given.i;
}

static size_t size_of(Kind kind)
{
    return kind == OF_REAL ? sizeof(real) : kind == OF_DOUBLE ? sizeof(double) : kind == OF_VALUES ? sizeof(Values) : 4;
}

static double at(const unsigned char *from, Kind kind, long i)
{
    switch (kind) {
    case OF_REAL: return get((const real *)(const void *)from, i);
    case OF_FLOAT: return ((const float *)(const void *)from)[i];
    case OF_INT: return ((const int32_t *)(const void *)from)[i];
    case OF_VALUES: return ((const Values *)(const void *)from)->loss;
    case OF_DOUBLE: return ((const double *)(const void *)from)[i];
    default: return 0;
    }
}

double old_at(const Operand *p, long i) { return at(p->old, p->kind, i); }
double old_of(const Call *c, const char *name, long i)
{
    const Operand *p = part_of(c, name);
    return p ? old_at(p, i) : 0;
}

double new_at(const Operand *p, long i) { return at(p->new, p->kind, i); }

/* "const real *x": one parameter of a prototype; behind it. */
static const char *read_part(Operand *p, const char *text, const Given *given)
{
    static const struct { const char *word; Kind kind; } types[] = {{"real *", OF_REAL}, {"float *", OF_FLOAT},
        {"int32_t *", OF_INT}, {"double *", OF_DOUBLE}, {"Values *", OF_VALUES}, {"void *", OF_SCRATCH},
        {"float ", OF_FRACTION}};
    size_t n = strcspn(text, ",)"), from = n;
    bool fixed = !strncmp(text, "const ", 6);
    const char *type = text + (fixed ? 6 : 0);
    while (from > 0 && text[from - 1] != ' ' && text[from - 1] != '*')
        from--;
    *p = (Operand){.kind = OF_NUMBER, .given = *given};
    snprintf(p->name, sizeof p->name, "%.*s", (int)(n - from), text + from);
    for (size_t i = sizeof types / sizeof *types; i-- > 0;)
        if (!strncmp(type, types[i].word, strlen(types[i].word)))
            p->kind = types[i].kind;
    p->made = !fixed && p->kind < OF_SCRATCH;
    return text + n + strspn(text + n, ", )");
}

/* Numbers that are other ones in each micro-batch, or name something. */
static bool counts(const char *name)
{
    static const char *const not[] = {"mb", "h", "h_x", "h_w", "site", "index", "count"};
    for (size_t i = 0; i < sizeof not / sizeof *not; i++)
        if (!strcmp(name, not[i]))
            return false;
    return true;
}

static void read_call(Call *c, const char *text, const Given *given)
{
    size_t n = strcspn(text, "(");
    *c = (Call){.parts = 0};
    snprintf(c->name, sizeof c->name, "%.*s", (int)n, text);
    for (text += n + 1; *text && c->parts < (int)(sizeof c->operand / sizeof *c->operand); c->parts++)
        text = read_part(&c->operand[c->parts], text, given++);
    for (int i = 0, k = 0; i < c->parts && k < (int)sizeof c->numbers; i++) {
        const Operand *p = &c->operand[i];
        if (p->kind == OF_FRACTION)
            k += snprintf(c->numbers + k, sizeof c->numbers - (size_t)k, " %s=%g", p->name, p->given.f);
        else if (p->kind == OF_NUMBER && counts(p->name))
            k += snprintf(c->numbers + k, sizeof c->numbers - (size_t)k, " %s=%lld", p->name, (long long)p->given.i);
        else if (p->kind != OF_NUMBER && !p->given.p)
            k += snprintf(c->numbers + k, sizeof c->numbers - (size_t)k, " no-%s", p->name);
    }
}

/* "3*batch*width" or "out*in/groups": numbers, and the call's; behind it. */
static const char *read_product(const Call *c, const char *text, long *all)
{
    bool divides = false;
    for (*all = 1; *text && *text != ' ' && *text != '+';) {
        size_t n = strcspn(text, "*/+ ");
        char word[16];
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        long by = *word >= '0' && *word <= '9' ? atol(word) : (long)number_of(c, word);
        *all = divides ? *all / by : *all * by;
        divides = text[n] == '/';
        text += n + (divides || text[n] == '*');
    }
    return text;
}

static long sum_of(const Call *c, const char *text)
{
    long sum, more;
    for (text = read_product(c, text, &sum); *text == '+'; sum += more)
        text = read_product(c, text + 1, &more);
    return sum;
}

static void size_part(const Call *c, Operand *p, const char *sizes)
{
    size_t n = strlen(p->name);
    for (const char *s = sizes; (s = strstr(s, p->name)) && !p->n; s += n)
        if ((s == sizes || s[-1] == ' ') && s[n] == '=')
            p->n = sum_of(c, s + n + 1);
}

/* ---- memory of the host -------------------------------------------------------------------------------------------- */

static unsigned char *copied(Worker *w, const Operand *p)
{
    size_t bytes = (size_t)p->n * size_of(p->kind);
    char *room = malloc(bytes), *next = room;
    if (!room)
        quit(w->run->link, STATUS_RUN, "--selftest: no memory of the host for %zu bytes", bytes);
    arena_read(w, p->given.p, bytes, copy_piece, &next);
    return (unsigned char *)room;
}

static const Known *answer_of(const Call *c, const char *out)
{
    for (int i = 0; job_answers[i]; i++)
        for (const Known *k = job_answers[i]->known; k->call; k++)
            if (!strcmp(k->call, c->name) && (!out || !strcmp(k->out, out)))
                return k;
    return NULL;
}

static void open_call(Worker *w, Test *t)
{
    Call *c = &t->call;
    const Known *k = answer_of(c, NULL);
    c->shard = w->stage.shard;
    t->open = k != NULL;
    for (int i = 0; i < c->parts && k; i++) {
        Operand *p = &c->operand[i];
        if (p->kind >= OF_SCRATCH || !p->given.p)
            continue;
        if (p->kind == OF_VALUES)
            p->n = 1;
        else
            size_part(c, p, k->size);
        p->old = p->n > 0 ? copied(w, p) : NULL;
        for (long e = 0; p->old && part_of(c, "amax") && e < p->n; e++)
            p->most = fmax(p->most, fabs(old_at(p, e)));
        if (p->kind == OF_VALUES)
            c->vals = (const Values *)(const void *)p->old;
    }
}

/* ---- comparing ----------------------------------------------------------------------------------------------------- */

static void print(const char *form, ...) __attribute__((format(printf, 1, 2)));
static void print(const char *form, ...)
{
    char line[600];
    va_list more;
    va_start(more, form);
    int n = vsnprintf(line, sizeof line, form, more);
    va_end(more);
    if (!write_all(STDOUT_FILENO, line, (size_t)(n < (int)sizeof line ? n : (int)sizeof line - 1)))
        complain(STATUS_RUN, "--selftest: cannot write to standard output");
}

/* The first, the last, and others in between that no row or tile prefers.  A gradient of a table is asked for in rows that
 * some id names. */
static long sample(const Call *c, const Operand *p, int i, int most)
{
    const Operand *ids = part_of(c, "ids");
    long n = p->n, j = i == 0 ? 0 : i == most - 1 ? n - 1 : (long)((uint64_t)i * 0x9e3779b97f4a7c15u % (uint64_t)n);
    if (ids && p->n != ids->n * (long)number_of(c, "width"))
        return (long)old_at(ids, j % ids->n) * (long)number_of(c, "width") + j % (long)number_of(c, "width");
    return n <= most ? i : j;
}

/* What differs, in parts of what may; above 1 is too much.  NaN, unless both are, is infinite. */
static double off(const Call *c, const Known *k, const Operand *p, long i, double *want)
{
    Answer a = k->answer(c, i);
    const Operand *onto = part_of(c, "onto");
    double last = p->kind == OF_REAL ? real_last : p->kind == OF_FLOAT ? f32_last : 0x1p-40, got = new_at(p, i);
    bool real = p->kind == OF_REAL;             /* what `onto` is added to; gradients of parameters add up */
    bool adds = onto && strcmp(p->name, "dskip") != 0;
    double before = real ? adds ? old_at(onto, i) : 0 : number_of(c, "acc") != 0 ? old_at(p, i) : 0;
    double may = last * (fabs(a.value) + fabs(before) + fabs(a.value + before)) +
                 (F32_SUM + k->roundings * real_round) * a.terms + 1e-38;
    *want = a.value + before;
    return isnan(got) || isnan(*want) ? (isnan(got) && isnan(*want) ? 0 : INFINITY)
         : got == *want ? 0 : fabs(got - *want) / may;
}

static void compare_part(const Worker *w, Test *t, const Known *k, const Operand *p)
{
    const Call *c = &t->call;
    int most = k->samples ? k->samples : SAMPLES, n = p->n < most ? (int)p->n : most;
    double worst = -1, want = 0, wanted = 0;
    long which = 0;
    for (int i = 0; i < n; i++) {
        long e = sample(c, p, i, n);
        double x = off(c, k, p, e, &want);
        if (x > worst)
            worst = x, which = e, wanted = want;
    }
    if (worst > 1)
        print("selftest: %s: %s%s: %s[%ld] of %ld is %.9g, and f64 says %.9g: %.3g times what rounding allows\n", w->info->name,
              c->name, c->numbers, p->name, which, p->n, new_at(p, which), wanted, worst);
    else
        print("selftest: %s: %s%s: %s: %d of %ld as in f64, to %.2f of what rounding allows\n", w->info->name, c->name,
              c->numbers, p->name, n, p->n, worst);
    *(worst > 1 ? &t->bad : &t->good) += 1;
}

static void close_call(Worker *w, Test *t)
{
    Call *c = &t->call;
    for (int i = 0; i < c->parts; i++)
        if (c->operand[i].made && c->operand[i].n > 0)
            c->operand[i].new = copied(w, &c->operand[i]);
    for (int i = 0; i < c->parts; i++) {
        const Known *k = c->operand[i].new ? answer_of(c, c->operand[i].name) : NULL;
        if (k)
            compare_part(w, t, k, &c->operand[i]);
    }
    for (int i = 0; i < c->parts; i++) {
        free(c->operand[i].old);
        free(c->operand[i].new);
    }
    t->open = false;
}

/* ---- a step -------------------------------------------------------------------------------------------------------- */

/* Is the line new? */
static bool add(Line *list, int *n, const char *name, const char *numbers)
{
    Line line;
    snprintf(line.text, sizeof line.text, "%s%s", name, numbers);
    for (int i = 0; i < *n; i++)
        if (!strcmp(list[i].text, line.text))
            return false;
    if (*n < SEEN)
        list[(*n)++] = line;
    return true;
}

static void look(Stage *st, int what, const char *where, const char *call, const Given *given)
{
    Test *t = st->tested;
    Worker *w = st->worker;
    (void)where;
    if (what == ACTION_BEGINS || w->eval)
        return;
    if (what == CALL_ENDS) {
        if (t->open)
            close_call(w, t);
        return;
    }
    read_call(&t->call, call, given);
    if (!answer_of(&t->call, NULL))
        add(t->unknown, &t->unknowns, t->call.name, "");
    else if (add(t->seen, &t->calls, t->call.name, t->call.numbers))
        open_call(w, t);
}

void selftest_open(Worker *w)
{
    w->stage.tested = calloc(1, sizeof(Test));
    if (!w->stage.tested)
        quit(w->run->link, STATUS_RUN, "--selftest: no memory");
    w->stage.hook = look;
}

int selftest_end(Worker *w)
{
    Test *t = w->stage.tested;
    int status = t->bad ? STATUS_DIFFERS : DONE;
    for (int i = 0; i < t->unknowns; i++)
        print("selftest: %s: %s: not checked, there is no answer for it\n", w->info->name, t->unknown[i].text);
    if (t->calls + t->unknowns == 0)
        status = complain(STATUS_RUN, "%s: no call was seen: its source was compiled without -DSTAGE", w->info->name);
    else
        print("selftest: %s: calls: %d; results as in f64: %d, others: %d\n", w->info->name, t->calls, t->good, t->bad);
    w->stage.hook = NULL;
    free(t);
    return status;
}
