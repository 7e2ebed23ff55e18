#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A small convolutional model (tests/models/images.yaml) has the same bits under any plan: 1 to 4 stages, schedules, chunks,
# recomputation, offloading, gradient groups with replicas, two processes, a stop and resume under another plan, in f32 and in
# bf16.  The graph interpreter, which knows no plan, gives the hash.  oneDNN and the kernels for GPUs each have one hash for two
# plans.  SLOW=1 takes 40 plans a type, and of five more models in f32: residual and dense branches, stochastic depth, cells of
# separable convolutions.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a build/interp build/interp_bf16
model=$tmp/images.yaml stop=1           # of three steps
sed 's/^  steps: 6/  steps: 3/' $models/images.yaml >"$model"
[ -z "$SLOW" ] || model=$models/images.yaml stop=3
$cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/npy" tests/npy.c || { fault "tests/npy.c"; finish; }
cwd=$tmp/data run="--no-checkpoint --quiet --hash"
mkdir -p "$cwd"
(cd "$cwd" && "$tmp/npy" image.npy f4 -1 1 40 12 11 3 && "$tmp/npy" labels.npy i4 0 5 40) || fault "no arrays"

named="'[half, joined]'"
# plans_of OPTION...
plans_of() {
    fates_of "$@"
    echo "v.gpipe $model --stages 2 --map 0,1,1,0 --schedule gpipe --recompute $named $*"
}
# Each stage count, schedule and fate, and all pairs of the last two; all with SLOW=1
some() {
    if [ -n "$SLOW" ]; then cat; return; fi
    grep -E '^(1.gpipe.none|2.gpipe.full|2.1f1b.away|3.1f1b.none|4.1f1b.full|2.zb-h1.none|v|apart)'
}

# Reshape and Flatten copy nothing, unless fuse is off or the section plan names one of them
copies() { ./dpgen "$model" --estimate -d f "$@" 2>/dev/null | grep -c call=copy_forward || true; }
expect "copies of views" test "$(copies)" = 0
expect "copies of calls" test "$(copies --fuse none)" = 4
expect "copies of the Reshape that is named" test "$(copies --recompute '[line]')" = 2

use_portable
keep="2.1f1b.away 3.1f1b.none 2.gpipe.full"
plans_of | some | plans
keep=
like_interpreter "f32" build/interp
reference=$hash

# Pictures and models of tests/ref
more() {        # FILE
    model=$tmp/$1.yaml
    draw='- {op: Dropout, p: 0.3, shared: [1, 2, 3]}'
    sed "s/^\\( *\\)- {op: BatchNorm, name: block.[23].1, track: micro}\$/&\\n\\1$draw/" "tests/ref/$1.yaml" >"$model"
    plans_of --set train.steps=4 --devices "$tmp/four" | plans
    like_interpreter "$1" build/interp --set train.steps=4
}
five() {
    cp tests/ref/images.*.npy "$cwd"
    cpus 4 >"$tmp/four"
    own=$named named="'[\"*1*\"]'"
    for file in resnet densenet mobilenet efficientnet amoebanet; do more $file; done
    model=$models/images.yaml named=$own
    expect "stochastic depth" test "$(grep -c 'Dropout.*shared' "$tmp/efficientnet.yaml")" = 2
}
# Stop after step 3 of 6, or 1 of 3, go on under another plan
resume() {
    rm -rf "$tmp/ckpt"
    run="--quiet --hash --checkpoint $tmp/ckpt"
    said=$(job_hash "$tmp/$1" --steps $stop) && [ "$said" != "$reference" ] && said=$(job_hash "$tmp/$2" --resume)
    if [ "$said" = "$reference" ]; then pass; else fault "$1, then $2: $said"; fi
    run="--no-checkpoint --quiet --hash"
}
resume 2.1f1b.away 3.1f1b.none
resume 3.1f1b.none 2.gpipe.full
[ -z "$SLOW" ] || five

# Evaluations of one stage and of several, also with a cut between statistics and what they normalise, and of one that went on
sed 's/targets: labels,/targets: labels, top: 2,/' $models/images.yaml >"$tmp/eval.yaml"
told() {        # DIR ARGUMENT...: losses and shares of the evaluations
    at=$1
    shift
    rm -f "$at.jsonl"
    (cd "$cwd" && timeout 60 "$at/job" --quiet --log "$at.jsonl" "$@") >"$at.out" 2>&1 || tail -n 1 "$at.out"
    sed -n '/"event":"eval"/s/"time":.*//p' "$at.jsonl"
}
set="{arrays: {image: image.npy, labels: labels.npy}, every: 2, batches: 5}"
evaluated() {   # NAME OPTION...
    name=$1
    shift
    said=$(generate "$tmp/$name" "$tmp/eval.yaml" --set data.eval="$set" "$@" && compile "$tmp/$name" &&
        told "$tmp/$name" --no-checkpoint)
    first=${first:-$said}
    if [ "$said" = "$first" ] && [ "$(echo "$said" | grep -c accuracy)" = 3 ]; then pass
    else fault "$name: $said, not $first"; fi
}
first=
evaluated e.one --stages 1 --schedule gpipe
evaluated e.between --stages 3 --cuts 1,5 --schedule 1f1b --recompute full
[ -z "$SLOW" ] || evaluated e.four --stages 4 --schedule zb-h1
said=$(told "$tmp/e.between" --checkpoint "$tmp/e.ckpt" --steps 4 | head -n 2
    told "$tmp/e.one" --checkpoint "$tmp/e.ckpt" --resume)
