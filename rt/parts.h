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
extern const Answers answers_adam, answers_attention, answers_attention_shared, answers_element, answers_experts,
                     answers_fp8, answers_gradient, answers_image, answers_language, answers_linear, answers_linear_pair,
                     answers_loss, answers_matmul, answers_mse, answers_norm, answers_norm_pair, answers_quantized,
                     answers_random, answers_recurrent, answers_relative, answers_rmsnorm, answers_rmsprop, answers_score,
                     answers_sgd, answers_shape, answers_softmax, answers_table, answers_tied, answers_unary, answers_xent;
extern const Answers *const job_answers[];          /* NULL ends */

/* What follows is an object of one file each; NULL: the job does without. */
typedef struct Adapters Adapters;               /* weights.h: adapters from files of their own */
typedef struct Described Described;             /* weights.h: what a model file says of published weights */
typedef struct Divided Divided;                 /* run.h: states of stages of several devices, as files have them */
typedef struct Hosts Hosts;                     /* run.h: files of several processes */
typedef struct Losses Losses;                   /* run.h: losses of several copies of the model */
typedef struct Offload Offload;                 /* run.h: copies to the memory of the host */
typedef struct Overlap Overlap;                 /* run.h: steps that overlap */
typedef struct Pace Pace;                       /* run.h: kernels that only wait */
typedef struct Parted Parted;                   /* run.h: states of which each replica has a part */
typedef struct Quantized Quantized;             /* run.h: weights of few bits */
typedef struct SampleRows SampleRows;           /* data.h: samples that are rows of arrays */
typedef struct {
    const Adapters *adapters;
    const Described *described;
    const Divided *divided;
    const Hosts *hosts;
    const Losses *losses;
    const Offload *offload;
    const Overlap *overlap;
    const Pace *pace;
    const Parted *parted;
    const Quantized *quantized;
    const SampleRows *rows;
    const Team *team;           /* team.h: stages of several devices */
} Parts;
extern const Parts job_parts;
extern const Adapters adapters_files;
extern const Described weights_described;
extern const Divided divided_states;
extern const Hosts hosts_files;
extern const Losses losses_copies;
extern const Offload offload_host;
extern const Overlap overlap_pieces;
extern const Pace pace_planned;
extern const Parted parted_states;
extern const Quantized quantized_states;
extern const SampleRows sample_rows;
extern const Team team_links;

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
