#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What train.blocks costs on one device: a step of GPT-2 124M with sums in 8 blocks against one with none, in f32 and bf16,
# and a line for each divided sum.
#
#   blocks.sh [-r ROUNDS] [-n STEPS] [-b BATCH] [-s TOKENS] [-w BLOCKS] [-t THREADS]
#
# One stage, portable kernels.  The programs take turns, ROUNDS times (5); each run has STEPS steps (4), of which the first is
# dropped.  A run counts with its median; printed are the median of the runs, their range, and the ratio within the rounds.
#
# Of a sum: calls with these sizes in a micro-batch, elements of the result and terms of each, products, additions that the
# blocks add, their share of the products, and the bytes in f32 that one of several devices would swap at a level of the tree.
set -eu
export LC_ALL=C
rounds=5 steps=4 batch=4 tokens=256 blocks=8 threads=2
while getopts r:n:b:s:w:t: option; do
    case $option in
    r) rounds=$OPTARG ;;
    n) steps=$OPTARG ;;
    b) batch=$OPTARG ;;
    s) tokens=$OPTARG ;;
    w) blocks=$OPTARG ;;
    t) threads=$OPTARG ;;
    *) exit 2 ;;
    esac
done
cd "$(dirname "$0")/.."
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# make FOLDER TYPE BLOCKS
make_job() {
    ./dpgen examples/gpt2-124m.yaml -D T="$tokens" --devices cpu --stages 1 --estimate -o "$tmp/$1" \
        --set devices.0.count=1 --set devices.0.threads="$threads" --set devices.0.kernels=portable \
        --set train.batch="{micro: $batch, global: $batch}" --set train.precision.compute="$2" --set train.blocks="$3" \
        --set data="{train: {format: bytes, files: $PWD/LICENSE, tokens: tokens, next: targets}}" \
        >"$tmp/said" 2>&1 && make -j2 -C "$tmp/$1" >>"$tmp/said" 2>&1 || { cat "$tmp/said" >&2; exit 1; }
}
median() { sort -g | awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
run() {         # FOLDER: milliseconds of a step
    rm -f "$tmp/log"
    "$tmp/$1/train" --steps "$steps" --quiet --no-checkpoint --log "$tmp/log" >/dev/null
    sed -n '/"event":"step"/s/.*"ms":\([0-9.]*\).*/\1/p' "$tmp/log" | tail -n +2 | median
}
for type in f32 bf16; do
    make_job $type.1 $type 1
    make_job $type.$blocks $type "$blocks"
done
for round in $(seq "$rounds"); do
    for type in f32 bf16; do
        for w in 1 "$blocks"; do run $type.$w >>"$tmp/$type.$w.ms"; done
    done
done
echo "a step of $batch x $tokens tokens, $threads threads, medians of $rounds runs"
for type in f32 bf16; do
    for w in 1 "$blocks"; do
        printf '%-4s blocks %-2d  %s ms, %s to %s\n' $type "$w" "$(median <"$tmp/$type.$w.ms")" \
            "$(sort -g "$tmp/$type.$w.ms" | head -n 1)" "$(sort -g "$tmp/$type.$w.ms" | tail -n 1)"
    done
    printf '%-4s ratio      %s\n' $type "$(paste "$tmp/$type.1.ms" "$tmp/$type.$blocks.ms" | awk '{ print $2 / $1 }' | median)"
done
echo
echo "calls  call                        elements      terms  products  additions  share     bytes a level"
awk -v w="$blocks" '
    function of(word,    i) {
        for (i = 1; i <= NF; i++) if (index($i, word "=i:") == 1) return substr($i, length(word) + 4) + 0
    }
    function sum(elements, terms, key) {
        key = sprintf("%-26s %10d %10d", call, elements, terms)
        if (!(key in calls)) order[++n] = key
        calls[key]++
        size[key] = elements
        products[key] = elements * terms
    }
    /^op / {
        call = $0
        sub(/.* call=/, "", call)
        sub(/ .*/, "", call)
        if (call == "linear_forward") sum(of("rows") * of("out"), of("in"))
        if (call ~ /^linear(_pieces)?_backward_x$/) sum(of("rows") * of("in"), of("out"))
        if (call == "linear_backward_w") sum(of("in") * of("out"), of("rows"))
        if (call == "layernorm_backward") sum(2 * of("width"), of("rows"))
        if (call == "xent_forward") sum(of("rows"), of("width"))
    }
    END {
        for (i = 1; i <= n; i++) {
            k = order[i]
            printf "%5d  %s  %8.0f  %9.2f  %4.2f %%  %12d\n", calls[k], k, products[k] / 1e6, (w - 1) * size[k] / 1e6,
                100 * (w - 1) * size[k] / products[k], 4 * size[k]
        }
        print "products and additions in millions"
    }' "$tmp/f32.$blocks/model.graph"
