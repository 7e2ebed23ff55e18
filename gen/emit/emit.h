/* SPDX-License-Identifier: Apache-2.0
 *
 * emit.h: what the files of gen/emit share.
 */
#ifndef EMIT_H
#define EMIT_H
#include "plan.h"

/* names.c: C identifiers, unique in one stage */
typedef struct { Strs taken; } Idents;
const char *name_new(Idents *n, const char *path);   /* from h.3.attn: h_3_attn; a clash gets a number */
const char *name_dim(Idents *n, const char *name);   /* capitals may stay */
const char *name_constant(Idents *n, const char *base);

/* dims.c: the dims of the model, and a number of its graph as it is printed: 12, D, B*T, 4L*V*D; name: of each dim, or NULL */
typedef struct EmitDims EmitDims;
EmitDims *dims_of(const Plan *p);
int dims_count(const EmitDims *d);
const Dim *dims_at(const EmitDims *d, int i);       /* 0: B, samples in a micro-batch */
const char *dims_arg(const EmitDims *d, const char *const *name, const Graph *g, const Op *o, const Arg *a);
const char *dims_axis(const EmitDims *d, const char *const *name, const Graph *g, const Buf *b, int axis);  /* of its shape */
/* Bytes of a tensor, or else of a state; per: of an element, to count these. */
const char *dims_bytes(const EmitDims *d, const char *const *name, const Graph *g, int tensor, int state, Bytes bytes,
                       int64_t per);

/* What dpgen writes carries no conditions.  In two strings, for in the source it is no tag. */
#define EMIT_LICENCE "CC0-1.0"
#define EMIT_TAG "SPDX-License-" "Identifier: " EMIT_LICENCE

/* stage.c launch.c archive.c build.c */
/* stageN.h and stageN.c; taken: names that its own must not be */
void emit_stage(Out *o, const Plan *p, const EmitDims *dims, int device, const Strs *taken);
void emit_launch(FILE *f, const Plan *p, const char *prefix, const char *plan_hash, bool library);
/* api.c, amalgam.c: the job as functions */
typedef struct Api Api;
Api *api_new(const Plan *p, const char *name, const char *launch);      /* launch: its text */
Strs api_taken(const Api *a);
void api_emit(Out *o, Api *a);                      /* behind its stage */
const char *emit_moments(const Train *t);           /* settings.c: the rule that gives moments their meaning */
void emit_settings(FILE *f, const Plan *p);
void emit_header(FILE *f, const Plan *p, const char *prefix);     /* launch.c; of a job that is an object */
void emit_plan_json(FILE *f, const Plan *p);
void emit_trace(FILE *f, const Plan *p);
void emit_report(FILE *f, const Plan *p, const char *plan_hash);    /* report.c */
typedef struct { int from, to; const Action *send, *wait; } Flow;     /* wait: of its receiver */
typedef VEC(Flow) Flows;
typedef VEC(struct { Ns at; Bytes bytes; }) Alive;
const Alive *report_alive(const Plan *p, int device);   /* report_memory.c: by call */
Flows lists_flows(const Plan *p);              /* lists.c: of the step */
void emit_lists(FILE *f, const Plan *p);             /* lists.c: a drawing in SVG */
extern const char report_mark[];                    /* in that page: where what a run measured is put */
/* Is the job a program?  With another prefix it is an object for a program of somebody else. */
bool emit_program(const char *prefix);
void emit_build(Out *o, const Plan *p, const char *prefix);
/* A template with @mark@ replaced; an unknown mark is a bug.  The compiler's flags for the instruction set of the plan. */
typedef struct { const char *mark, *value; } Fill;
void build_template(FILE *f, const char *name, const Fill *fill);
int build_threads(const Plan *p);                     /* most of any stage */
const char *build_isa(const Plan *p);
/* files.c */
Strs files_of(const Plan *p, bool mute);            /* the files of rt/ that the job needs */
Strs files_kernels(const Plan *p);                  /* those of its kernels, as they define its calls */
void files_print(Out *o, const Plan *p, const Strs *files, const Embedded *e);      /* one of them, into the folder */
void files_parts(FILE *f, const Plan *p, bool mute);        /* for launch.c: the parts of the runtime that it has */
bool files_sample(const char *name);                /* of the program sample alone */
bool files_source(const char *name);
/* proof.c: of all other files, before the folder has its name; or a file that says that nobody made one */
void emit_prover(Out *o, bool proved);                  /* its source, and whether the folder will be proved */
void emit_proof(const Out *o);
void emit_sbom(Out *o, const Plan *p, const char *library);  /* sbom.c; after all other files; its NAME, or NULL */
const char *action_text(const Plan *p, const Action *k);    /* F chunk 0, micro-batch 3 */
/* Words with a comma between them, `from` columns behind the begin of the line; several lines where they are too long. */
void emit_wrap(FILE *f, int from, int indent, const Strs *word, const char *behind);
enum { EMIT_COLUMNS = 160 };
const char *emit_piece(Piece piece, int phase);     /* period_3; step */
const char *covers_text(const Plan *p, int device);         /* its first .. last operator; several runs of them */
/* team.c: plan.tensor */
Bytes team_sent(const Plan *p, int device);         /* to each other, by one device of the stage in a step */
const char *team_shape(const Plan *p);              /* behind a number of stages: " of 4 devices", " in 2, 1 copies" */
void team_json(FILE *f, const Plan *p, int device);
int emit_ranks(const Plan *p);                      /* processes that do the job, where each device has one */
Bytes emit_offloaded(const Plan *p, int device);    /* what leaves it, and comes back, for one micro-batch */
int emit_rank(const Plan *p, int device);           /* of MPI: devices used are ranks in the order of the model file */
const char *emit_mute(const Plan *p, const char *prefix);   /* sample.c: why the job writes no text; NULL: it does */
bool emit_cuda(const Plan *p);                      /* stages on GPUs: rt/cuda/, rt/op/cuda/ */
bool emit_paced(const Plan *p);                     /* kernels that only wait: rt/pace.c */
const Library *emit_library(const Plan *p);         /* the kernels of the job */

