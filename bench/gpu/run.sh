#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Training speed on a GPU: emitted programs, the same with a graph for each step, and compiled PyTorch where python3 has torch,
# by turns in one run.
#
#   run.sh DIR [-r ROUNDS]      DIR: what tests/gpu/prepare.sh made.  3 rounds
#
# A round runs each program once: 25 steps, of which the first 5 do not count, and the median step of the others does.  What is
# printed is the median over the rounds and their range; tokens/s; TFLOP/s by 6 N + 12 L T D FLOP a token (K. Chowdhery et al.,
# PaLM, 2022, appendix B); the share of what a bf16 product of 8192 cubed reaches in the same run; the step that dpgen
# predicted.  Whoever shares the GPU is in the figures.
set -eu
export LC_ALL=C
dir=$(cd "$1" && pwd)
shift
rounds=3
while getopts r: option; do
    case $option in r) rounds=$OPTARG ;; *) exit 2 ;; esac
done
cd "$(dirname "$0")"
command -v nvidia-smi >/dev/null || { echo "run.sh: no GPU here: nvidia-smi is missing" >&2; exit 6; }
median() { sort -g | awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }

# Tokens in llm.c's format: 2,000,000 of them, drawn alike from 50,257.
tokens=$dir/tokens.bin
[ -s "$tokens" ] || awk 'BEGIN {
    printf "%c%c%c%c%c%c%c%c%c%c%c%c", 136, 216, 52, 1, 1, 0, 0, 0, 128, 132, 30, 0
    for (i = 0; i < 1012; i++) printf "%c", 0
    for (s = 1; n < 2000000; n++) {
        s = (s * 69069 + 1) % 4294967296
        t = int(s / 65536) % 50257
        printf "%c%c", t % 256, int(t / 256)
    }
}' >"$tokens"

make -s -C "$dir/bench/gpt2-124m" -j"$(nproc)" >&2
mk=$dir/bench/gpt2-124m
product=$dir/product
make -s -C "$mk" -f - product <<MK
include Makefile
product:
	\$(CC) -O1 -std=c11 -D_GNU_SOURCE \$(CPPFLAGS) -o "$product" "$PWD/product.c" \$(LIBS)
MK
peak=$("$product")

# model N L T D: parameters, layers, tokens, width
models="gpt2-124m:124475904:12:1024:768 gpt2-355m:354871296:24:1024:1024 gpt2-774m:774090240:36:1024:1280"
torch=
python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null && torch=yes
echo "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader); bf16 product of 8192 cubed: $peak TFLOP/s"
[ -n "$torch" ] || echo "no torch in python3: not compared"

# batch DIR: samples of a micro-batch and of a step, from launch.c
batch() { sed -n 's/.*\.batch = \([0-9]*\), \.micro = \([0-9]*\),.*/\1 \2/p' "$1/launch.c"; }
ours() {
    rm -f "$dir/log"
    (cd "$1" && ./train --steps 25 --quiet --no-checkpoint --data "$tokens" --log "$dir/log") >/dev/null
    sed -n '/"event":"step"/s/.*"ms":\([0-9.]*\).*/\1/p' "$dir/log" | tail -n +6 | median
}
for entry in $models; do
    IFS=: read -r model n layers t width <<ENTRY
$entry
ENTRY
    folder=$dir/bench/$model
    [ -d "$folder" ] || continue
    make -s -C "$folder" -j"$(nproc)" >&2
    set -- $(batch "$folder")
    : >"$dir/ours" >"$dir/graphs" >"$dir/theirs"
    for round in $(seq "$rounds"); do
        ours "$folder" >>"$dir/ours"
        DPGEN_GRAPH=1 ours "$folder" >>"$dir/graphs"
        [ -z "$torch" ] || python3 torch_gpt2.py "$layers" "$width" "$t" "$1" "$2" >>"$dir/theirs" 2>"$dir/torch.log" ||
            { echo "torch: $(tail -n 1 "$dir/torch.log")"; torch=; }
    done
    predicted=$(sed -n 's/.*\.step_ns = \([0-9]*\).*/\1/p' "$folder/launch.c")
    for who in ours graphs theirs; do
        [ -s "$dir/$who" ] || continue
        ms=$(median <"$dir/$who")
        awk -v who="$who" -v model="$model" -v ms="$ms" -v n="$n" -v l="$layers" -v t="$t" -v d="$width" -v b="$1" -v m="$2" \
            -v peak="$peak" -v p="$predicted" -v low="$(sort -g "$dir/$who" | head -n 1)" \
            -v high="$(sort -g "$dir/$who" | tail -n 1)" 'BEGIN {
            rate = b * m * t / ms * 1e3; flop = rate * (6 * n + 12 * l * t * d) / 1e12
            printf "%-10s %-7s %d x %d samples  %.2f ms (%.2f to %.2f)  %.0f tokens/s", model,
                who == "ours" ? "dpgen" : who == "graphs" ? "graphs" : "torch",
                m, b, ms, low, high, rate
            printf "  %.1f TFLOP/s  %.1f %% of the product", flop, 100 * flop / peak
            if (who == "ours") printf "  predicted %.2f ms", p / 1e6
            printf "\n"
        }'
    done
done
