#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# precision.compute: fp8, over the double of tests/double.  With kernels of processors behind the streams a job has the bits of
# the graph interpreter, with those for GPUs bits of its own: the same under any plan, replicas, recomputation, stop and resume.
# Losses and gradients are near those of bf16.  Histories of sizes are in checkpoints, and in no published weights.
# SLOW=1: more plans, 60 steps.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/interp_bf16 build/rt/hooks.h
. tests/cuda.sh

fp8="--set train.precision.compute=fp8"
small="$models/tiny-gpt.yaml -D D=48 -D L=2 --set train.batch.global=8"
interpret() { build/interp_bf16 --data "$data" "$@" 2>"$tmp/interp.log" | sed -n 's/^sha256 //p'; }

# ---- near bf16 -----------------------------------------------------------------------------------------------------------
# The interpreter takes what no generated job does: fp8 on a processor.
# losses STEPS OPTION...
losses() {
    n=$1
    shift
    build/interp_bf16 --data "$data" $small --set train.steps=$n "$@" 2>/dev/null | sed -n 's/.*loss[ ":]*\([0-9.]*\).*/\1/p' |
        head -n $n
}
losses 20 $fp8 >"$tmp/eight"
losses 20 --set train.precision.compute=bf16 >"$tmp/sixteen"
said=$(paste "$tmp/eight" "$tmp/sixteen" | awk 'NR == 1 { first = $1 }
    { d = ($1 - $2) / $2; d = d < 0 ? -d : d; if (d > far) far = d
    n++; last = $1; same += $1 == $2 } END { if (n < 20 || far > 0.01 || last > first - 1 || same > n / 2)
    print n, far, first, last, same }')
if [ -z "$said" ]; then pass; else fault "losses, how far, first, last, how many as in bf16: $said"; fi
if [ -n "$SLOW" ]; then         # in between, losses of bf16 jump by themselves
    losses 60 $fp8 | tail -n 10 >"$tmp/eight"
    losses 60 --set train.precision.compute=bf16 | tail -n 10 >"$tmp/sixteen"
    said=$(paste "$tmp/eight" "$tmp/sixteen" | awk '{ n++; a += $1; b += $2 } END { d = (a - b) / b; print n, a / n, b / n
        exit n != 10 || d > 0.02 || d < -0.02 }') && pass || fault "mean losses of the last ten of 60 steps: $said"
fi

# ---- who has it ------------------------------------------------------------------------------------------------------------
eight_gpus >"$tmp/gpus"
gpus="--devices $tmp/gpus"
./dpgen plan $small $fp8 $gpus --stages 2 --estimate >"$tmp/said" 2>&1
if grep -q '^  fp8     9 of 9 Linear$' "$tmp/said"; then pass; else fault "all Linear: $(grep fp8 "$tmp/said")"; fi
./dpgen plan $small $fp8 $gpus -D V=250 --stages 2 --estimate >"$tmp/said" 2>&1
if grep -q '^  fp8     8 of 9 Linear; in bf16, since 16 does not divide a size: lm_head$' "$tmp/said"; then pass
else fault "one in bf16: $(grep fp8 "$tmp/said")"; fi
./dpgen plan $models/tiny-gpt.yaml $fp8 $gpus --stages 2 --estimate >"$tmp/said" 2>&1
if grep -q 'fp8     0 of 13 Linear; .*: h.0.attn.c_attn, h.0.attn.c_proj, h.0.mlp.c_fc, ...$' "$tmp/said"; then pass
else fault "all in bf16: $(grep fp8 "$tmp/said")"; fi
key() {
    ./dpgen "$@" $gpus --estimate -o "$tmp/key" >"$tmp/said" 2>&1
    sed -n 's/.*"numeric_key": "\(.*\)".*/\1/p' "$tmp/key/plan.json"
}
eight=$(key $small $fp8) sixteen=$(key $small --set train.precision.compute=bf16)
case $eight in *compute=fp8*) pass ;; *) fault "its key: $eight" ;; esac
fast=$(key $small --set train.precision.compute=fp8-fast)
case $fast in *compute=fp8-fast*) pass ;; *) fault "the key of fast sums: $fast" ;; esac
if grep -q 'REAL_BF16 -DFAST_SUMS' "$tmp/key/Makefile"; then pass; else fault "fast sums are not compiled in"; fi
if [ "$eight" != "$sixteen" ]; then pass; else fault "the key of bf16"; fi
refuse "no GPU" 3 "products in fp8 are those of GPUs, and 'cpu.0' is of kind cpu" ./dpgen $small $fp8 -o "$tmp/none"
sed 's/sm_90/sm_80/' "$tmp/gpus" >"$tmp/old"
# whatever is asked, at the place of the arch
for verb in "plan" "compare" "schedules" "check" "plan --pace" ""; do
    refuse "an older GPU: $verb" 3 "old:2:35: error: 'gpu.0' is sm_80, and products in fp8 need sm_89" \
        ./dpgen $verb $small $fp8 --devices "$tmp/old" \
        $([ "$verb" = check ] || echo --estimate) $([ -n "$verb" ] || echo -o "$tmp/none")
