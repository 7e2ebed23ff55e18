/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.c: how long each call takes.
 *
 *   needs   Graph; the first device of the Model; a profile, if there is one
 *   fills   ns of every operator, latency and rate of a message, measured, signature
 *   fails   status 5 if the profile is unreadable, of another device, or lacks a call of this graph
 *
 * With a profile, each call takes the time that was measured for its signature: the kernel's name and the literal
 * arguments that decide its work.  Equal signatures are one line, so twelve equal layers are measured once.  Nothing is
 * guessed beside a profile: an unknown signature is an error, because a plan half measured compares apples with pears.
 *
 * Without one, the estimate is the roofline of Williams, Waterman, Patterson, 2009: the larger of arithmetic over peak
 * arithmetic and bytes over bandwidth, and a fixed cost a call.  Products and everything else have their own peak.  The
 * model file may give flops and bandwidth of its device; the table below has figures of the right order for one core of
 * a server with 512-bit vectors, times the threads.  They are estimates, good enough to balance stages of one model
 * against each other; for predicting seconds there is the profile.
 *
 * Whole numbers throughout: rates are rounded once, to units a microsecond.  Cost: linear in operators, times the log
 * of the profile's lines.
 */
#include "../dpgen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One core's share, per microsecond. */
typedef struct {
    const char *kernels;
    Type type;
    int64_t product, other;     /* operations a core: matrix products and attention; everything else */
    int64_t memory;             /* bytes a core */
} Rate;
static const Rate rates[] = {
    {"portable", F32,  170000, 25000, 20000},
    {"portable", BF16, 150000, 20000, 20000},
    {"onednn",   F32,  250000, 25000, 20000},
    {"onednn",   BF16, 600000, 25000, 20000},
};

typedef struct { const char *transport; Ns latency; double link; } Wire;
static const Wire wires[] = {
    {"local",  2000, 4e9},      /* a copy between two cores of one machine */
    {"mpi",   20000, 1e9},      /* 10 Gbit/s Ethernet, rounded down */
};

static const char *const products[] = {"Linear", "MatMul", "Attention", "AttentionPacked"};
static const Ns call_ns = 200;  /* of entering a kernel */
static const double host_rate = 4e9;    /* between a device and its host, where links: says nothing */

/* ---- the estimate ------------------------------------------------------------------------------------------------ */

static bool is_product(const Op *o)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (!strcmp(row(o->row)->name, products[i]))
            return true;
    return false;
}

static Rate rate_of(const Device *d, Type type)
{
    Rate r = rates[0];
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (rates[i].type == type && d->kernels && !strcmp(rates[i].kernels, d->kernels))
            r = rates[i];
    int64_t threads = d->threads > 0 ? d->threads : 1;
    r.product *= threads;
    r.other *= threads;
    r.memory *= threads;
    if (d->flops > 0) {         /* given: the rest keeps its proportion */
        double share = d->flops / 1e6 / (double)r.product;
        r.product = (int64_t)(d->flops / 1e6);
        r.other = (int64_t)((double)r.other * share);
    }
    if (d->bandwidth > 0)
        r.memory = (int64_t)(d->bandwidth / 1e6);
    r.product += r.product < 1;
    r.other += r.other < 1;
    r.memory += r.memory < 1;
    return r;
}

/* amount / rate, in ns, rounded up, without overflow */
static Ns span_ns(int64_t amount, int64_t per_us)
{
    return amount / per_us * 1000 + (amount % per_us * 1000 + per_us - 1) / per_us;
}

static Ns estimate(const Op *o, const Rate *r)
{
    Ns work = span_ns(o->flop, is_product(o) ? r->product : r->other), move = span_ns(o->moved, r->memory);
    return call_ns + (work > move ? work : move);
}

static void set_wire(Cost *c, const char *transport, double link)
{
    const Wire *w = wires;
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++)
        if (transport && !strcmp(wires[i].transport, transport))
            w = &wires[i];
    c->latency = w->latency;
    c->link = link > 0 ? link : w->link;
}

/* ---- the signature of a call ------------------------------------------------------------------------------------- */

/* Literals that name a thing and do not change the work. */
static bool is_label(const char *token)
{
    return !strcmp(token, "site") || !strcmp(token, "index");
}

