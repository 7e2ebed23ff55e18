/* SPDX-License-Identifier: Apache-2.0
 *
 * encoders.c: the families that bert.yaml writes: each position sees all others, and a norm stands behind each sum.
 *
 * They differ in names, in the rows of their tables, and in what the heads of their classes are: heads.c says which one.
 */
#include "fields.h"
#include <stddef.h>

#define SIZES(words, positions, epsilon) \
    {"vocab_size", INT, "V", words, NULL}, \
    {"hidden_size", INT, "D", "768", NULL}, \
    {"intermediate_size", INT, "F", "3072", NULL}, \
    {"num_hidden_layers", INT, "L", "12", NULL}, \
    {"num_attention_heads", INT, "H", "12", NULL}, \
    {"max_position_embeddings", INT, "P", positions, NULL}, \
    {"type_vocab_size", INT, "kinds", "2", NULL}, \
    {NULL, REAL, "several", "kinds-1", NULL}, \
    {NULL, REAL, "one", "max(2-kinds, 0)", NULL}, \
    {NULL, FLAG, "typed", "true", NULL}, \
    {"layer_norm_eps", REAL, "eps", epsilon, NULL}, \
    {"hidden_act", ONLY, NULL, NULL, "gelu"}, \
    {"hidden_dropout_prob", REAL, "residual", "0.1", NULL}, \
    {"attention_probs_dropout_prob", REAL, "drop", "0.1", NULL}, \
    {"classifier_dropout", REAL, "headdrop", "residual", NULL}, \
    {NULL, REAL, "tagdrop", "headdrop", NULL}, \
    {"position_embedding_type", ONLY, NULL, NULL, "absolute"}, \
    {"chunk_size_feed_forward", ONLY, NULL, NULL, "0"}, \
    {"problem_type", ONLY, NULL, NULL, "single_label_classification"}, \
    {"tie_word_embeddings", ONLY, NULL, NULL, "true"}

#define LAYER(layers) \
    {NULL, WORD, "layers", layers, NULL}, \
    {NULL, WORD, "q", "attention.self.query", NULL}, \
    {NULL, WORD, "k", "attention.self.key", NULL}, \
    {NULL, WORD, "v", "attention.self.value", NULL}, \
    {NULL, WORD, "out", "attention.output.dense", NULL}, \
    {NULL, WORD, "after", "attention.output.LayerNorm", NULL}, \
    {NULL, WORD, "up", "intermediate.dense", NULL}, \
    {NULL, WORD, "down", "output.dense", NULL}, \
    {NULL, WORD, "behind", "output.LayerNorm", NULL}

/* the head of words: two lines with a norm between them; the file's name of the last bias */
#define WORDS(first, second, third, bias) \
    {NULL, WORD, "dense", first, NULL}, \
    {NULL, WORD, "norm", second, NULL}, \
    {NULL, WORD, "decoder", third, NULL}, \
    {NULL, WORD, "renamed", bias, NULL}

/* the head of classes of a whole text; before: a Dropout in front of it, too */
#define CLASSES(before, first, act_name, second) \
    {NULL, FLAG, "twice", before, NULL}, \
    {NULL, WORD, "pool", first, NULL}, \
    {NULL, WORD, "act", act_name, NULL}, \
    {NULL, WORD, "class", second, NULL}

static const ConfigField bert[] = {
    SIZES("30522", "512", "1e-12"),
    {NULL, WORD, "top", "bert", NULL},
    {NULL, INT, "rows", "P", NULL},
    {NULL, WORD, "E", "D", NULL},
    LAYER("bert.encoder.layer"),
    WORDS("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.decoder",
          "cls.predictions.bias"),
    CLASSES("false", "bert.pooler.dense", "Tanh", "classifier"),
    {0}
};