done
refuse "said by an option" 3 "^--set: error: 'gpu.0' is sm_88, and" ./dpgen plan $small $fp8 $gpus \
    --set devices.0.arch=sm_88
expect "the first that has them" ./dpgen plan $small $fp8 $gpus --set devices.0.arch=sm_89
refuse "steps that overlap" 3 "the scales of fp8 follow whole steps; set train.precision.compute: bf16" ./dpgen $small \
    $fp8 $gpus --stages 2 --schedule 2bw --estimate -o "$tmp/none"
./dpgen plan $small $fp8 $gpus --fuse most --stages 2 --estimate >"$tmp/said" 2>&1
if grep -q '^  fp8     9 of 9 Linear$' "$tmp/said"; then pass; else fault "no Gelu inside: $(grep fp8 "$tmp/said")"; fi
# what 16 does not divide has a Gelu inside
expect "most, 24 wide" ./dpgen $small $fp8 $gpus -D D=24 --fuse most --stages 1 --estimate -o "$tmp/rest"
if grep -q linear_gelu_backward "$tmp/rest/stage0.c" && ! grep -q linear_fp8 "$tmp/rest/stage0.c"; then pass
else fault "24 wide: $(grep -o 'linear_[a-z0-9_]*' "$tmp/rest/stage0.c" | sort -u | tr '\n' ' ')"; fi
# a plan that lays scratch on what a Gelu reads has two calls there, of which one would not be proved
expect "scratch of a Gelu's gradient" ./dpgen $small $fp8 $gpus -D D=96 -D T=16 -D V=256 --set train.batch.micro=2 --stages 2 \
    --schedule 1f1b --estimate -o "$tmp/three"
said="$(cat "$tmp"/three/stage*.c | grep -c '^    gelu_backward(')"
if [ "$said" = 1 ] && grep -q '^    gelu_linear_fp8_backward(' "$tmp/three/stage1.c"; then pass
else fault "gradients of a Gelu by themselves: $said, not 1"; fi
refuse "a profile" 3 "products in fp8 have no times but estimates yet" ./dpgen profile $small $fp8 $gpus

# ---- any plan --------------------------------------------------------------------------------------------------------------
have_cuda nccl.h || { skip "no headers of CUDA and NCCL: $cuda_remedy" 20; finish; }
need_double
kind="$flags -DREAL_BF16 -DSTAGE -Ibuild/rt"
use_both() { with="$root/build/double/bf16/local.obj $root/build/double/bf16.a -lpthread -lm -ldl"; }
use_own() { use_both; with="$root/build/double/bf16/own.obj $with -lstdc++"; }
model="$small $fp8 -D T=8 --set train.steps=3"
[ -z "$SLOW" ] || model="$small $fp8 --set train.steps=4"
start="env DOUBLE_SEED=1"

