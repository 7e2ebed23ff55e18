#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Writes DIR/FAMILY: a tiny model from a class of transformers, in a few lines.  The first is its config.json, the last ones are
# the loss of one batch in f64, and the names, types and shapes that save_pretrained() gives its tensors, with their gradients.
# Weights follow from the names (tests/safe.c), data from the names of their files (tests/npy.c).  A gradient is told by its
# norm and by its product with numbers that follow from its name.  A line is for all tensors whose names differ in numbers:
# {0-3} are these numbers, and norm and product are those of all of them behind each other.  tests/hf.awk reads it.
#
#     pip install torch transformers==4.57.1 numpy; python3 tests/ref/make_hf.py tests/hf [FAMILY...]
#
# and its line `newer`, each config.json as a newer release reads and writes it:
#
#     pip install torch transformers==5.24.0 numpy; python3 tests/ref/make_hf.py --newer tests/hf [FAMILY...]
import json, os, re, sys, tempfile
import numpy as np
import torch
import transformers as hf

def late(name, **given):                        # of a model that an older release has not, or has otherwise
    return getattr(hf, name + 'Config')(**given) if hf.__version__ >= '5' else None


base = dict(vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40,
            max_position_embeddings=12)
deep = {**base, 'num_hidden_layers': 4}
pairs = dict(num_key_value_heads=2)
still = dict(hidden_dropout_prob=0., attention_probs_dropout_prob=0.)
wide = {**base, 'max_position_embeddings': 14}
heads = dict(words='MaskedLM', classes='SequenceClassification', tags='TokenClassification')
t5 = dict(vocab_size=61, d_model=24, d_kv=8, d_ff=40, num_layers=2, num_heads=3, dropout_rate=0.)
s2s = dict(vocab_size=61, d_model=24, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=3,
           encoder_ffn_dim=40, decoder_ffn_dim=36, max_position_embeddings=12, dropout=0.)
