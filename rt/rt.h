/* SPDX-License-Identifier: Apache-2.0
 *
 * rt.h: everything that a generated stage may call.
 *
 * A stage owns one arena.  Every tensor is an offset in it, written as a literal in the stage's source.
 * Each call takes the stage first, then addresses, then literal numbers.  No call allocates.
 *
 * `real` is the compute type of the job: float, or bfloat16 when compiled with -DREAL_BF16.  Every kernel
 * of a job is compiled with the same choice.  Statistics, losses and weight gradients are float always.
 */
#ifndef RT_H
#define RT_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus               /* nvcc */
extern "C" {
#endif

#ifdef REAL_BF16
typedef uint16_t real;          /* the upper half of a float */
#else
typedef float real;
#endif

/* Numbers of one step, at a fixed address of every arena; filled by step_begin(). */
typedef struct {
    int64_t  step;              /* 0 first */
    uint64_t seed;              /* train.seed */
    int64_t  valid[6];          /* targets that count in this step or evaluation; by loss */
    double   loss;              /* sum of the micro-batches' losses, ascending */
    double   norm;              /* global norm of the gradient, before clipping; -1: not taken by this device */
    float    lr;                /* learning rate of this step */
    float    bias1, bias2;      /* AdamW: 1 - beta^(step+1) */
    float    weight_decay;
    int32_t  micro;             /* micro-batches in a step or evaluation */
    int32_t  batch;             /* samples in a micro-batch */
    int32_t  eval;              /* 1 in an evaluation: dropout does nothing */
    int32_t  hits;              /* of an evaluation's micro-batch: so many targets hit_report() found */
} Values;

typedef struct Stage Stage;     /* fields that generated code may read: arena */
typedef struct Link Link;       /* a transport: link_local.c, link_mpi.c */
typedef struct Loader Loader;   /* data.c */
typedef struct Spill Spill;     /* spill.c: the way to the host's memory, and what is there */
typedef struct Team Team;       /* team.h: what the devices of a stage do together */

/* TEAM_REQUEST and the next one: of a team */
#ifdef LIBRARY                  /* so many transfers, portable kernels: nothing prepared */
enum { MAX_REQUESTS = JOB_REQUESTS, MAX_HANDLES = 1,
#else
enum { MAX_REQUESTS = 256, MAX_HANDLES = 1024,
#endif
    TEAM_REQUEST = MAX_REQUESTS, ALL_REQUESTS = MAX_REQUESTS + 2 };

/* What is told of a step while it goes on, to whoever asked: action() with the action's text, NULL at the end of a step; each
 * call with the routine that makes it, the call's prototype without the stage, and its operands in that order. */
enum { ACTION_BEGINS, CALL_BEGINS, CALL_ENDS };
typedef union { const void *p; int64_t i; double f; } Given;
typedef void (*Hook)(Stage *st, int what, const char *where, const char *call, const Given *of);

struct Stage {
    unsigned char *arena;
    int   index, count;         /* this stage, of how many */
    int   threads;              /* of this stage, fixed by the plan */
    int   blocks;               /* sums over axes that may be divided are cut into so many (docs/bits.md); 0: 1 */
    const Team *team;           /* NULL: no operator here is divided */
    int   shard, shards, apart; /* its number in the team, of how many; the numbers of neighbours differ by so much */
    Link *link;
    Loader *loader;
    Spill *spill;               /* NULL: nothing is offloaded here */
    void *request[MAX_REQUESTS];    /* transfers under way, by literal number */
    int   together;             /* so many messages begin behind each other now */
    int   peer[MAX_REQUESTS];   /* of each: 1 + the stage that it receives from, -1 - the one that it sends to */
    void *handle[MAX_HANDLES];      /* prepared library objects, by literal number */
    float *loss;                /* with several replicas: of each micro-batch of this step, so many of them */
    long  losses, room;         /* room: where steps overlap, those of odd steps stand so far behind */
    int64_t at;                 /* number of the last action begun: what the watchdog prints */
    int   line;                 /* of the stage's source, where the last call with tensors stands */
    void *trace;                /* when a trace is wanted: trace.c */
    double wall;                /* seconds of the last step */
    struct Worker *worker;      /* the runtime's own: run.h */
    void *device;               /* cuda: its GPU and streams, cuda/device.h */
    Hook hook;                  /* NULL: nobody asked */
    void (*put)(Stage *st, const real *x, const Values *vals, int mb, int output, long n);     /* of output_put() */
    void *tested;               /* selftest.c */
};

static inline void *tensor_at(Stage *st, int line, size_t offset)
{
    st->line = line;
    return st->arena + offset;
}
/* Address of an offset; of an offset in slot k of a pool, by its table. */
#define A(offset)        tensor_at(st, __LINE__, (offset))
#define S(pool, offset)  tensor_at(st, __LINE__, (offset) + pool##_slot[pool])

/* An offset in the stage's part of the host's memory, or file: no address. */
#define H(offset)        ((size_t)(offset))

/* ---- actions of the step ---------------------------------------------------------------------------- */
/* Number the actions and say what each is, for the watchdog and the trace. */
void action(Stage *st, int number, const char *text);
/* Zero the sums of the step. */
void step_begin(Stage *st, Values *vals);
void step_end(Stage *st, Values *vals);
/* Count the targets of data input `input` that differ from `ignore`, over all micro-batches: vals->valid[count]. */
void data_count(Stage *st, Values *vals, int input, int ignore, int count);
/* One micro-batch of data input `input`, bytes as declared, ids checked against the declared range. */
void data_load(Stage *st, void *to, Values *vals, int input, int mb, long bytes);
/* One message.  Request is the literal number both halves share; tag names the message of this peer.  The buffer
 * belongs to the transport from begin to wait. */
void send_begin(Stage *st, const void *from, int request, int peer, int tag, long bytes);
void recv_begin(Stage *st, void *to, int request, int peer, int tag, long bytes);
void transfer_wait(Stage *st, int request);
/* The next n messages begin behind each other, and their other halves stand in such runs too: those of a pair may be one. */
void messages_together(Stage *st, int n);
/* A tensor leaves for the host, or comes back: bytes from `host` on.  copy is the literal number both halves share; those of
 * one direction follow each other.  The buffer belongs to the copy from begin to wait. */
void offload_begin(Stage *st, const void *from, size_t host, int copy, long bytes);
void fetch_begin(Stage *st, void *to, size_t host, int copy, long bytes);
void copy_wait(Stage *st, int copy);
/* into += from, n floats: the tree over gradient groups. */
void group_fold(Stage *st, float *into, const float *from, long n);
/* The newest weights, to where they will be updated; what was copied stays as it is, for the steps that read it. */
void version_copy(Stage *st, void *newer, const void *older, long bytes);
/* into += from, n doubles: the partial norms of another device (every entry is zero on all but one). */
void norm_gather(Stage *st, double *into, const double *from, long n);
void fill_zero(Stage *st, void *to, long bytes);

/* ---- kernels: rt/op/, in the order of gen/ops.def ---------------------------------------------------- */
/* A 0 address is an absent optional operand, or a gradient that nobody wants.  Long are sizes in elements.  A call with `onto`
 * adds its result, rounded to real, to that. */
void embedding_forward(Stage *st, real *y, const int32_t *ids, const real *weight, long n, long width, long rows);
void embedding_rows_forward(Stage *st, real *y, const int32_t *ids, const real *weight, long n, long width, long rows, long whole);
void embedding_rows_scatter_forward(Stage *st, real *y, const int32_t *ids, const real *weight, long n, long width, long rows, long whole, long mine);
void embedding_backward(Stage *st, float *dweight, const real *dy, const int32_t *ids, int acc, long n, long width, long rows);
void embedding_rows_backward(Stage *st, float *dweight, const real *dy, const int32_t *ids, int acc, long n, long width, long rows, long whole);
void position_forward(Stage *st, real *y, const real *x, const real *weight, long batch, long seq, long width);
void position_backward(Stage *st, float *dweight, const real *dy, int acc, long batch, long seq, long width, long rows);
void position_offset_forward(Stage *st, real *y, const real *x, const real *weight, long batch, long seq, long width, long offset);
void position_offset_backward(Stage *st, float *dweight, const real *dy, int acc, long batch, long seq, long width, long rows, long offset);
void position_documents_forward(Stage *st, real *y, const real *x, const int32_t *documents, const real *weight, long batch, long seq, long width, long offset);
void position_documents_backward(Stage *st, float *dweight, const real *dy, const int32_t *documents, int acc, long batch, long seq, long width, long rows, long offset);
void parameter_forward(Stage *st, real *y, const real *weight, long batch, long n);
void parameter_backward(Stage *st, float *dweight, const real *dy, int acc, long batch, long n);
void relative_bias_forward(Stage *st, real *y, const real *weight, long heads, long query, long key, long buckets, long distance, long both);
void relative_bias_backward(Stage *st, float *dweight, const real *dy, int acc, long heads, long query, long key, long buckets, long distance, long both);
void linear_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, long rows, long in, long out);
void linear_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out);
void linear_pieces_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out, long pieces);
void linear_columns_backward_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, int h, long rows, long in, long out, long pieces, long whole);
void linear_columns_scatter_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, int h, long rows, long in, long out, long pieces, long whole, long mine);
void linear_rows_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, int h, long rows, long in, long out);
void linear_positions_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, void *tmp, int h, int acc, long rows, long in, long out, long whole);
void linear_rows_scatter_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, int h, long rows, long in, long out, long mine);
void linear_gelu_forward(Stage *st, real *y, real *pre, const real *x, const real *weight, const real *bias, int h, long rows, long in, long out);
void linear_add_backward_x(Stage *st, real *dx, const real *dy, const real *weight, const real *onto, int h, long rows, long in, long out);
void linear_add_forward(Stage *st, real *y, const real *skip, const real *x, const real *weight, const real *bias, int h, long rows, long in, long out);
void linear_gelu_backward(Stage *st, real *dpre, const real *dy, const real *weight, const real *pre, int h, long rows, long in, long out);
void linear_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc, long rows, long in, long out);
void linear_quantized_forward(Stage *st, real *y, const real *x, const void *weight, const real *bias, long rows, long in, long out, long bits);
void linear_quantized_backward_x(Stage *st, real *dx, const real *dy, const void *weight, long rows, long in, long out, long bits);
void linear_fp8_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, const float *amax, void *tmp, int h, long rows, long in, long out);
void linear_fp8_backward_x(Stage *st, real *dx, const real *dy, const real *weight, const float *amax, void *tmp, int h, long rows, long in, long out);
void linear_fp8_backward_w(Stage *st, float *dweight, float *dbias, float *damax, const real *dy, const real *x, const real *weight, const float *amax, void *tmp, int h, int acc, long rows, long in, long out);
void linear_fp8_backward(Stage *st, real *dx, float *dweight, float *dbias, float *damax, const real *dy, const real *x, const real *weight, const float *amax, void *tmp, int h_x, int h_w, int acc, long rows, long in, long out);
void gelu_linear_fp8_backward(Stage *st, real *dx, float *dweight, float *dbias, float *damax, void *dpre, const real *dy, const real *pre, const real *x, const real *weight, const float *amax, void *tmp, long tanh, int h_x, int h_w, int acc, long rows, long in, long out);
void conv_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, long batch, long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left, long dilate, long groups);
void conv_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long batch, long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left, long dilate, long groups);
void conv_rows_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, void *tmp, long batch, long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left, long dilate, long groups);
void conv_columns_backward_x(Stage *st, real *dx, const real *dy, const real *weight, void *tmp, long batch, long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left, long dilate, long groups);
void conv_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc, long batch, long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left, long dilate, long groups);
void conv_transpose_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, long batch, long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left, long dilate, long groups);
void conv_transpose_backward_x(Stage *st, real *dx, const real *dy, const real *weight, long batch, long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left, long dilate, long groups);
void conv_transpose_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int acc, long batch, long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left, long dilate, long groups);
void matmul_forward(Stage *st, real *y, const real *a, const real *b, int h, long batch, long m, long n, long k, long ta, long tb);
void matmul_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, int h, long batch, long m, long n, long k, long ta, long tb);
void attention_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias, const int32_t *mask, const Values *vals, int mb, int h, long batch, long heads, long query, long key, long width, long causal, float scale, float drop, int64_t site);
void attention_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y, const real *q, const real *k, const real *v, const real *bias, const int32_t *mask, const float *lse, void *tmp, const Values *vals, int mb, int h, long batch, long heads, long query, long key, long width, long causal, float scale, float drop, int64_t site);
void attention_packed_forward(Stage *st, real *y, float *lse, const real *qkv, const real *bias, const int32_t *mask, const Values *vals, int mb, int h, long batch, long heads, long query, long width, long causal, float scale, float drop, int64_t site);
void attention_packed_backward(Stage *st, real *dqkv, real *dbias, const real *dy, const real *y, const real *qkv, const real *bias, const int32_t *mask, const float *lse, void *tmp, const Values *vals, int mb, int h, long batch, long heads, long query, long width, long causal, float scale, float drop, int64_t site);
void attention_shared_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias, const int32_t *mask, const Values *vals, int mb, int h, long batch, long heads, long kv_heads, long query, long key, long width, long causal, float scale, float drop, int64_t site);
void attention_shared_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y, const real *q, const real *k, const real *v, const real *bias, const int32_t *mask, const float *lse, void *tmp, const Values *vals, int mb, int h, long batch, long heads, long kv_heads, long query, long key, long width, long causal, float scale, float drop, int64_t site);
void attention_window_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias, const int32_t *mask, const Values *vals, int mb, long batch, long heads, long kv_heads, long query, long key, long width, long causal, long window, float scale, float cap, float drop, int64_t site);
void attention_window_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y, const real *q, const real *k, const real *v, const real *bias, const int32_t *mask, const float *lse, void *tmp, const Values *vals, int mb, long batch, long heads, long kv_heads, long query, long key, long width, long causal, long window, float scale, float cap, float drop, int64_t site);
void attention_general_forward(Stage *st, real *y, float *lse, const real *q, const real *k, const real *v, const real *bias, const int32_t *mask, const real *sinks, const int32_t *documents, const Values *vals, int mb, long batch, long heads, long kv_heads, long query, long key, long width, long causal, long window, float scale, float cap, float alibi, long slopes, float drop, int64_t site);
void attention_general_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, real *dsinks, const real *dy, const real *y, const real *q, const real *k, const real *v, const real *bias, const int32_t *mask, const real *sinks, const int32_t *documents, const float *lse, void *tmp, const Values *vals, int mb, long batch, long heads, long kv_heads, long query, long key, long width, long causal, long window, float scale, float cap, float alibi, long slopes, float drop, int64_t site);
void attention_packed_documents_forward(Stage *st, real *y, float *lse, const real *qkv, const real *bias, const int32_t *mask, const int32_t *documents, const Values *vals, int mb, long batch, long heads, long query, long width, long causal, float scale, float drop, int64_t site);
void attention_packed_documents_backward(Stage *st, real *dqkv, real *dbias, const real *dy, const real *y, const real *qkv, const real *bias, const int32_t *mask, const int32_t *documents, const float *lse, void *tmp, const Values *vals, int mb, long batch, long heads, long query, long width, long causal, float scale, float drop, int64_t site);
void recur_forward(Stage *st, real *y, float *c, real *gates, const real *x, const int32_t *mask, const real *weight, const real *bias, void *tmp, const Values *vals, int mb, int h, long batch, long time, long hidden, long reverse, float drop, int64_t site);
void recur_backward(Stage *st, real *dx, const real *dy, const float *c, const real *gates, const int32_t *mask, const real *weight, void *tmp, const Values *vals, int mb, long batch, long time, long hidden, long reverse, float drop, int64_t site);
void recur_backward_w(Stage *st, float *dweight, float *dbias, const real *dx, const real *y, const int32_t *mask, void *tmp, const Values *vals, int mb, int acc, long batch, long time, long hidden, long reverse, float drop, int64_t site);
void additive_forward(Stage *st, real *y, const real *q, const real *k, const int32_t *mask, const float *linear_att, const float *normalize_scalar, const float *normalize_bias, void *tmp, long batch, long query, long key, long width);
void additive_backward(Stage *st, real *dq, real *dk, float *dlinear_att, float *dnormalize_scalar, float *dnormalize_bias, const real *dy, const real *q, const real *k, const int32_t *mask, const float *linear_att, const float *normalize_scalar, const float *normalize_bias, void *tmp, int acc, long batch, long query, long key, long width);
void route_forward(Stage *st, real *share, int32_t *expert, int32_t *slot, int32_t *offset, const real *x, const float *correction, long rows, long experts, long top, long normalize, long scores, long groups, long kept, long best);
void route_backward(Stage *st, real *dx, const real *dshare, const real *x, const int32_t *expert, long rows, long experts, long top, long normalize, long scores);
void dispatch_forward(Stage *st, real *y, const real *x, const int32_t *slot, long rows, long top, long width);
void dispatch_backward(Stage *st, real *dx, const real *dy, const int32_t *slot, long rows, long top, long width);
void combine_forward(Stage *st, real *y, const real *x, const real *share, const int32_t *slot, long rows, long top, long width);
void combine_backward(Stage *st, real *dx, real *dshare, const real *dy, const real *x, const real *share, const int32_t *slot, long rows, long top, long width);
void route_loss_forward(Stage *st, float *loss, const real *x, const int32_t *expert, const Values *vals, long rows, long experts, long top, float factor);
void route_loss_backward(Stage *st, real *dx, const float *dloss, const real *x, const int32_t *expert, const Values *vals, long rows, long experts, long top, float factor);
void grouped_forward(Stage *st, real *y, const real *x, const int32_t *offset, const real *weight, const real *bias, long rows, long in, long out, long experts);
void grouped_backward_x(Stage *st, real *dx, const real *dy, const int32_t *offset, const real *weight, long rows, long in, long out, long experts);
void grouped_columns_backward_x(Stage *st, real *dx, const real *dy, const int32_t *offset, const real *weight, void *tmp, long rows, long in, long out, long experts);
void grouped_rows_forward(Stage *st, real *y, const real *x, const int32_t *offset, const real *weight, const real *bias, void *tmp, long rows, long in, long out, long experts);
void grouped_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const int32_t *offset, int acc, long rows, long in, long out, long experts);
void dispatch_experts_forward(Stage *st, real *y, const real *x, const int32_t *slot, const int32_t *offset, long rows, long top, long width, long experts);
void dispatch_experts_backward(Stage *st, real *dx, const real *dy, const int32_t *slot, const int32_t *offset, void *tmp, long rows, long top, long width, long experts);
void combine_experts_forward(Stage *st, real *y, const real *x, const real *share, const int32_t *slot, const int32_t *offset, void *tmp, long rows, long top, long width, long experts);
void combine_experts_backward(Stage *st, real *dx, real *dshare, const real *dy, const real *x, const real *share, const int32_t *slot, const int32_t *offset, long rows, long top, long width, long experts);
void dispatch_experts_scatter_backward(Stage *st, real *dx, const real *dy, const int32_t *slot, const int32_t *offset, void *tmp, long rows, long top, long width, long experts, long mine);
void combine_experts_scatter_forward(Stage *st, real *y, const real *x, const real *share, const int32_t *slot, const int32_t *offset, void *tmp, long rows, long top, long width, long experts, long mine);
void grouped_experts_forward(Stage *st, real *y, const real *x, const int32_t *offset, const real *weight, const real *bias, long rows, long all, long in, long out, long experts);
void grouped_experts_backward_x(Stage *st, real *dx, const real *dy, const int32_t *offset, const real *weight, long rows, long all, long in, long out, long experts);
void grouped_experts_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const int32_t *offset, int acc, long rows, long all, long in, long out, long experts);
void rotary_forward(Stage *st, real *y, const real *x, long batch, long seq, long heads, long width, long dims, long adjacent, float theta, long scaling, float factor, float low, float high, long original);
void rotary_backward(Stage *st, real *dx, const real *dy, long batch, long seq, long heads, long width, long dims, long adjacent, float theta, long scaling, float factor, float low, float high, long original);
void rotary_table_forward(Stage *st, real *y, const real *x, const int32_t *documents, const float *factors, long batch, long seq, long heads, long width, long dims, long adjacent, float theta);
void rotary_table_backward(Stage *st, real *dx, const real *dy, const int32_t *documents, const float *factors, long batch, long seq, long heads, long width, long dims, long adjacent, float theta);
void rotary_documents_forward(Stage *st, real *y, const real *x, const int32_t *documents, long batch, long seq, long heads, long width, long dims, long adjacent, float theta, long scaling, float factor, float low, float high, long original);
void rotary_documents_backward(Stage *st, real *dx, const real *dy, const int32_t *documents, long batch, long seq, long heads, long width, long dims, long adjacent, float theta, long scaling, float factor, float low, float high, long original);
void layernorm_forward(Stage *st, real *y, float *mean, float *rstd, const real *x, const float *weight, const float *bias, long rows, long width, float eps);
void add_layernorm_forward(Stage *st, real *sum, real *y, float *mean, float *rstd, const real *a, const real *b, const float *weight, const float *bias, long rows, long width, float eps);
void layernorm_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *weight, const float *mean, const float *rstd, const real *onto, int acc, long rows, long width);
void layernorm_linear_backward(Stage *st, real *dx, float *dweight, float *dbias, float *dproduct, float *dsum, const real *dy, const real *x, const real *factor, const float *weight, const float *mean, const float *rstd, const real *onto, int h_w, int acc, long rows, long in, long out);
void layernorm_rows_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *weight, const float *mean, const float *rstd, const real *onto, void *tmp, int acc, long rows, long width, long whole);
void rmsnorm_forward(Stage *st, real *y, float *rstd, const real *x, const float *weight, long rows, long width, float eps);
void add_rmsnorm_forward(Stage *st, real *sum, real *y, float *rstd, const real *a, const real *b, const float *weight, long rows, long width, float eps);
void rmsnorm_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight, const float *rstd, const real *onto, int acc, long rows, long width);
void rmsnorm_rows_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight, const float *rstd, const real *onto, void *tmp, int acc, long rows, long width, long whole);
void rmsnorm_offset_forward(Stage *st, real *y, float *rstd, const real *x, const float *weight, long rows, long width, float eps, float offset);
void rmsnorm_offset_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight, const float *rstd, const real *onto, int acc, long rows, long width, float offset);
void rmsnorm_offset_rows_backward(Stage *st, real *dx, float *dweight, const real *dy, const real *x, const float *weight, const float *rstd, const real *onto, void *tmp, int acc, long rows, long width, float offset, long whole);
void batchstat_forward(Stage *st, float *mean, float *var, const real *x, const float *running_mean, const float *running_var, const Values *vals, long rows, long width);
void batchstat_track(Stage *st, float *dmean, float *dvar, float *dcount, const float *mean, const float *var, const Values *vals, int mb, int acc, long rows, long width, float momentum, long each);
void batchnorm_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight, const float *bias, const real *onto, long rows, long width, float eps);
void batchnorm_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *mean, const float *var, const float *weight, const real *onto, int acc, long rows, long width, float eps);
void batchnorm_relu_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight, const float *bias, long rows, long width, float eps);
void batchnorm_add_relu_forward(Stage *st, real *y, const real *skip, const real *x, const float *mean, const float *var, const float *weight, const float *bias, long rows, long width, float eps);
void batchnorm_relu_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *mean, const float *var, const float *weight, const float *bias, const real *onto, int acc, long rows, long width, float eps);
void batchnorm_clip_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight, const float *bias, long rows, long width, float eps, float low, float high);
void batchnorm_clip_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *mean, const float *var, const float *weight, const float *bias, const real *onto, int acc, long rows, long width, float eps, float low, float high);
void batchnorm_silu_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight, const float *bias, long rows, long width, float eps);
void batchnorm_silu_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *mean, const float *var, const float *weight, const float *bias, const real *onto, int acc, long rows, long width, float eps);
void batchnorm_add_relu_backward(Stage *st, real *dx, real *dskip, float *dweight, float *dbias, const real *dy, const real *y, const real *x, const float *mean, const float *var, const float *weight, const real *onto, int acc, long rows, long width, float eps);
void add_batchnorm_relu_backward(Stage *st, real *dx, real *dskip, float *dweight, float *dbias, const real *a, const real *b, const real *y, const real *x, const float *mean, const float *var, const float *weight, const real *onto, int acc, long rows, long width, float eps);
void groupnorm_forward(Stage *st, real *y, float *mean, float *rstd, const real *x, const float *weight, const float *bias, long batch, long pixels, long groups, long width, float eps);
void groupnorm_backward_x(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *mean, const float *rstd, long batch, long pixels, long groups, long width);
void groupnorm_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const float *mean, const float *rstd, int acc, long batch, long pixels, long groups, long width);
void softmax_forward(Stage *st, real *y, const real *x, long rows, long width);
void softmax_backward(Stage *st, real *dx, const real *dy, const real *y, long rows, long width);
void relu_forward(Stage *st, real *y, const real *x, long n);
void relu_backward(Stage *st, real *dx, const real *dy, const real *y, long n);
void gelu_forward(Stage *st, real *y, const real *x, long n, long tanh);
void gelu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, long tanh);
void silu_forward(Stage *st, real *y, const real *x, long n);
void silu_backward(Stage *st, real *dx, const real *dy, const real *x, long n);
void tanh_forward(Stage *st, real *y, const real *x, long n);
void tanh_backward(Stage *st, real *dx, const real *dy, const real *y, long n);
void sigmoid_forward(Stage *st, real *y, const real *x, long n);
void sigmoid_backward(Stage *st, real *dx, const real *dy, const real *y, long n);
void clip_forward(Stage *st, real *y, const real *x, long n, float low, float high);
void clip_backward(Stage *st, real *dx, const real *dy, const real *x, long n, float low, float high);
void leaky_relu_forward(Stage *st, real *y, const real *x, long n, float slope);
void leaky_relu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, float slope);
void elu_forward(Stage *st, real *y, const real *x, long n, float alpha);
void elu_backward(Stage *st, real *dx, const real *dy, const real *x, long n, float alpha);
void softplus_forward(Stage *st, real *y, const real *x, long n);
void softplus_backward(Stage *st, real *dx, const real *dy, const real *x, long n);
void hard_sigmoid_forward(Stage *st, real *y, const real *x, long n);
void hard_sigmoid_backward(Stage *st, real *dx, const real *dy, const real *x, long n);
void hard_swish_forward(Stage *st, real *y, const real *x, long n);
void hard_swish_backward(Stage *st, real *dx, const real *dy, const real *x, long n);
void softcap_forward(Stage *st, real *y, const real *x, long n, float cap);
void softcap_backward(Stage *st, real *dx, const real *dy, const real *x, long n, float cap);
void gate_forward(Stage *st, real *y, const real *a, const real *b, long n, long act);
void gate_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long n, long act);
void part_forward(Stage *st, real *y, const real *x, long n, long whole);
void rows_to_heads(Stage *st, real *y, const real *x, long rows, long mine, long pieces, long width);
void heads_to_rows(Stage *st, real *y, const real *x, long rows, long mine, long pieces, long width);
void gather_forward(Stage *st, real *y, const real *x, long n, long whole);
void scale_forward(Stage *st, real *y, const real *x, long n, float factor);
void round_forward(Stage *st, int32_t *code, const real *x, const Values *vals, int mb, long batch, long rows, long width, long words, int bits, float drop, int64_t site);
void unpack_forward(Stage *st, real *y, const int32_t *code, long rows, long width, long words, int bits);
void round_both_forward(Stage *st, int32_t *code, const real *x, const Values *vals, int mb, long batch, long rows, long width, long words, int bits, int back, long back_words, float drop, int64_t site);
void round_both_backward(Stage *st, real *dx, const int32_t *dcode, long rows, long width, long back_words, int back);
void unpack_both_forward(Stage *st, real *y, const int32_t *code, long batch, long rows, long width, long words, int bits, int back, long back_words, float drop, int64_t site);
void unpack_both_backward(Stage *st, int32_t *dcode, const real *dy, const Values *vals, int mb, long batch, long rows, long width, long back_words, int back, float drop, int64_t site);
void dropout_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch, long per, float drop, int64_t site);
void dropout_part_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch, long per, long pieces, float drop, int64_t site);
void dropout_rows_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch, long per, long n, float drop, int64_t site);
void dropout_shared_forward(Stage *st, real *y, const real *x, const real *onto, const Values *vals, int mb, long batch, long outer, long mid, long inner, float drop, int64_t site);
void add_forward(Stage *st, real *y, const real *a, const real *b, long n);
void add_broadcast_forward(Stage *st, real *y, const real *a, const real *b, long n, long nb);
void add_broadcast_backward(Stage *st, real *db, const real *dy, long n, long nb);
void add_middle_forward(Stage *st, real *y, const real *a, const real *b, long outer, long mid, long inner);
void mul_middle_forward(Stage *st, real *y, const real *a, const real *b, long outer, long mid, long inner);
void mul_middle_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long outer, long mid, long inner);
void mul_forward(Stage *st, real *y, const real *a, const real *b, long n, long nb);
void mul_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long n, long nb);
void pool_max_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long yheight, long ywidth, long kheight, long kwidth, long stride, long top, long left);
void pool_max_backward(Stage *st, real *dx, const real *dy, const real *x, long batch, long height, long width, long channels, long yheight, long ywidth, long kheight, long kwidth, long stride, long top, long left);
void pool_avg_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long yheight, long ywidth, long kheight, long kwidth, long stride, long top, long left, long count_pad);
void pool_avg_backward(Stage *st, real *dx, const real *dy, long batch, long height, long width, long channels, long yheight, long ywidth, long kheight, long kwidth, long stride, long top, long left, long count_pad);
void pad_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long yheight, long ywidth, long top, long left, float value);
void upsample_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long fheight, long fwidth);
void upsample_backward(Stage *st, real *dx, const real *dy, long batch, long height, long width, long channels, long fheight, long fwidth);
void bilinear_forward(Stage *st, real *y, const real *x, long batch, long height, long width, long channels, long fheight, long fwidth, long align);
void bilinear_backward(Stage *st, real *dx, const real *dy, long batch, long height, long width, long channels, long fheight, long fwidth, long align);
void concat_forward(Stage *st, real *y, const real *a, const real *b, const real *c, const real *d, const real *e, const real *f, const real *g, const real *i, long outer, long na, long nb, long nc, long nd, long ne, long nf, long ng, long ni);
void concat_backward(Stage *st, real *da, real *db, real *dc, real *dd, real *de, real *df, real *dg, real *di, const real *dy, long outer, long na, long nb, long nc, long nd, long ne, long nf, long ng, long ni);
void slice_forward(Stage *st, real *y, const real *x, long outer, long whole, long from, long count);
void slice_backward(Stage *st, real *dx, const real *dy, long outer, long whole, long from, long count);
void copy_forward(Stage *st, real *y, const real *x, long n);
void transpose_forward(Stage *st, real *y, const real *x, long d0, long d1, long d2, long d3, long p0, long p1, long p2, long p3);
void reduce_forward(Stage *st, real *y, const real *x, long outer, long mid, long inner, float factor);
void reduce_backward(Stage *st, real *dx, const real *dy, const real *onto, long outer, long mid, long inner, float factor);
void xent_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals, long rows, long width, long ignore, int count);
void xent_part_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals, long rows, long width, long ignore, int count, long whole);
void xent_both(Stage *st, float *loss, float *lse, real *dx, const float *dloss, const real *x, const int32_t *targets, const Values *vals, long rows, long width, long ignore, int count);
void xent_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets, const Values *vals, long rows, long width, long ignore, int count);
void xent_part_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets, const Values *vals, long rows, long width, long ignore, int count, long whole);
void xent_smooth_part_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals, long rows, long width, long ignore, int count, float smooth, long whole);
void xent_smooth_part_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets, const Values *vals, long rows, long width, long ignore, int count, float smooth, long whole);
void xent_smooth_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals, long rows, long width, long ignore, int count, float smooth);
void xent_smooth_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets, const Values *vals, long rows, long width, long ignore, int count, float smooth);
void hit_report(Stage *st, const real *x, const int32_t *targets, Values *vals, long rows, long width, long ignore, long top);
void hit_part_report(Stage *st, const real *x, const int32_t *targets, Values *vals, long rows, long width, long ignore, long top, long whole);
void linear_xent_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias, const int32_t *targets, void *tmp, const Values *vals, int h, long rows, long in, long out, long chunk, long ignore, int count);
void linear_xent_part_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias, const int32_t *targets, void *tmp, const Values *vals, int h, long rows, long in, long out, long chunk, long ignore, int count, long whole);
void linear_xent_hits_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias, const int32_t *targets, void *tmp, Values *vals, int h, long rows, long in, long out, long chunk, long ignore, int count, long top);
void linear_xent_part_hits_forward(Stage *st, float *loss, float *lse, const real *x, const real *weight, const real *bias, const int32_t *targets, void *tmp, Values *vals, int h, long rows, long in, long out, long chunk, long ignore, int count, long top, long whole);
void linear_xent_backward(Stage *st, real *dx, float *dweight, float *dbias, const float *dloss, const real *x, const real *weight, const real *bias, const float *lse, const int32_t *targets, void *tmp, const Values *vals, int h, int acc, long rows, long in, long out, long chunk, long ignore, int count);
void linear_xent_part_backward(Stage *st, real *dx, float *dweight, float *dbias, const float *dloss, const real *x, const real *weight, const real *bias, const float *lse, const int32_t *targets, void *tmp, const Values *vals, int h, int acc, long rows, long in, long out, long chunk, long ignore, int count, long whole);
void mse_forward(Stage *st, float *loss, const real *x, const real *targets, const Values *vals, long n);
void mse_backward(Stage *st, real *dx, real *dtargets, const float *dloss, const real *x, const real *targets, const Values *vals, long n);
void bce_forward(Stage *st, float *loss, const real *x, const real *targets, const Values *vals, long n);
void bce_backward(Stage *st, real *dx, real *dtargets, const float *dloss, const real *x, const real *targets, const Values *vals, long n);
void loss_add_forward(Stage *st, float *y, const float *a, const float *b);
void loss_scale_forward(Stage *st, float *y, const float *x, float factor);
void loss_report(Stage *st, const float *x, Values *vals, int acc);
/* A value of micro-batch mb leaves the job: n numbers, output number `output` of it. */
void output_put(Stage *st, const real *x, const Values *vals, int mb, int output, long n);
void loss_seed(Stage *st, float *y);
void cast_forward(Stage *st, real *y, const float *x, long n);
void grad_add(Stage *st, real *y, const real *a, const real *b, long n);
void tie_add(Stage *st, float *g, const float *other, long n);
void norm_partial(Stage *st, double *norm, const float *g, long n, long index);
/* The same in two steps, for a gradient in parts that end where blocks do: blocks[first + b] is the sum of block b of g, of
 * `each` elements, the length that norm_partial has for the whole; n blocks are added as it adds them. */