# made OPTION...: $tmp/job of $model
made() {
    rm -rf "$tmp/job"
    eval "generate $tmp/job $model $* $gpus" && compile "$tmp/job"
}
# same WHAT OPTION...: that plan has the bits $want
same() {
    what=$1
    shift
    said=$(made "$@")
    [ -n "$said" ] || said=$(job_hash "$tmp/job")
    if [ ${#said} = 64 ] && [ "$said" = "$want" ]; then pass; else fault "$what: $said, not $want"; fi
}
plans() {       # WHOSE: of one replica, then of two groups
    same "$1, 3 stages, 1f1b, recomputed" --stages 3 --schedule 1f1b --recompute full
    same "$1, 2 stages, zb-h1" --stages 2 --schedule zb-h1
    [ -z "$SLOW" ] || same "$1, 2 stages, gpipe, offload" --stages 2 --schedule gpipe --offload "\"['*']\""
    [ -z "$SLOW" ] || same "$1, a V" --stages 2 --map 0,1,1,0 --schedule 1f1b
}
groups="--set train.batch.groups=2"
use_both
want=$(interpret $model)
plans "kernels of processors"
want=$(interpret $model $groups)
same "2 replicas of 2 stages" $groups --replicas 2 --stages 2 --schedule 1f1b
same "2 replicas, shards" $groups --replicas 2 --stages 1 --schedule gpipe --set train.shard=optimizer

use_own
own="$small $fp8 -D L=1 -D T=8 --set train.steps=3 --set train.batch.global=4"
[ -n "$SLOW" ] || model=$own
said=$(made --stages 1 --schedule gpipe)
want=$(job_hash "$tmp/job")
[ -z "$said" ] || fault "own kernels: $said"
if [ ${#want} = 64 ] && [ "$want" != "$(interpret $model)" ]; then pass; else fault "own kernels: $want"; fi
start="env DOUBLE_SEED=1 DPGEN_GRAPH=1"
said=$(job_hash "$tmp/job")
if [ "$said" = "$want" ]; then pass; else fault "a graph: $said, not $want"; fi
start="env DOUBLE_SEED=1"
plans "kernels of GPUs"
one=$want
said=$(made $groups --stages 1 --schedule gpipe)
want=$(job_hash "$tmp/job")
same "kernels of GPUs, 2 replicas" $groups --replicas 2 --stages 1 --schedule gpipe
want=$one
same "kernels of GPUs, most" --fuse most --stages 2 --schedule 1f1b

# ---- each call, and what a run leaves ------------------------------------------------------------------------------------
said=$(made --stages 2 --schedule 1f1b)
"$tmp/job/job" $run --selftest >"$tmp/tested" 2>&1
if [ "$(grep -c 'linear_fp8_.* as in f64' "$tmp/tested")" -ge 12 ] && grep -q ' xent_both .* as in f64' "$tmp/tested" &&
    grep -q ' linear_fp8_backward .* dweight: .* as in f64' "$tmp/tested" &&
    [ "$(grep -c ' gelu_linear_fp8_backward .* as in f64' "$tmp/tested")" -ge 4 ] &&
    ! grep -e 'others: [1-9]' -e 'not checked' "$tmp/tested" >"$tmp/said"; then pass
else fault "selftest: $(head -n 2 "$tmp/said")"; fi
job() { DOUBLE_SEED=1 "$tmp/job/job" --quiet --hash --data "$data" "$@" 2>"$tmp/err" | sed -n 's/^sha256 //p'; }
job --checkpoint "$tmp/saved" --steps 2 >/dev/null
said=$(job --checkpoint "$tmp/saved" --resume --export "$tmp/out")
if [ "$said" = "$want" ]; then pass; else fault "resumed: $said, not $want: $(tail -n 1 "$tmp/err")"; fi
if grep -q '"h.0.mlp.c_fc.amax"' "$tmp"/saved/step-*/index.json; then pass; else fault "no history in a checkpoint"; fi
if grep -qa 'h.0.mlp.c_fc.weight' "$tmp/out/model.safetensors" && ! grep -qa amax "$tmp/out/model.safetensors"; then pass
else fault "histories in published weights"; fi
refuse "published weights, as a start" 0 "" "$tmp/job/job" $run --weights "$tmp/out" --steps 1
model=$(echo "$model" | sed "s/compute=fp8/compute=bf16/")
mv "$tmp/job" "$tmp/job8"
said=$(made --stages 1 --schedule gpipe) && job --checkpoint "$tmp/short" --steps 1 >/dev/null
rm -rf "$tmp/job" && mv "$tmp/job8" "$tmp/job"
refuse "a checkpoint of bf16, as a start" 0 "" "$tmp/job/job" $run --weights "$tmp/short/step-000001" --steps 1
./dpgen export "$tmp/saved" --hf "$tmp/exported" >"$tmp/said" 2>&1
if cmp -s "$tmp/out/model.safetensors" "$tmp/exported/model.safetensors"; then pass
else fault "export: $(tail -n 1 "$tmp/said")"; fi
finish
