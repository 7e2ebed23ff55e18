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
                     answers_fp8, answers_gradient, answers_image, answers_language, answers_linear, answers_loss,
                     answers_matmul, answers_mse, answers_norm, answers_norm_pair, answers_quantized, answers_random,
                     answers_recurrent, answers_relative, answers_rmsnorm, answers_rmsprop, answers_score, answers_sgd,
                     answers_shape, answers_softmax, answers_table, answers_tied, answers_unary, answers_xent;
extern const Answers *const job_answers[];          /* NULL ends */

typedef struct Offload Offload;                 /* run.h: copies to the memory of the host */
extern const Offload offload_host;
extern const Offload *const job_offload;

typedef struct Overlap Overlap;                 /* run.h: steps that overlap */
extern const Overlap overlap_pieces;
extern const Overlap *const job_overlap;

extern const Team team_links;                   /* team.h: stages of several devices */
extern const Team *const job_team;
typedef struct Divided Divided;                 /* team.h: their states, as files have them */
extern const Divided divided_states;
extern const Divided *const job_divided;

typedef struct TokenText TokenText;                     /* sample/words.h: tokens of a tokenizer.json as text */
extern const TokenText words_json;
extern const TokenText *const job_words;                /* the program sample alone has it */
#endif
