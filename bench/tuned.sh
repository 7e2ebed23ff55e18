#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What fine-tuning costs: a small Llama trained whole, with adapters of rank 8 beside queries and values, and with weights of 4
# bits beneath them.  The arena as planned, and the median step of several, one stage and one thread.
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
    ./dpgen examples/tinyllama.yaml -D V=2048 -D D=512 -D H=8 -D K=4 -D W=64 -D F=1408 -D L=4 -D T=128 --stages 1 --estimate \
        --set devices="$cpu" --set train.batch.global=4 --set train.batch.micro=1 --set train.precision.compute=f32 \
        --set "data.train={format: bytes, files: text, tokens: tokens, next: targets}" "$@" -o "$tmp/$what" >"$tmp/said" 2>&1 &&
        make -s -C "$tmp/$what" >>"$tmp/said" 2>&1 || { tail -n 3 "$tmp/said"; exit 1; }
    (cd "$tmp" && "$what/train" --steps "$steps" --no-checkpoint --quiet --log "$tmp/log" >/dev/null 2>&1) || exit 1
    arena=$(sed -n 's/.*arena_bytes *= *\([0-9a-fx]*\).*/\1/p' "$tmp/$what/stage0.h" | head -n 1)
    sed -n 's/^{"event":"step".*"ms":\([0-9.]*\).*/\1/p' "$tmp/log" | sort -n >"$tmp/times"
    rm -f "$tmp/log"
    awk -v what="$what" -v arena=$((arena)) '{ t[NR] = $1 } END { printf "%-8s arena %6.1f MiB, step %7.1f ms\n", what,
        arena / 1048576, t[int((NR + 1) / 2)] }' "$tmp/times"
}
tuned whole
tuned adapters --set "$adapt"
tuned four --set "$adapt" --set quantize={}
