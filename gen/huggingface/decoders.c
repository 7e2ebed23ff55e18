/* SPDX-License-Identifier: Apache-2.0
 *
 * decoders.c: the families that llama.yaml writes: language models of equal layers, each an attention and feed-forward lines.
 *
 * They differ in norms and where these stand, in positions, windows, factors, biases, names, and in experts.  Each of these is
 * a value of the template.  A family sets what is its own; PARTS, which is the last, says the rest.
 */
#include "fields.h"
#include <stddef.h>

#define WINDOW \
    {"sliding_window", INT, "window", "", NULL}

#define NO_WINDOW \
    {"use_sliding_window", ONLY, NULL, NULL, "false"}, \
    {"sliding_window", ANY, NULL, NULL, NULL}, \
    {"layer_types", LIST_OF, NULL, NULL, "full_attention"}

/* A window in all layers but every n-th: near is 1 in those that have it. */
#define WINDOWS(size, turns, pattern) \
    {"sliding_window", INT, "size", size, NULL}, \
    {pattern, INT, "turns", turns, NULL}, \
    {NULL, LET, "near", "min(mod(i+1, @turns@), 1)", NULL}, \
    {"layer_types", EVERY, "near", "near", "sliding_attention full_attention"}, \
    {NULL, WORD, "window", "window", NULL}

#define WINDOWS_ALONE \
    {NULL, WORD, "params", "window: 0", NULL}, \
    {NULL, LET, "args", "window: \"@size@*@near@\"", NULL}

#define WINDOWS_AND_TURNS \
    {NULL, WORD, "params", "window: 0, near: 1", NULL}, \
    {NULL, LET, "args", "window: \"@size@*@near@\", near: \"@near@\"", NULL}

#define SIZES(kv_heads, width, tied) \
    {"vocab_size", INT, "V", NULL, NULL}, \
    {"hidden_size", INT, "D", NULL, NULL}, \
    {"num_attention_heads", INT, "H", NULL, NULL}, \
    {"num_key_value_heads", INT, "K", kv_heads, NULL}, \
    {"head_dim", INT, "W", width, NULL}, \
    {"intermediate_size", INT, "F", NULL, NULL}, \
    {"num_hidden_layers", INT, "L", NULL, NULL}, \
    {"attention_dropout", REAL, "drop", "0", NULL}, \
    {"tie_word_embeddings", FLAG, "tie", tied, NULL}

#define LLAMA(kv_heads, width, epsilon, base, tied) \
    SIZES(kv_heads, width, tied), \
    {"rms_norm_eps", REAL, "eps", epsilon, NULL}, \
    ROPE(base)

#define SILU {"hidden_act", WORD, "act", "silu", "silu"}

/* biases of q, k and v, of the line behind attention, and of the feed-forward lines */
#define BIASES(qkv_key, qkv, o_key, o, mlp_key, mlp) \
    {qkv_key, FLAG, "qkv", qkv, NULL}, \
    {o_key, FLAG, "o", o, NULL}, \
    {mlp_key, FLAG, "mlp", mlp, NULL}

/* What llama.yaml has for a family that says nothing else.  before and middle: the norms in front of attention and of the
 * feed-forward lines; after, behind: those of their results. */
#define PARTS \
    {NULL, WORD, "norm", "RMSNorm", NULL}, \
    {NULL, LET, "normed", "eps: @eps@@?offset|, offset: $, init: zeros@@?unbiased|, bias: false@", NULL}, \
    {NULL, WORD, "before", "input_layernorm", NULL}, \
    {NULL, WORD, "middle", "post_attention_layernorm", NULL}, \
    {NULL, WORD, "from", "n", NULL}, \
    {NULL, WORD, "to", "m", NULL}, \
    {NULL, WORD, "self", "self_attn", NULL}, \
    {NULL, WORD, "q", "q_proj", NULL}, {NULL, WORD, "k", "k_proj", NULL}, {NULL, WORD, "v", "v_proj", NULL}, \
    {NULL, WORD, "out", "o_proj", NULL}, \
    {NULL, FLAG, "head", "false", NULL}, \
    {NULL, WORD, "words", "model.embed_tokens", NULL}, \
    {NULL, WORD, "layers", "model.layers", NULL}, \
    {NULL, WORD, "end", "model.norm", NULL}, \
    {NULL, WORD, "prefix", "model.", NULL}, \
    {NULL, FLAG, "gated", "true", NULL}

