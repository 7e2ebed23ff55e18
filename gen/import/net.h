/* SPDX-License-Identifier: Apache-2.0
 *
 * net.h: graphs of other frameworks, on their way to a model file: onnx.c and pt2.c read them, ops.c turns each
 * operator to lines, write.c writes lines and weights.
 */
#ifndef NET_H
#define NET_H
#include "base.h"

/* ANY_BATCH: samples of a graph that does not say how many: a prime, to be found again */
enum { MOST_DIMS = 6, NET_ANY_BATCH = 7919 };
typedef struct { int n; int64_t d[MOST_DIMS]; } Dims;

/* A value of the graph.  Dims are those of the file, channels behind the batch; `last`: here they are the last axis. */
typedef enum { VALUE_ACT, VALUE_WEIGHT, VALUE_NUMBERS } NetValueKind;
typedef struct {
    const char *name, *here;    /* in the file; in the model file, where it is no such name with another beginning */
    NetValueKind kind;
    Dims dims;
    bool last, whole;           /* whole: integers: ids of tokens, or arithmetic on shapes */
    int line;                   /* of an activation: that makes it; -1: an input */
    const struct View *view;    /* samples are not its first axis: view.c; NULL: they are */
    const char *type;           /* of a weight: its bytes, as safetensors have them */
    const unsigned char *at;
    Dims stored;                /* of a weight: in the file, whatever the graph makes of its axes */
    bool learns;                /* the file has it as a parameter, and no constant */
    bool folded;                /* an exporter has made it of several tensors */
    bool turned;                /* a matrix whose axes the graph swaps */
    const double *number;       /* of numbers */
} NetValue;
typedef VEC(double) Numbers;

enum { MOST_ROLES = 8 };
typedef struct { const char *role; int value; bool turned, tied; Dims dims; } NetRole;  /* tied: to one above */
typedef struct {
    const char *op;             /* of ops.def; `?X`: of an idiom, and no operator by itself */
    const char *attributes;     /* `, out: 8`, behind op and name */
    VEC(int) in;
    int out;
    NetRole role[MOST_ROLES];
    int roles;
    double factor;              /* of Scale, ?Plus and ?Pow; the probability of ?Draw */
    Ints joins;                 /* of Concat: all that stand in it, those of a Concat at its beginning too */
    const char *node;           /* that it was read from */
    const char *module;         /* in PyTorch, as layers.0.drop; NULL: not known */
    const char *name;           /* write.c: of the line, where its parameters give none; NULL: none */
    bool used;
} Made;

typedef struct {
    const char *path;
    VEC(NetValue) value;
    VEC(Made) line;
    Ints inputs;
    int64_t batch;              /* the first axis of every activation */
    const char *node;           /* being read: for messages */
    const char *module;         /* that it belongs to */
    bool views;                 /* what moves the samples is followed */
    const char *remedy;         /* the export that works */
    const char *shape;          /* sizes of inputs that the file leaves open: x=2,3,48,192 and others behind blanks; NULL */
} Net;

/* net.c */
/* FILE: node: text; what can be done.  Status 3.  net_refuse: of a node, that is to do without it: no other export helps. */
void net_refuse(const Net *g, const char *form, ...) PRINTF(2, 3) NORETURN;
void net_advise(const Net *g, const char *remedy, const char *form, ...) PRINTF(3, 4) NORETURN;
int  net_input(Net *g, const char *name, Dims dims, bool whole);
int  net_weight(Net *g, const char *name, const char *type, Dims dims, const unsigned char *at, int64_t bytes);
int  net_numbers(Net *g, Dims dims, const double *number);
int64_t dims_elements(const Dims *d);
bool dims_same(const Dims *a, const Dims *b);
const double *net_known(Net *g, int value);         /* numbers, or those of a weight; NULL: only a run knows */
int64_t net_integer(Net *g, int value);       /* one number */
int64_t net_bounded(double x);     /* a whole number of a file, at most 1e15 either way; what is no number is 1e15 */
/* A line of one result. */
int  net_line(Net *g, const char *op, const char *attributes, int in, Dims dims, bool last);
void net_also(Net *g, int value, int in);           /* its line has one more operand, */
void net_role(Net *g, int value, const char *role, int weight, bool turned, Dims dims);     /* or a parameter; -1: none */
void net_want_weight(const Net *g, int value, const char *role);
int  net_axes_of(Net *g, int weight, Dims dims);    /* the same tensor under other axes */
const Made *net_made(const Net *g, int value);      /* by which line; NULL: none */

/* ops_axes.c: axes of activations */
void net_want_act(Net *g, int x);
int  net_channels_last(Net *g, int x);
int  net_plain(Net *g, int x);                      /* elements in the order of the file */

