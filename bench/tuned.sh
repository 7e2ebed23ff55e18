#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What fine-tuning costs: a small Llama trained whole, with half of its layers frozen in front or behind, with adapters of
# rank 8 beside queries and values, and with weights of 4 bits beneath them.  The arena as planned, the step as predicted from
# a profile of this machine, and the median step of several, one stage and one thread.
#   bench/tuned.sh [STEPS]          5; times are for a quiet machine
cd "$(dirname "$0")/.." || exit 2
steps=${1:-5}
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cat docs/*.md >"$tmp/text"
cpu="[{name: cpu, kind: cpu, memory: 8GiB, threads: 1, kernels: portable}]"
adapt="adapt={match: ['*.q_proj', '*.v_proj'], rank: 8, alpha: 16}"

# tuned WHAT OPTION...
tuned() {
    what=$1
    shift
    cp examples/tinyllama.yaml "$tmp/$what.yaml"        # and so a profile of its own beside it
    ./dpgen "$tmp/$what.yaml" -D V=2048 -D D=512 -D H=8 -D K=4 -D W=64 -D F=1408 -D L=4 -D T=128 --stages 1 \
        --set devices="$cpu" --set train.batch.global=4 --set train.batch.micro=1 --set train.precision.compute=f32 \
        --set "data.train={format: bytes, files: text, tokens: tokens, next: targets}" "$@" -o "$tmp/$what" >"$tmp/said" 2>&1 &&
        make -s -C "$tmp/$what" >>"$tmp/said" 2>&1 || { tail -n 3 "$tmp/said"; exit 1; }
    (cd "$tmp" && "$what/train" --steps "$steps" --no-checkpoint --quiet --log "$tmp/log" >/dev/null 2>&1) || exit 1
    arena=$(sed -n 's/.*arena_bytes *= *\([0-9a-fx]*\).*/\1/p' "$tmp/$what/stage0.h" | head -n 1)
    sed -n 's/^{"event":"step".*"ms":\([0-9.]*\).*/\1/p' "$tmp/log" | sort -n >"$tmp/times"
    rm -f "$tmp/log"
    predicted=$(sed -n 's/.*predicted step \([0-9.]*\) ms.*/\1/p' "$tmp/said" | head -n 1)
    awk -v what="$what" -v arena=$((arena)) -v p="$predicted" '{ t[NR] = $1 } END { is = t[int((NR + 1) / 2)]
        printf "%-8s arena %6.1f MiB, step %7.1f ms, predicted %7.1f: %.2f of it\n", what, arena / 1048576, is, p, p / is
    }' "$tmp/times"
}
tuned whole
tuned front --set "train.freeze=['model.embed_tokens.*', 'model.layers.0.*', 'model.layers.1.*']"
tuned behind --set "train.freeze=['model.layers.2.*', 'model.layers.3.*']"
tuned adapters --set "$adapt"
tuned four --set "$adapt" --set quantize={}