#define HEAD_NORMS {NULL, LET, "norms", "width: W, eps: @eps@@?offset|, offset: $, init: zeros@", NULL}
#define WIDE_NORMS {NULL, LET, "norms", "eps: @eps@", NULL}

/* norms of what attention and the feed-forward lines give, and none of what they read */
#define NORMS_BEHIND \
    {NULL, FLAG, "before", "false", NULL}, \
    {NULL, FLAG, "middle", "false", NULL}, \
    {NULL, WORD, "from", "$in", NULL}, \
    {NULL, WORD, "to", "r", NULL}, \
    {NULL, WORD, "after", "post_attention_layernorm", NULL}, \
    {NULL, WORD, "behind", "post_feedforward_layernorm", NULL}

/* both branches read the first norm */
#define PARALLEL \
    {NULL, FLAG, "middle", "false", NULL}, \
    {NULL, WORD, "to", "n", NULL}

/* one line, an activation, and another line */
#define PLAIN(first, second) \
    {NULL, FLAG, "gated", "false", NULL}, \
    {NULL, WORD, "up", first, NULL}, \
    {NULL, WORD, "down", second, NULL}

static const ConfigField llama[] = {
    LLAMA("H", "D/H", "1e-6", "10000", "false"),
    CONTEXT("2048"),
    SILU,
    BIASES("attention_bias", "false", "attention_bias", "false", "mlp_bias", "false"),
    {"pretraining_tp", ONLY, NULL, NULL, "1"},
    PARTS,
    {0}
};

static const ConfigField mistral[] = {
    LLAMA("8", "D/H", "1e-6", "10000", "false"),
    WINDOW,
    CONTEXT("131072"),
    SILU,
    BIASES(NULL, "false", NULL, "false", NULL, "false"),
    PARTS,
    {0}
};

static const ConfigField ministral[] = {
    LLAMA("8", "D/H", "1e-6", "10000", "false"),
    {"sliding_window", INT, "size", NULL, NULL},
    {NULL, WORD, "near", "1", NULL},
    {"layer_types", EVERY, "near", "near", "sliding_attention full_attention"},
    {NULL, WORD, "window", "window", NULL},
    WINDOWS_ALONE,
    CONTEXT("131072"),
    SILU,
    BIASES(NULL, "false", NULL, "false", NULL, "false"),
    PARTS,
    {0}
};

static const ConfigField qwen2[] = {
    LLAMA("32", "D/H", "1e-6", "10000", "false"),
    CONTEXT("32768"),
    NO_WINDOW,
    SILU,
    BIASES(NULL, "true", NULL, "false", NULL, "false"),
    PARTS,
    {0}
};

static const ConfigField qwen3[] = {
    LLAMA("32", "128", "1e-6", "10000", "false"),
    CONTEXT("32768"),
    NO_WINDOW,
    SILU,
    BIASES("attention_bias", "false", "attention_bias", "false", NULL, "false"),
    HEAD_NORMS,
    PARTS,
    {0}
};

static const ConfigField seed_oss[] = {
    LLAMA("8", "128", "1e-6", "10000", "false"),
    CONTEXT("524288"),
    SILU,
    {"residual_dropout", REAL, "residual", "0.1", NULL},
    BIASES("attention_bias", "true", "attention_out_bias", "false", "mlp_bias", "false"),
    {"pretraining_tp", ONLY, NULL, NULL, "1"},
    PARTS,
    {0}
};

