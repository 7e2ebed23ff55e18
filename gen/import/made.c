/* SPDX-License-Identifier: Apache-2.0
 *
 * made.c: the model file that an import makes, read and built as dpgen check does it, before any of it is on disk.
 */
#include "net.h"
#include "graph.h"

typedef struct { const char *path; const Text *text; } Reading;

static void see(void *ctx, Graph *g, char letter)
{
    const Model *m = ctx;
    if (letter == 's')
        weights_check(m, g);
}

static void read_made(void *ctx)
{
    const Reading *x = ctx;
    const Overrides none = {0};
    Model *m = model(load_text(x->path, x->text->at, x->text->n), x->path, &none);
    graph_line(m, see, m);
}

const char *made_refused(const char *path, const Text *text, Loc *at)
{
    Reading x = {path, text};
    if (diag_accepts(read_made, &x))
        return NULL;
    *at = diag_refused_at();
    return diag_refusal();
}

void made_check(const char *from, const char *path, const Text *text)
{
    Loc at;
    const char *why = made_refused(path, text, &at);
    if (why)
        fail(EXIT_MODEL, "%s: no model file can be made of it: %s", quote_terminal(from), why);
}
