/* SPDX-License-Identifier: Apache-2.0
 *
 * emitted: reads generated stages by the grammar of docs/emitted.md and nothing wider.
 *
 *   emitted RT.h stage0.c stage1.c ...     the stages of one job, in order
 *   emitted RT.h --self-test FILE          damages a valid stage in many ways; each must be refused
 *
 * stageN.h stands beside stageN.c.  The language has no branches, so one pass over the two texts proves what it can:
 *
 *   names      each stands once; the bytes of a buffer are those of its shape, and end inside its arena
 *   calls      a routine defined above or declared in rt.h, with arguments of the kinds that it takes; a literal stands behind
 *              the name of its parameter, a float before its decimal
 *   slots      below the count of the pool that the buffer is in, and with room for the buffer, wherever the number was passed
 *              on from
 *   handles    used for one call of one set of sizes, and opened for these
 *   actions    count up from 0
 *   transfers  begun, waited for, and only then begun again; no larger than their buffer; one stage receives what the other
 *              sends, in the same order
 *   copies     a place in the memory of the host is empty, filled, then fetched from, as many bytes, each after a wait
 *   sizes      are the same in all stages
 *   states     each offset of a parameter's states once, with the bytes of its shape; the routines, actions and times of the
 *              stage are as many as the table at its end says
 *
 * Where steps overlap, a list stands in pieces, each in several phases that differ in addresses alone.  The transfers under
 * way where a prologue or a period ends are those with which every period and epilogue begins.  Messages are compared along
 * prologue, periods, epilogue.  Comments are white space, but for labels, decimals and the rows of the header.  Prints
 * file:line: reason.  Linear in the text, quadratic in the messages and copies of a stage.
 *
 * Not checked here: which bytes a kernel reads and writes, and the acc arguments; those need the plan.
 */
#include <ctype.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAXARGS = 120, REQUESTS = 256, COPIES = 4096, STAGES = 64, SLOTS = 4096 };
typedef enum { NOTHING, DIM, CONSTANT, LONG, HANDLE, OFFSET, TABLE, SIZE, ROUTINE } Kind;
typedef struct { const char *at; int n; } Name;                 /* a piece of a text */
/* One call.  sig, a letter an argument: p address, h host place, i integer, f float, s text; also 0, the integer of that value,
 * n, a parameter, o, a handle, and F and I, a constant.  word: that parameter, handle or constant.  first: where its first
 * address is, so many bytes further; place and slot: its last. */
typedef struct Symbol Symbol;
typedef struct { const Symbol *table; int64_t room; } Slots;     /* of this table, those that lie no further; NULL: any */
typedef struct {
    Name name, label[MAXARGS], word[MAXARGS], place;
    char sig[MAXARGS];
    int n;
    int64_t value[MAXARGS], slot, further;
    const Symbol *first;
} Call;
struct Symbol {
    Name name;
    Kind kind;
    int inside;                 /* the routine it is a parameter of */
    Slots is;                   /* what that parameter may be */
    int64_t value;              /* DIM, HANDLE, OFFSET */
    int64_t bytes;              /* OFFSET: of the buffer; its pool; is it in the memory of the host; its line */
    Name pool;
    int host, line;
    int n;                      /* slots of a TABLE, parameters of a ROUTINE */
    int64_t *slot;
    Name *param;                /* ROUTINE: of each parameter its name, kind, and what it may be */
    char *sig, *changes;        /* changes: in rt.h, it is the address of floats that are no constants */
    int used;                   /* OFFSET: by rows of parameters */
    Slots *takes;
    int in_rt;
    Call *use;                  /* HANDLE: a call of it; has it been opened, has it been called */
    int opened, called;
};
/* A place in the host's memory: 0 free, 1 something is on its way there, 2 is there, 3 on its way back. */
typedef struct { Name name; int64_t slot, bytes; int state, line; } Place;
typedef struct { int64_t peer, tag, bytes; int line; } Message;
typedef struct { Message *at; int n; } Messages;
/* Functions that number their actions, by name: stageN_step, stageN_period_2 ... */
enum { STEP, PROLOGUE, PERIOD, EPILOGUE, ALONE, EVAL, PIECES };
static const char *const pieces[PIECES] = {"step", "prologue", "period", "epilogue", "alone", "eval"};