static const ConfigField ernie4_5[] = {
    {NULL, FLAG, "adjacent", "true", NULL},
    LLAMA("2", "128", "1e-5", "500000", "true"),
    CONTEXT("131072"),
    SILU,
    BIASES("use_bias", "false", "use_bias", "false", "use_bias", "false"),
    PARTS,
    {0}
};

static const ConfigField helium[] = {
    {NULL, FLAG, "adjacent", "true", NULL},
    LLAMA("20", "128", "1e-8", "100000", "false"),
    CONTEXT("4096"),
    SILU,
    BIASES("attention_bias", "false", NULL, "false", "mlp_bias", "false"),
    PARTS,
    {0}
};

static const ConfigField hunyuan[] = {
    LLAMA("H", "D/H", "1e-5", "10000", "false"),
    CONTEXT("2048"),
    SILU,
    BIASES("attention_bias", "false", "attention_bias", "false", NULL, "false"),
    {"pretraining_tp", ONLY, NULL, NULL, "1"},
    {NULL, LET, "late", "width: W, eps: @eps@", NULL},
    PARTS,
    {0}
};

static const ConfigField arcee[] = {
    LLAMA("H", "D/H", "1e-5", "10000", "false"),
    CONTEXT("4096"),
    {"hidden_act", ONLY, NULL, NULL, "relu2"},
    {NULL, WORD, "plain", "Relu", NULL},
    {NULL, FLAG, "square", "true", NULL},
    PLAIN("up_proj", "down_proj"),
    BIASES("attention_bias", "false", "attention_bias", "false", "mlp_bias", "false"),
    PARTS,
    {0}
};

/* Every n-th layer has no rotary positions. */
static const ConfigField smollm3[] = {
    LLAMA("4", "D/H", "1e-6", "2000000", "true"),
    CONTEXT("32768"),
    NO_WINDOW,
    SILU,
    BIASES("attention_bias", "false", "attention_bias", "false", "mlp_bias", "false"),
    {"pretraining_tp", ONLY, NULL, NULL, "2 1"},
    {"no_rope_layer_interval", INT, "turns", "4", NULL},
    {NULL, LET, "near", "min(mod(i+1, @turns@), 1)", NULL},
    {"no_rope_layers", EVERY, "near", "near", "1 0"},
    {NULL, WORD, "params", "near: 1", NULL},
    {NULL, LET, "args", "near: \"@near@\"", NULL},
    {NULL, WORD, "when", "near", NULL},
    PARTS,
    {0}
};

#define GRANITE \
    LLAMA("H", "D/H", "1e-6", "10000", "false"), \
    CONTEXT("2048"), \
    SILU, \
    {"embedding_multiplier", REAL, "scaled", "1", NULL}, \
    {"residual_multiplier", REAL, "times", "1", NULL}, \
    {"attention_multiplier", REAL, "scale", "1", NULL}, \
    {"logits_scaling", REAL, "divisor", "1", NULL}, \
    {NULL, LET, "logits", "1/@divisor@", NULL}

static const ConfigField granite[] = {
    GRANITE,
    BIASES("attention_bias", "false", "attention_bias", "false", "mlp_bias", "false"),
    PARTS,
    {0}
};

static const ConfigField olmo2[] = {
    LLAMA("H", "D/H", "1e-5", "10000", "false"),
    CONTEXT("2048"),
    SILU,
    BIASES("attention_bias", "false", "attention_bias", "false", NULL, "false"),
    WIDE_NORMS,
    NORMS_BEHIND,
    PARTS,
    {0}
};

/* positions of the layers with a window: their theta alone */
#define LOCAL_ROPE(theta, key, otherwise) \
    {"rope_parameters.full_attention.rope_theta", REAL, "theta", "", NULL}, \
    {"rope_theta", REAL, "theta", theta, NULL}, \
    {"rope_parameters.sliding_attention.rope_theta", REAL, "local", "", NULL}, \
    {key, REAL, "local", otherwise, NULL}, \
    {"rope_parameters.sliding_attention.rope_type", ONLY, NULL, NULL, "default"}