void norm_team(Stage *st, double *norm, const float *g, long n, long outer, long room, long index);
void norm_blocks(Stage *st, double *blocks, const float *g, long n, long each, long first);
void norm_sum(Stage *st, double *norm, const double *blocks, long n, long first, long index);
void norm_total(Stage *st, float *clip, const double *norm, Values *vals, long count, float limit);
void sgd_update(Stage *st, float *p, real *c, const float *g, float *m, const float *clip, const Values *vals, long n, float momentum, long decay);
void adamw_update(Stage *st, float *p, real *c, const float *g, float *m, float *v, const float *clip, const Values *vals, long n, float beta1, float beta2, float eps, long decay);
void nadamw_update(Stage *st, float *p, real *c, const float *g, float *m, float *v, const float *clip, const Values *vals, long n, float beta1, float beta2, float eps, long decay);
void sgd_nesterov(Stage *st, float *p, real *c, const float *g, float *m, const float *clip, const Values *vals, long n, float momentum, long decay);
void rmsprop_centred(Stage *st, float *p, real *c, const float *g, float *m, float *v, float *centre, const float *clip, const Values *vals, long n, float alpha, float eps, float momentum, long decay);
void rmsprop_update(Stage *st, float *p, real *c, const float *g, float *m, float *v, const float *clip, const Values *vals, long n, float alpha, float eps, float momentum, long decay);
void sgd_spike(Stage *st, float *p, real *c, const float *g, float *m, const float *clip, const Values *vals, long n, float momentum, long decay, long late);
void sgd_drift(Stage *st, float *p, real *c, const float *g, float *m, float *old, const float *clip, const Values *vals, long n, float momentum, long decay, long late, long anneal);
void predict_old(Stage *st, float *to, const float *newer, const float *old, long behind, long n);
void predict(Stage *st, float *to, const float *newer, const float *older, long ahead, long n);
void batch_track(Stage *st, float *mean, float *var, float *count, const float *sum_mean, const float *sum_var, const float *sum_count, long rows, long n, float momentum, long each);
void fp8_track(Stage *st, float *amax, const float *seen, long n, long history);