/* name, then token=value of each literal, token=0 of each operand that is absent */
char *cost_signature(const Op *o)
{
    char *text = strf("%s", o->call);
    for (int i = 0; i < o->arg.n; i++) {
        const Arg *a = &o->arg.at[i];
        if (a->kind == ARG_INT && !is_label(a->token))
            text = strf("%s %s=%lld", text, a->token, (long long)a->i);
        else if (a->kind == ARG_FLOAT)
            text = strf("%s %s=%a", text, a->token, a->f);
        else if (a->kind == ARG_NONE)
            text = strf("%s %s=0", text, a->token);
    }
    return text;
}

/* ---- the profile ------------------------------------------------------------------------------------------------- */

typedef struct { const char *call; Ns ns; int line; } Measured;
typedef struct {
    const char *path, *device;  /* what the header must say */
    VEC(Measured) call;
    bool device_seen, message_seen;
    Cost *c;
} Profile;

static int by_call(const void *a, const void *b)
{
    return strcmp(((const Measured *)a)->call, ((const Measured *)b)->call);
}

static bool whole(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *value = v;
    return end != text && *end == '\0' && errno == 0 && v >= 0 && text[0] >= '0' && text[0] <= '9';
}

/* Cut ` key=N` off the end of the line. */
static bool take_last(char *line, const char *key, int64_t *value)
{
    char *at = strrchr(line, ' ');
    size_t n = strlen(key);
    if (!at || strncmp(at + 1, key, n) || at[1 + n] != '=' || !whole(at + 2 + n, value))
        return false;
    *at = '\0';
    return true;
}

static void read_line(Profile *f, char *line, int number)
{
    int64_t ns, link;
    if (line[0] == '\0' || line[0] == '#')
        return;
    if (!strncmp(line, "op ", 3) && take_last(line, "ns", &ns)) {
        *PUSH(&f->call) = (Measured){strf("%s", line + 3), ns, number};
    } else if (!strncmp(line, "device ", 7)) {
        if (strcmp(line + 7, f->device))
            fail(EXIT_STALE, "%s:%d: measured on '%s', but the model's device is '%s'; measure again", f->path, number,
                 line + 7, f->device);
        f->device_seen = true;
    } else if (!strncmp(line, "message ", 8) && take_last(line, "link", &link) && take_last(line, "latency", &ns)
               && !strcmp(line, "message") && link > 0) {
        f->c->latency = ns;
        f->c->link = (double)link;
        f->message_seen = true;
    } else {
        fail(EXIT_STALE, "%s:%d: not a line of a profile: '%.60s'", f->path, number, line);
    }
}

static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail(EXIT_STALE, "cannot read the profile %s: %s", path, strerror(errno));
    VEC(char) text = {0};
    for (int ch; (ch = getc(f)) != EOF;)
        *PUSH(&text) = (char)ch;
    if (ferror(f))
        fail(EXIT_STALE, "cannot read the profile %s: %s", path, strerror(errno));
    fclose(f);
    *n = (size_t)text.n;
    *PUSH(&text) = '\0';
    return text.at;
}

static void read_lines(Profile *f)
{
    size_t n;
    char *text = read_all(f->path, &n), hex[65];
    Sha256 sum;
    sha256_start(&sum);
    sha256_add(&sum, text, n);
    sha256_end(&sum, hex);
    f->c->signature = strf("%s", hex);
    if (memchr(text, '\0', n))
        fail(EXIT_STALE, "%s: a profile is text, this is not", f->path);
    int number = 1;
    for (char *line = text, *end; line < text + n; line = end + 1, number++) {
        end = line + strcspn(line, "\n");
        *end = '\0';
        if (number > 1)
            read_line(f, line, number);
        else if (strcmp(line, "dpgen-profile 1"))
            fail(EXIT_STALE, "%s:1: the first line of a profile is 'dpgen-profile 1'", f->path);
    }
    if (!f->device_seen || !f->message_seen)
        fail(EXIT_STALE, "%s: the line '%s ...' is missing", f->path, f->device_seen ? "message" : "device");
    if (f->call.n)
        qsort(f->call.at, (size_t)f->call.n, sizeof *f->call.at, by_call);
    for (int i = 1; i < f->call.n; i++)
        if (!by_call(&f->call.at[i - 1], &f->call.at[i]))
            fail(EXIT_STALE, "%s: 'op %s' stands on lines %d and %d", f->path, f->call.at[i].call,
                 f->call.at[i - 1].line, f->call.at[i].line);
}