latent = dict(num_key_value_heads=4, kv_lora_rank=8, q_lora_rank=12, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=8)
gpt = dict(vocab_size=61, n_positions=12, n_embd=24, n_layer=2, n_head=4, resid_pdrop=0., embd_pdrop=0., attn_pdrop=0.)
ends = dict(pad_token_id=0, bos_token_id=1, eos_token_id=1, cls_token_id=1, sep_token_id=1)
llama3 = dict(rope_type='llama3', factor=8., low_freq_factor=1., high_freq_factor=4., original_max_position_embeddings=64)
models = {
    'gpt2': ('GPT2LMHeadModel', hf.GPT2Config(vocab_size=61, n_positions=12, n_embd=24, n_layer=2, n_head=4, resid_pdrop=0.,
                                              embd_pdrop=0., attn_pdrop=0.)),
    'llama': ('LlamaForCausalLM', hf.LlamaConfig(**base, **pairs, rope_theta=500., rope_scaling=llama3, attention_bias=True)),
    'mistral': ('MistralForCausalLM', hf.MistralConfig(**base, **pairs, sliding_window=16, dtype='bfloat16')),
    'qwen2': ('Qwen2ForCausalLM', hf.Qwen2Config(**base, **pairs, tie_word_embeddings=True, hidden_act='gelu')),
    'qwen3': ('Qwen3ForCausalLM', hf.Qwen3Config(**base, **pairs, head_dim=8)),
    'gemma': ('GemmaForCausalLM', hf.GemmaConfig(**base, num_key_value_heads=1, head_dim=8)),
    'gemma2': ('Gemma2ForCausalLM', hf.Gemma2Config(**base, **pairs, head_dim=8, sliding_window=4, query_pre_attn_scalar=10,
                                                    attn_logit_softcapping=3., attn_implementation='eager')),
    'mistral-window': ('MistralForCausalLM', hf.MistralConfig(**base, **pairs, sliding_window=4)),
    'mixtral': ('MixtralForCausalLM', hf.MixtralConfig(**base, **pairs, num_local_experts=3, sliding_window=5)),
    'olmoe': ('OlmoeForCausalLM', hf.OlmoeConfig(**base, **pairs, num_experts=5, num_experts_per_tok=3)),
    'phi': ('PhiForCausalLM', hf.PhiConfig(**base, partial_rotary_factor=0.7)),
    'phi3': ('Phi3ForCausalLM', hf.Phi3Config(**base, **pairs, sliding_window=11, pad_token_id=0, eos_token_id=1,
                                              dtype='float16')),
    **{'phi3-' + kind: ('Phi3ForCausalLM', hf.Phi3Config(**base, **pairs, pad_token_id=0, eos_token_id=1, rope_theta=500.,
        original_max_position_embeddings=original, rope_scaling=dict(
            type='longrope', short_factor=[1., 1.25, 2.], long_factor=[1.5, 3.75, 12.])))
       for kind, original in (('long', 8), ('short', 11))},
    'gpt_neox': ('GPTNeoXForCausalLM', hf.GPTNeoXConfig(**base, rotary_pct=0.7, hidden_act='gelu_fast')),
    'opt': ('OPTForCausalLM', hf.OPTConfig(vocab_size=61, hidden_size=24, word_embed_proj_dim=24, num_hidden_layers=2,
                                           num_attention_heads=4, ffn_dim=40, max_position_embeddings=12, dropout=0.)),
    'bert': ('BertForPreTraining', hf.BertConfig(**base, hidden_dropout_prob=0., attention_probs_dropout_prob=0.)),
    'vit': ('ViTForImageClassification', hf.ViTConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
                                                      intermediate_size=40, image_size=8, patch_size=4, num_labels=5)),
    't5': ('T5ForConditionalGeneration', hf.T5Config(**t5)),
    't5-gated': ('T5ForConditionalGeneration', hf.T5Config(**t5, num_decoder_layers=1, feed_forward_proj='gated-gelu',
                                                           tie_word_embeddings=False)),
    **{f'bert-{kind}': (f'BertFor{head}', hf.BertConfig(**base, **still, num_labels=5)) for kind, head in heads.items()},
    **{f'roberta{kind}': (f'RobertaFor{heads[kind[1:]]}', hf.RobertaConfig(**wide, **still, num_labels=5, type_vocab_size=1))
       for kind in ('-words', '-classes')},
    'xlm-roberta': ('XLMRobertaForMaskedLM', hf.XLMRobertaConfig(**wide, **still, type_vocab_size=1)),
    'camembert': ('CamembertForMaskedLM', hf.CamembertConfig(**wide, **still, type_vocab_size=2)),
    'electra': ('ElectraForMaskedLM', hf.ElectraConfig(**base, **still, embedding_size=16)),
    'electra-classes': ('ElectraForSequenceClassification', hf.ElectraConfig(**base, **still, embedding_size=24, num_labels=5)),
    **{f'distilbert-{kind}': (f'DistilBertFor{heads[kind]}', hf.DistilBertConfig(
        vocab_size=61, dim=24, hidden_dim=40, n_layers=2, n_heads=4, max_position_embeddings=12, dropout=0.,
        attention_dropout=0., seq_classif_dropout=0., num_labels=5)) for kind in ('words', 'classes')},
    'arcee': ('ArceeForCausalLM', hf.ArceeConfig(**base, **pairs, attention_bias=True)),
    'cohere': ('CohereForCausalLM', hf.CohereConfig(**base, **pairs, logit_scale=0.25)),
    'cohere2': ('Cohere2ForCausalLM', hf.Cohere2Config(**deep, **pairs, sliding_window=4)),
    'ernie4_5': ('Ernie4_5ForCausalLM', hf.Ernie4_5Config(**base, **pairs, head_dim=8, use_bias=True)),
    'exaone4': ('Exaone4ForCausalLM', hf.Exaone4Config(**deep, **pairs, sliding_window=5)),
    'falcon': ('FalconForCausalLM', hf.FalconConfig(vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
                                                    max_position_embeddings=12, bias=True)),
    'falcon-alibi': ('FalconForCausalLM', hf.FalconConfig(
        vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=12, alibi=True,
        bias=True, multi_query=False, parallel_attn=False)),
    'bloom': ('BloomForCausalLM', hf.BloomConfig(vocab_size=61, hidden_size=36, n_layer=2, n_head=6)),
    'mpt': ('MptForCausalLM', hf.MptConfig(vocab_size=61, d_model=24, n_layers=2, n_heads=4, max_seq_len=12)),
    'qwen3-yarn': ('Qwen3ForCausalLM', hf.Qwen3Config(**base, **pairs, head_dim=16, rope_theta=500., rope_scaling=dict(
        rope_type='yarn', factor=8., original_max_position_embeddings=300, beta_fast=30.))),
    'llama-yarn': ('LlamaForCausalLM', hf.LlamaConfig(**base, **pairs, rope_scaling=dict(
        rope_type='yarn', factor=4., original_max_position_embeddings=64, truncate=False, attention_factor=1.25))),
    'deepseek_v3-yarn': ('DeepseekV3ForCausalLM', hf.DeepseekV3Config(
        **base, **{**latent, 'qk_rope_head_dim': 8}, n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1,
        moe_intermediate_size=16, first_k_dense_replace=1, rope_scaling=dict(
            rope_type='yarn', factor=40., original_max_position_embeddings=200, mscale=0.7, mscale_all_dim=0.7))),
    **{'whisper' + end: ('WhisperFor' + ends, hf.WhisperConfig(
        **{key: value for key, value in s2s.items() if key[:4] != 'max_'}, num_mel_bins=6, scale_embedding=True,
        max_source_positions=12, max_target_positions=12, pad_token_id=0, bos_token_id=1, eos_token_id=1,
        decoder_start_token_id=1, begin_suppress_tokens=None))
       for end, ends in (('', 'ConditionalGeneration'), ('-causal', 'CausalLM'))},
    'granite_swa': ('GraniteSWAForCausalLM', late('GraniteSWA', **deep, **pairs, sliding_window=4, attention_multiplier=0.3,
                                                  residual_multiplier=0.4, attn_implementation='eager')),
    'gpt_oss': ('GptOssForCausalLM', late('GptOss', **deep, **pairs, head_dim=8, sliding_window=4, num_local_experts=5,
                                          num_experts_per_tok=3, attn_implementation='eager', swiglu_limit=0.5,
                                          swiglu_alpha=1.25, rope_parameters=dict(
        rope_type='yarn', rope_theta=500., factor=8., original_max_position_embeddings=300, truncate=False))),
    'gpt_oss-mxfp4': ('GptOssForCausalLM', late('GptOss', **{**base, 'hidden_size': 32, 'intermediate_size': 64}, **pairs,
        head_dim=8, num_local_experts=3, num_experts_per_tok=2, attn_implementation='eager', rope_parameters=dict(
            rope_type='default', rope_theta=500.))),
    'granitemoe_swa': ('GraniteMoeSWAForCausalLM', late(
        'GraniteMoeSWA', **deep, **pairs, sliding_window=4, num_local_experts=5, num_experts_per_tok=3,
        attention_multiplier=0.3, residual_multiplier=0.4, shared_intermediate_size=12, attn_implementation='eager')),
    'hunyuan_v1_moe': ('HunYuanMoEV1ForCausalLM', late('HunYuanMoEV1', **base, **pairs, num_experts=5, moe_topk=3, head_dim=6)),
    'exaone_moe': ('ExaoneMoeForCausalLM', late(
        'ExaoneMoe', **deep, **pairs, sliding_window=4, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=16,
        n_group=3, topk_group=2)),
    'hy_v3': ('HYV3ForCausalLM', late('HYV3', **base, **pairs, head_dim=8, num_experts=5, num_experts_per_tok=3,
                                      moe_intermediate_size=16)),
    'mellum': ('MellumForCausalLM', late('Mellum', **deep, **pairs, head_dim=8, sliding_window=4, num_experts=5,
                                         num_experts_per_tok=3, moe_intermediate_size=16,
                                         layer_types=['sliding_attention', 'full_attention'] * 2)),
    'minicpm3': ('MiniCPM3ForCausalLM', late('MiniCPM3', **base, **latent, dim_model_base=10)),
    'aria_text': ('AriaTextForCausalLM', late('AriaText', **base, **pairs, moe_num_experts=5, moe_topk=3,
                                              attn_implementation='eager')),
    'modernbert-decoder': ('ModernBertDecoderForCausalLM', late(
        'ModernBertDecoder', **{**deep, 'num_hidden_layers': 5}, local_attention=6, attn_implementation='eager', **ends)),
    'solar_open': ('SolarOpenForCausalLM', late('SolarOpen', **{**base, 'intermediate_size': None}, **pairs, head_dim=8,
                                                n_routed_experts=5, num_experts_per_tok=3, moe_intermediate_size=16)),
    'glm4_moe_lite': ('Glm4MoeLiteForCausalLM', late('Glm4MoeLite', **base, **latent, n_routed_experts=6,
                                                     num_experts_per_tok=3, n_group=3, topk_group=2,
                                                     moe_intermediate_size=16, rope_interleave=False, rope_parameters=dict(
        rope_type='yarn', rope_theta=500., factor=8., original_max_position_embeddings=8))),
    'minimax_m2': ('MiniMaxM2ForCausalLM', late('MiniMaxM2', **base, **pairs, head_dim=8, num_local_experts=5,
                                                num_experts_per_tok=3)),
    'modernbert': ('ModernBertForMaskedLM', hf.ModernBertConfig(**{**deep, 'num_hidden_layers': 5}, local_attention=6,
                                                                attn_implementation='eager', **ends)),
    'gemma3_text': ('Gemma3ForCausalLM', hf.Gemma3TextConfig(**{**base, 'num_hidden_layers': 6}, **pairs, head_dim=8,
                                                             sliding_window=4, query_pre_attn_scalar=10, rope_theta=500.,
                                                             rope_local_base_freq=20.)),
    'glm': ('GlmForCausalLM', hf.GlmConfig(**base, **pairs, head_dim=8, pad_token_id=0)),
    'glm4': ('Glm4ForCausalLM', hf.Glm4Config(**base, **pairs, head_dim=8, pad_token_id=0)),
    'gptj': ('GPTJForCausalLM', hf.GPTJConfig(vocab_size=61, n_positions=12, n_embd=24, n_layer=2, n_head=4, rotary_dim=4)),
    'granite': ('GraniteForCausalLM', hf.GraniteConfig(**base, **pairs, embedding_multiplier=3., residual_multiplier=0.4,
                                                       attention_multiplier=0.3, logits_scaling=1.5)),
    'granitemoe': ('GraniteMoeForCausalLM', hf.GraniteMoeConfig(**base, **pairs, num_local_experts=5, num_experts_per_tok=3,
                                                                embedding_multiplier=3., residual_multiplier=0.4,
                                                                attention_multiplier=0.3, logits_scaling=1.5)),
    'helium': ('HeliumForCausalLM', hf.HeliumConfig(**base, **pairs, head_dim=6, pad_token_id=0)),
    'hunyuan_v1_dense': ('HunYuanDenseV1ForCausalLM', hf.HunYuanDenseV1Config(**base, **pairs, head_dim=8, pad_token_id=0)),
    'ministral': ('MinistralForCausalLM', hf.MinistralConfig(**base, **pairs, head_dim=8, sliding_window=4)),
    'olmo2': ('Olmo2ForCausalLM', hf.Olmo2Config(**base, **pairs, pad_token_id=0)),
    'olmo3': ('Olmo3ForCausalLM', hf.Olmo3Config(**deep, **pairs, pad_token_id=0, sliding_window=4, rope_theta=5e5)),
    'qwen2_moe': ('Qwen2MoeForCausalLM', hf.Qwen2MoeConfig(**base, **pairs, num_experts=5, num_experts_per_tok=3,
                                                           moe_intermediate_size=16, shared_expert_intermediate_size=20)),
    'qwen3_moe': ('Qwen3MoeForCausalLM', hf.Qwen3MoeConfig(**base, **pairs, head_dim=8, num_experts=5, num_experts_per_tok=3,
                                                           moe_intermediate_size=16, norm_topk_prob=True)),
    'seed_oss': ('SeedOssForCausalLM', hf.SeedOssConfig(**base, **pairs, head_dim=8, attention_dropout=0.,
                                                        residual_dropout=0.)),
    'smollm3': ('SmolLM3ForCausalLM', hf.SmolLM3Config(**deep, **pairs, pad_token_id=0, rope_theta=500., rope_scaling=dict(
        rope_type='yarn', factor=4., original_max_position_embeddings=64))),
    'stablelm': ('StableLmForCausalLM', hf.StableLmConfig(**base, **pairs, partial_rotary_factor=0.7, use_qkv_bias=True)),
    'starcoder2': ('Starcoder2ForCausalLM', hf.Starcoder2Config(**base, **pairs, sliding_window=4)),
    **{f'{kind}-causal': (name, getattr(hf, config)(**still, **(wide if pad else base), **more, is_decoder=True))
       for kind, name, config, pad, more in (
           ('bert', 'BertLMHeadModel', 'BertConfig', False, {}), ('roberta', 'RobertaForCausalLM', 'RobertaConfig', True, {}),
           ('xlm-roberta', 'XLMRobertaForCausalLM', 'XLMRobertaConfig', True, {}),
           ('camembert', 'CamembertForCausalLM', 'CamembertConfig', True, {}),
           ('electra', 'ElectraForCausalLM', 'ElectraConfig', False, dict(embedding_size=16)))},
    **{f'{kind}-{head.lower()}': (f'{name}For{head}LM', getattr(hf, name + 'Config')(
        **still, **(wide if pad else base), **more, is_decoder=head == 'Causal'))
       for kind, name, pad, more in (
           ('data2vec-text', 'Data2VecText', True, {}), ('ernie', 'Ernie', False, {}),
           ('megatron-bert', 'MegatronBert', False, {}), ('roberta-prelayernorm', 'RobertaPreLayerNorm', True, {}),
           ('rembert', 'RemBert', False, dict(input_embedding_size=12, output_embedding_size=20)),
           ('xlm-roberta-xl', 'XLMRobertaXL', True, {}), ('roformer', 'RoFormer', False, dict(embedding_size=24)))
       for head in ('Masked', 'Causal')},
    'bert-generation': ('BertGenerationDecoder', hf.BertGenerationConfig(**base, **still, is_decoder=True)),
    'ibert': ('IBertForMaskedLM', hf.IBertConfig(**wide, **still)),
    'mpnet': ('MPNetForMaskedLM', hf.MPNetConfig(**wide, **still)),
    **{kind + end: (name + ends, getattr(hf, name + 'Config')(**s2s, **more))
       for kind, name, more in (
           ('bart', 'Bart', dict(scale_embedding=True)), ('mbart', 'MBart', dict(activation_function='relu')),
           ('plbart', 'PLBart', dict(attention_dropout=0.)), ('mvp', 'Mvp', {}), ('blenderbot', 'Blenderbot', {}),
           ('blenderbot-small', 'BlenderbotSmall', dict(scale_embedding=True)), ('pegasus', 'Pegasus', {}),
           ('marian', 'Marian', dict(pad_token_id=60, decoder_start_token_id=60)))
       for end, ends in (('', 'MTModel' if kind == 'marian' else 'ForConditionalGeneration'), ('-causal', 'ForCausalLM'))},
    'gpt_bigcode': ('GPTBigCodeForCausalLM', hf.GPTBigCodeConfig(**gpt)),
    'codegen': ('CodeGenForCausalLM', hf.CodeGenConfig(**gpt, rotary_dim=4)),
    'gpt_neo': ('GPTNeoForCausalLM', hf.GPTNeoConfig(vocab_size=61, hidden_size=24, num_layers=4, num_heads=4, window_size=5,
                                                     attention_types=[[['global', 'local'], 2]], max_position_embeddings=12)),
    'biogpt': ('BioGptForCausalLM', hf.BioGptConfig(**base, **still)),
    'cwm': ('CwmForCausalLM', late('Cwm', **deep, **pairs, head_dim=8, sliding_window=4, rope_theta=500., rope_scaling=llama3)),
    'flex_olmo': ('FlexOlmoForCausalLM', late('FlexOlmo', **base, **pairs, pad_token_id=0, num_experts=5,
                                              num_experts_per_tok=3)),
    'granitemoeshared': ('GraniteMoeSharedForCausalLM', late('GraniteMoeShared', **base, **pairs, num_local_experts=5,
                                                             num_experts_per_tok=3, shared_intermediate_size=12)),
    'hyperclovax': ('HyperCLOVAXForCausalLM', late('HyperCLOVAX', **base, **pairs, attention_multiplier=0.3,
                                                               logits_scaling=1.5)),
    'jais2': ('Jais2ForCausalLM', late('Jais2', **base, **pairs)),
    'vaultgemma': ('VaultGemmaForCausalLM', late('VaultGemma', **base, **pairs, head_dim=8, sliding_window=4, pad_token_id=0,
                                                 query_pre_attn_scalar=10, attn_implementation='eager')),
    'olmo': ('OlmoForCausalLM', hf.OlmoConfig(**base, **pairs, pad_token_id=0)),
    'mt5': ('MT5ForConditionalGeneration', hf.MT5Config(**t5, tie_word_embeddings=False)),
    'mt5-tied': ('MT5ForConditionalGeneration', late('MT5', **t5)),
    'umt5': ('UMT5ForConditionalGeneration', hf.UMT5Config(**t5, num_decoder_layers=1, feed_forward_proj='relu')),
    'deepseek_v3': ('DeepseekV3ForCausalLM', hf.DeepseekV3Config(
        **base, **latent, n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2, moe_intermediate_size=16,
        first_k_dense_replace=1)),
    'deepseek_v2': ('DeepseekV2ForCausalLM', hf.DeepseekV2Config(
        **base, **{**latent, 'q_lora_rank': None}, n_routed_experts=6, num_experts_per_tok=3, n_group=3, topk_group=2,
        topk_method='group_limited_greedy', moe_intermediate_size=16, first_k_dense_replace=1, routed_scaling_factor=1.5)),
    'dots1': ('Dots1ForCausalLM', hf.Dots1Config(**base, **pairs, n_routed_experts=5, num_experts_per_tok=3, n_shared_experts=2,
                                                 moe_intermediate_size=16, routed_scaling_factor=1.5)),
    'glm4_moe': ('Glm4MoeForCausalLM', hf.Glm4MoeConfig(**base, **pairs, head_dim=8, n_routed_experts=5, num_experts_per_tok=3,
                                                        moe_intermediate_size=16, first_k_dense_replace=1,
                                                        attention_bias=True)),
    'youtu': ('YoutuForCausalLM', late('Youtu', **base, **latent)),
    'm2m_100': ('M2M100ForConditionalGeneration', hf.M2M100Config(**s2s, attention_dropout=0., encoder_layerdrop=0.,
                                                                  decoder_layerdrop=0.)),
    'xglm': ('XGLMForCausalLM', hf.XGLMConfig(vocab_size=61, d_model=24, num_layers=2, attention_heads=4, ffn_dim=40,
                                              max_position_embeddings=12, dropout=0., attention_dropout=0.)),
    'trocr': ('TrOCRForCausalLM', hf.TrOCRConfig(vocab_size=61, d_model=24, decoder_layers=2, decoder_attention_heads=4,
                                                 decoder_ffn_dim=40, max_position_embeddings=12, dropout=0.)),
}
encoders = set('bert roberta xlm-roberta camembert electra distilbert data2vec-text ernie megatron-bert rembert mpnet ibert'
               ' roberta-prelayernorm xlm-roberta-xl roformer bert-generation modernbert modernbert-decoder'.split())


