#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Who looks at the calls of a step: --selftest, which holds each distinct one against f64, and the ranges of NVTX.
# Every call of gen/ops.def has an answer.  A sound job says so of every call, in f32 and bf16, with kernels of processors and
# with those of GPUs over the double, with every operator and update rule, and its bits stay.  A kernel or library that is wrong
# by little is named, with status 8.  The ranges are the actions of the plan and in them the routines of the stage, in their
# order.
. "$(dirname "$0")/lib.sh"
. tests/cuda.sh
need dpgen build/emitted build/librt.a build/librt_bf16.a build/rt/hooks.h
flags="$flags -DSTAGE -Ibuild/rt"
model="$models/tiny-gpt.yaml --stages 2 --set train.batch.global=4"

# made OPTION...: a job of them, with $kind and $with
made() {
    rm -rf "$tmp/job"
    said=$(generate "$tmp/job" "$@" && compile "$tmp/job")
    [ -z "$said" ] || fault "$*: $said"
}
# sound WHAT CALLS OPTION...: all calls are as in f64, no fewer than so many, and the bits are those of a step without
sound() {
    what=$1 least=$2
    shift 2
    made "$@"
    plain=$(job_hash "$tmp/job" --steps 1)
    (cd "${cwd:-.}" && exec "$tmp/job/job" $run --selftest) >"$tmp/tested" 2>&1 || fault "$what: $(tail -n 1 "$tmp/tested")"
    calls=$(awk '/ calls: / { n += $4 } END { print n + 0 }' "$tmp/tested")
    if [ "$calls" -ge "$least" ] && ! grep -e 'others: [1-9]' -e 'not checked' "$tmp/tested" >"$tmp/said"; then pass
    else fault "$what: $calls calls: $(head -n 1 "$tmp/said")"; fi
    if [ ${#plain} = 64 ] && grep -q "^sha256 $plain" "$tmp/tested"; then pass
    else fault "$what: a step without gives $plain, with $(sed -n 's/^sha256 //p' "$tmp/tested")"; fi
}

# Of the calls that add over the devices of a stage no device has all operands: tests/unit_rt_team.c, tests/width.sh.
team='^linear_positions_\|^rows_to_heads\|^heads_to_rows'
team="$team"'\|^linear_columns_[bs]\|^linear_rows_\|norm_[a-z_]*rows_b\|^dropout_rows_\|^part_f\|^gather_f\|^norm_team('
# output_put() makes nothing: it hands on.
team="$team\|^output_put(\|^embedding_rows_\|^grouped_columns_\|^grouped_rows_\|_experts_[fbs]\|_part_[a-z_]*("
team="$team\|^conv_rows_\|^conv_columns_"
sed '/^ \*/d; s,/\*.*\*/,,' gen/ops.def | grep -o '[a-z][a-z_0-9]*(' | sort -u | grep -v "$team" | while read -r call; do
    grep -qF "{\"${call%(}\"," rt/answers_*.c || echo "$call"
done >"$tmp/said"
if [ ! -s "$tmp/said" ]; then pass; else fault "no answer in rt/answers_*.c: $(tr '\n' ' ' <"$tmp/said")"; fi

use_bf16
sound "bf16" 60 $model --set train.precision.compute=bf16
use_portable
sound "f32" 60 $model
sound heads 30 "$models/heads.yaml" --stages 1
at_home=$run
write_ops_data "$tmp/arrays"
if [ -n "$SLOW" ]; then
    mkdir "$tmp/bert" "$tmp/t5"
    (cd "$tmp/bert" && for name in tokens labels; do "$tmp/npy" $name.npy i4 0 64 24 12; done &&
        for name in types mask; do "$tmp/npy" $name.npy i4 0 2 24 12; done && "$tmp/npy" next.npy i4 0 2 24 &&
        cd "$tmp/t5" && "$tmp/npy" ids.npy i4 0 40 24 10 && "$tmp/npy" mask.npy i4 0 2 24 10 &&
        for name in decoder_ids labels; do "$tmp/npy" $name.npy i4 0 40 24 8; done) || fault "no arrays"
    for other in bert t5; do
        cwd=$tmp/$other
        sound "tiny-$other" 30 "$models/tiny-$other.yaml" --stages 1
    done
fi
(cd "$tmp/arrays" && "$tmp/npy" image.npy f4 -1 1 40 12 11 3 && "$tmp/npy" labels.npy i4 0 5 40 && mv image.npy images.npy &&
    "$tmp/npy" image.npy f4 -1 1 24 6 3) || fault "no arrays"
run=$at_home cwd=
# operators WHAT OPTION...: every one of them
operators() {
    which=$1
    shift
    run="--no-checkpoint --quiet --hash" cwd=$tmp/arrays
    sound "every operator, $which" 100 "$models/ops.yaml" --stages 1 "$@"
    sound "every operator over images, $which" 60 "$models/images.yaml" --stages 1 --planner even \
        --set data.train.arrays.image=images.npy "$@"
    run=$at_home cwd=
}
operators f32
mkdir "$tmp/language" && (cd "$tmp/language" &&
    for array in tokens:29:10 targets:29:10 source:29:7 present:2:7 target:29:6 next:29:6; do
    echo $array | { IFS=: read -r name most wide && "$tmp/npy" $name.npy i4 0 "$most" 24 "$wide"; } || exit 1
done) || fault "no arrays"
for type in f32 bf16; do
    run="--no-checkpoint --quiet --hash" cwd=$tmp/language
    [ $type = f32 ] && use_portable || use_bf16
    for name in language recurrent experts; do
        sound "$name, $type" 30 "$models/$name.yaml" --stages 1 --set train.precision.compute=$type
    done
    run=$at_home cwd=
done
use_portable
# updates of steps that overlap
sed 's/, tie: wte//; s/L: 3/L: 1/' "$models/tiny-gpt.yaml" >"$tmp/gpt.yaml"
sed 's/optimizer: .*/optimizer: {type: sgd, lr: 0.02, momentum: 0.9, weight_decay: 0.1}/' "$tmp/gpt.yaml" >"$tmp/sgd.yaml"
late="--stages 2 --set train.batch.micro=8 --set train.clip_norm=0"
sound "pb" 30 "$tmp/sgd.yaml" $late --schedule pb
sound "pipemare" 30 "$tmp/sgd.yaml" $late --schedule pipemare
sound "nesterov" 30 "$tmp/sgd.yaml" $late --set train.optimizer.nesterov=true
sound "rmsprop, centred" 40 "$tmp/gpt.yaml" $late --set \
    train.optimizer="{type: rmsprop, lr: 1e-3, eps: 1e-3, momentum: 0.5, centered: true}"
sound "rmsprop" 30 "$tmp/gpt.yaml" $late --set train.optimizer="{type: rmsprop, lr: 1e-3, eps: 1e-3, momentum: 0.5}"
sound "nag" 30 "$tmp/gpt.yaml" $late --schedule nag --set train.optimizer.type=nadamw
made $model
cat >"$tmp/wrong.c" <<'C'
/* the last element is off by 2^-10 */
#define gelu_forward sound_forward
#include "gelu.c"
#undef gelu_forward
void gelu_forward(Stage *st, real *y, const real *x, long n, long tanh)
{
    sound_forward(st, y, x, n, tanh);
    put(y, n - 1, get(y, n - 1) + 0x1p-10f);
}
C
$cc -O1 -Irt -Irt/op -c -o "$tmp/wrong.o" "$tmp/wrong.c" || fault "wrong.c"
with="$tmp/wrong.o $with"
said=$(compile "$tmp/job")
[ -z "$said" ] || fault "a wrong kernel: $said"
refuse "a kernel that is wrong in its last element" 8 "stage0: gelu_forward n=3072 tanh=1: y\[3071\] of 3072 is" \
    "$tmp/job/job" $run --selftest
# of one stage alone: the other ends too
cat >"$tmp/wrong.c" <<'C'
#define position_forward sound_forward
#include "position.c"
#undef position_forward
void position_forward(Stage *st, real *y, const real *x, const real *weight, long batch, long seq, long width)
{
    sound_forward(st, y, x, weight, batch, seq, width);
    put(y, 0, get(y, 0) + 0x1p-10f);
}
C
$cc -O1 -Irt -Irt/op -c -o "$tmp/wrong.o" "$tmp/wrong.c" || fault "wrong.c"
said=$(compile "$tmp/job")
[ -z "$said" ] || fault "a wrong kernel of one stage: $said"
refuse "a kernel of one stage" 8 "stage0: position_forward" timeout -s KILL 60 "$tmp/job/job" $run --selftest
refuse "with --resume" 2 "selftest and --resume exclude" "$tmp/job/job" --selftest --resume --checkpoint "$tmp/none"
flags=$(echo "$flags" | sed 's/-DSTAGE//') && use_portable
made $model
refuse "stages that tell nothing" 1 "stage0: no call was seen: its source was compiled without -DSTAGE" "$tmp/job/job" $run \
    --selftest
flags="$flags -DSTAGE"

have_cuda nccl.h || { skip "no headers of CUDA and NCCL: $cuda_remedy" 12; finish; }
need_double
eight_gpus >"$tmp/gpus"
for type in ${SLOW:+f32} bf16; do
    [ $type = f32 ] && use_portable || use_bf16
    double="$root/build/double/$type/local.obj $root/build/double/$type.a -lpthread -lm -ldl"
    with="$root/build/double/$type/own.obj $double -lstdc++" linker=$cc
    sound "kernels of GPUs, $type" 60 $model --set train.precision.compute=$type --devices "$tmp/gpus"
    operators "kernels of GPUs, $type" --set train.precision.compute=$type --devices "$tmp/gpus"
done
[ -f "$cuda/include/nvtx3/nvToolsExt.h" ] || { skip "no headers of NVTX" 5; finish; }
use_portable
with=$(echo "$double" | sed 's/bf16/f32/g') quick=
made $models/tiny-gpt.yaml --stages 1 --set train.batch.global=4 --devices "$tmp/gpus"
expect "an injection" $cc -shared -fPIC -isystem "$cuda/include" -o "$tmp/nvtx.so" tests/double/nvtx.c
plain=$(job_hash "$tmp/job" --steps 1)
told=$(NVTX_INJECTION64_PATH="$tmp/nvtx.so" job_hash "$tmp/job" --steps 1)
if [ ${#plain} = 64 ] && [ "$plain" = "$told" ]; then pass; else fault "ranges: $told, not $plain"; fi
sed -n 's/^range: //p' "$tmp/job.log" >"$tmp/ranges"
sed -n '/^static void stage0_step/,/^}/s/^ *action([^"]*"\([^"]*\)".*/\1/p' "$tmp/job/stage0.c" >"$tmp/actions"
if [ -s "$tmp/actions" ] && grep -v '^ ' "$tmp/ranges" | cmp -s - "$tmp/actions"; then pass
else fault "actions: $(grep -v '^ ' "$tmp/ranges" | diff - "$tmp/actions" | head -n 2)"; fi
# in the first forward: the routines that it calls, in the order of the source
# a call that stands alone in its layer is called by chunk0_forward
awk '/^static void/ { sub(/\(.*/, ""); here = $NF; known[here] = 1 } /^}/ { here = "" }
    here == "chunk0_forward" && /^    [a-z_0-9]*\(st/ { sub(/\(.*/, ""); print ($1 in known) ? $1 : here }' \
    "$tmp/job/stage0.c" | uniq >"$tmp/routines"
awk '/^[^ ]/ { on = /^forward, .*micro-batch 0/ } /^  [^ ]/ && on { print $1 }' "$tmp/ranges" >"$tmp/drawn"
if [ -s "$tmp/routines" ] && cmp -s "$tmp/drawn" "$tmp/routines"; then pass
else fault "routines: $(diff "$tmp/drawn" "$tmp/routines" | head -n 3)"; fi
DPGEN_NVTX=0 job_hash "$tmp/job" --steps 1 >"$tmp/said"
if ! grep -q '^range:' "$tmp/job.log"; then pass; else fault "ranges that nobody asked for"; fi
finish
