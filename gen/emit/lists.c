/* SPDX-License-Identifier: Apache-2.0
 *
 * lists.c: the lists of a plan as a drawing: devices down, time across, as the simulator sees it; in report.html, and as a
 * file of its own that a paper or a page can show.
 *
 * The file is as wide as its boxes need for their numbers.  Its styles say colours without variables, which many readers of
 * SVG lack, and it has no script.
 */
#include "emit.h"

enum { MOST_ARROWS = 2000, COPY = 4, NAMES = 100, MARGIN = 16, HEAD = 62, BOX = 20, LEAST_WIDTH = 960 };

const char *list_name(const Plan *p, int device)
{
    return plan_replicas(p) > 1 ? strf("%d/%d", plan_replica(p, device), plan_stage(p, device)) : strf("%d", device);
}

/* A wait says for whom. */
static const char *told(const Plan *p, const Action *k)
{
    const char *text = action_text(p, k), *what = strchr(text, ':');
    if (k->kind != K_WAIT || !what)
        return text;
    return is_copy(k) ? strf("waits for the link to the host%s", what) : k->of == K_SEND ?
           strf("waits until stage %s has taken%s", list_name(p, k->peer), what) :
           strf("waits for stage %s%s", list_name(p, k->peer), what);
}

static const char *title_of(const Plan *p, const Action *k, Ns ns)
{
    const char *text = strf("%s: %s", told(p, k), page_time(ns));
    const Routine *r = k->routine >= 0 ? &p->routine.at[k->routine] : NULL;
    if (!r || !r->call.n)
        return text;
    const char *first = p->g->op.at[r->call.at[0].op].name, *last = p->g->op.at[r->call.at[r->call.n - 1].op].name;
    return strf("%s\n%s: %s .. %s", text, count_text(r->call.n, "call"), first, last);
}

/* The chunks of a device are told apart by their strength. */
static const char *shade_of(const Plan *p, int device, int chunk)
{
    int before = 0;
    for (int c = 0; c < chunk; c++)
        before += plan_holds(p, device, c);
    return chunk < 0 || !before ? "" : before % 2 ? " c1" : " c2";
}

static void print_action(FILE *f, const Plan *p, int device, const Action *k, Ns length)
{
    bool copy = k->kind == K_OUT || k->kind == K_IN;
    const char *class = action_class(action_text(p, k), copy);
    Ns from = copy ? k->wire_from : k->from, to = copy ? k->wire_to : k->to;
    if (!class || to <= from)
        return;
    Box b = {.class = strf("%s%s", class, shade_of(p, device, k->chunk)), .title = title_of(p, k, to - from),
             .stage = device, .calls = k->routine, .from = from, .to = to,
             .y = device * LIST_ROW + 2, .tall = LIST_ROW - 4 - (p->host.n ? 2 * COPY : 0),
             .number = *class == 'u' ? "u" : k->mb >= 0 && strchr("fbwr", *class) ? strf("%d", k->mb) : NULL};
    if (copy) {
        b.number = NULL;
        b.y = device * LIST_ROW + LIST_ROW - 2 - (k->kind == K_IN ? COPY : 2 * COPY);
        b.tall = COPY - 1;
    }
    page_box(f, &b, length);
}

/* The end of the last action: of a schedule whose steps overlap that is the whole run of one period, and a step alone. */
Ns lists_length(const Plan *p)
{
    Ns end = 1;
    for (int d = 0; d < p->devices; d++)
        for (EACH(const Action, k, p->dev.at[d].list)) {
            end = k->to > end ? k->to : end;
            end = k->wire_to > end ? k->wire_to : end;
        }
    return end;
}

const char *lists_classes(const Plan *p)
{
    const char *text = "";
    for (int d = 0; d < p->devices; d++)
        for (EACH(const Action, k, p->dev.at[d].list)) {
            const char *class = action_class(action_text(p, k), k->kind == K_OUT || k->kind == K_IN);
            bool drawn = class && (k->to > k->from || k->wire_to > k->wire_from);
            if (drawn && !strchr(text, *class))
                text = strf("%s%s", text, class);
        }
    int n = lists_flows(p).n;
    return strf("%s%s", text, n > 0 && n <= MOST_ARROWS ? ARROW : "");
}