static const ConfigField olmo3[] = {
    SIZES("H", "D/H", "false"),
    {"rms_norm_eps", REAL, "eps", "1e-5", NULL},
    LOCAL_ROPE("10000", NULL, "theta"),
    {"rope_parameters.full_attention.rope_type", ONLY, NULL, NULL, "default"},
    {"rope_scaling", ONLY, NULL, NULL, "null"},
    ROPE_LINE,
    CONTEXT("2048"),
    WINDOWS("4096", "4", NULL),
    WINDOWS_AND_TURNS,
    {NULL, WORD, "when", "1-near", NULL},
    SILU,
    BIASES("attention_bias", "false", "attention_bias", "false", NULL, "false"),
    WIDE_NORMS,
    NORMS_BEHIND,
    PARTS,
    {0}
};

/* Layers without a window have no rotary positions. */
static const ConfigField exaone4[] = {
    LLAMA("32", "D/H", "1e-5", "10000", "false"),
    CONTEXT("2048"),
    {"sliding_window_pattern", WORD, "turns", "4", "4 LLLG:4"},
    WINDOWS(NULL, "4", NULL),
    WINDOWS_AND_TURNS,
    {NULL, WORD, "when", "near", NULL},
    SILU,
    BIASES(NULL, "false", NULL, "false", NULL, "false"),
    HEAD_NORMS,
    NORMS_BEHIND,
    PARTS,
    {0}
};

#define COHERE \
    {NULL, FLAG, "adjacent", "true", NULL}, \
    SIZES("H", "D/H", "true"), \
    {"layer_norm_eps", REAL, "eps", "1e-5", NULL}, \
    ROPE("10000"), \
    CONTEXT("8192"), \
    SILU, \
    {NULL, WORD, "norm", "LayerNorm", NULL}, \
    {NULL, FLAG, "unbiased", "true", NULL}, \
    {"logit_scale", REAL, "logits", "0.0625", NULL}, \
    BIASES("attention_bias", "false", "attention_bias", "false", NULL, "false"), \
    PARALLEL

static const ConfigField cohere[] = {COHERE, {"use_qk_norm", ONLY, NULL, NULL, "false"}, PARTS, {0}};

static const ConfigField cohere2[] = {
    COHERE,
    {"_sliding_window_pattern", INT, "turns", "4", NULL},
    WINDOWS(NULL, "4", "sliding_window_pattern"),
    WINDOWS_AND_TURNS,
    {NULL, WORD, "when", "near", NULL},
    PARTS,
    {0}
};

#define GLM \
    {NULL, FLAG, "adjacent", "true", NULL}, \
    SIZES("2", "128", "false"), \
    {"rms_norm_eps", REAL, "eps", "1.5625e-07", NULL}, \
    PART("0.5"), \
    ROPE("10000"), \
    CONTEXT("131072"), \
    SILU, \
    BIASES("attention_bias", "true", NULL, "false", NULL, "false"), \
    {NULL, FLAG, "halves", "true", NULL}, \
    {NULL, FLAG, "stacked", "true", NULL}

static const ConfigField glm[] = {GLM, PARTS, {0}};

static const ConfigField glm4[] = {
    GLM,
    {NULL, WORD, "after", "post_self_attn_layernorm", NULL},
    {NULL, WORD, "behind", "post_mlp_layernorm", NULL},
    PARTS,
    {0}
};

static const ConfigField stablelm[] = {
    SIZES("32", "D/H", "false"),
    {"layer_norm_eps", REAL, "eps", "1e-5", NULL},
    PART("0.25"),
    ROPE("10000"),
    CONTEXT("4096"),
    SILU,
    {NULL, WORD, "norm", "LayerNorm", NULL},
    BIASES("use_qkv_bias", "false", NULL, "false", NULL, "false"),
    {"qk_layernorm", ONLY, NULL, NULL, "false"},
    {"use_parallel_residual", ONLY, NULL, NULL, "false"},
    {"hidden_dropout", ONLY, NULL, NULL, "0.0 0"},
    PARTS,
    {0}
};

