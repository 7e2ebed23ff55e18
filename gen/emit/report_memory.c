/* SPDX-License-Identifier: Apache-2.0
 *
 * report_memory.c: the memory of one stage over the time of a step: bands by kind, the packing, the largest at the peak.
 *
 * The owner interval of each buffer and micro-batch is that of mem (lives.c), by calls.  A call begins when the simulator
 * starts its action and the calls of the action before it are through.  Each column of the picture shows the call in it where
 * most is alive, so that a peak of no length is not lost.  Addresses are the literal slots of the list.
 *
 * Not drawn: the evaluation.  A stage with many lives leaves small buffers out of the packing and of the script's table, and
 * says so; bands have all of them.
 */
#include "emit.h"
#include "mem/mem.h"

enum { COLUMNS = 1200, TALL = 150, PACK = 190, WIDE = 10000, HIGH = 2000, MOST = 5000, LARGEST = 8,
       SEAM = 6 };

typedef struct { int buf, mb, slot; Span life; } ReportLife;
typedef struct {
    const Plan *p;
    const DevicePlan *d;
    int device, ticks;          /* of the list, without the evaluation */
    Ns length, *at;             /* by tick; at[ticks]: the end */
    VEC(ReportLife) life;       /* of what does not live all the time */
    Bytes (*sum)[H_KINDS];      /* alive, by tick */
    Bytes least, top;           /* smaller ones are left out; where the scale ends */
    bool above;                 /* the limit lies above it */
} Stage;

/* ---- when and where ------------------------------------------------------------------------------------------------------ */

static void find_times(Stage *s)
{
    const Actions *list = &s->d->list;
    s->ticks = s->d->eval.n ? s->d->eval.at[0].tick : s->d->ticks;
    s->at = alloc(sizeof *s->at * (size_t)(s->ticks + 1));
    for (int i = 0; i < list->n; i++) {
        const Action *k = &list->at[i];
        int until = i + 1 < list->n ? list->at[i + 1].tick : s->ticks;
        Ns at = k->from;
        for (int t = k->tick; t < until; t++) {
            const Routine *r = k->routine >= 0 ? &s->p->routine.at[k->routine] : NULL;
            s->at[t] = at;
            if (r && t - k->tick < r->call.n)
                at += line_time(s->p, r, t - k->tick);
        }
        s->at[s->ticks] = k->to;
    }
}

static int slot_in(const Plan *p, const Routine *r, const Action *k, int b)
{
    for (int x = 0; x < r->pool.n; x++)
        if (r->pool.at[x] == p->buf.at[b].pool)
            return k->slots.at[x];
    return 0;
}

/* By buffer and micro-batch, from the literals of the list. */
static int *find_slots(const Mem *m, const Actions *list)
{
    const Plan *p = m->p;
    int *slot = alloc(sizeof *slot * (size_t)m->rows * (size_t)m->micro);
    for (EACH(const Action, k, *list)) {
        const Routine *r = k->routine >= 0 ? &p->routine.at[k->routine] : NULL;
        int mb = mem_number(m, k);
        if (k->buf >= 0)
            slot[m->life[k->buf] * m->micro + mb] = k->slot;
        for (int c = 0; r && c < r->call.n; c++)
            for (int j = 0; j < r->call.at[c].buf.n; j++)
                if (r->call.at[c].buf.at[j] >= 0)
                    slot[m->life[r->call.at[c].buf.at[j]] * m->micro + mb] = slot_in(p, r, k, r->call.at[c].buf.at[j]);
    }
    return slot;
}

static void find_lives(Stage *s)
{
    Plan here = *s->p;          /* only read */
    Mem m = mem_new(&here, s->device);
    int *slot = find_slots(&m, &s->d->list);
    for (int b = 0; b < s->p->buf.n; b++)
        for (int mb = 0; mb < m.micro; mb++)
            if (mem_alive(&m, b, mb) && mem_live(&m, b, mb)->first < s->ticks)
                *PUSH(&s->life) = (ReportLife){b, mb, slot[m.life[b] * m.micro + mb], *mem_live(&m, b, mb)};
}

static void add_band(Stage *s, const Buf *x, int first, int last, Bytes bytes)
{
    Holding k = holding_of(s->p, x);
    s->sum[first][k] += bytes;
    if (last + 1 < s->ticks)
        s->sum[last + 1][k] -= bytes;
}

static void find_bands(Stage *s)
{
    s->sum = alloc(sizeof *s->sum * (size_t)(s->ticks + 1));
    for (EACH(const Buf, x, s->p->buf))
        if (x->device == s->device && mem_always(x))
            add_band(s, x, 0, s->ticks, aligned(x->bytes) * (x->pool >= 0 ? s->p->pool.at[x->pool].count : 1));
    for (int i = 0; i < s->life.n; i++) {
        const Buf *x = &s->p->buf.at[s->life.at[i].buf];
        add_band(s, x, s->life.at[i].life.first, s->life.at[i].life.last, aligned(x->bytes));
    }
    for (int t = 1; t < s->ticks; t++)
        for (int k = 0; k < H_KINDS; k++)
            s->sum[t][k] += s->sum[t - 1][k];
}

