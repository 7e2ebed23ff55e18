#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs and scripts of bench/ are run by hand, so nothing else would notice that they no longer compile or parse.
set -u
. "$(dirname "$0")/lib.sh"

for file in bench/*/*.c; do
    if grep -q oneapi "$file" && ! have_onednn; then skip "$file: no oneDNN"; continue; fi
    expect "$file" $cc -fsyntax-only -Wall -Wextra -Werror -Wno-unknown-pragmas -std=c11 -D_DEFAULT_SOURCE \
        -I. -Igen -Irt -Irt/op -Itests "$file"
done
for file in bench/*.sh bench/*/*.sh; do
    expect "$file" sh -n "$file"
done
# a row of the table whose models are changed by its script
expect "dawnpiper async" bench/dawnpiper/run.sh async -o "$tmp/rows" -m gpt2-124m -s 4 -g rtx2080ti -p even
expect "its row" grep -q '^gpt2-124m 4 rtx2080ti even [1-9]' "$tmp/rows"
expect "dawnpiper chunked" bench/dawnpiper/run.sh chunked -o "$tmp/rows" -m gpt2-355m -g rtx2080ti -p even
expect "its row" grep -q '^gpt2-355m 4 rtx2080ti even [1-9]' "$tmp/rows"
# networks of images: two planners and exact, which is not worse
expect "images" bench/dawnpiper/images.sh madpipe -m resnet50 -s 2 -l 16
mv "$tmp/said" "$tmp/images"
expect "its row" awk '/^resnet50 +2 +16 / { found = NF == 6 && $4 > 0 && $6 > 0 && $6 <= $5 } END { exit !found }' "$tmp/images"
# a plan of the corpus that is worse than the recorded one is told of, and no other
expect "corpus" bench/corpus/run.sh -c bench/results/corpus-0.1.txt -o "$tmp/now" pipedream twobw
awk '/^pipedream / { $3 = sprintf("%.0f", $3 - 1) } { print }' "$tmp/now" >"$tmp/base"
refuse "corpus: a longer step" 1 "2 cases, 1 worse, 0 better" bench/corpus/run.sh -c "$tmp/base" pipedream twobw
# the model of a step on a GPU, for GPT-2: its products by 2 MNK, AdamW by 30 bytes a parameter, attention by half the keys
expect "the model of a step, within 54.6 ms on one H200" bench/gpu/model.sh -b 4.8 -m 54.6
expect "the model of a step, within 57 ms on one H100" bench/gpu/model.sh -m 57
mv "$tmp/said" "$tmp/model"
if awk '/^linear_forward / { product = $4 } /^adamw_update / { adamw = $4 } /^attention_packed_forward / { attention = $4 }
    END {
        rows = 32 * 1024; layer = 768 * (2304 + 768 + 3072) + 3072 * 768
        exit product - 2 * rows * (12 * layer + 768 * 50304) / 1e12 > 0.001 ||
            adamw - 30 * 124475904 / 1e6 > 0.1 || 30 * 124475904 / 1e6 - adamw > 0.1 ||
            attention - 4 * 12 * 32 * 12 * 1024 * 1024 * 64 / 2 / 1e12 > 0.001
    }' "$tmp/model" && grep -q '^step: [1-9][0-9.]* ms at 3.35 TB/s and 650' "$tmp/model"; then pass
else fault "the model: $(grep -e linear_f -e adamw -e attention_packed_f "$tmp/model")"; fi
refuse "a slower step than allowed" 1 "more than 5 ms" bench/gpu/model.sh -m 5
refuse "a call without a row" 2 "conv_forward has no row in bench/gpu/kernels.model" bench/gpu/model.sh \
    tests/models/images.yaml
# instructions of a loop: a branch over two is taken, one over random numbers is not
cat >"$tmp/loop" <<'SASS'
.text._Zloop:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   HMMA.16816.F32 R4, R4, R8, R4 ;
        /*0020*/              @P0  BRA `(.L_x_2) ;
        /*0030*/                   IMAD.HI.U32 R2, R2, -0x2daee0ad, RZ ;
.L_x_2:
        /*0040*/              @P1  BRA `(.L_x_3) ;
        /*0050*/                   FADD R1, R1, R1 ;
        /*0060*/                   FADD R1, R1, R1 ;
.L_x_3:
        /*0070*/                   HMMA.16816.F32 R4, R4, R8, R4 ;
        /*0080*/              @P2  BRA `(.L_x_1) ;
        /*0090*/                   EXIT ;
SASS
got=$(awk -f bench/gpu/attend.awk "$tmp/loop")
if [ "$got" = "_Zloop 6 2 3.0" ]; then pass; else fault "instructions of a loop: $got"; fi
finish