/* Can this machine run the kernels as the plan fixed them?  0: yes; else why says what differs.  Before any open_*. */
int kernels_start(int threads, char *why, size_t n);
/* Name and version of the library behind the kernels: what the bits belong to. */
const char *kernels_version(void);
/* What the kernels of this stage hold beside its arena, once it is open. */
size_t kernels_bytes(const Stage *st);

/* ---- prepared handles --------------------------------------------------------------------------------- */
/* One line of stage_open() for each distinct (call, integers) whose row names `h`, on kernel libraries that want it.
 * Before the first step; may allocate. */
void open_linear_forward(Stage *st, int h, long rows, long in, long out);
void open_linear_backward_x(Stage *st, int h, long rows, long in, long out);
void open_linear_pieces_backward_x(Stage *st, int h, long rows, long in, long out, long pieces);
void open_linear_columns_backward_x(Stage *st, int h, long rows, long in, long out, long pieces, long whole);
void open_linear_rows_forward(Stage *st, int h, long rows, long in, long out);
void open_linear_columns_scatter_x(Stage *st, int h, long rows, long in, long out, long pieces, long whole, long mine);
void open_linear_rows_scatter_forward(Stage *st, int h, long rows, long in, long out, long mine);
void open_linear_add_backward_x(Stage *st, int h, long rows, long in, long out);
void open_linear_add_forward(Stage *st, int h, long rows, long in, long out);
void open_linear_gelu_forward(Stage *st, int h, long rows, long in, long out);
void open_linear_gelu_backward(Stage *st, int h, long rows, long in, long out);
void open_linear_backward_w(Stage *st, int h, long rows, long in, long out);
void open_linear_fp8_forward(Stage *st, int h, long rows, long in, long out);
void open_linear_fp8_backward_x(Stage *st, int h, long rows, long in, long out);
void open_linear_fp8_backward_w(Stage *st, int h, long rows, long in, long out);
void open_conv_forward(Stage *st, int h, long batch, long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left, long dilate, long groups);
void open_conv_backward_x(Stage *st, int h, long batch, long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left, long dilate, long groups);
void open_conv_backward_w(Stage *st, int h, long batch, long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left, long dilate, long groups);
void open_matmul_forward(Stage *st, int h, long batch, long m, long n, long k, long ta, long tb);
void open_matmul_backward(Stage *st, int h, long batch, long m, long n, long k, long ta, long tb);
void open_attention_forward(Stage *st, int h, long batch, long heads, long query, long key, long width, long causal);
void open_attention_backward(Stage *st, int h, long batch, long heads, long query, long key, long width, long causal);
void open_attention_packed_forward(Stage *st, int h, long batch, long heads, long query, long width, long causal);
void open_attention_packed_backward(Stage *st, int h, long batch, long heads, long query, long width, long causal);
void open_attention_shared_forward(Stage *st, int h, long batch, long heads, long kv_heads, long query, long key, long width, long causal);
void open_attention_shared_backward(Stage *st, int h, long batch, long heads, long kv_heads, long query, long key, long width, long causal);
void open_recur_forward(Stage *st, int h, long batch, long time, long hidden, long reverse);
void open_linear_xent_forward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count);
void open_linear_xent_hits_forward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count, long top);
void open_linear_xent_backward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count);
void open_linear_xent_part_forward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count, long whole);
void open_linear_xent_part_hits_forward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count, long top, long whole);
void open_linear_xent_part_backward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count, long whole);
/* After an open_*: product `part` of handle h is done by this algorithm of cublasLt, which a profile has measured. */
void open_product_algorithm(Stage *st, int h, int part, int id, int tile, int stages, int splitk, int reduction,
                            int swizzle, int custom, int inner, int cluster, long workspace);
#ifdef __cplusplus
}
#endif
#ifdef STAGE                    /* the source of a stage */
#include "hooks.h"
#endif
#endif