static void measured(Cost *c, const Graph *g, const Device *d, const char *path)
{
    Profile f = {.path = path, .c = c};
    f.device = strf("%s %s %s threads=%d", d->kind, d->kernels ? d->kernels : "-", type_name(g->compute), d->threads);
    read_lines(&f);
    for (int o = 0; o < g->op.n; o++) {
        Measured want = {.call = cost_signature(&g->op.at[o])};
        const Measured *got = f.call.n ? bsearch(&want, f.call.at, (size_t)f.call.n, sizeof want, by_call) : NULL;
        if (!got)
            fail(EXIT_STALE, "%s: no line 'op %s', which %s needs; measure again", path, want.call, g->op.at[o].name);
        c->ns[0][o] = got->ns;
    }
    c->measured = true;
}

/* Devices that the estimate cannot tell apart. */
static bool alike(const Device *a, const Device *b)
{
    return !strcmp(a->kind, b->kind) && !strcmp(a->kernels, b->kernels) && a->threads == b->threads && a->flops == b->flops
           && a->bandwidth == b->bandwidth;
}

static void classify(Cost *c, const Model *m)
{
    Ints first = {0};           /* by class: a device of it */
    for (int d = 0; d < m->devices.n; d++) {
        int k = 0;
        while (k < first.n && !alike(&m->devices.at[first.at[k]], &m->devices.at[d]))
            k++;
        if (k == first.n)
            *PUSH(&first) = d;
        *PUSH(&c->of) = k;
    }
    c->classes = first.n;
}

Cost *cost(const Graph *g, const Model *m, const char *profile)
{
    Cost *c = alloc(sizeof *c);
    c->signature = "estimate";
    classify(c, m);
    c->ns = alloc(sizeof *c->ns * (size_t)c->classes);
    for (int k = 0; k < c->classes; k++)
        c->ns[k] = alloc(sizeof **c->ns * (size_t)g->op.n);
    set_wire(c, m->plan.transport, m->link);
    c->host = m->host_link > 0 ? m->host_link : host_rate;
    if (profile) {
        measured(c, g, &m->devices.at[0], profile);
        for (int k = 1; k < c->classes; k++)
            fail(EXIT_STALE, "%s: a profile measures one sort of device, and %s has %d: --estimate prices them", profile,
                 m->path, c->classes);
        return c;
    }
    for (int d = 0; d < m->devices.n; d++) {
        Rate r = rate_of(&m->devices.at[d], g->compute);
        for (int o = 0; o < g->op.n; o++)
            c->ns[c->of.at[d]][o] = estimate(&g->op.at[o], &r);
    }
    return c;
}

Ns cost_op(const Cost *c, int device, int op)
{
    return c->ns[c->of.at[device]][op];
}

static Ns move(double rate, Bytes bytes)
{
    int64_t per_ms = (int64_t)(rate / 1000);
    per_ms += per_ms < 1;
    return bytes / per_ms * 1000000 + (bytes % per_ms * 1000000 + per_ms - 1) / per_ms;
}

Ns cost_wire(const Cost *c, int from, int to, Bytes bytes)
{
    (void)from, (void)to;
    return move(c->link, bytes);
}

Ns cost_latency(const Cost *c, int from, int to)
{
    (void)from, (void)to;
    return c->latency;
}

Ns cost_host(const Cost *c, int device, Bytes bytes)
{
    (void)device;
    return move(c->host, bytes);
}

/* Sums over a whole step stay far from overflow. */
void check_cost(const Graph *g, const Cost *c)
{
    Ns most = INT64_MAX / 16 / (g->micro > 0 ? g->micro : 1);
    for (int k = 0; k < c->classes; k++) {
        Ns sum = 0;
        for (int o = 0; o < g->op.n; o++) {
            if (c->ns[k][o] < 0 || c->ns[k][o] > most - sum)
                die("cost: %s takes %lld ns", g->op.at[o].name, (long long)c->ns[k][o]);
            sum += c->ns[k][o];
        }
    }
    if (c->latency < 0 || !(c->link > 0) || !(c->host > 0))
        die("cost: a message takes %lld ns and %g bytes/s", (long long)c->latency, c->link);
}