typedef struct {
    const char *path, *p;       /* p: next character */
    int line;
    enum { END, NAME, INTEGER, FLOAT, OTHER } token;
    Name text;                  /* of the token */
    Name note;                  /* the first comment in front of it */
    int notes;
    int at, first;              /* its line; is it the first there? */
    int labelled;               /* the language of today: labels of addresses, and a table at the end */
    int in_call;
    int failed, quiet;
    char reason[200];           /* the first one */
    jmp_buf out;
    const char *header_path, *header;
    int64_t total[2];           /* bytes of the arena, of the memory of the host */
    Symbol *symbol;
    size_t symbols;             /* capacity, a power of two */
    int routine, actions;       /* number of the routine being read; of the next action */
    int numbered, pending;      /* does it number its actions; was the last line an action() */
    int begun[REQUESTS];        /* line of the begin, 0: free */
    int cut[REQUESTS], is_cut;  /* the same where the first prologue ends */
    int piece, phase, base[PIECES], end[PIECES];     /* of the function being read; first number, one behind the last */
    Messages sent[PIECES], received[PIECES], sends, gets;   /* of phase 0; of the function being read */
    Place *place;
    int places, copy[COPIES];   /* by copy number: 1 + its place, 0: free */
    int ended;                  /* the table at the end was read */
} Reader;

static void bad(Reader *r, int line, const char *form, ...)
{
    char reason[sizeof r->reason];
    va_list ap;
    va_start(ap, form);
    vsnprintf(reason, sizeof reason, form, ap);
    va_end(ap);
    if (!r->quiet)
        fprintf(stderr, "%s:%d: %s\n", r->path, line, reason);
    if (!r->failed++)
        strcpy(r->reason, reason);
}

#include "emitted_words.h"
#include "emitted_names.h"
#include "emitted_call.h"

/* ---- grammar ------------------------------------------------------------------------------------------- */

static void transfer(Reader *r, const Call *c, int line, int at, Messages *list)
{
    int64_t request = c->value[at];
    if (request < 0 || request >= REQUESTS || c->sig[at] == 'n') {
        bad(r, line, "a transfer number is a literal from 0 to %d", REQUESTS - 1);
        return;
    }
    int *begun = &r->begun[request];
    if (list && *begun)
        bad(r, line, "transfer %d was begun in line %d and not waited for", (int)request, *begun);
    if (!list && !*begun)
        bad(r, line, "transfer %d was not begun", (int)request);
    *begun = list ? line : 0;
    if (!list)
        return;
    list->at = realloc(list->at, (size_t)(list->n + 1) * sizeof *list->at);
    if (!list->at)
        abort();
    list->at[list->n++] = (Message){c->value[at + 1], c->value[at + 2], c->value[at + 3], line};
}

static Place *place_of(Reader *r, const Call *c)
{
    for (int i = 0; i < r->places; i++)
        if (same(r->place[i].name, c->place) && r->place[i].slot == c->slot)
            return &r->place[i];
    r->place = realloc(r->place, (size_t)(r->places + 1) * sizeof *r->place);
    if (!r->place)
        abort();
    r->place[r->places] = (Place){.name = c->place, .slot = c->slot};
    return &r->place[r->places++];
}

/* The begin of a copy: out to a free place, in from one that holds as much; c->place is what stood in H(). */
static void copy_begins(Reader *r, const Call *c, int line, int in)
{
    int64_t number = c->value[2];
    Place *p = place_of(r, c);
    if (number < 0 || number >= COPIES || c->sig[2] == 'n' || c->sig[3] != 'i') {
        bad(r, line, "a copy has a literal number from 0 to %d, and literal bytes", COPIES - 1);
        return;
    }
    if (r->copy[number])
        bad(r, line, "copy %d was begun in line %d and not waited for", (int)number, r->place[r->copy[number] - 1].line);
    if (p->state != (in ? 2 : 0) || (in && p->bytes != c->value[3]))
        bad(r, line, in ? "%d bytes are fetched that were not sent there, or are not there yet" :
            "%d bytes are sent where others still are", (int)c->value[3]);
    r->copy[number] = (int)(p - r->place) + 1;
    p->state = in ? 3 : 1;
    p->bytes = c->value[3];
    p->line = line;
}

