/* SPDX-License-Identifier: Apache-2.0
 *
 * page.c: what the pages for a browser share: head and end, escapes, a time axis, boxes of a schedule.
 *
 * templates/report.css and report.js are copied into the page as they are.
 */
#include "emit.h"

void page_template(FILE *f, const char *name)
{
    const Embedded *t = embedded_find(name);
    if (!t)
        die("no template %s", name);
    fwrite(t->data, 1, t->n, f);
}

void page_begin(FILE *f, const char *title, const char *plan)
{
    fprintf(f, "<!DOCTYPE html>\n<!-- " EMIT_TAG " -->\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    if (plan)
        fprintf(f, "<meta name=\"plan\" content=\"%s\">\n", plan);
    fprintf(f, "<title>%s</title>\n<style>\n", quote_html(title));
    page_template(f, "templates/report.css");
    fprintf(f, "</style>\n</head><body>\n");
}

void page_end(FILE *f, bool script)
{
    if (script) {
        fprintf(f, "<script>\n");
        page_template(f, "templates/report.js");
        fprintf(f, "</script>\n");
    }
    fprintf(f, "</body></html>\n");
}

/* ---- time ------------------------------------------------------------------------------------------------------------ */

static const struct { Ns from, unit; const char *name; } units[] = {
    {10000000000, 1000000000, "s"}, {1000000, 1000000, "ms"}, {1000, 1000, "us"}, {0, 1, "ns"}};

static int unit_of(Ns ns)
{
    int i = 0;
    while (ns < units[i].from)
        i++;
    return i;
}

const char *page_time(Ns ns)
{
    int i = unit_of(ns);
    double x = (double)ns / (double)units[i].unit;
    return strf("%.*f %s", units[i].unit == 1 ? 0 : x < 10 ? 3 : x < 100 ? 2 : 1, x, units[i].name);
}

double page_share(Ns at, Ns length)
{
    return length > 0 ? 100 * (double)at / (double)length : 0;
}

/* 1, 2 or 5 times a power of ten, so that there are at most seven of them. */
static Ns axis_step(Ns length)
{
    static const int factor[] = {1, 2, 5};
    for (Ns power = 1;; power *= 10)
        for (int i = 0; i < 3; i++)
            if (factor[i] * power >= length / 7)
                return factor[i] * power;
}

void page_axis(FILE *f, Ns length, int bottom)
{
    Ns step = axis_step(length);
    int unit = unit_of(length);
    fprintf(f, "<g class=\"axis\">");
    for (Ns at = 0; at <= length; at += step) {
        double x = page_share(at, length);
        fprintf(f, "<line class=\"grid\" x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"0\" y2=\"%d\"/>", x, x, bottom);
        if (x < 94)
            fprintf(f, "<text x=\"%.3f%%\" dx=\"2\" y=\"%d\">%g%s%s</text>", x, bottom + AXIS - 4,
                    (double)at / (double)units[unit].unit, at ? "" : " ", at ? "" : units[unit].name);
    }
    fprintf(f, "</g>\n");
}

void page_bar(FILE *f, double share, double mark)
{
    fprintf(f, "<td class=\"bar\"><svg><rect class=\"bed\" width=\"100%%\" height=\"100%%\"/><rect width=\"%.2f%%\" "
            "height=\"100%%\"/>", 100 * share);
    if (mark >= 0 && mark <= 1)
        fprintf(f, "<line class=\"limit\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"-20%%\" y2=\"120%%\"/>", 100 * mark, 100 * mark);
    fprintf(f, "</svg></td>");
}

/* ---- a schedule -------------------------------------------------------------------------------------------------------- */

static const struct { const char *begins, *class, *legend; bool copy; } looks[] = {
    {"forward", "f", "forward", false},
    {"backward", "b", "backward", false},
    {"input gradient", "b", NULL, false},
    {"weight gradient", "w", "weight gradient", false},
    {"recompute", "r", "recomputation", false},
    {"update", "u", "u: update", false}, {"norm", "u", NULL, false}, {"gather gradients", "u", NULL, false},
    {"fold", "u", NULL, false}, {"add ", "u", NULL, false}, {"keep the weights", "u", NULL, false},
    {"sum blocks", "u", NULL, false}, {"copies", "u", NULL, false}, {"predict the weights", "u", NULL, false},
    {"load", "l", "load", false}, {"count targets", "l", NULL, false},
    {"send to", "e", "send, receive, exchange", false}, {"receive from", "e", NULL, false}, {"share", "e", NULL, false},
    {"open the room", "e", NULL, false}, {"round copies", "e", NULL, false},
    {"wait", "z", "waiting", false},
    {"offload", "o", "copy to the host", true}, {"fetch", "i", "and back", true}};

const char *action_class(const char *name, bool copy)
{
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (looks[i].copy == copy && !strncmp(name, looks[i].begins, strlen(looks[i].begins)))
            return looks[i].class;
    return NULL;
}

void page_legend(FILE *f, const char *classes)
{
    fprintf(f, "<p class=\"legend\">");
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (looks[i].legend && strchr(classes, *looks[i].class))
            fprintf(f, "<span><i class=\"%s\"></i>%s</span>", looks[i].class, looks[i].legend);
    fprintf(f, "%s</p>\n", strchr(classes, *ARROW) ? "<span><i class=\"rule arrow\"></i>message</span>" : "");
}

void page_key(FILE *f, const char *classes, int x, int y)
{
    enum { SIDE = 12, LETTER = 7 };
    for (size_t i = 0; i <= sizeof looks / sizeof *looks; i++) {
        bool arrow = i == sizeof looks / sizeof *looks;
        const char *class = arrow ? ARROW : looks[i].class, *text = arrow ? "message" : looks[i].legend;
        if (!text || !strchr(classes, *class))
            continue;
        text = *class == 'b' && strchr(classes, 'w') ? "input gradient" : text;
        if (arrow || *class == 'z')
            fprintf(f, "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>", class, x, x + SIDE, y + SIDE / 2,
                    y + SIDE / 2);
        else
            fprintf(f, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", class, x, y, SIDE, SIDE);
        fprintf(f, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + SIDE + 5, y + SIDE - 2, text);
        x += 2 * SIDE + 5 + LETTER * (int)strlen(text);
    }
}

void page_box(FILE *f, const Box *b, Ns length)
{
    static const double least = 0.04, legible = 2.4;
    double x = page_share(b->from, length), wide = page_share(b->to - b->from, length);
    bool wait = *b->class == 'z';
    if (wait && wide < least)
        return;
    if (wait)
        fprintf(f, "<line class=\"z\" x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"%d\" y2=\"%d\" data-s=\"%d\"", x, x + wide,
                b->y + b->tall / 2, b->y + b->tall / 2, b->stage);
    else
        fprintf(f, "<rect class=\"%s\" x=\"%.3f%%\" y=\"%d\" width=\"%.3f%%\" height=\"%d\" data-s=\"%d\"", b->class, x, b->y,
                wide > least ? wide : least, b->tall, b->stage);
    if (b->calls >= 0)
        fprintf(f, " data-c=\"%d\"", b->calls);
    fprintf(f, "%s><title>%s</title></%s>", b->measured ? " data-measured=\"1\"" : "", quote_html(b->title),
            wait ? "line" : "rect");
    if (b->number && wide > 8 * least)
        fprintf(f, "<text class=\"n%s\" x=\"%.3f%%\" y=\"%d\" data-w=\"%.2f\">%s</text>", wide < legible ? " t" : "",
                x + wide / 2, b->y + b->tall / 2 + 4, wide, b->number);
    fprintf(f, "\n");
}

void page_arrow(FILE *f, const Arrow *a, Ns length)
{
    fprintf(f, "<line class=\"m\" x1=\"%.3f%%\" y1=\"%d\" x2=\"%.3f%%\" y2=\"%d\"/>\n", page_share(a->from, length), a->above,
            page_share(a->to, length), a->below);
}

void page_table(FILE *f, const char *what)
{
    fprintf(f, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table>\n", what);
}
