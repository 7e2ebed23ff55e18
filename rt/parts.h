/* SPDX-License-Identifier: Apache-2.0
 *
 * parts.h: what a job may do without.
 *
 * A folder has the files of the parts that its job has, and its launch.c names these.  NULL stands for a part that it does
 * without.  parts.c names all of them, for programs that have the whole runtime.
 */
#ifndef PARTS_H
#define PARTS_H
#include "rt.h"

typedef struct DataFormat DataFormat;           /* data.h: readers of files, by format */
extern const DataFormat data_bytes, data_llmc, data_megatron, data_npy, data_idx, data_cifar10, data_cifar100;
extern const DataFormat *const job_formats[];  /* NULL ends */

typedef struct Answers Answers;                 /* selftest.h: what calls should have made, by kind of operator */
extern const Answers answers_adam, answers_attention, answers_attention_packed, answers_attention_shared, answers_element,
                     answers_experts, answers_fp8, answers_gradient, answers_image, answers_language, answers_linear,
                     answers_linear_pair, answers_loss, answers_matmul, answers_mse, answers_norm, answers_norm_pair,
                     answers_quantized, answers_random, answers_recurrent, answers_relative, answers_rmsnorm, answers_rmsprop,
                     answers_score, answers_sgd, answers_shape, answers_softmax, answers_table, answers_tied, answers_unary,
                     answers_xent;
extern const Answers *const job_answers[];          /* NULL ends */

/* What follows is an object of one file each: its type, its place in Parts, its name; NULL: the job does without. */
#define PARTS_EACH(PART) \
    PART(Adapters, adapters, adapters_files)        /* weights.h: adapters, from files of their own too */ \
    PART(Bests, best, best_evaluation)              /* run.h: the best evaluation */ \
    PART(Described, described, weights_described)   /* weights.h: what a model file says of published weights */ \
    PART(Divided, divided, divided_states)          /* run.h: states of stages of several devices, as files have them */ \
    PART(Hosts, hosts, hosts_files)                 /* run.h: files of several processes */ \
    PART(Losses, losses, losses_copies)             /* run.h: losses of several copies of the model */ \
    PART(Offload, offload, offload_host)            /* run.h: copies to the memory of the host */ \
    PART(Overlap, overlap, overlap_pieces)          /* run.h: steps that overlap */ \
    PART(Pace, pace, pace_planned)                  /* run.h: kernels that only wait */ \
    PART(Parted, parted, parted_states)             /* run.h: states of which each replica has a part */ \
    PART(Quantized, quantized, quantized_states)    /* run.h: weights of few bits */ \
    PART(SampleRows, rows, sample_rows)             /* data.h: samples that are rows of arrays */ \
    PART(Team, team, team_links)                    /* team.h: stages of several devices */
#define PART_TYPE(type, member, object) typedef struct type type;
#define PART_MEMBER(type, member, object) const type *member;
#define PART_OBJECT(type, member, object) extern const type object;
PARTS_EACH(PART_TYPE)
typedef struct { PARTS_EACH(PART_MEMBER) } Parts;
PARTS_EACH(PART_OBJECT)
extern const Parts job_parts;

/* The same, of the program sample alone. */
typedef struct SampleHead SampleHead;           /* sample/sample.h: losses without a whole row of scores */
typedef struct TokenText TokenText;             /* sample/sample.h: tokens of a tokenizer.json as text */
typedef struct {
    const SampleHead *head;
    const TokenText *words;
} SampleParts;
extern const SampleParts sample_parts;
extern const SampleHead sample_head;
extern const TokenText words_json;
#endif