static void copy_ends(Reader *r, const Call *c, int line)
{
    int64_t number = c->value[0];
    if (number < 0 || number >= COPIES || c->sig[0] == 'n' || !r->copy[number]) {
        bad(r, line, "this copy was not begun");
        return;
    }
    Place *p = &r->place[r->copy[number] - 1];
    p->state = (p->state + 1) % 4;
    r->copy[number] = 0;
}

/* At the end of a routine everything is back. */
static void check_places(Reader *r)
{
    for (int i = 0; i < r->places; i++)
        if (r->place[i].state)
            bad(r, r->place[i].line, "what goes to the host here is never back");
    r->places = 0;
    memset(r->copy, 0, sizeof r->copy);
}

static void check_action(Reader *r, const Call *c, int line, int first)
{
    int is_action = same(c->name, (Name){"action", 6});
    if (is_action && (c->sig[0] == 'n' || c->value[0] != r->actions))
        bad(r, line, "action %d expected", r->actions);
    if (is_action && r->pending)
        bad(r, line, "action %d is empty", r->actions - 1);
    if (is_action && !r->numbered && !first)
        bad(r, line, "action in a routine that does not begin with one");
    r->numbered |= is_action && first;
    r->actions += is_action;
    r->pending = is_action;
}

static void line(Reader *r, int first)
{
    Call c = {.n = 0};
    int at = r->at, before = r->failed;
    if (!r->first && !r->pending)
        bad(r, at, "a second statement on this line");
    if (take(r, "(")) {
        want(r, "void");
        want(r, ")");
        Name n = name(r);
        if (!parameter_of(r, n) && !same(n, (Name){"st", 2}))
            bad(r, at, "%.*s is not a parameter of this routine", n.n, n.at);
        want(r, ";");
        return;
    }
    r->in_call = 1;
    r->notes = 0;
    c.name = name(r);
    want(r, "(");
    want(r, "st");
    while (take(r, ","))
        argument(r, &c);
    want(r, ")");
    if (r->notes)
        bad(r, r->at, "a comment inside a call that is no label");
    r->in_call = 0;
    want(r, ";");
    check_call(r, &c, at);
    if (r->failed != before)
        return;
    check_action(r, &c, at, first);
    if (same(c.name, (Name){"transfer_wait", 13}))
        transfer(r, &c, at, 0, NULL);
    if (same(c.name, (Name){"offload_begin", 13}) || same(c.name, (Name){"fetch_begin", 11}))
        copy_begins(r, &c, at, *c.name.at == 'f');
    if (same(c.name, (Name){"copy_wait", 9}))
        copy_ends(r, &c, at);
    if (same(c.name, (Name){"send_begin", 10}))
        transfer(r, &c, at, 1, &r->sends);
    if (same(c.name, (Name){"recv_begin", 10}))
        transfer(r, &c, at, 1, &r->gets);
}

/* Which piece of a list a function is, by its name: stage, digits, _word, and a phase.  -1: none. */
static int piece_of(Name n, int *phase)
{
    const char *end = n.at + n.n, *p = n.at + 5;
    *phase = 0;
    if (n.n < 8 || memcmp(n.at, "stage", 5))
        return -1;
    while (p < end && isdigit((unsigned char)*p))
        p++;
    for (int i = 0; i < PIECES && *p == '_'; i++) {
        int k = (int)strlen(pieces[i]);
        if (end - p <= k || memcmp(p + 1, pieces[i], (size_t)k))
            continue;
        *phase = p + 1 + k < end ? atoi(p + 2 + k) : 0;
        return i;
    }
    return -1;
}

static int same_messages(const Messages *a, const Messages *b)
{
    for (int i = 0; i < a->n && a->n == b->n; i++)
        if (a->at[i].peer != b->at[i].peer || a->at[i].tag != b->at[i].tag || a->at[i].bytes != b->at[i].bytes)
            return 0;
    return a->n == b->n;
}

