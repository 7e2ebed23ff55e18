/* SPDX-License-Identifier: Apache-2.0
 *
 * families.c: the table of families: which keys of config.json each reads, and what holds where a key is absent.
 *
 * Keys and defaults are those of the configurations of transformers 4.57, with the keys of 5.24 besides.  A new family is a
 * row, its fields and a template.  Those of llama.yaml stand in decoders.c, those of bert.yaml in
 * encoders.c.
 */
#include "fields.h"
#include <stddef.h>

const ConfigField field_common[] = {
    {"dtype", WORD, "type", "", "float32:f32 float16:f16 bfloat16:bf16"},
    {"torch_dtype", WORD, "type", "f32", "float32:f32 float16:f16 bfloat16:bf16"},
    {"quantization_config", ONLY, NULL, NULL, "null"},
    {0}
};

const char *const field_harmless[] = {
    "model_type", "architectures", "auto_map", "transformers_version", "_name_or_path", "_attn_implementation",
    "attn_implementation", "use_cache", "cache_implementation", "bos_token_id", "eos_token_id", "eod_token_id", "pad_token_id",
    "sep_token_id", "cls_token_id", "mask_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id",
    "is_encoder_decoder",
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

static const ConfigField gpt2[] = {
    {"vocab_size", INT, "V", "50257", NULL},
    {"n_positions", INT, "P", "1024", NULL},
    {"n_embd", INT, "D", "768", NULL},
    {"n_head", INT, "H", "12", NULL},
    {"n_layer", INT, "L", "12", NULL},
    {"n_inner", TEXT, "F", "4*D", NULL},
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

static const ConfigField phi[] = {
    {"vocab_size", INT, "V", "51200", NULL},
    {"hidden_size", INT, "D", "2048", NULL},
    {"intermediate_size", INT, "F", "8192", NULL},
    {"num_hidden_layers", INT, "L", "24", NULL},
    {"num_attention_heads", INT, "H", "32", NULL},
    {"num_key_value_heads", INT, "K", "H", NULL},
    {NULL, INT, "W", "D/H", NULL},
    {"rope_parameters.partial_rotary_factor", REAL, "part", "", NULL},
    {"partial_rotary_factor", REAL, "part", "0.5", NULL},
    {NULL, INT, "turned", "ceil(W*part-0.999)", NULL},
    {"layer_norm_eps", REAL, "eps", "1e-5", NULL},
    {"hidden_act", ONLY, NULL, NULL, "gelu_new gelu_pytorch_tanh"},
    {"resid_pdrop", REAL, "residual", "0", NULL},
    {"embd_pdrop", REAL, "first", "0", NULL},
    {"attention_dropout", REAL, "drop", "0", NULL},
    {"qk_layernorm", ONLY, NULL, NULL, "false"},
    {"tie_word_embeddings", ONLY, NULL, NULL, "false"},
    {NULL, FLAG, "tie", "false", NULL},
    ROPE("10000"),
    CONTEXT("2048"),
    {0}
};

static const ConfigField gpt_neox[] = {
    {"vocab_size", INT, "V", "50432", NULL},
    {"hidden_size", INT, "D", "6144", NULL},
    {"intermediate_size", INT, "F", "24576", NULL},
    {"num_hidden_layers", INT, "L", "44", NULL},
    {"num_attention_heads", INT, "H", "64", NULL},
    {NULL, INT, "W", "D/H", NULL},
    {"rope_parameters.partial_rotary_factor", REAL, "part", "", NULL},
    {"partial_rotary_factor", REAL, "part", "", NULL},
    {"rotary_pct", REAL, "part", "0.25", NULL},
    {NULL, INT, "turned", "ceil(W*part-0.999)", NULL},
    {"layer_norm_eps", REAL, "eps", "1e-5", NULL},
    {"hidden_act", ONLY, NULL, NULL, "gelu"},
    {"hidden_dropout", REAL, "residual", "0", NULL},
    {"attention_dropout", REAL, "drop", "0", NULL},
    {"attention_bias", FLAG, "bias", "true", NULL},
    {"use_parallel_residual", FLAG, "parallel", "true", NULL},
    {"tie_word_embeddings", FLAG, "tie", "false", NULL},
    {"rotary_emb_base", REAL, "theta", "", NULL},
    ROPE("10000"),
    CONTEXT("2048"),
    {0}
};

static const ConfigField opt[] = {
    {"vocab_size", INT, "V", "50272", NULL},
    {"hidden_size", INT, "D", "768", NULL},
    {"ffn_dim", INT, "F", "3072", NULL},
    {"num_hidden_layers", INT, "L", "12", NULL},
    {"num_attention_heads", INT, "H", "12", NULL},
    {"dropout", REAL, "residual", "0.1", NULL},
    {"attention_dropout", REAL, "drop", "0", NULL},
    {"activation_dropout", ONLY, NULL, NULL, "0.0 0"},
    {"layerdrop", ONLY, NULL, NULL, "0.0 0"},
    {"activation_function", ONLY, NULL, NULL, "relu"},
    {"do_layer_norm_before", ONLY, NULL, NULL, "true"},
    {"_remove_final_layer_norm", ONLY, NULL, NULL, "false"},
    {"enable_bias", ONLY, NULL, NULL, "true"},
    {"layer_norm_elementwise_affine", ONLY, NULL, NULL, "true"},
    {"word_embed_proj_dim", SAME, NULL, "D", NULL},
    {"tie_word_embeddings", ONLY, NULL, NULL, "true"},
    CONTEXT("2048"),
    {0}
};

static const ConfigField vit[] = {
    {"hidden_size", INT, "D", "768", NULL},
    {"intermediate_size", INT, "F", "3072", NULL},
    {"num_hidden_layers", INT, "L", "12", NULL},
    {"num_attention_heads", INT, "H", "12", NULL},
    {"image_size", INT, "S", "224", NULL},
    {"patch_size", INT, "P", "16", NULL},
    {"num_channels", INT, "channels", "3", NULL},
    {"id2label", COUNT_OF, "C", "2", NULL},
    {"layer_norm_eps", REAL, "eps", "1e-12", NULL},
    {"hidden_act", ONLY, NULL, NULL, "gelu"},
    {"qkv_bias", FLAG, "bias", "true", NULL},
    {"hidden_dropout_prob", REAL, "residual", "0", NULL},
    {"attention_probs_dropout_prob", REAL, "drop", "0", NULL},
    {0}
};

static const ConfigField t5[] = {
    {"vocab_size", INT, "V", "32128", NULL},
    {"d_model", INT, "D", "512", NULL},
    {"num_heads", INT, "H", "8", NULL},
    {"d_kv", INT, "W", "64", NULL},
    {"d_ff", INT, "F", "2048", NULL},
    {"num_layers", INT, "L", "6", NULL},
    {"num_decoder_layers", TEXT, "M", "L", NULL},
    {"n_positions", INT, "S", "512", NULL},
    {"relative_attention_num_buckets", INT, "buckets", "32", NULL},
    {"relative_attention_max_distance", INT, "distance", "128", NULL},
    {"dropout_rate", REAL, "drop", "0.1", NULL},
    {"layer_norm_epsilon", REAL, "eps", "1e-6", NULL},
    {"feed_forward_proj", WORD, "gated", "", "relu: gated-gelu:gelu_tanh"},
    {"dense_act_fn", ONLY, NULL, NULL, "relu gelu_new"},
    {"is_gated_act", ONLY, NULL, NULL, "true false"},
    {"tie_word_embeddings", FLAG, "tie", "true", NULL},
    {"scale_decoder_outputs", SAME, NULL, "tie", NULL},
    {0}
};

static const Family others[] = {
    {"gpt2", "gpt2.yaml", NULL, gpt2},
    {"phi", "phi.yaml", "language.yaml", phi},
    {"gpt_neox", "gpt_neox.yaml", "language.yaml", gpt_neox},
    {"opt", "opt.yaml", "language.yaml", opt},
    {"vit", "vit.yaml", NULL, vit},
    {"t5", "t5.yaml", NULL, t5},
    {0}
};
const Family *const families[] = {family_decoders, family_encoders, others, NULL};

const Missing family_missing[] = {
    {"a selective scan", "mamba mamba2 falcon_mamba falcon_h1 bamba jamba zamba zamba2 nemotron_h granitemoehybrid"},
    {"attention that is a recurrence", "bailing_hybrid kimi_linear lara_mini minimax minimax_m3_vl_text olmo_hybrid "
     "qwen3_next qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text qwen4_exp qwen4_exp_text recurrent_gemma rwkv xlstm"},
    {"layers of several kinds, with short convolutions", "lfm2 lfm2_moe lfm3 inkling_text inkling2_text inkling2_loop_text "
     "zaya convbert squeezebert"},
    {"latent attention with YaRN, v of another width", "deepseek_v2 minicpm3 youtu"},
    {"a router with a bias that only chooses, or groups of experts", "afmoe axk1 axk2 beam deepseek_v3 deepseek_v32 "
     "deepseek_v4 dots1 dots3_note dots3_note_text ernie4_5_moe exaone_moe glm4_moe glm4_moe_lite glm_moe_dsa hy_v3 hy_v4 "
     "kolibri1 laguna longcat_flash mimo_v2_flash minimax_m2 sarvam_mla sarvam_moe solar_open"},
    {"experts with another router", "aria_text cohere2_moe dbrx doge hunyuan_v1_moe jetmoe llama4 llama4_text mellum "
     "nllb-moe phimoe switch_transformers"},
    {"attention with sinks", "gpt_oss flint granite_swa granitemoe_swa"},
    {"biases that grow with the distance (ALiBi)", "bloom mpt"},
    {"positions from a fixed table", "ctrl flaubert fsmt m2m_100 marian musicgen musicgen_melody pegasus pegasus_x "
     "trocr xglm xlm"},
    {"relative positions of another kind", "cpmant deberta deberta-v2 funnel longt5 mpnet prophetnet "
     "roformer tapas umt5 xlnet"},
    {"attention to parts of a text", "big_bird bigbird_pegasus blt led longformer mra nystromformer perceiver reformer "
     "yoso"},
    {"windows that are not causal", "eurobert gte jina_embeddings_v3 modernbert modernbert-decoder neomme nomic_bert "
     "ultrabert"},
    {"a norm of another kind", "nanochat nemotron olmo"},
    {"an activation with parameters", "apertus apertus1p5_text"},
    {"attention that is a difference of two", "diffllama"},
    {"a Fourier transform", "fnet"},
    {"a layer that is used again", "albert hrm_text"},
    {"images or sound beside the words", "audioflamingo3 cohere_compass_text emu3 fuyu gemma3 gemma3n gemma3n_text gemma4 "
     "gemma4_assistant gemma4_text gemma4_unified gemma4_unified_assistant gemma4_unified_text git glmasr got_ocr2 "
     "granite_speech granite_speech_plus layoutlm mllama modernvbert moshi moss_transcribe_diarize musicflamingo "
     "nemo_speechlm omniasr phi4_multimodal qwen2_audio qwen3_asr seamless_m4t seamless_m4t_v2 t5gemma2 ultravbert "
     "vibevoice_asr voxtral voxtral_realtime whisper"},
    {"a template alone", "bart bert-generation codegen eurobert gpt_neox_japanese gte jina_embeddings_v3 nomic_bert biogpt "
     "bitnet blenderbot blenderbot-small cwm data2vec-text dory encoder-decoder ernie esm esmc exaone flex_olmo "
     "gpt_bigcode gpt_neo granitemoeshared hyperclovax ibert internlm3 iquestcoder jais2 luke mbart megatron-bert "
     "ministral3 mobilebert mt5 mvp openai-gpt persimmon plbart rembert roberta-prelayernorm roc_bert t5gemma vaultgemma "
     "xlm-roberta-xl xmod"},
    {0}
};