static Bytes total(const Stage *s, int t)
{
    Bytes sum = 0;
    for (int k = 0; k < H_KINDS; k++)
        sum += s->sum[t][k];
    return sum;
}

/* So that few enough are left. */
static Bytes smallest(const Stage *s)
{
    for (Bytes least = 0;; least = least ? 2 * least : ALIGN) {
        int n = 0;
        for (int i = 0; i < s->life.n; i++)
            n += s->p->buf.at[s->life.at[i].buf].bytes >= least;
        if (n <= MOST)
            return least;
    }
}

static Stage drawn_stage(const Plan *p, int device, Ns length)
{
    Stage s = {.p = p, .d = &p->dev.at[device], .device = device, .length = length};
    find_times(&s);
    find_lives(&s);
    find_bands(&s);
    s.least = smallest(&s);
    s.above = s.d->limit / 8 > s.d->arena / 5;          /* more than 1.6 times */
    s.top = (s.above ? s.d->arena : s.d->limit) / 25 * 26 + 1;
    return s;
}

const Alive *report_alive(const Plan *p, int device)
{
    Stage s = {.p = p, .d = &p->dev.at[device], .device = device};
    Alive *a = alloc(sizeof *a);
    find_times(&s);
    find_lives(&s);
    find_bands(&s);
    for (int t = 0; t < s.ticks; t++) {
        PUSH(a)->at = s.at[t];
        a->at[t].bytes = total(&s, t);
    }
    return a;
}

/* ---- pictures ------------------------------------------------------------------------------------------------------------ */

static int across(const Stage *s, Ns at)
{
    return (int)((double)at * WIDE / (double)s->length);
}

static int up(const Stage *s, Bytes n)
{
    return HIGH - (int)((double)n * HIGH / (double)s->top);
}

/* From the left at the lower edge of the band, back at its upper edge. */
static void print_band(FILE *f, const Stage *s, const int *tick, int kind)
{
    int low[COLUMNS], high[COLUMNS];
    bool any = false;
    for (int c = 0; c < COLUMNS; c++) {
        Bytes below = 0;
        for (int k = 0; k < kind; k++)
            below += s->sum[tick[c]][k];
        low[c] = up(s, below);
        high[c] = up(s, below + s->sum[tick[c]][kind]);
        any |= s->sum[tick[c]][kind] > 0;
    }
    if (!any)
        return;
    fprintf(f, "<path class=\"k%d\" d=\"M0 %d", kind, low[0]);
    for (int c = 1; c <= COLUMNS; c++)
        if (c == COLUMNS || low[c] != low[c - 1])
            fprintf(f, "H%dV%d", c * WIDE / COLUMNS, c == COLUMNS ? high[c - 1] : low[c]);
    for (int c = COLUMNS - 1; c >= 0; c--)
        if (c == 0 || high[c - 1] != high[c])
            fprintf(f, "H%dV%d", c * WIDE / COLUMNS, c == 0 ? low[0] : high[c - 1]);
    fprintf(f, "Z\"/>\n");
}

/* Neighbours have a seam between them where there is room for one. */
static void print_box(FILE *f, const Stage *s, Ns from, Ns to, Bytes at, Bytes bytes)
{
    int x = across(s, from), wide = across(s, to) - x, y = up(s, at + bytes), tall = up(s, at) - y;
    if (wide < 1)
        wide = 1;
    if (tall > 5 * SEAM) {
        y += SEAM;
        tall -= SEAM;
    }
    if (tall > 0)
        fprintf(f, "M%d %dh%dv%dh-%dz", x, y, wide, tall, wide);
}

static void print_pack_kind(FILE *f, const Stage *s, int kind)
{
    fprintf(f, "<path class=\"k%d\" d=\"", kind);
    for (EACH(const Buf, x, s->p->buf)) {
        int slots = x->pool >= 0 ? s->p->pool.at[x->pool].count : 1;
        for (int i = 0; x->device == s->device && mem_always(x) && (int)holding_of(s->p, x) == kind && i < slots; i++)
            print_box(f, s, 0, s->length, x->offset + (x->pool >= 0 ? i * s->p->pool.at[x->pool].stride : 0), x->bytes);
    }
    for (EACH(const ReportLife, l, s->life)) {
        const Buf *x = &s->p->buf.at[l->buf];
        int last = l->life.last < s->ticks ? l->life.last : s->ticks - 1;
        if ((int)holding_of(s->p, x) == kind && x->bytes >= s->least)
            print_box(f, s, s->at[l->life.first], s->at[last + 1],
                      x->offset + (x->pool >= 0 ? l->slot * s->p->pool.at[x->pool].stride : 0), x->bytes);
    }
    fprintf(f, "\"/>\n");
}