/* ops.c, ops_axes.c: operators of neural networks; each gives its result */
typedef struct { int64_t kernel[2], stride[2], pad[4], dilate[2], groups; bool ceil, count_pad; } NetWindow; /* pad: top, left,
                                                                                                              bottom, right */
int ops_conv(Net *g, int x, int weight, int bias, const NetWindow *w);
int ops_pool(Net *g, const char *op, int x, const NetWindow *w);
int ops_global_pool(Net *g, int x, bool keep);
int ops_batch_norm(Net *g, int x, const int weight[5], double eps, double momentum);   /* weight, bias, mean, variance, steps */
int ops_layer_norm(Net *g, int x, int weight, int bias, double eps);
int ops_instance_norm(Net *g, int x, int weight, int bias, double eps);
int ops_linear(Net *g, int x, int weight, int bias, bool turned);       /* turned: weight is [in, out] */
int ops_embedding(Net *g, int ids, int weight);
int ops_unary(Net *g, const char *op, const char *attributes, int x);
int ops_scale(Net *g, int x, double factor);
int ops_power(Net *g, int x, double number);
int ops_draw(Net *g, Dims dims, double keep);           /* 1 with this probability, else 0: a factor of a Dropout */
int ops_binary(Net *g, const char *op, int a, int b);                   /* Add, Sub, Mul, Div */
int ops_concat(Net *g, const Ints *in, int64_t axis);
int ops_slice(Net *g, int x, int64_t axis, int64_t from, int64_t count);
int ops_reshape(Net *g, int x, Dims dims);
int ops_transpose(Net *g, int x, const int64_t *perm);
int ops_expand(Net *g, int x, Dims to);                 /* -1: as it is */
const char *net_real(double x);                         /* the shortest text that is x, or x as a float */
int ops_conv_transpose(Net *g, int x, int weight, int bias, const NetWindow *w, const int64_t extra[2]);
int ops_pad(Net *g, int x, const int64_t pad[4], double value);
int ops_upsample(Net *g, int x, const double factor[2], bool bilinear, bool align);
int ops_mean(Net *g, int x, const int64_t *axis, int axes, bool keep);

/* ops_pixels.c */
int ops_every(Net *g, int x, const int64_t by[2]);
int ops_global_max(Net *g, int x, bool keep);
int ops_prelu(Net *g, int x, int slope);
int ops_mirror(Net *g, int x, const int64_t pad[4], bool edge);

/* ops_language.c */
int ops_attention(Net *g, const int heads[3], bool causal, double drop, double scale);     /* scale 0: by the width */
void net_refuse_attention(const Net *g, const char *what) NORETURN;
int ops_positions(Net *g, int ids, int weight);
int ops_lstm(Net *g, int x, const Ints *weight, int64_t layers, bool two, bool biases, double drop);

/* view.c: values whose axes are those of another one, cut and in another order */
int view_transpose(Net *g, int x, const int64_t *perm);
int view_reshape(Net *g, int x, Dims to);
int view_pick(Net *g, int x, int64_t axis, int64_t at);
int view_unary(Net *g, const char *op, const char *attributes, int x);
int view_linear(Net *g, int x, int weight, int bias, bool turned);

/* idiom.c: the operator that a product is, in parts; -1: none */
int idiom_of_product(Net *g, int value);

/* write.c: the model file, and its weights beside it as safetensors */
void net_write(Net *g, int result, const char *loss, const char *out);

/* onnx.c, pt2.c: the result of the graph */
int onnx_read(Net *g, const unsigned char *at, size_t n);
int pt2_read(Net *g, const unsigned char *at, size_t n);

bool net_knows(const char *path);                   /* by the end of its name */
int  net_import(const char *path, const char *out, const char *loss, const char *shape);

/* made.c: why dpgen check refuses this text of a model file, and where in it; NULL: it does not */
const char *made_refused(const char *path, const Text *text, Loc *at);
void made_check(const char *from, const char *path, const Text *text);      /* status 3 if it does */

/* ---- wire.c: protocol buffers, field by field ---------------------------------------------------------------------- */
typedef struct { const unsigned char *at, *end; const char *why; } ProtoWire;   /* why: the first error; NULL none */
/* kind 0, 1 and 5: a number; 2: bytes, as a message of their own */
typedef struct { int number, kind; uint64_t bits; ProtoWire in; } ProtoField;

/* for (Field f; wire_next(&w, &f);): false at the end, or w->why is set. */
bool wire_next(ProtoWire *w, ProtoField *f);
/* The numbers of a repeated field, packed or one by one: calls take for each. */
void wire_each(ProtoWire *w, const ProtoField *f, void (*take)(void *to, uint64_t bits), void *to);
const char *wire_text(const ProtoField *f);     /* a copy with a zero behind it */
float wire_float(uint64_t bits);