/* A later phase repeats the numbers of phase 0; what follows a cut begins with what is under way there. */
static void open_piece(Reader *r, Name own)
{
    r->piece = piece_of(own, &r->phase);
    r->sends = r->gets = (Messages){NULL, 0};
    if (r->piece < 0)
        return;
    if (r->phase > 0)
        r->actions = r->base[r->piece];
    r->base[r->piece] = r->actions;
    if (r->piece == PERIOD || r->piece == EPILOGUE)
        memcpy(r->begun, r->cut, sizeof r->begun);
}

static void close_piece(Reader *r)
{
    if (r->piece < 0)
        return;
    if (r->phase > 0 && r->actions != r->end[r->piece])
        bad(r, r->at, "phase %d ends with action %d, phase 0 with %d", r->phase, r->actions - 1, r->end[r->piece] - 1);
    r->end[r->piece] = r->actions;
    if (r->phase > 0 && !(same_messages(&r->sends, &r->sent[r->piece]) && same_messages(&r->gets, &r->received[r->piece])))
        bad(r, r->at, "phase %d has other messages than phase 0", r->phase);
    if (r->phase == 0) {
        r->sent[r->piece] = r->sends;
        r->received[r->piece] = r->gets;
    } else {
        free(r->sends.at);
        free(r->gets.at);
    }
    if (r->piece != PROLOGUE && r->piece != PERIOD)
        return;
    if (!r->is_cut)
        memcpy(r->cut, r->begun, sizeof r->cut);
    r->is_cut = 1;
    for (int i = 0; i < REQUESTS; i++)
        if (!r->begun[i] != !r->cut[i])
            bad(r, r->at, "transfer %d is under way at one end of a piece and not at another", i);
    memset(r->begun, 0, sizeof r->begun);
}

static void routine(Reader *r)
{
    Name own = name(r), parameters[MAXARGS];
    Slots takes[MAXARGS];
    int n = 0;
    char sig[MAXARGS];
    want(r, "(");
    want(r, "Stage");
    want(r, "*");
    want(r, "st");
    r->routine++;
    for (; take(r, ","); n++) {
        want(r, "int");
        Name parameter = name(r);
        Symbol *s = find(r, parameter);
        if (n >= MAXARGS - 1 || s->inside == r->routine || s->kind != NOTHING || same(parameter, (Name){"st", 2}))
            bad(r, r->at, "%.*s is defined twice", parameter.n, parameter.at);
        s->name = parameter;
        s->inside = r->routine;
        s->is = (Slots){NULL, 0};
        parameters[n % MAXARGS] = parameter;
        sig[n % MAXARGS] = 'i';
    }
    want(r, ")");
    want(r, "{");
    r->numbered = r->pending = 0;
    open_piece(r, own);
    for (int first = 1; !is(r, "}"); first = 0)
        line(r, first);
    if (r->pending)
        bad(r, r->at, "action %d is empty", r->actions - 1);
    close_piece(r);
    for (int i = 0; i < REQUESTS; i++)
        if (r->begun[i])
            bad(r, r->begun[i], "transfer %d is never waited for", i);
    memset(r->begun, 0, sizeof r->begun);
    check_places(r);
    for (int i = 0; i < n; i++)
        takes[i] = find(r, parameters[i])->is;
    take_parameters(define(r, own, ROUTINE), parameters, sig, takes, n);     /* behind its body: no recursion */
    want(r, "}");
}

#include "emitted_table.h"

/* #include "NAME": strings are no words of the language. */
static void include(Reader *r, const char *file)
{
    size_t n = strlen(file);
    want(r, "#");
    want(r, "include");
    if (*r->text.at != '"' || strncmp(r->text.at + 1, file, n) || r->text.at[n + 1] != '"')
        stop(r, file);
    r->p = r->text.at + n + 2;
}

/* Its names, from another file. */
static void read_header(Reader *r)
{
    Reader was = *r;
    r->path = r->header_path;
    r->p = r->header;
    r->line = r->at = 1;
    header(r);
    r->path = was.path;
    r->p = was.p;
    r->line = was.line;
}