static const ConfigField starcoder2[] = {
    SIZES("2", "D/H", "true"),
    {"norm_epsilon", REAL, "eps", "1e-5", NULL},
    ROPE("10000"),
    WINDOW,
    CONTEXT("4096"),
    {"hidden_act", ONLY, NULL, NULL, "gelu_pytorch_tanh"},
    {"norm_type", ONLY, NULL, NULL, "layer_norm"},
    {"mlp_type", ONLY, NULL, NULL, "default"},
    {"residual_dropout", REAL, "residual", "0", NULL},
    {"embedding_dropout", REAL, "first", "0", NULL},
    {NULL, WORD, "norm", "LayerNorm", NULL},
    {NULL, WORD, "plain", "Gelu, approximate: tanh", NULL},
    PLAIN("c_fc", "c_proj"),
    BIASES("use_bias", "true", "use_bias", "true", "use_bias", "true"),
    PARTS,
    {0}
};

static const ConfigField gptj[] = {
    {"vocab_size", INT, "V", "50400", NULL},
    {"n_positions", INT, "P", "2048", NULL},
    {"n_embd", INT, "D", "4096", NULL},
    {"n_head", INT, "H", "16", NULL},
    {NULL, INT, "K", "H", NULL},
    {NULL, INT, "W", "D/H", NULL},
    {"n_layer", INT, "L", "28", NULL},
    {"n_inner", TEXT, "F", "4*D", NULL},
    {"rotary_dim", INT, "turned", "64", NULL},
    {"layer_norm_epsilon", REAL, "eps", "1e-5", NULL},
    {"activation_function", ONLY, NULL, NULL, "gelu_new gelu_pytorch_tanh"},
    {"resid_pdrop", REAL, "residual", "0", NULL},
    {"embd_pdrop", REAL, "first", "0", NULL},
    {"attn_pdrop", REAL, "drop", "0", NULL},
    {"scale_attn_weights", ANY, NULL, NULL, NULL},          /* GPT-J reads it nowhere: scores are always scaled */
    {"rotary", ONLY, NULL, NULL, "true"},
    {"tie_word_embeddings", FLAG, "tie", "false", NULL},
    {NULL, INT, "T", "min(P, 2048)", NULL},
    {NULL, INT, "large", "max(V-65536, 0)", NULL},
    {NULL, WORD, "theta", "10000", NULL},
    {NULL, FLAG, "adjacent", "true", NULL},
    ROPE_LINE,
    {NULL, WORD, "norm", "LayerNorm", NULL},
    {NULL, WORD, "before", "ln_1", NULL},
    {NULL, WORD, "self", "attn", NULL},
    {NULL, WORD, "out", "out_proj", NULL},
    {NULL, WORD, "plain", "Gelu, approximate: tanh", NULL},
    PLAIN("fc_in", "fc_out"),
    BIASES(NULL, "false", NULL, "false", NULL, "true"),
    PARALLEL,
    {NULL, FLAG, "head", "true", NULL},
    {NULL, WORD, "words", "transformer.wte", NULL},
    {NULL, WORD, "layers", "transformer.h", NULL},
    {NULL, WORD, "end", "transformer.ln_f", NULL},
    {NULL, WORD, "prefix", "transformer.", NULL},
    {NULL, WORD, "ignored", "\"*.attn.bias\", \"*.attn.masked_bias\"", NULL},
    PARTS,
    {0}
};