/* Positions are counted from behind the number of the padding word, which is 1. */
static const ConfigField roberta[] = {
    SIZES("50265", "514", "1e-12"),
    {"pad_token_id", ONLY, NULL, NULL, "1"},
    {NULL, INT, "offset", "2", NULL},
    {NULL, INT, "rows", "P-2", NULL},
    {NULL, WORD, "top", "roberta", NULL},
    {NULL, WORD, "E", "D", NULL},
    LAYER("roberta.encoder.layer"),
    WORDS("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"),
    CLASSES("true", "classifier.dense", "Tanh", "classifier.out_proj"),
    {NULL, WORD, "norms", "\"*.layer_norm.*\"", NULL},
    {0}
};

static const ConfigField electra[] = {
    SIZES("30522", "512", "1e-12"),
    {"embedding_size", INT, "E", "128", NULL},
    {NULL, REAL, "narrow", "max(D-E, E-D)", NULL},
    {"summary_last_dropout", ANY, NULL, NULL, NULL},        /* of a head that is not written */
    {NULL, INT, "rows", "P", NULL},
    {NULL, WORD, "top", "electra", NULL},
    LAYER("electra.encoder.layer"),
    WORDS("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head", "false"),
    CLASSES("true", "classifier.dense", "Gelu", "classifier.out_proj"),
    {0}
};

static const ConfigField distilbert[] = {
    {"vocab_size", INT, "V", "30522", NULL},
    {"dim", INT, "D", "768", NULL},
    {"hidden_dim", INT, "F", "3072", NULL},
    {"n_layers", INT, "L", "6", NULL},
    {"n_heads", INT, "H", "12", NULL},
    {"max_position_embeddings", INT, "P", "512", NULL},
    {NULL, REAL, "eps", "1e-12", NULL},
    {"activation", ONLY, NULL, NULL, "gelu"},
    {"dropout", REAL, "residual", "0.1", NULL},
    {"attention_dropout", REAL, "drop", "0.1", NULL},
    {"seq_classif_dropout", REAL, "headdrop", "0.2", NULL},
    {NULL, REAL, "tagdrop", "residual", NULL},
    {"qa_dropout", ANY, NULL, NULL, NULL},                  /* of a head that is not written */
    {"sinusoidal_pos_embds", ANY, NULL, NULL, NULL},        /* how the table of positions begins */
    {"tie_weights_", ONLY, NULL, NULL, "true"},
    {"problem_type", ONLY, NULL, NULL, "single_label_classification"},
    {"tie_word_embeddings", ONLY, NULL, NULL, "true"},
    {NULL, INT, "rows", "P", NULL},
    {NULL, WORD, "top", "distilbert", NULL},
    {NULL, WORD, "E", "D", NULL},
    {NULL, WORD, "layers", "distilbert.transformer.layer", NULL},
    {NULL, WORD, "q", "attention.q_lin", NULL},
    {NULL, WORD, "k", "attention.k_lin", NULL},
    {NULL, WORD, "v", "attention.v_lin", NULL},
    {NULL, WORD, "out", "attention.out_lin", NULL},
    {NULL, WORD, "after", "sa_layer_norm", NULL},
    {NULL, WORD, "up", "ffn.lin1", NULL},
    {NULL, WORD, "down", "ffn.lin2", NULL},
    {NULL, WORD, "behind", "output_layer_norm", NULL},
    WORDS("vocab_transform", "vocab_layer_norm", "vocab_projector", "false"),
    CLASSES("false", "pre_classifier", "Relu", "classifier"),
    {NULL, WORD, "norms", "\"*layer_norm.*\"", NULL},
    {0}
};

#define ENCODER(type, fields) {type, "bert.yaml", NULL, fields}
const Family family_encoders[] = {
    ENCODER("bert", bert), ENCODER("roberta", roberta), ENCODER("xlm-roberta", roberta), ENCODER("camembert", roberta),
    ENCODER("electra", electra), ENCODER("distilbert", distilbert),
    {0}
};