static void file(Reader *r)
{
    const char *slash = strrchr(r->header_path, '/');
    if (strncmp(r->p, "/*", 2))
        stop(r, "a comment at the start");
    next(r);
    r->labelled = !strncmp(r->p, "include \"job.h\"", 15);
    include(r, r->labelled ? "job.h" : "rt.h");
    next(r);
    include(r, slash ? slash + 1 : r->header_path);
    read_header(r);
    for (next(r); r->token != END; ) {
        int local = take(r, "static");
        want(r, "void");
        if (local || !r->labelled)
            routine(r);
        else
            ending(r);
    }
    for (size_t i = 0; i < r->symbols; i++)
        if (r->symbol[i].opened && !r->symbol[i].called)
            bad(r, r->at, "%.*s is opened, and no call uses it", r->symbol[i].name.n, r->symbol[i].name.at);
    if (r->labelled && !r->ended)
        bad(r, r->at, "what the runtime knows of this stage is missing at its end");
}

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    size_t n = 0, cap = 1 << 16;
    char *text = malloc(cap + 1);
    if (!f || !text) {
        fprintf(stderr, "emitted: %s cannot be read\n", path);
        exit(2);
    }
    for (size_t got; (got = fread(text + n, 1, cap - n, f)) > 0; )
        if ((n += got) == cap && !(text = realloc(text, (cap *= 2) + 1)))
            abort();
    fclose(f);
    text[n] = 0;
    return text;
}

/* The texts of a stage, and the path of its header. */
typedef struct { char *source, *header, *path; } Texts;

static Texts read_texts(const char *path)
{
    size_t n = strlen(path);
    Texts x = {.source = read_text(path), .path = copy_of(path, n)};
    x.path[n] = 0;
    x.path[n - 1] = 'h';
    x.header = read_text(x.path);
    return x;
}

static void free_texts(Texts *x)
{
    free(x->source);
    free(x->header);
    free(x->path);
}

/* No line is longer than 160 columns, in the language of today. */
static void check_columns(Reader *r, const char *path, const char *text)
{
    int line = 1;
    for (const char *end; r->labelled && *text; text = end + (*end == '\n'), line++) {
        end = text + strcspn(text, "\n");
        if (end - text > 160)
            bad(r, line, "%s: a line of %d columns", path, (int)(end - text));
    }
}

/* One stage; a reader keeps pointers into its texts and that of rt.h. */
static void read_stage(Reader *r, const char *path, const Texts *x, const char *rt, int quiet)
{
    *r = (Reader){.path = path, .p = x->source, .header_path = x->path, .header = x->header, .line = 1, .at = 1, .quiet = quiet,
                  .symbols = 4096};
    while (r->symbols < strlen(x->source) + strlen(x->header) / 8)
        r->symbols *= 2;
    r->symbol = calloc(r->symbols, sizeof *r->symbol);
    if (!r->symbol)
        abort();
    prototypes(r, rt);
    if (!setjmp(r->out))
        file(r);
    check_columns(r, path, x->source);
    check_columns(r, x->path, x->header);
}

static void shut(Reader *r)
{
    for (size_t i = 0; i < r->symbols; i++) {
        free(r->symbol[i].slot);
        free(r->symbol[i].param);
        free(r->symbol[i].sig);
        free(r->symbol[i].changes);
        free(r->symbol[i].takes);
        free(r->symbol[i].use);
    }
    free(r->symbol);
    free(r->place);
    for (int i = 0; i < PIECES; i++) {
        free(r->sent[i].at);
        free(r->received[i].at);
    }
}

/* ---- between stages -------------------------------------------------------------------------------------- */

/* Ways to put pieces together: a period follows itself, and may be missing. */
static const int runs[][5] = {{STEP, -1}, {PROLOGUE, PERIOD, PERIOD, EPILOGUE, -1}, {PROLOGUE, EPILOGUE, -1}, {ALONE, -1},
                              {EVAL, -1}};

static const Message *nth(const Messages *list, const int *run, int peer, int n)
{
    for (; *run >= 0; run++)
        for (int i = 0; i < list[*run].n; i++)
            if (list[*run].at[i].peer == peer && n-- == 0)
                return &list[*run].at[i];
    return NULL;
}

/* What `from` sends to `to` is what `to` receives from `from`: order, tag and bytes. */
static void check_pair(Reader *stage, int from, int to, const int *run)
{
    for (int n = 0; ; n++) {
        const Message *a = nth(stage[from].sent, run, to, n), *b = nth(stage[to].received, run, from, n);
        if (!a && !b)
            return;
        if (!a || !b || a->tag != b->tag || a->bytes != b->bytes) {
            Reader *r = &stage[a ? from : to];
            bad(r, a ? a->line : b->line, "message %d from stage %d to %d has no equal on the other side", n, from, to);
            return;
        }
    }
}

