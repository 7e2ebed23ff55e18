#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A small model of today's language has the same bits under any plan, in f32 and in bf16 (tests/models/language.yaml: rotary
# positions, shared heads of keys, gates, norms of heads).  The graph interpreter, which knows no plan, gives the hash.
# SLOW=1 takes 40 plans.  The kernels for GPUs have one hash under two plans, over the double.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a build/interp build/interp_bf16
model=$models/language.yaml
$cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/npy" tests/npy.c || { fault "tests/npy.c"; finish; }
cwd=$tmp/data run="--no-checkpoint --quiet --hash"
mkdir -p "$cwd"
(cd "$cwd" && "$tmp/npy" tokens.npy i4 0 29 24 10 && "$tmp/npy" targets.npy i4 0 29 24 10) || fault "no arrays"

plans_of() {    # OPTION...
    for n in 1 2 3 4; do
        for schedule in gpipe 1f1b zb-h1; do
            echo "$n.$schedule.none $model --stages $n --schedule $schedule --recompute none $*"
            echo "$n.$schedule.full $model --stages $n --schedule $schedule --recompute full $*"
            echo "$n.$schedule.away $model --stages $n --schedule $schedule --offload \"['*']\" $*"
        done
    done
    echo "v.1f1b $model --stages 2 --map 0,1,0,1 --schedule 1f1b $*"
    echo "apart $model --stages 2 --schedule 1f1b --fuse none $*"
    echo "auto $model --stages 3 --schedule 1f1b --recompute auto $*"
    echo "pair $model --stages 2 --map 0,1,1,0 --schedule gpipe --recompute full $*"
}
some() { if [ -n "$SLOW" ]; then cat; else grep -E "^($1)"; fi; }
interpret() {   # WHAT PROGRAM OPTION...: the plans of the result against each other and the interpreter
    label=$1 program=$root/$2
    shift 2
    want=$(cd "$cwd" && "$program" "$model" "$@" 2>"$tmp/interp.log" | sed -n 's/^sha256 //p')
    if [ -n "$want" ]; then pass; else fault "$label: the interpreter gives no hash: $(tail -n 1 "$tmp/interp.log")"; fi
    one_hash "$label" "$want"
}

use_portable
plans_of | some '4.1f1b.full|3.zb-h1.away|v' | plans
interpret "f32" build/interp
reference=$hash
use_bf16
plans_of --set train.precision.compute=bf16 | some '3.1f1b.full' | plans
interpret "bf16" build/interp_bf16 --set train.precision.compute=bf16
[ "$hash" != "$reference" ] && pass || fault "bf16 has the hash of f32"

# ---- the kernels for GPUs, over the double ---------------------------------------------------------------------------
. tests/cuda.sh
have_cuda nccl.h || { skip "no headers of CUDA and NCCL: $cuda_remedy" 2; finish; }
need_double
eight_gpus >"$tmp/gpus"
[ -n "$SLOW" ] || run="$run --steps 2" model="$model --set train.batch.global=4"
for type in f32 ${SLOW:+bf16}; do
    [ $type = f32 ] && use_portable || use_bf16
    double=$root/build/double/$type first=
    with="$double/own.obj $double/local.obj $double.a -lpthread -lm -ldl -lstdc++" quick=$tcc linker=$cc
    for options in "--stages 1 --schedule gpipe" "--stages 3 --schedule 1f1b --recompute full"; do
        said=$(generate "$tmp/gpu" $model --planner even $options --set train.precision.compute=$type --devices "$tmp/gpus" &&
            compile "$tmp/gpu" && job_hash "$tmp/gpu")
        [ ${#said} = 64 ] && [ "$said" = "${first:-$said}" ] && pass || fault "GPUs, $type, $options: $said, not $first"
        first=$said
    done
done
finish
