#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Names that a user may write and C, rt.h or the emitted language would take for something else: each is an operator, and
# what is emitted compiles and is in the language.
. "$(dirname "$0")/lib.sh"
need dpgen dpgen-verify build/emitted
names="_ __x _Bool __FILE__ open_gate kernels_start Stage Values Link stage0 stage0_step stage0_open SIZE_MAX INT32_MAX
    NULL EOF A S st mb acc into from grads fb xf xb lf v_fb fb_slot grads_slot arena_bytes vals H_a_fwd tanh exp main int
    static inline restrict offsetof size_t
    real values norm clip parameter predicted piece to step_begin relu_forward
    forward embedding action loss d_loss chunk0_forward update gather
    x_in x_r x_eval job train errno assert unix linux bool true
    nullptr constexpr thread_local alignas typeof_unqual new class this and template half dim3 min warpSize threadIdx stream"
{
    echo 'dpgen: 1'
    echo 'model:'
    echo '  name: names'
    echo '  dims: {A: 4, S: 2, H: 4, NULL: 4, EOF: 4, INT32_MAX: 4, D_X: 3, H_kv: 4, x_in: 6,'
    echo '    mb: 7, fb: 2, acc: 3, update: 9, int: 4}'
    echo '  inputs: {x: {shape: [B, 4], dtype: f32}, y: {shape: [B], dtype: i32, range: [0, 4]}}'
    echo '  graph:'
    echo '    - {op: Linear, name: first, in: x, out: H_kv}'
    for name in $names; do echo "    - {op: Relu, name: '$name'}"; done
    echo '    - {op: SoftmaxCrossEntropy, name: end, targets: y, as: it}'
    echo '  loss: it'
    echo 'train: {batch: {global: 8, micro: 2, groups: 2}, steps: 3, clip_norm: 1.0}'
    echo 'data:'
    echo '  train: {format: npy, arrays: {x: x.npy, y: y.npy}}'
    echo '  eval: {format: npy, arrays: {x: x.npy, y: y.npy}}'
    echo 'devices: [{name: cpu, count: 3}]'
} >"$tmp/names.yaml"
gpus='devices=[{name: gpu, kind: cuda, count: 4, memory: 80GiB, arch: sm_90}]'
for stages in 1 3 gpus; do
    out=$tmp/out$stages
    case $stages in
        gpus) set -- --stages 2 --replicas 2 --set train.shard=optimizer --set "$gpus" ;;
        *) set -- --stages $stages --recompute full ;;
    esac
    expect "$stages stages: generate" ./dpgen "$tmp/names.yaml" "$@" --estimate -o "$out"
    expect "$stages stages: the language" build/emitted rt/rt.h "$out"/stage?.c
    expect "$stages stages: the proof" ./dpgen-verify "$out"
    for file in "$out"/stage?.c "$out/launch.c"; do
        expect "${file##*/}" cc -std=c11 -fno-builtin -Wall -Wextra -Werror -fsyntax-only -I"$out/rt" "$file"
    done
done

# A number is called by the names of dims only where it is their product.  256 is V, and samples times tokens; then 224 is V, D.
called() {      # WHAT CALL WANTED: every call of the first stage in $out has these arguments
    sed -n "/^    $2(/{:more; /;/!{N;b more;}; s/\n */ /g; s/^ *$2(//p;}" "$out/stage0.c" >"$tmp/calls"
    if [ -s "$tmp/calls" ] && ! grep -vqF "$3" "$tmp/calls"; then pass; else fault "$1: $(head -n 1 "$tmp/calls")"; fi
}
for V in 256 224; do
    out=$tmp/dims$V
    expect "V = $V: generate" ./dpgen examples/bytes-gpt.yaml -D V=$V --estimate -o "$out"
    expect "V = $V: the language" build/emitted rt/rt.h "$out"/stage?.c
    called "V = $V: rows of a table" embedding_forward "/* n */ B*T, /* width */ D, /* rows */ V)"
    called "V = $V: rows of a product" linear_forward "/* rows */ B*T, /* in */"
    called "V = $V: of three dims" position_forward "/* batch */ B, /* seq */ T, /* width */ D)"
    expect "V = $V: a shape" grep -q "^    wte_weight .* f32 \[V, D\] " "$out/stage0.h"
done
finish