static void check_peers(Reader *r, const Messages *list, int self, int stages)
{
    for (int i = 0; i < list->n; i++)
        if (list->at[i].peer < 0 || list->at[i].peer >= stages || list->at[i].peer == self)
            bad(r, list->at[i].line, "there is no peer %d", (int)list->at[i].peer);
}

/* A size of the model is the same in every stage. */
static void check_dims(Reader *a, Reader *b)
{
    for (size_t i = 0; i < a->symbols; i++) {
        const Symbol *s = &a->symbol[i], *other = s->kind == DIM ? find(b, s->name) : NULL;
        if (other && (other->kind != DIM || other->value != s->value))
            bad(b, 1, "%.*s is %lld here, %lld in %s", s->name.n, s->name.at, (long long)other->value, (long long)s->value,
                a->path);
    }
}

static int check_files(const char *rt, int n, char **path)
{
    static Reader stage[STAGES];
    static Texts text[STAGES];
    int failed = 0;
    for (int i = 0; i < n; i++) {
        text[i] = read_texts(path[i]);
        read_stage(&stage[i], path[i], &text[i], rt, 0);
    }
    for (int i = 0; i < n; i++) {
        check_dims(&stage[0], &stage[i]);
        for (int k = 0; k < PIECES; k++) {
            check_peers(&stage[i], &stage[i].sent[k], i, n);
            check_peers(&stage[i], &stage[i].received[k], i, n);
        }
        for (int k = 0; k < n; k++)     /* what a stage sends to itself has been refused above */
            for (size_t x = 0; x < sizeof runs / sizeof *runs; x++)
                check_pair(stage, i, k, runs[x]);
    }
    for (int i = 0; i < n; i++) {
        failed += stage[i].failed != 0;
        shut(&stage[i]);
        free_texts(&text[i]);
    }
    printf("emitted: %d passed, %d failed\n", n - failed, failed);
    return failed != 0;
}

/* ---- self-test -------------------------------------------------------------------------------------------- */

#include "emitted_damage.h"

/* The first `find` of a text becomes `put`; NULL: it is not there. */
static char *damaged(const char *text, const char *find, const char *put)
{
    const char *at = strstr(text, find);
    size_t size = strlen(text) + strlen(put) + 1;
    char *worse = at ? malloc(size) : NULL;
    if (at && !worse)
        abort();
    if (at)
        snprintf(worse, size, "%.*s%s%s", (int)(at - text), text, put, at + strlen(find));
    return worse;
}

static int self_test(const char *rt, const char *path)
{
    int passed = 0, failed = 0;
    Texts text = read_texts(path);
    Reader r;
    read_stage(&r, path, &text, rt, 0);
    r.failed ? failed++ : passed++;
    shut(&r);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const char *find = damages[i].find;
        int in_header = !strncmp(find, "h:", 2);
        char *worse = damaged(in_header ? text.header : text.source, find + 2 * in_header, damages[i].put);
        Texts x = {in_header || !worse ? text.source : worse, in_header && worse ? worse : text.header, text.path};
        read_stage(&r, path, &x, rt, 1);
        int ok = worse && r.failed && strstr(r.reason, damages[i].why);
        ok ? passed++ : failed++;
        if (!ok)
            fprintf(stderr, "%s: '%s' -> '%s': %s\n", path, find, damages[i].put,
                    !worse ? "not there to damage" : r.failed ? r.reason : "accepted");
        shut(&r);
        free(worse);
    }
    free_texts(&text);
    printf("emitted: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}

int main(int argc, char **argv)
{
    int test = argc == 4 && !strcmp(argv[2], "--self-test"), status;
    if (argc < 3 || argc > STAGES + 2 || (argv[2][0] == '-' && !test)) {
        fprintf(stderr, "usage: emitted RT.h STAGE.c ... | emitted RT.h --self-test FILE\n");
        return 2;
    }
    char *rt = read_text(argv[1]);
    status = test ? self_test(rt, argv[3]) : check_files(rt, argc - 2, argv + 2);
    free(rt);
    return status;
}