/* ---- amalgam.c: several C files as one ----------------------------------------------------------------------------- */
typedef struct Amalgam Amalgam;
/* The text of a file that stands in it, and its path; NULL: #include "NAME" is left out. */
typedef const char *(*Amalgamated)(const void *with, const char *name, const char **path);
Amalgam *amalgam_new(Amalgamated find, const void *with);
void amalgam_learn(Amalgam *a, const char *file);       /* of each file, before the first is printed */
Strs amalgam_names(const Amalgam *a);                   /* that they have at file level */
void amalgam_begin(Amalgam *a);                         /* then they are printed in the same order */
void amalgam_skip(Amalgam *a, const char *file);        /* it stands there already */
void amalgam_print(Amalgam *a, FILE *f, const char *file);
/* A source and its header whose names others have too: each is a macro meanwhile, so their text stays as it is.  They have no
 * name that is a member of theirs. */
void amalgam_print_apart(Amalgam *a, FILE *f, const char *header, const char *source, int number);

/* ---- holding.c: for what a buffer holds its place, told to a person ------------------------------------------------ */
typedef enum { H_PARAM, H_GRAD, H_MOMENT, H_SAVED, H_MESSAGE, H_OTHER, H_KINDS } Holding;
extern const char *const holding_name[H_KINDS];
Holding holding_of(const Plan *p, const Buf *x);

/* ---- page.c -------------------------------------------------------------------------------------------------------- */
/* pages for a browser: report.html, the page of a measured run, the page of dpgen compare.  A page is one file with its
 * styles, and its script where it has one, inside; it asks for nothing else.  Places along a plot are shares of its width in
 * per cent, so that the picture is as wide as the window without a script. */
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