def weights(name, shape, byte=None):            # as tests/safe.c
    hash = 0xcbf29ce484222325
    for c in name.encode():
        hash = (hash ^ c) * 0x100000001b3 & (1 << 64) - 1
    with np.errstate(over='ignore'):
        x = (np.arange(int(np.prod(shape)), dtype=np.uint64) + np.uint64(hash & 0xffffffff)) * np.uint64(0x9e3779b97f4a7c15)
        x = (x ^ x >> np.uint64(29)) * np.uint64(0xbf58476d1ce4e5b9)
    if byte:
        x = (x >> np.uint64(56)).astype(np.uint8)
        return torch.tensor((118 + x % 8 if byte == '_scales' else x).reshape(shape))
    k = (x >> np.uint64(57)).astype(np.float64) - 64
    k = 2 * k + 256 if len(shape) == 1 and name.endswith('.weight') else k
    return torch.tensor(k.reshape(shape) / 256)


def few(family, header, parameters):            # experts of 4 bits, which transformers makes wide
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    for key in [key for key in header if key.endswith(('experts.gate_up_proj', 'experts.down_proj'))]:
        experts, wide, out = header.pop(key)['shape']
        shape = {'_blocks': [experts, out, wide // 32, 16], '_scales': [experts, out, wide // 32]}
        given = [weights(key + end, shape[end], end).to(torch.uint8) for end in shape]
        with torch.no_grad():
            parameters[key].copy_(convert_moe_packed_tensors(*given, dtype=torch.float64))
        header.update((key + end, dict(dtype='U8', shape=shape[end], wide=key)) for end in shape)


def array(file, low, high, *shape):             # as tests/npy.c
    state, mask, numbers = 0, (1 << 64) - 1, []
    for c in file.encode():
        state = state * 31 + c & mask
    for _ in range(int(np.prod(shape))):
        state = state * 6364136223846793005 + 1442695040888963407 & mask
        numbers.append(low + (state >> 11) * 2.0 ** -53 * (high - low))
    whole = isinstance(high, int)
    return torch.tensor([int(x) if whole else np.float32(x) for x in numbers],
                        dtype=torch.int64 if whole else torch.float64).reshape(shape)


def loss(family, model):
    xent = lambda scores, wanted: torch.nn.functional.cross_entropy(scores.flatten(0, -2), wanted.flatten())
    if family == 'vit':
        image = array('image.npy', -1., 1., 2, 8, 8, 3)
        return xent(model(pixel_values=image.permute(0, 3, 1, 2)).logits, array('kinds.npy', 0, 5, 2))
    if family == 'bert':
        out = model(input_ids=array('long.npy', 0, 61, 2, 12), token_type_ids=array('types.npy', 0, 2, 2, 12),
                    attention_mask=array('mask.npy', 0, 2, 2, 12))
        return xent(out.prediction_logits, array('labels.npy', 0, 61, 2, 12)) \
            + xent(out.seq_relationship_logits, array('next.npy', 0, 2, 2))
    if model.config.model_type in encoders:
        given = dict(input_ids=array('long.npy', 0, 61, 2, 12), attention_mask=array('mask.npy', 0, 2, 2, 12))
        if getattr(model.config, 'is_decoder', family == 'modernbert-decoder'):                     # each position sees itself
            given['attention_mask'] = torch.ones_like(given['attention_mask'])
        if getattr(model.config, 'type_vocab_size', 0) == 2:
            given['token_type_ids'] = array('types.npy', 0, 2, 2, 12)
        if model.config.pad_token_id == 1:
            given['position_ids'] = torch.arange(2, 14).expand(2, 12)       # padding lies behind the words
        wanted = array('kinds.npy', 0, 5, 2) if family.endswith('classes') else \
            array('tags.npy', 0, 5, 2, 12) if 'TokenClass' in type(model).__name__ else array('labels.npy', 0, 61, 2, 12)
        return xent(model(**given).logits, wanted)
    if family == 'whisper':
        out = model(input_features=array('sound.npy', -1., 1., 2, 24, 6).transpose(1, 2),
                    decoder_input_ids=array('tokens.npy', 0, 61, 2, 11))
    elif type(model).__name__.endswith(('ConditionalGeneration', 'MTModel')):
        given = dict(input_ids=array('long.npy', 0, 61, 2, 12), decoder_input_ids=array('tokens.npy', 0, 61, 2, 11))
        if family == 'm2m_100':                         # the word of padding has a position like others
            given = {key.replace('input_ids', 'inputs_embeds'): model.model.shared(ids) for key, ids in given.items()}
        out = model(attention_mask=array('mask.npy', 0, 2, 2, 12), **given)
    else:
        out = model(input_ids=array('tokens.npy', 0, 61, 2, 11))
    return xent(out.logits, array('targets.npy', 0, 61, 2, 11))


def square_and_product(name, gradient):         # as tests/compare.c
    return gradient.square().sum().item(), (gradient * weights(name + '.along', gradient.shape)).sum().item()


def folded(tensors):        # {name: (type, shape, square of the norm or None, product)} as lines; -1: a name alone is asked for
    groups = {}
    for name, (kind, shape, square, product) in tensors.items():
        parts = tuple(re.split(r'(?<=\.)(\d+)(?=\.)', name))
        groups[parts] = (kind, shape, square is None or square < 0 and '-1 0'), square or 0, product
    for at in range(max(len(parts) for parts in groups) // 2 * 2 - 1, 0, -2):
        runs, rest = {}, {}
        for parts, (what, square, product) in groups.items():
            if at < len(parts):
                runs.setdefault((parts[:at], parts[at + 1:], what), []).append((int(parts[at]), square, product))
            else:
                rest[parts] = what, square, product
        for (head, tail, what), found in runs.items():
            found.sort()
            while found:
                n = next((i for i in range(1, len(found)) if found[i][0] != found[0][0] + i), len(found))
                number = f'{{{found[0][0]}-{found[n - 1][0]}}}' if n > 1 else str(found[0][0])
                rest[head + (number,) + tail] = what, sum(x[1] for x in found[:n]), sum(x[2] for x in found[:n])
                found = found[n:]
        groups = rest
    for parts, ((kind, shape, none), square, product) in sorted(groups.items()):
        yield f"{''.join(parts)} {kind} {shape} {none or f'{square ** 0.5:.9g} {product:.9g}'}\n".replace(' True', '')


def tensor_of(parameters, tables, key):         # of a file, and where it is in what the model has
    if key in parameters:
        return parameters[key], ...
    mlp = key.replace('.block_sparse_moe.', '.mlp.')
    key = key if mlp not in parameters and mlp not in tables and '.experts.' not in mlp else mlp
    key = re.sub(r'\.w([123])\.', lambda n: f".{dict(zip('132', ('gate', 'up', 'down')))[n[1]]}_proj.", key)
    for there, here in (('.mlp.e_score', '.mlp.gate.e_score'), ('.expert_bias', '.e_score_correction_bias'),
                        ('.mlp.router.gate.', '.mlp.gate.'), ('.shared_mlp.', '.shared_experts.'),
                        ('.fc1.weight', '.gate_up_proj'), ('.fc2.weight', '.down_proj')):
        other = key.replace(there, here)
        key = other if key not in parameters and (other in parameters or other in tables) else key
    if key in parameters or key in tables:
        return parameters.get(key, tables.get(key)), ...
    block, expert, line = re.match(r'(.*experts)\.(\d+)\.(\w+)\.weight$', key).groups()
    if line == 'down_proj':
        return parameters[block + '.down_proj'], int(expert)
    both = parameters[block + '.gate_up_proj']
    half = both.shape[1] // 2
    return both, (int(expert), slice(half) if line == 'gate_proj' else slice(half, None))


def grads_of(family, model, names):             # {name: (square of the norm, product)}
    parameters = dict(model.named_parameters(remove_duplicate=False))
    tables = dict(model.named_buffers(remove_duplicate=False))
    found = {}
    if family == 'olmo':
        found.update((name + '.weight', (-1, 0)) for name, module in model.named_modules() if 'Norm' in type(module).__name__)
    found.update((f'{name}.{x}_{family[5:]}.factors', (-1, 0)) for name, module in model.named_modules() for x in 'qk'
                 if family[:5] == 'phi3-' and name.endswith('self_attn'))
    found.update((key, (-1, 0)) for key in {**parameters, **tables} if 'embed_positions.weight' in key and
                 (key not in names or is_sines(family, key)) and family[:8] != 'roformer')
    for key, short in names.items():
        parameter, at = tensor_of(parameters, tables, key)
        if is_sines(family, key) or family == 'ibert' and key in tables or parameter.grad is None and 'encoder_attn' in key:
            continue                                    # the last: of a decoder without an encoder
        found[short] = square_and_product(short, torch.zeros_like(parameter[at]) if parameter.grad is None
                                          else parameter.grad[at])
    return found


def is_sines(family, key):                      # whatever a file has
    return key.endswith('embed_positions.weight') and family.startswith(('roformer', 'marian'))


def main(folder, families):
    for family, (name, config) in models.items():
        if families and family not in families:
            continue
        with tempfile.TemporaryDirectory() as saved:
            model = getattr(hf, name)(config)
            model.to(config.dtype or torch.float32).save_pretrained(saved)
            with open(saved + '/model.safetensors', 'rb') as f:
                header = json.loads(f.read(int.from_bytes(f.read(8), 'little')))
            written = json.load(open(saved + '/config.json'))
        del header['__metadata__']
        config.dtype = None
        config._experts_implementation = 'eager'        # others know no f64
        model = getattr(hf, name)(config).double().eval()
        parameters = dict(model.named_parameters(remove_duplicate=False))
        tables = dict(model.named_buffers(remove_duplicate=False))
        if family == 'gpt_oss-mxfp4':
            few(family, header, parameters)
            written['quantization_config'] = {'quant_method': 'mxfp4', 'modules_to_not_convert': ['lm_head']}
        names = {key: key.removeprefix('transformer.') if family == 'gpt2' else key for key in header}  # as they were published
        for key, short in names.items():
            if not is_sines(family, key) and 'wide' not in header[key]:
                with torch.no_grad():
                    of, at = tensor_of(parameters, tables, key)
                    of[at].copy_(weights(short, header[key]['shape']))
        model.tie_weights()
        for module in model.modules():
            if hasattr(module, 'padding_idx') and hasattr(module, 'weight'):
                module.padding_idx = None               # the row of padding learns like others in dpgen
        torch.set_default_dtype(torch.float64)          # some masks are made in it
        is_loss = loss(family, model)
        torch.set_default_dtype(torch.float32)
        is_loss.backward()
        grads = grads_of(family, model, {key: name for key, name in names.items() if 'wide' not in header[key]})
        grads.update((header[key]['wide'], (-1, 0)) for key in names if 'wide' in header[key])
        tensors = {short: (header[key]['dtype'], 'x'.join(map(str, header[key]['shape'])), *grads.pop(short, (None, 0)))
                   for key, short in names.items()}
        tensors.update((key, ('-', '-', *told)) for key, told in grads.items())
        with open(os.path.join(folder, family), 'w') as f:
            f.write(f'config {json.dumps(written)}\nloss {is_loss.item():.9f}\n' + ''.join(folded(tensors)))


def newer(folder, families):
    for family in families or models:
        path = os.path.join(folder, family)
        lines = [line for line in open(path) if not line.startswith('newer ')]
        with tempfile.TemporaryDirectory() as saved:
            with open(saved + '/config.json', 'w') as f:
                f.write(lines[0].removeprefix('config '))
            hf.AutoConfig.from_pretrained(saved).save_pretrained(saved)
            lines.insert(1, f"newer {json.dumps(json.load(open(saved + '/config.json')))}\n")
        with open(path, 'w') as f:
            f.writelines(lines)


if __name__ == '__main__':
    if sys.argv[1] == '--newer':
        newer(sys.argv[2], sys.argv[3:])
    else:
        main(sys.argv[1], sys.argv[2:])