static void print_level(FILE *f, const Stage *s, const char *class, Bytes n, int tall)
{
    double y = (double)up(s, n) * tall / HIGH;
    fprintf(f, "<line class=\"%s\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>", class, y, y);
}

/* 256 KiB, 1.5 GiB */
static const char *short_size(Bytes n)
{
    char *text = strf("%s", n ? size_text(n) : "0"), *dot = strchr(text, '.');
    if (!dot)
        return text;
    const char *unit = strchr(dot, ' ');
    int digits = dot[2] != '0' ? 3 : dot[1] != '0' ? 2 : 0;
    return strf("%.*s%s", (int)(dot - text) + digits, text, unit);
}

/* Where most is alive, which may last no time: a line of a pixel, a dot on top, and how much it is. */
static void print_peak_mark(FILE *f, const Stage *s)
{
    if (s->d->peak >= s->ticks)
        return;
    double x = page_share(s->at[s->d->peak], s->length), y = (double)up(s, total(s, s->d->peak)) * TALL / HIGH;
    bool right = x > 70;
    fprintf(f, "<g class=\"peak\"><line x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"%.1f\" y2=\"%d\"/><circle cx=\"%.3f%%\" cy=\"%.1f\" "
            "r=\"3\"/><text x=\"%.3f%%\" dx=\"%d\" y=\"%.1f\"%s>peak %s</text></g>\n", x, x, y, TALL, x, y, x, right ? -6 : 6,
            y < 16 ? y + 14 : y - 4, right ? " text-anchor=\"end\"" : "", size_text(s->d->bound));
}

static void print_plot(FILE *f, const Stage *s, bool packing)
{
    int tall = packing ? PACK : TALL, tick[COLUMNS];
    fprintf(f, "<div class=\"plot\">");
    Bytes step = 1;
    while (step < s->top / 5)
        step *= 2;
    fprintf(f, "<svg height=\"%d\">", tall + AXIS);
    for (Bytes at = 0; at <= s->top; at += step) {
        double y = (double)up(s, at) * tall / HIGH;
        fprintf(f, "<text class=\"scale\" x=\"100%%\" y=\"%.1f\">%s</text>", y < 9 ? 9 : y, short_size(at));
    }
    fprintf(f, "</svg>");
    const char *name = packing ? "pack" : "bytes";
    fprintf(f, "<div class=\"scroll\"><div><svg class=\"%s\" id=\"%s%d\" tabindex=\"0\" role=\"group\" "
            "aria-label=\"%s of stage %d\" data-length=\"%" PRId64 "\" data-top=\"%" PRId64
            "\" data-tall=\"%d\" height=\"%d\">\n", name, name, s->device, packing ? "addresses" : "bytes alive", s->device,
            s->length, s->top, tall, tall + AXIS);
    page_axis(f, s->length, tall);
    fprintf(f, "<svg width=\"100%%\" height=\"%d\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\">\n", tall, WIDE, HIGH);
    /* The call of each column where most is alive; a column without a call has that of the one before. */
    for (int c = 0; c < COLUMNS; c++)
        tick[c] = -1;
    for (int t = 0; t < s->ticks; t++) {
        int from = (int)((double)s->at[t] * COLUMNS / (double)s->length);
        int to = (int)((double)s->at[t + 1] * COLUMNS / (double)s->length);
        for (int c = from; c <= to && c < COLUMNS; c++)
            if (tick[c] < 0 || total(s, t) > total(s, tick[c]))
                tick[c] = t;
    }
    for (int c = 0; c < COLUMNS; c++)
        tick[c] = tick[c] >= 0 ? tick[c] : c ? tick[c - 1] : 0;
    for (int k = 0; k < H_KINDS; k++)
        packing ? print_pack_kind(f, s, k) : print_band(f, s, tick, k);
    fprintf(f, "</svg>\n");
    print_level(f, s, "level", s->d->arena, tall);
    if (!s->above)
        print_level(f, s, "limit", s->d->limit, tall);
    if (!packing)
        print_peak_mark(f, s);
    fprintf(f, "</svg></div></div></div>\n");
}

/* ---- at the peak --------------------------------------------------------------------------------------------------------- */

typedef struct { int buf; Bytes bytes; } ReportBig;

ORDER(by_bytes, ReportBig, order_of(y->bytes, x->bytes), order_of(x->buf, y->buf))

static const char *during(const Stage *s)
{
    const DevicePlan *d = s->d;
    if (d->peak >= s->ticks)
        return "in the evaluation";
    int i = 0;
    while (i + 1 < d->list.n && d->list.at[i + 1].tick <= d->peak)
        i++;
    return strf("at %s, in %s", page_time(s->at[d->peak]), quote_html(action_text(s->p, &d->list.at[i])));
}

