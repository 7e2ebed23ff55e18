/* SPDX-License-Identifier: Apache-2.0
 *
 * parts.c: every part, for programs that have the whole runtime.  A folder's launch.c says the same of its job.
 */
#include <stddef.h>
#include "parts.h"

const DataFormat *const job_formats[] = {&data_bytes, &data_llmc, &data_megatron, &data_npy, &data_idx, &data_cifar10,
                                          &data_cifar100, NULL};
const Answers *const job_answers[] = {&answers_adam, &answers_attention, &answers_attention_packed, &answers_attention_shared,
                                  &answers_element, &answers_experts, &answers_fp8, &answers_gradient, &answers_image,
                                  &answers_language, &answers_linear, &answers_linear_pair, &answers_loss, &answers_matmul,
                                  &answers_mse, &answers_norm, &answers_norm_pair, &answers_quantized, &answers_random,
                                  &answers_recurrent, &answers_relative, &answers_rmsnorm, &answers_rmsprop, &answers_score,
                                  &answers_sgd, &answers_shape, &answers_softmax, &answers_table, &answers_tied,
                                  &answers_unary, &answers_xent, NULL};
#define PART_ADDRESS(type, member, object) .member = &object,
const Parts job_parts = {PARTS_EACH(PART_ADDRESS)};
const SampleParts sample_parts = {&sample_head, &words_json};