/* ---- write.c: lines of a model file, between write.c, which prints them, and repeat.c, which finds those that repeat  */
/* NetLines that come again: the body is that of one copy, with arguments in place of the numbers that differ. */
typedef struct {
    const char *name, *scope;   /* scope: what names have in front in this copy, with a dot */
    int from, to, enters;       /* its lines, and the value that is $in */
    const char **text;          /* attributes of each line */
    Strs args;
} NetBlock;

/* A use of it: copies behind each other. */
typedef struct {
    const NetBlock *block;
    const char *path;           /* with {} in place of the number, or no number where that follows a dot */
    int number, repeat, in, out;
    Strs args, first;           /* values, by argument; first: of the first copy */
} NetUse;

typedef struct { int line; const NetUse *use; } NetItem;      /* of the graph; line: of `used` */
typedef struct { Ints used; VEC(NetBlock *) block; VEC(NetItem) item; } NetLines;

const char *net_name(const NetValue *v);                /* of a parameter, in the model file */
int net_made_by(const Net *g, int value);               /* whose result this is, under other axes */
void net_repeats(Net *g, NetLines *l, int result);         /* fills block and item */

/* ---- zip.c: archives of stored files ------------------------------------------------------------------------------- */
typedef struct { const char *name; const unsigned char *at; size_t n; } Packed;
typedef VEC(Packed) Archive;
Archive zip_open(const Net *g, const unsigned char *at, size_t n);
/* By the end of its name, behind the folder that all files are in; NULL: it has not */
const Packed *zip_find(const Archive *a, const char *name);

/* ---- calls.c: a node of a graph, for onnx.c and pt2.c, which read files, and for those that know the operators ------- */
typedef struct {
    const char *name;
    bool none;                  /* None */
    Ints tensor;                /* values: of one, or of a list */
    Numbers number;             /* ints, floats, true as 1: of one, or of a list */
    const char *text;           /* "": it is none */
} NetArgument;
typedef struct {
    const char *op, *name, *domain;
    Ints in;                    /* ONNX: its operands in order; -1: left out */
    VEC(NetArgument) argument;  /* attributes of ONNX; all arguments of PyTorch */
    Strs out;
} NetNode;
typedef struct { Net *g; const NetNode *n; const char *operands; int opset; Ints *results; const char *op; } NetCall;
/* An operator by its names in both; NULL: one of them lacks it.  op: of this house. */
typedef struct { const char *onnx, *aten, *operands; int (*make)(const NetCall *c); const char *op; } NetRow;

const NetArgument *node_argument(const NetNode *n, const char *name);   /* NULL: left out, or None */
int64_t node_integer(const NetNode *n, const char *name, int64_t otherwise);
double  node_real(const NetNode *n, const char *name, double otherwise);
/* By their names in PyTorch: a value, -1 where it is left out, or refused.  One number or several, *n of them, of an operand or
 * an attribute; false: it is left out. */
int arg_tensor(const NetCall *c, const char *name);
int arg_need(const NetCall *c, const char *name);
int arg_first(const NetCall *c);
NetValue *arg_value(const NetCall *c, int v);
bool arg_list(const NetCall *c, const char *name, int64_t *to, int most, int *n);
double arg_real(const NetCall *c, const char *name, double otherwise);
int64_t arg_integer(const NetCall *c, const char *name, int64_t otherwise);
const char *arg_word(const NetCall *c, const char *name, const char *otherwise);
int64_t arg_axis(const NetCall *c, int x, const char *name, int64_t otherwise);
int net_pick(const NetCall *c, int x, int64_t axis, int64_t at);       /* one place of an axis, which leaves */
int net_transpose(const NetCall *c, int x, const int64_t *perm, int n);
/* The values of its results, as far as anybody may read them: others are of training.  opset 0: PyTorch.  false: no such row */
bool net_call(Net *g, const NetNode *n, const NetRow *first, int opset, Ints *results);
void onnx_node(Net *g, const NetNode *n, int opset, Ints *results);
void aten_node(Net *g, const NetNode *n, Ints *results);
/* onnx_fold.c: what only depends on numbers of the file; -1: it does not */
int onnx_fold(Net *g, const NetNode *n);
static inline NetValue *value_of(const Net *g, int value) { return &g->value.at[value]; }
int net_named(const Net *g, const char *name);      /* a weight by its name; -1: there is none */
typedef struct { const char *name; int value; } NetName;
typedef VEC(NetName) NetNames;
int net_last(const NetNames *names, const char *name);      /* the last value of that name; -1: there is none */
#endif