/* The seven billion: one head of keys and values, and one norm for both branches. */
static const ConfigField falcon[] = {
    {"vocab_size", INT, "V", "65024", NULL},
    {"hidden_size", INT, "D", "4544", NULL},
    {"n_embed", SAME, NULL, "D", NULL},
    {"num_attention_heads", INT, "H", "71", NULL},
    {NULL, INT, "K", "1", NULL},
    {NULL, INT, "W", "D/H", NULL},
    {"num_hidden_layers", INT, "L", "32", NULL},
    {"ffn_hidden_size", TEXT, "F", "4*D", NULL},
    {"layer_norm_epsilon", REAL, "eps", "1e-5", NULL},
    {"activation", ONLY, NULL, NULL, "gelu"},
    {"hidden_dropout", REAL, "residual", "0", NULL},
    {"attention_dropout", REAL, "drop", "0", NULL},
    {"bias", ONLY, NULL, NULL, "false"},
    {"alibi", ONLY, NULL, NULL, "false"},
    {"new_decoder_architecture", ONLY, NULL, NULL, "false"},
    {"multi_query", ONLY, NULL, NULL, "true"},
    {"parallel_attn", ONLY, NULL, NULL, "true"},
    {"num_kv_heads", ANY, NULL, NULL, NULL},                /* it is for the other architecture */
    {"num_ln_in_parallel_attn", ANY, NULL, NULL, NULL},     /* alike */
    {"tie_word_embeddings", FLAG, "tie", "true", NULL},
    ROPE("10000"),
    CONTEXT("2048"),
    {NULL, WORD, "norm", "LayerNorm", NULL},
    {NULL, WORD, "self", "self_attention", NULL},
    {NULL, WORD, "q", "query", NULL}, {NULL, WORD, "k", "key", NULL}, {NULL, WORD, "v", "value", NULL},
    {NULL, WORD, "out", "dense", NULL},
    {NULL, WORD, "plain", "Gelu", NULL},
    PLAIN("dense_h_to_4h", "dense_4h_to_h"),
    BIASES(NULL, "false", NULL, "false", NULL, "false"),
    PARALLEL,
    {NULL, FLAG, "rows", "true", NULL},
    {NULL, FLAG, "stacked", "true", NULL},
    {NULL, WORD, "words", "transformer.word_embeddings", NULL},
    {NULL, WORD, "layers", "transformer.h", NULL},
    {NULL, WORD, "end", "transformer.ln_f", NULL},
    {NULL, WORD, "prefix", "transformer.", NULL},
    PARTS,
    {0}
};

#define GEMMA \
    {NULL, WORD, "act", "gelu_tanh", NULL}, \
    {"use_bidirectional_attention", ONLY, NULL, NULL, "false"}, \
    BIASES("attention_bias", "false", "attention_bias", "false", NULL, "false"), \
    {NULL, INT, "offset", "1", NULL}, \
    {NULL, WORD, "scaled", "sqrt(D)", NULL}

#define FOUR_NORMS \
    {NULL, WORD, "after", "post_attention_layernorm", NULL}, \
    {NULL, WORD, "middle", "pre_feedforward_layernorm", NULL}, \
    {NULL, WORD, "behind", "post_feedforward_layernorm", NULL}

/* hidden_act: files say gelu, and the tanh form of it is meant. */
static const ConfigField gemma[] = {
    LLAMA("16", "256", "1e-6", "10000", "true"),
    CONTEXT("8192"),
    {"hidden_activation", ONLY, NULL, NULL, "gelu_pytorch_tanh"},
    {"hidden_act", ONLY, NULL, NULL, "gelu gelu_pytorch_tanh"},
    GEMMA,
    PARTS,
    {0}
};

/* Each layer with a window is followed by one without. */
static const ConfigField gemma2[] = {
    LLAMA("4", "256", "1e-6", "10000", "true"),
    CONTEXT("8192"),
    {"hidden_activation", ONLY, NULL, NULL, "gelu_pytorch_tanh"},
    {"hidden_act", ONLY, NULL, NULL, "gelu_pytorch_tanh"},
    {"query_pre_attn_scalar", REAL, "scalar", "256", NULL},
    {NULL, LET, "scale", "1/sqrt(@scalar@)", NULL},
    WINDOWS("4096", "2", NULL),
    WINDOWS_ALONE,
    {"attn_logit_softcapping", CAP, "cap", "50", NULL},
    {"final_logit_softcapping", CAP, "last", "30", NULL},
    GEMMA,
    FOUR_NORMS,
    PARTS,
    {0}
};