static void print_peak(FILE *f, const Stage *s)
{
    const Plan *p = s->p;
    const Bytes *alive = mem_at_peak(p, s->device);
    VEC(ReportBig) big = {0};
    for (int b = 0; b < p->buf.n; b++)
        if (alive[b] > 0)
            *PUSH(&big) = (ReportBig){b, alive[b]};
    SORT(big.at, big.n, by_bytes);
    fprintf(f, "<p>Most is alive at call %d of %d, %s. The largest there:</p>\n", s->d->peak,
            s->d->ticks, during(s));
    page_table(f, strf("the largest buffers of stage %d", s->device));
    for (int i = 0; i < big.n && i < LARGEST; i++) {
        const Buf *x = &p->buf.at[big.at[i].buf];
        Loc at = x->tensor >= 0 ? p->g->tensor.at[x->tensor].loc : x->state >= 0 ? p->g->state.at[x->state].loc :
                 x->op >= 0 ? p->g->op.at[x->op].loc : (Loc){0, 0, 0};
        fprintf(f, "<tr><td><code>%s</code></td><td class=\"left\">%s</td><td>%s</td><td class=\"left\">%s</td></tr>\n",
                quote_html(x->name), holding_name[holding_of(p, x)], size_text(big.at[i].bytes),
                at.line > 0 ? strf("model.yaml:%d", at.line) : "");
    }
    fprintf(f, "</table></div>\n");
}

void report_memory(FILE *f, const Plan *p, int device, Ns length)
{
    Stage s = drawn_stage(p, device, length);
    fprintf(f, "<section data-stage=\"%d\">\n<h3>Stage %d</h3>\n<p>Arena %s, lower bound %s, limit %s%s.%s</p>\n", device,
            device, size_text(s.d->arena), size_text(s.d->bound), size_text(s.d->limit),
            s.above ? ", beyond the top of the picture" : "",
            s.least ? strf(" The packing leaves out buffers below %s.", size_text(s.least)) : "");
    fprintf(f, "<p class=\"legend\">");
    for (int k = 0; k < H_KINDS; k++)
        fprintf(f, "<span><i class=\"k%d\"></i>%s</span>", k, holding_name[k]);
    fprintf(f, "<span><i class=\"rule dash level\"></i>arena</span>%s</p>\n",
            s.above ? "" : "<span><i class=\"rule limit\"></i>limit</span>");
    fprintf(f, "<div class=\"tools\" data-for=\"bytes%d\"></div>\n", device);
    print_plot(f, &s, false);
    print_plot(f, &s, true);
    fprintf(f, "<div class=\"panel alive\"></div>\n");
    print_peak(f, &s);
    fprintf(f, "</section>\n");
}

/* ---- for the script ------------------------------------------------------------------------------------------------------ */

/* t: of each call, how much later it begins than the one before, in millionths of the length.  bufs: name, kind, bytes, offset,
 * stride, line of the model.  always: numbers of buffers.  lives: buffer, micro-batch, slot, first call, last. */
void report_lives(FILE *f, const Plan *p, int device, Ns length)
{
    Stage s = drawn_stage(p, device, length);
    int64_t before = 0;
    fprintf(f, "{\"t\":[");
    for (int t = 0; t <= s.ticks; t++) {
        int64_t at = (int64_t)((double)s.at[t] * 1e6 / (double)length);
        fprintf(f, "%s%" PRId64, t ? "," : "", at - before);
        before = at;
    }
    int *number = alloc(sizeof *number * (size_t)(p->buf.n + 1)), n = 0;
    fprintf(f, "],\n\"least\":%" PRId64 ",\"bufs\":[", s.least);
    for (int b = 0; b < p->buf.n; b++) {
        const Buf *x = &p->buf.at[b];
        if (x->device != device || x->last < x->first || (x->bytes < s.least && !mem_always(x)))
            continue;
        number[b] = n++;
        fprintf(f, "%s\n[%s,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%d]", n > 1 ? "," : "", quote_json(x->name),
                (int)holding_of(p, x), x->bytes, x->offset,
                x->pool >= 0 ? p->pool.at[x->pool].stride : 0,
                !mem_always(x) ? 0 : x->pool >= 0 ? p->pool.at[x->pool].count : 1);
    }
    fprintf(f, "],\n\"lives\":[");
    n = 0;
    for (EACH(const ReportLife, l, s.life))
        if (p->buf.at[l->buf].bytes >= s.least)
            fprintf(f, "%s%d,%d,%d,%d,%d", n++ ? "," : "", number[l->buf], l->mb, l->slot, l->life.first, l->life.last);
    fprintf(f, "]}");
}
