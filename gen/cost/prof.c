/* SPDX-License-Identifier: Apache-2.0
 *
 * prof.c: a profile, read.
 */
#include "cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
        links_all(f->c, (Wire){(double)link, ns, false});
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

void profile_read(Cost *c, const Graph *g, const Model *m, const char *path)
{
    const Device *d = &m->devices.at[0];
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