/* Five layers with a window and positions of their own, then one without. */
static const ConfigField gemma3[] = {
    SIZES("4", "256", "true"),
    {"rms_norm_eps", REAL, "eps", "1e-6", NULL},
    LOCAL_ROPE("1000000", "rope_local_base_freq", "10000"),
    {"rope_parameters.full_attention.rope_type", WORD, "scaling", "", "default: linear:linear"},
    {"rope_scaling.rope_type", WORD, "scaling", "", "default: linear:linear"},
    {"rope_parameters.full_attention.factor", REAL, "factor", "", NULL},
    {"rope_scaling.factor", REAL, "factor", "", NULL},
    ROPE_LINE,
    CONTEXT("131072"),
    {"hidden_activation", ONLY, NULL, NULL, "gelu_pytorch_tanh"},
    {"query_pre_attn_scalar", REAL, "scalar", "256", NULL},
    {NULL, LET, "scale", "1/sqrt(@scalar@)", NULL},
    {"_sliding_window_pattern", INT, "turns", "6", NULL},
    WINDOWS("4096", "6", "sliding_window_pattern"),
    WINDOWS_AND_TURNS,
    {NULL, WORD, "when", "1-near", NULL},
    {"attn_logit_softcapping", CAP, "cap", "0", NULL},
    {"final_logit_softcapping", CAP, "last", "0", NULL},
    GEMMA,
    HEAD_NORMS,
    FOUR_NORMS,
    PARTS,
    {0}
};

/* The loss that spreads tokens is that of training with transformers, not of the model: dpgen trains without it. */
#define EXPERTS(count, experts, top_default, block, gate_name, up_name, down_name) \
    {count, INT, "E", experts, NULL}, \
    {"num_experts_per_tok", INT, "top", top_default, NULL}, \
    {"router_aux_loss_coef", ANY, NULL, NULL, NULL}, \
    {"output_router_logits", ONLY, NULL, NULL, "false"}, \
    {NULL, FLAG, "gated", "false", NULL}, \
    {NULL, FLAG, "apart", "true", NULL}, \
    {NULL, WORD, "moe", block, NULL}, \
    {NULL, WORD, "router", "gate", NULL}, \
    {NULL, WORD, "gate", gate_name, NULL}, \
    {NULL, WORD, "up", up_name, NULL}, \
    {NULL, WORD, "down", down_name, NULL}

static const ConfigField mixtral[] = {
    LLAMA("8", "D/H", "1e-5", "1000000", "false"),
    WINDOW,
    CONTEXT("131072"),
    SILU,
    EXPERTS("num_local_experts", "8", "2", "block_sparse_moe", "w1", "w3", "w2"),
    {"router_jitter_noise", ONLY, NULL, NULL, "0.0 0"},
    {NULL, FLAG, "normalize", "true", NULL},
    BIASES(NULL, "false", NULL, "false", NULL, "false"),
    PARTS,
    {0}
};

static const ConfigField olmoe[] = {
    LLAMA("16", "D/H", "1e-5", "10000", "false"),
    CONTEXT("4096"),
    SILU,
    EXPERTS("num_experts", "64", "8", "mlp", "gate_proj", "up_proj", "down_proj"),
    {"norm_topk_prob", FLAG, "normalize", "false", NULL},
    BIASES("attention_bias", "false", "attention_bias", "false", NULL, "false"),
    {"clip_qkv", ONLY, NULL, NULL, "null"},
    WIDE_NORMS,
    PARTS,
    {0}
};

/* Every layer has experts: F is the width of one. */
#define QWEN_EXPERTS(experts, top_default, width) \
    {"num_local_experts", INT, "E", "", NULL}, \
    EXPERTS("num_experts", experts, top_default, "mlp", "gate_proj", "up_proj", "down_proj"), \
    {"moe_intermediate_size", INT, "F", width, NULL}, \
    {"norm_topk_prob", FLAG, "normalize", "false", NULL}, \
    {"decoder_sparse_step", ONLY, NULL, NULL, "1"}, \
    {"mlp_only_layers", LIST_OF, NULL, NULL, "none"}

