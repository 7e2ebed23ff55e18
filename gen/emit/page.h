/* SPDX-License-Identifier: Apache-2.0
 *
 * page.h: pages for a browser: report.html, the page of a measured run, the page of dpgen compare.
 *
 * A page is one file with its styles, and its script where it has one, inside; it asks for nothing else.  Places along a plot
 * are shares of its width in per cent, so that the picture is as wide as the window without a script.
 */
#ifndef PAGE_H
#define PAGE_H
#include "plan.h"

void page_begin(FILE *f, const char *title, const char *plan);  /* plan: SHA-256 of plan.json; NULL: the page has no plan */
void page_end(FILE *f, bool script);
const char *page_time(Ns ns);                       /* 3.41 ms */
double page_share(Ns at, Ns length);                /* per cent, with three digits */
void page_axis(FILE *f, Ns length, int bottom);     /* lines down to `bottom`, times below: AXIS more */
enum { AXIS = 18 };

void page_bar(FILE *f, double share, double mark);  /* a cell of a table; mark: a line there, if it is 0 to 1 */

/* An action as a box of a schedule.  title: lines under the pointer; calls: its entry in the script's table, -1: none. */
typedef struct {
    const char *class, *title, *number;     /* number may be NULL */
    int stage, calls, y, tall;
    Ns from, to;
    bool measured;
} Box;
void page_box(FILE *f, const Box *b, Ns length);        /* a wait is a thin hatched bar */
#define ARROW "m"               /* among classes: messages are drawn */
typedef struct { Ns from, to; int above, below; } Arrow;        /* of a message: when and at which height it leaves, arrives */
void page_arrow(FILE *f, const Arrow *a, Ns length);
void page_tip(FILE *f);                             /* the tips of arrows; once in a page */
void page_table(FILE *f, const char *what);         /* begins one that scrolls where it is too wide: </table></div> */
const char *action_class(const char *name, bool copy);  /* of an action by its name: fbwrulezoi; NULL: it is not drawn */
void page_legend(FILE *f, const char *classes);      /* of those that occur */
void page_key(FILE *f, const char *classes, int x, int y);      /* the same, in a picture */
void page_template(FILE *f, const char *name);

/* lists.c: the lists of a plan, LIST_ROW a device and AXIS more. */
enum { LIST_ROW = 30 };
const char *list_name(const Plan *p, int device);
Ns lists_length(const Plan *p);
const char *lists_classes(const Plan *p);           /* of the actions that are drawn */
void lists_names(FILE *f, const Plan *p);
void lists_draw(FILE *f, const Plan *p, Ns length);

/* report_memory.c */
void report_memory(FILE *f, const Plan *p, int device, Ns length);
void report_lives(FILE *f, const Plan *p, int device, Ns length);   /* the same for the script, as an object of JSON */
#endif