/* The k-th send of a pair meets its k-th receive, which is waited for behind it. */
Flows lists_flows(const Plan *p)
{
    Flows all = {0};
    for (int d = 0; d < p->devices; d++)
        for (int e = 0; e < p->devices; e++) {
            const Actions *from = &p->dev.at[d].list, *to = &p->dev.at[e].list;
            for (int i = 0, j = 0; d != e && i < from->n; i++) {
                if (from->at[i].kind != K_SEND || from->at[i].peer != e)
                    continue;
                while (j < to->n && (to->at[j].kind != K_RECV || to->at[j].peer != d))
                    j++;
                int w = j++;
                while (w < to->n && (to->at[w].kind != K_WAIT || to->at[w].of != K_RECV ||
                                     to->at[w].request != to->at[j - 1].request))
                    w++;
                if (w < to->n)
                    *PUSH(&all) = (Flow){d, e, &from->at[i], &to->at[w]};
            }
        }
    return all;
}

void lists_names(FILE *f, const Plan *p)
{
    for (int d = 0; d < p->devices; d++)
        fprintf(f, "<text y=\"%d\">stage %s</text>", d * LIST_ROW + 19, list_name(p, d));
}

void lists_draw(FILE *f, const Plan *p, Ns length)
{
    for (int d = 0; d < p->devices; d++)
        fprintf(f, "<rect class=\"row\" y=\"%d\" width=\"100%%\" height=\"%d\"/>", d * LIST_ROW + 2, LIST_ROW - 4);
    page_axis(f, length, LIST_ROW * p->devices);
    for (int d = 0; d < p->devices; d++)
        for (int i = 0; i < p->dev.at[d].list.n; i++)
            print_action(f, p, d, &p->dev.at[d].list.at[i], length);
    fprintf(f, "<marker id=\"tip\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" "
            "orient=\"auto\"><path d=\"M0 0L6 3L0 6z\"/></marker>\n");
    Flows all = lists_flows(p);
    for (int i = 0; all.n <= MOST_ARROWS && i < all.n; i++) {
        const Flow *m = &all.at[i];
        page_arrow(f, &(Arrow){m->send->from, m->wait->to, m->from * LIST_ROW + LIST_ROW / 2,
                               m->to * LIST_ROW + LIST_ROW / 2}, length);
    }
}

/* ---- a file of its own ------------------------------------------------------------------------------------------------- */

void emit_lists(FILE *f, const Plan *p)
{
    Ns length = lists_length(p);
    int wide = LEAST_WIDTH;
    for (int d = 0; d < p->devices; d++)
        wide = (int)max_of(wide, BOX * p->dev.at[d].order.n);
    int tall = LIST_ROW * p->devices + AXIS, all = NAMES + wide + MARGIN;
    const char *what = strf("%s: %s, %s, %s of %s, predicted step %s", p->g->name, order_name(p),
                            count_text(plan_stages(p), "stage"), count_text(p->g->micro, "micro-batch"),
                            count_text(p->g->batch, "sample"), page_time(p->step));
    fprintf(f, "<!-- " EMIT_TAG " -->\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>%s</title>\n<style>\n", all, HEAD + tall + 6, all, HEAD + tall + 6,
            quote_html(what));
    page_template(f, "templates/lists.css");
    fprintf(f, "</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n<text class=\"head\" x=\"%d\" y=\"24\">%s"
            "</text>\n", MARGIN, quote_html(what));
    page_key(f, lists_classes(p), MARGIN, 36);
    fprintf(f, "<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\">", MARGIN, HEAD, NAMES - MARGIN, tall);
    lists_names(f, p);
    fprintf(f, "</svg>\n<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\">\n", NAMES, HEAD, wide, tall);
    lists_draw(f, p, length);
    fprintf(f, "</svg>\n</svg>\n");
}