static const ConfigField qwen2_moe[] = {
    LLAMA("16", "D/H", "1e-6", "10000", "false"),
    CONTEXT("32768"),
    NO_WINDOW,
    SILU,
    QWEN_EXPERTS("60", "4", "1408"),
    {"shared_expert_intermediate_size", INT, "beside", "5632", NULL},
    BIASES("qkv_bias", "true", NULL, "false", NULL, "false"),
    PARTS,
    {0}
};

static const ConfigField qwen3_moe[] = {
    LLAMA("4", "D/H", "1e-6", "10000", "false"),
    CONTEXT("32768"),
    NO_WINDOW,
    SILU,
    QWEN_EXPERTS("128", "8", "768"),
    BIASES("attention_bias", "false", "attention_bias", "false", NULL, "false"),
    HEAD_NORMS,
    PARTS,
    {0}
};

/* The best scores are chosen first, and their softmax is that of all, divided by the sum of the chosen. */
static const ConfigField granitemoe[] = {
    GRANITE,
    {NULL, FLAG, "apart", "false", NULL},
    {NULL, FLAG, "joined", "true", NULL},
    {NULL, WORD, "router", "router.layer", NULL},
    {"position_embedding_type", ONLY, NULL, NULL, "rope"},
    EXPERTS("num_local_experts", "8", "2", "block_sparse_moe", "", "", ""),
    {NULL, FLAG, "normalize", "true", NULL},
    BIASES("attention_bias", "false", "attention_bias", "false", NULL, "false"),
    PARTS,
    {0}
};

static const ConfigField phi3[] = {
    LLAMA("H", "D/H", "1e-5", "10000", "false"),
    WINDOW,
    CONTEXT("4096"),
    {"partial_rotary_factor", ONLY, NULL, NULL, "1.0 1"},
    {"rope_parameters.partial_rotary_factor", ONLY, NULL, NULL, "1.0 1"},
    SILU,
    {"resid_pdrop", REAL, "residual", "0", NULL},
    {"embd_pdrop", ONLY, NULL, NULL, "0.0 0"},
    {"attention_bias", ONLY, NULL, NULL, "false"},
    BIASES(NULL, "false", NULL, "false", NULL, "false"),
    {NULL, FLAG, "packed", "true", NULL},
    {NULL, FLAG, "halves", "true", NULL},
    {NULL, FLAG, "stacked", "true", NULL},
    PARTS,
    {0}
};

#define DECODER(type, fields) {type, "llama.yaml", "language.yaml", fields}
const Family family_decoders[] = {
    DECODER("llama", llama), DECODER("mistral", mistral), DECODER("ministral", ministral), DECODER("qwen2", qwen2),
    DECODER("qwen3", qwen3), DECODER("seed_oss", seed_oss), DECODER("ernie4_5", ernie4_5), DECODER("helium", helium),
    DECODER("hunyuan_v1_dense", hunyuan), DECODER("arcee", arcee), DECODER("smollm3", smollm3), DECODER("granite", granite),
    DECODER("olmo2", olmo2), DECODER("olmo3", olmo3), DECODER("exaone4", exaone4), DECODER("cohere", cohere),
    DECODER("cohere2", cohere2), DECODER("glm", glm), DECODER("glm4", glm4), DECODER("stablelm", stablelm),
    DECODER("starcoder2", starcoder2), DECODER("gptj", gptj), DECODER("falcon", falcon), DECODER("gemma", gemma),
    DECODER("gemma2", gemma2), DECODER("gemma3_text", gemma3), DECODER("phi3", phi3), DECODER("mixtral", mixtral),
    DECODER("olmoe", olmoe), DECODER("qwen2_moe", qwen2_moe), DECODER("qwen3_moe", qwen3_moe),
    DECODER("granitemoe", granitemoe),
    {0}
};