if [ "$said" = "$first" ]; then pass; else fault "evaluations, stopped and resumed: $said, not $first"; fi

{ echo "g.one $model --set train.batch.groups=2 --stages 3"
  echo "g.two $model --set train.batch.groups=2 --stages 2 --replicas 2 --schedule 1f1b --recompute full"; } | plans
like_interpreter "two groups" build/interp --set train.batch.groups=2
[ "$hash" != "$reference" ] && pass || fault "groups have the hash of another key"

two_ranks() {
    over_mpi 2 2 || return
    plans_of --set plan.transport=mpi | grep -E '^2.(gpipe.away|1f1b.full)' | plans
    one_hash "mpi" "$reference"
    use_portable
    # Values that skip over two stages, among processes and replicas
    (cd "$cwd" && "$tmp/npy" images.npy f4 -1 1 6 64 64 3 && "$tmp/npy" masks.npy f4 0 0 6 64 64 1) || fault "no arrays"
    unet="examples/unet.yaml -D S=64 -D N=2 -D F=2 --set train.batch.global=4 --set devices.0.count=4 --set devices.0.threads=1
        --set train.batch.groups=2 --set train.steps=2"
    unet=$(echo $unet)
    echo "one $unet --stages 1" | plans
    skips=$(sed -n 's/^one //p' "$tmp/result")
    over_mpi 4 1 || return
    { echo "unet.4 $unet --stages 4 --schedule 1f1b --set plan.transport=mpi"
      echo "unet.2 $unet --stages 2 --replicas 2 --schedule 1f1b --set plan.transport=mpi"; } |
        if [ -n "$SLOW" ]; then cat; else head -n 1; fi | plans
    one_hash "unet, mpi" "$skips"
    use_portable
}
two_ranks

use_bf16
few() { if [ -n "$SLOW" ]; then cat; else grep -E '^(1.gpipe.none|2.1f1b.away|v.gpipe)'; fi; }
plans_of --set train.precision.compute=bf16 | some | few | plans
like_interpreter "bf16" build/interp_bf16 --set train.precision.compute=bf16
[ "$hash" != "$reference" ] && pass || fault "bf16 has the hash of f32"

# ---- oneDNN: hashes of its own, at two threads ------------------------------------------------------------------------------
fast() {        # TYPE OPTION...
    type=$1
    shift
    use_onednn "$type" || return
    plans_of --set devices.0.kernels=onednn --set devices.0.threads=2 "$@" | grep -E '^(1.gpipe.none|3.zb-h1.full)' | plans
    one_hash "onednn, $type"
    [ "$hash" != "$reference" ] && pass || fault "onednn, $type: the hash of portable kernels"
}
if ! have_onednn; then
    skip "there is no dnnl.h" 6
else
    fast f32
    if have_onednn_bf16; then fast bf16 --set train.precision.compute=bf16
    else skip "oneDNN has no products in bf16 on this CPU" 3; fi
fi

# ---- a wrong gradient is seen; kernels that are not there -------------------------------------------------------------------
use_portable
wrong='s/conv_backward_w(\(.*\), acc, /conv_backward_w(\1, 1, /'
said=$(generate "$tmp/wrong" $model && sed -i "$wrong" "$tmp"/wrong/stage0.c && compile "$tmp/wrong" && job_hash "$tmp/wrong")
if [ ${#said} = 64 ] && [ "$said" != "$reference" ]; then pass; else fault "a wrong chain goes unseen: $said"; fi

# ---- the kernels for GPUs, over the double ---------------------------------------------------------------------------
. tests/cuda.sh
have_cuda nccl.h || { skip "no headers of CUDA and NCCL: $cuda_remedy" 5; finish; }
need_double
eight_gpus >"$tmp/gpus"
few=
[ -n "$SLOW" ] || few="--set train.batch.global=4"
over_double() { # TYPE OPTION...: two plans; in bf16 convolutions are cuDNN's
    double=$root/build/double/$1
    shift
    with="$double/own.obj $double/local.obj $double.a -lpthread -lm -ldl -lstdc++" quick=
    first=
    for options in "--stages 1 --schedule gpipe" "--stages 3 --schedule 1f1b --recompute full"; do
        said=$(generate "$tmp/gpu" $model $options $few --devices "$tmp/gpus" "$@" && compile "$tmp/gpu" &&
            job_hash "$tmp/gpu" --steps 1)
        [ ${#said} = 64 ] && [ "$said" = "${first:-$said}" ] && pass || fault "GPUs, $* $options: $said, not $first"
        first=$said
    done
}
use_portable
over_double f32
use_bf16
over_double bf16 --set train.precision.compute=bf16
expect "convolutions of cuDNN" test "$(grep -c '^    open_conv' "$tmp/gpu/stage0.c")" -gt 3
finish
