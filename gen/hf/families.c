/* SPDX-License-Identifier: Apache-2.0
 *
 * families.c: the table of families: which keys of config.json each reads, and what holds where a key is absent.
 *
 * Keys and defaults are those of the configurations of transformers 4.57.  A new family is a row, its fields and a template.
 */
#include "hf.h"
#include <stddef.h>

const ConfigField field_common[] = {
    {"dtype", WORD, "type", "", "float32:f32 float16:f16 bfloat16:bf16"},
    {"torch_dtype", WORD, "type", "f32", "float32:f32 float16:f16 bfloat16:bf16"},
    {"quantization_config", ONLY, NULL, NULL, "null"},
    {0}
};

const char *const field_harmless[] = {
    "model_type", "architectures", "auto_map", "transformers_version", "_name_or_path", "_attn_implementation",
    "attn_implementation", "use_cache", "cache_implementation", "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id",
    "cls_token_id", "mask_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id", "is_encoder_decoder",
    "is_decoder", "add_cross_attention", "initializer_range", "initializer_factor", "init_std", "gradient_checkpointing",
    "output_attentions", "output_hidden_states", "output_past", "return_dict", "return_dict_in_generate", "output_scores",
    "problem_type", "task_specific_params", "id2label", "label2id", "num_labels", "classifier_dropout", "finetuning_task",
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj", "n_ctx",
    "tokenizer_class", "prefix", "max_length", "min_length", "do_sample", "temperature", "top_k", "top_p", "num_beams",
    "repetition_penalty", "vocab_file", "unsloth_version", "unsloth_fixed", "bad_words_ids", "directionality",
    "pooler_act", "pooler_output_size", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
    "pooler_size_per_head", "pooler_type", "encoder_stride", "reorder_and_upcast_attn", "max_window_layers",
    "original_max_position_embeddings", NULL
};

/* rotary positions: in their old form, and that of transformers 5 */
#define ROPE(base) \
    {"rope_parameters.rope_theta", REAL, "theta", "", NULL}, \
    {"rope_theta", REAL, "theta", base, NULL}, \
    {"rope_parameters.rope_type", WORD, "scaling", "", "default: linear:linear llama3:llama3"}, \
    {"rope_scaling.rope_type", WORD, "scaling", "", "default: linear:linear llama3:llama3"}, \
    {"rope_scaling.type", WORD, "scaling", "", "default: linear:linear llama3:llama3"}, \
    {"rope_parameters.factor", REAL, "factor", "", NULL}, {"rope_scaling.factor", REAL, "factor", "", NULL}, \
    {"rope_parameters.low_freq_factor", REAL, "low", "", NULL}, {"rope_scaling.low_freq_factor", REAL, "low", "", NULL}, \
    {"rope_parameters.high_freq_factor", REAL, "high", "", NULL}, {"rope_scaling.high_freq_factor", REAL, "high", "", NULL}, \
    {"rope_parameters.original_max_position_embeddings", INT, "original", "", NULL}, \
    {"rope_scaling.original_max_position_embeddings", INT, "original", "", NULL}

/* A context of more than 2048 positions is for a model that has to be trained so: -D T=N. */
#define CONTEXT(most) \
    {"max_position_embeddings", INT, "P", most, NULL}, \
    {NULL, INT, "T", "min(P, 2048)", NULL}, \
    {NULL, INT, "large", "max(V-65536, 0)", NULL}

#define LLAMA(kv_heads, width, eps, base, tied) \
    {"vocab_size", INT, "V", NULL, NULL}, \
    {"hidden_size", INT, "D", NULL, NULL}, \
    {"num_attention_heads", INT, "H", NULL, NULL}, \
    {"num_key_value_heads", INT, "K", kv_heads, NULL}, \
    {"head_dim", INT, "W", width, NULL}, \
    {"intermediate_size", INT, "F", NULL, NULL}, \
    {"num_hidden_layers", INT, "L", NULL, NULL}, \
    {"rms_norm_eps", REAL, "eps", eps, NULL}, \
    {"attention_dropout", REAL, "drop", "0", NULL}, \
    {"tie_word_embeddings", FLAG, "tie", tied, NULL}, \
    ROPE(base)

static const ConfigField gpt2[] = {
    {"vocab_size", INT, "V", "50257", NULL},
    {"n_positions", INT, "P", "1024", NULL},
    {"n_embd", INT, "D", "768", NULL},
    {"n_head", INT, "H", "12", NULL},
    {"n_layer", INT, "L", "12", NULL},
    {"n_inner", INT, "F", "4*D", NULL},
    {"layer_norm_epsilon", REAL, "eps", "1e-5", NULL},
    {"activation_function", ONLY, NULL, NULL, "gelu_new gelu_pytorch_tanh"},
    {"resid_pdrop", REAL, "drop", "0.1", NULL},
    {"embd_pdrop", REAL, "first", "0.1", NULL},
    {"attn_pdrop", REAL, "attention", "0.1", NULL},
    {"scale_attn_weights", ONLY, NULL, NULL, "true"},
    {"scale_attn_by_inverse_layer_idx", ONLY, NULL, NULL, "false"},
    {"tie_word_embeddings", ONLY, NULL, NULL, "true"},
    {0}
};

static const ConfigField llama[] = {
    LLAMA("H", "D/H", "1e-6", "10000", "false"),
    CONTEXT("2048"),
    {"hidden_act", WORD, "act", "silu", "silu"},
    {"attention_bias", FLAG, "qkv", "false", NULL},
    {"attention_bias", FLAG, "o", "false", NULL},
    {"mlp_bias", FLAG, "mlp", "false", NULL},
    {"pretraining_tp", ONLY, NULL, NULL, "1"},
    {0}
};

const Family families[] = {
    {"gpt2", "gpt2.yaml", NULL, gpt2, NULL},
    {"llama", "llama.yaml", "language.yaml", llama, NULL},
    {0}
};
