#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Jobs for GPUs without one, over the double of tests/double.  Kernels are those of processors behind the streams, so that the
# bits must be those of the graph interpreter whatever the order of the streams: any stage count, schedule, chunks, replicas,
# recomputation and offload, weight versions, several GPUs in one process, a process a stage over NCCL.  Again with the kernels
# for GPUs themselves.  A wait that is left out changes bits, unless other waits imply it.  What is allocated is what the
# plan says.  Machines that cannot run a job say so.  SLOW=1: more plans, steps, seeds, and every wait.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/interp build/interp_bf16

. tests/cuda.sh
have_cuda nccl.h || { skip "no headers of CUDA and NCCL: $cuda_remedy" 100; finish; }
need_double

cat >"$tmp/gpus" <<'GPUS'
devices:
  - {name: gpu, kind: cuda, arch: sm_90, count: 8, memory: 2GiB, workspace: 2MiB, bandwidth: 4800GB/s, call: 4us,
     flops: 67TFLOP/s, vector: 67TFLOP/s}
links: {gpu-gpu: {rate: 360GB/s, latency: 1us}, gpu-host: {rate: 500GB/s, latency: 1ns}}
hosts: {count: 1, memory: 2GiB, offload: 1GiB}
GPUS
model="$models/tiny-gpt.yaml --set train.batch.global=16"
heads=$models/heads.yaml
[ -n "$SLOW" ] || model="$model --set train.batch.global=8 --set train.steps=3" heads="$heads --set train.steps=3"
gpus="--devices $tmp/gpus"
some="'[h.*.ln_*,h.*.gelu,h.1.attention,h.2.dropout,wpe]'"
seeds="0 1" more_seeds="1 2 3 4 5 6 7 8 9 11 13 15"
[ -z "$SLOW" ] || seeds="0 1 2 3 4 5 6 7"
# use_double TYPE [TRANSPORT]
use_double() {
    case $1 in f32) kind=$flags ;; *) kind="$flags -DREAL_BF16" ;; esac
    with="$root/build/double/$1/${2:-local}.obj $root/build/double/$1.a -lpthread -lm"
}

# under SEED SETTING...: the hash of $tmp/job
under() {
    start="env DOUBLE_SEED=$1"
    shift
    start="$start $*"
    job_hash "$tmp/job" $arguments
}

# right WHAT HASH OPTION...: the job has it under every seed
right() {
    what=$1 want=$2
    shift 2
    rm -rf "$tmp/job"
    said=$(eval "generate $tmp/job $* $gpus" && compile "$tmp/job")
    [ -z "$said" ] || { fault "$what: $said"; return; }
    [ -n "$SLOW" ] || seeds=$((1 - ${seeds% *}))        # by turns
    for seed in $seeds; do
        said=$(under "$seed" $settings)
        if [ "$said" = "$want" ]; then pass; else fault "$what, seed $seed: $said, not $want"; fi
    done
}
interpret() { build/interp --data "$data" "$@" 2>"$tmp/interp.log" | sed -n 's/^sha256 //p'; }

# ---- any plan ------------------------------------------------------------------------------------------------------
use_double f32
settings=
want=$(interpret $model)
for plan in "1 gpipe none" "2 1f1b $some" "3 gpipe full" "2 zb-v none" "4 interleaved none" \
        ${SLOW:+"1 1f1b full" "2 gpipe none" "4 gpipe $some"}; do
    set -- $plan
    right "$1 stages, $2, $3" "$want" $model --stages "$1" --schedule "$2" --recompute "$3"
done
right "3 stages, offload" "$want" $model --stages 3 --schedule 1f1b --offload "\"['*']\""
settings="DPGEN_SYNC=1 DOUBLE_OPEN=1"       # memory that closes at each wait takes four seconds
right "3 stages, offload, a wait for each call" "$want" $model --stages 3 --schedule 1f1b --offload "\"['*']\""
settings=
under 1 >"$tmp/hash" 2>&1 && arguments="--steps 2 --trace $tmp/trace.json" && under 1 >"$tmp/hash" 2>&1
arguments=
if grep -q '"stage1 to the host"' "$tmp/trace.json" && grep -q '"pid":2.*"name":"fetch' "$tmp/trace.json"; then pass
else fault "a trace without copies"; fi
whole=$want
frozen="[wpe.*, h.0.*, h.1.ln_2.weight, h.1.attn.c_attn.weight]" slow="[{match: h.1.*, lr: x0.1, betas: [0.8, 0.9]}]"
adapt="{match: h.*.c_attn, rank: 4, alpha: 6, dropout: 0.1}"
right "frozen parameters, a parameter group" "$(interpret $model --set train.freeze="$frozen" \
    --set train.optimizer.groups="$slow")" $model --stages 3 --schedule 1f1b --recompute full \
    --set "\"train.freeze=$frozen\"" --set "\"train.optimizer.groups=$slow\""
right "adapters" "$(interpret $model --set adapt="$adapt")" $model --stages 2 --schedule zb-h1 --set "\"adapt=$adapt\""
want=$whole
right "2 stages, offload, one direction at a time" "$want" $model --stages 2 --schedule gpipe --offload "\"['*']\"" \
    --set links.gpu-host.duplex=half
right "a V" "$want" $model --stages 2 --map 0,1,1,0 --schedule 1f1b
right "chunks in turn" "$want" $model --stages 2 --map 0,1,0,1 --schedule gpipe --recompute "$some"
settings=DOUBLE_DEVICES=2
right "4 stages on 2 GPUs" "$want" $model --stages 4 --schedule 1f1b
# every copy between them goes directly, or where that is impossible every one through the host, with the same bits
ways() { sed -n 's/^double: between GPUs: //p' "$tmp/job.log"; }
under 1 DOUBLE_REPORT=1 $settings >"$tmp/hash"
copies=$(ways)
copies=${copies% direct, 0 through the host}
said=$(under 1 DOUBLE_REPORT=1 $settings DOUBLE_PEERS=0)
if [ "$said" = "$want" ] && [ "$copies" -gt 0 ] && [ "$(ways)" = "0 direct, $copies through the host" ]; then pass
else fault "copies between GPUs: $copies; without peers: $(ways), $said"; fi
settings=DOUBLE_DEVICES=3
right "3 stages on 3 GPUs, offload" "$want" $model --stages 3 --schedule gpipe --offload "\"['h.*']\""
settings=
groups="--set train.batch.groups=2"
right "2 replicas of 2 stages" "$(interpret $model $groups)" $model $groups --replicas 2 --stages 2 --schedule 1f1b

want=$(interpret $heads)
right "two heads on 2 stages" "$want" $heads --stages 2 --cuts 7 --schedule 1f1b --recompute full
right "two heads on 3 stages" "$want" $heads --stages 3 --schedule gpipe --offload "\"['*']\""

sed 's/, tie: wte//' "$models/tiny-gpt.yaml" >"$tmp/gpt.yaml"
want=$(interpret "$tmp/gpt.yaml" --set plan.schedule=2bw)
right "2bw, 3 stages" "$want" "$tmp/gpt.yaml" --schedule 2bw --stages 3
# nine steps are under way, each with its step values
async="$tmp/gpt.yaml --set model.dims.L=4 --set train.batch.micro=8 --set train.clip_norm=0 --set train.steps=12"
cuts=6,11,16,21,26,31,36,41
want=$(interpret $async --set plan.schedule=pipedream --set devices.0.count=9 --set plan.stages=9 --set "plan.cuts=[$cuts]")
sed 's/count: 8/count: 9/' "$tmp/gpus" >"$tmp/more"
gpus="--devices $tmp/more"
right "pipedream, 9 stages" "$want" $async --schedule pipedream --stages 9 --cuts $cuts
gpus="--devices $tmp/gpus"
# weights predicted from two versions
ahead="$tmp/gpt.yaml --set train.batch.micro=8 --set train.batch.global=8 --set train.clip_norm=0 --set train.steps=8"
ahead="$ahead --set plan.schedule=spectrain --set plan.stages=3 --set plan.cuts=[6,11]"
want=$(interpret $ahead)
right "spectrain, 3 stages" "$want" $ahead
# updates of their own: an impulse that makes up for its delay, and Nesterov's momentum
sed 's/optimizer: .*/optimizer: {type: sgd, lr: 0.02, momentum: 0.9}/' "$tmp/gpt.yaml" >"$tmp/sgd.yaml"
pb=$(echo "$ahead" | sed 's/spectrain/pb/; s!/gpt.yaml!/sgd.yaml!')
right "pb, 3 stages" "$(interpret $pb)" $pb
nag="$(echo "$ahead" | sed 's/spectrain/nag/') --set train.optimizer.type=nadamw"
[ -z "$SLOW" ] || right "nag, 3 stages" "$(interpret $nag)" $nag

use_double bf16
bf16="--set train.precision.compute=bf16"
want=$(build/interp_bf16 --data "$data" $model $bf16 2>"$tmp/interp.log" | sed -n 's/^sha256 //p')
right "bf16, 3 stages" "$want" $model $bf16 --stages 3 --schedule 1f1b --recompute "$some"
use_double f32

# ends WHAT STATUS TEXT SETTING...: the job on such a machine
ends() {
    what=$1 status=$2 text=$3
    shift 3
    refuse "$what" "$status" "$text" env DOUBLE_DEVICES=1 "$@" timeout 60 "$tmp/job/job" $run
}

# ---- the kernels and library calls of GPUs themselves -----------------------------------------------------------------
# over tests/simt and doubles of cuBLASLt and cuDNN: other bits than those of processors, the same under any plan, and losses
# that are as good as theirs
use_own() {
    use_double "$1"
    with="$root/build/double/$1/own.obj $with -lstdc++"
}
near=2
losses_near() {     # WHAT OPTION...: those of the interpreter and of the job differ by a ten-thousandth, or less
    build/interp$2 --data "$data" --steps $near $model --set train.precision.compute=$1 2>/dev/null |
        sed -n 's/.*loss[ ":]*\([0-9.]*\).*/\1/p' | head -n $near >"$tmp/near.want"
    sed -n 's/.*"event":"step".*"loss":\([0-9.]*\).*/\1/p' "$tmp/own.log" | head -n $near >"$tmp/near.got"
    if paste "$tmp/near.want" "$tmp/near.got" | awk -v n=$near 'NF != 2 || ($1 - $2) ^ 2 > 1e-8 * $1 * $1 { bad = 1 }
        END { exit NR != n || bad }'; then pass
    else fault "$1: losses $(tr '\n' ' ' <"$tmp/near.got"), the interpreter's $(tr '\n' ' ' <"$tmp/near.want")"; fi
}
own_plans() {       # TYPE PLAN...: of $model
    type=$1 want=
    shift
    use_own $type
    for plan; do
        set -- $plan
        case $3 in away) set -- "$1" "$2" none "--offload" "\"['h.*']\"" ;; esac
        rm -rf "$tmp/job"
        said=$(eval "generate $tmp/job $model --set train.precision.compute=$type --stages $1 --schedule $2 --recompute $3 \
            $4 $5 $gpus" && compile "$tmp/job")
        rm -f "$tmp/own.log"
        arguments="--steps $near --log $tmp/own.log"
        [ -n "$said" ] || said=$(under "$1" $settings)
        [ -n "$want" ] || { want=$said; losses_near $type "$(echo $type | sed 's/f32//; s/^bf/_bf/')"; }
        if [ ${#said} = 64 ] && [ "$said" = "$want" ]; then pass; else fault "$type, $plan: $said, not $want"; fi
    done
}
tiny=$model
[ -n "$SLOW" ] || model="$model -D L=1 --set train.batch.global=4"
for type in f32 bf16; do
    own_plans $type "1 gpipe none" "2 1f1b full" ${SLOW:+"4 1f1b none" "3 gpipe $some" "2 gpipe none --map 0,1,1,0"} \
        "2 1f1b away"
done
apart=$want
# the double of cuBLASLt takes 3 MiB a handle, of which each of the two stages has one
taken() {       # WHAT WANTED SETTING...
    what=$1 want=$2
    shift 2
    rm -f "$tmp/own.log"
    said=$(under 1 "$@")
    got=$(sed -n 's/.*"library_bytes":6291456,"library_by_stage":\[\([0-9,]*\)\].*/\1/p' "$tmp/own.log")
    if [ "$got" = "$want" ]; then pass
    else fault "$what: libraries take ${got:-$(grep -o '"library_[^]]*' "$tmp/own.log")}"; fi
}
arguments="--steps 1 --log $tmp/own.log"
taken "on one GPU" 6291456,0
taken "on two" 3145728,3145728 DOUBLE_DEVICES=2
own_plans bf16 "1 gpipe none --fuse most" "4 1f1b full --fuse most" ${SLOW:+"2 zb-h1 none --fuse most"}
if [ "$want" != "$apart" ]; then pass; else fault "a Gelu in a product has the bits of its own call"; fi
# which also adds the residual term behind a Linear with a Gelu in front; one with Dropout behind it has none to add
generate "$tmp/most" $model --set train.precision.compute=bf16 --stages 1 --fuse most $gpus
said="$(grep -c '^    linear_add_forward(' "$tmp/most/stage0.c") $(grep -c '^    add_forward(' "$tmp/most/stage0.c")"
if [ "$said" = "$(grep -c '^    linear_gelu_forward(' "$tmp/most/stage0.c") 0" ]; then pass
else fault "sums in products: $said"; fi
# another cuDNN, which wants more memory for gradients of attention than a plan has: our own kernels make them
own=$settings settings=DOUBLE_ATTENTION=1048576
own_plans bf16 "1 gpipe none" "2 1f1b full"
settings=$own
if [ "$want" != "$apart" ] && grep -q "^attention_packed_backward: .* planned; our own kernels do it" "$tmp/job.log" &&
    ! grep -q "^attention_packed_forward" "$tmp/job.log"; then pass
else fault "another cuDNN: $(head -n 1 "$tmp/job.log")"; fi
# products add up the gradients of q, k and v, and of gate and up, where one stage has them or several
own=$model model="$models/tiny-llama.yaml -D L=1 --set train.batch.global=4 --set train.steps=3"
for type in f32 bf16; do own_plans $type "1 gpipe none" "3 1f1b full"; done
said="$(cat "$tmp"/job/stage*.c | grep -c '^    linear_add_backward_x(') $(cat "$tmp"/job/stage*.c | grep -c '^    grad_add(')"
if [ "$said" = "3 0" ]; then pass; else fault "sums of gradients in products, and by themselves: $said, not 3 0"; fi
./dpgen "$models/tiny-llama.yaml" $gpus --fuse none -d f >"$tmp/graph" 2>"$tmp/said"
expect "a graph with such sums" ./dpgen plan "$models/tiny-llama.yaml" $gpus --fuse none --from "$tmp/graph" --estimate
model=$own
refuse "tf32 without GPUs" 3 "products in tf32 are those of GPUs" ./dpgen $tiny --set train.precision.compute=tf32 \
    -o "$tmp/none"
refuse "no GPU fuses most" 3 "only kernels for GPUs have products with a Gelu inside" ./dpgen $tiny --fuse most -o "$tmp/none"
# A loss that a later stage adds to its own has its gradient there: it does not follow the loss.
cat >"$tmp/two.yaml" <<'TWO'
dpgen: 1
model:
  name: two_losses
  inputs: {x: {shape: [B, 8], dtype: f32}, y: {shape: [B], dtype: i32, range: [0, 4]}}
  graph:
    - {op: Linear, in: x, name: a, out: 4, as: a}
    - {op: SoftmaxCrossEntropy, targets: y, as: early}
    - {op: Linear, in: a, name: b, out: 4}
    - {op: SoftmaxCrossEntropy, targets: y, as: late}
    - {op: Add, in: [early, late], as: loss}
  loss: loss
train: {batch: {global: 4, micro: 4}, steps: 2, optimizer: {lr: 1e-2}}
data: {train: {format: npy, arrays: {x: x.npy, y: y.npy}}}
TWO
expect "a loss that a later stage adds" ./dpgen plan "$tmp/two.yaml" --devices devices/h100.yaml --stages 2 --cuts 2 --estimate
model=$models/heads.yaml
for type in ${SLOW:+f32} bf16; do
    own_plans $type "1 gpipe none" "2 1f1b full"
done
model=$ahead near=3
[ -z "$SLOW" ] || near=6
own_plans f32 "3 spectrain none"
model=$tiny near=2
[ -n "$SLOW" ] || model="$model --set train.batch.global=4"
own_plans f32 "1 gpipe none"
arguments=
# one kernel makes the loss and its gradient where backward follows at once and the scores are kept
for plan in "1f1b none 1" "gpipe none 0" "1f1b full 0"; do
    set -- $plan
    rm -rf "$tmp/loss"
    generate "$tmp/loss" "$models/tiny-gpt.yaml" --stages 2 --schedule "$1" --recompute "$2" $gpus
    both=$(grep -c '^    xent_both(' "$tmp/loss/stage1.c") apart=$(grep -c '^    xent_backward(' "$tmp/loss/stage1.c")
    if [ "$both $apart" = "$3 $((1 - $3))" ]; then pass
    else fault "$1, recompute $2: $both losses with their gradient, $apart gradients apart"; fi
done
# one makes a residual sum and its norm, where no row of the norm is written over one that is still to be read, in the slots of
# each action; one the gradients of a norm and of a Linear in front of it, unless gradients of weights have a time of their own
for plan in "1f1b 1 3 3" "1f1b 2 1 3" "gpipe 1 3 3" "gpipe 2 2 3" "zb-h1 1 3 0"; do
    set -- $plan
    rm -rf "$tmp/loss"
    generate "$tmp/loss" "$models/tiny-gpt.yaml" --stages "$2" --schedule "$1" $gpus
    sums=$(cat "$tmp"/loss/stage*.c | grep -c '^    add_layernorm_forward(')
    gradients=$(cat "$tmp"/loss/stage*.c | grep -c '^    layernorm_linear_backward(')
    if [ "$sums $gradients" = "$3 $4" ]; then pass
    else fault "$1, $2 stages: $sums sums, $gradients gradients are made with their norms"; fi
done
# and in an evaluation, whose buffers take the place of one another as soon as they may
sed "/^  train: {format/{p;s/train: /eval: /;s/}\$/, every: 1, batches: 2}/;}" "$models/tiny-gpt.yaml" >"$tmp/eval.yaml"
rm -rf "$tmp/loss"
generate "$tmp/loss" "$tmp/eval.yaml" --stages 1 --schedule gpipe $gpus
said=$(sed -n '/_evaluate(Stage/,/^}/p' "$tmp/loss/stage0.c" | grep -c '^    add_layernorm_forward(')
if [ "$said" = 3 ]; then pass; else fault "an evaluation makes $said sums with their norms"; fi
# a call that fails late: the end of the step, or with DPGEN_SYNC the call, its line and its micro-batch
fault="an illegal memory access was encountered (cudaErrorIllegalAddress)"
ends "a fault" 1 "stage0: .*: $fault; DPGEN_SYNC=1 names the call; checkpoints are" DOUBLE_FAULT=cublasLtMatmul
ends "a fault, named" 1 "stage0: linear_forward: $fault, near line [0-9]* of stage0.c, in: forward, chunk 0, micro-batch 0;" \
    DOUBLE_FAULT=cublasLtMatmul DPGEN_SYNC=1
line=$(sed -n 's/.* line \([0-9]*\) of .*/\1/p' "$tmp/said")
if sed -n "$((line - 2)),${line}p" "$tmp/job/stage0.c" | grep -q 'linear_forward(.*h_0_attn'; then pass
else fault "line $line"; fi
ends "a kernel, named" 1 "(norm_held_back<WARP, 8 / WIDE>): $fault, near line [0-9]* of stage0.c, in: backward, chunk 0, mic" \
    DOUBLE_FAULT="(norm_held_back<WARP, 8 / WIDE>)" DPGEN_SYNC=1

# ---- nccl: a process a stage ---------------------------------------------------------------------------------------------
# several STAGES SETTING...: stages of $tmp/job, one a process, as a launcher would start them; the output of stage 0 in job.out
several() {
    n=$1
    shift
    for i in $(seq $((n - 1)) -1 0); do
        (cd "$tmp" && exec env TMPDIR="$tmp" PMI_SIZE="$n" PMI_RANK="$i" MPI_LOCALRANKID="$i" PMI_JOBID="$$.$number" \
            DOUBLE_DEVICES=8 DPGEN_TIMEOUT=20 "$@" timeout -s KILL 60 job/job $run $arguments) >"$tmp/out.$i" 2>"$tmp/err.$i" &
    done
    wait
    number=$((number + 1))
    sed -n 's/^sha256 //p' "$tmp/out.0"
}
number=0
over_nccl() {       # WHAT STAGES OPTION...
    what=$1 stages=$2
    shift 2
    rm -rf "$tmp/job"
    said=$(eval "generate $tmp/job $model --stages $stages $* --set plan.transport=nccl $gpus" && compile "$tmp/job")
    [ -z "$said" ] || { fault "$what: $said"; return; }
    for seed in ${seeds% *}; do
        said=$(several "$stages" DOUBLE_SEED="$seed")
        if [ "$said" = "$want" ]; then pass; else fault "$what, seed $seed: $said: $(cat "$tmp"/err.* | head -n 2)"; fi
    done
}
use_double f32 nccl
want=$(interpret $model)
over_nccl "nccl, 3 stages" 3 --schedule 1f1b --recompute "$some"
over_nccl "nccl, 2 stages, a V" 2 --schedule gpipe --map 0,1,1,0
# products leave room for receives that wait: how, tests/cuda_host.sh asks
rm -rf "$tmp/job"
generate "$tmp/job" $model --stages 2 --schedule 1f1b --set plan.transport=nccl $gpus --set devices.0.spare=8 ||
    fault "no job with spare multiprocessors"
if grep -q -e '^CPPFLAGS = .* -DSPARE=8$' "$tmp/job/Makefile"; then pass
else fault "spare multiprocessors: $(grep '^CPPFLAGS' "$tmp/job/Makefile")"; fi
use_double f32

# ---- what goes wrong -------------------------------------------------------------------------------------------------------
rm -rf "$tmp/job"
generate "$tmp/job" $model --stages 2 $gpus && compile "$tmp/job" || fault "no job"
ends "no GPU" 6 "no GPU is to be seen" DOUBLE_DEVICES=0
ends "no driver" 6 "newer NVIDIA driver" DOUBLE_DEVICES=-1
ends "another chip" 6 "GPU 0 is sm_80, and the kernels are compiled for sm_90" DOUBLE_ARCH=80
ends "an old chip" 6 "need sm_80 or newer" DOUBLE_ARCH=75
ends "a GPU of somebody else" 1 "stage0: GPU 0 is busy: another process has it for itself" DOUBLE_BUSY=0
ends "the other GPU" 1 "stage0: GPU 1 is busy: another process has it for itself" DOUBLE_BUSY=1 DOUBLE_DEVICES=2
ends "too little memory" 1 "stage0: no room for its arena of [0-9]* bytes on GPU 0: 1000000 of 1000000 bytes are free" \
    DOUBLE_MEMORY=1000000

# ---- memory --------------------------------------------------------------------------------------------------------
# What is allocated: of each stage its arena, up to the next multiple of 256, and the workspace behind it
right "for its memory" "$(interpret $model)" $model --stages 3 --schedule 1f1b
planned=$(sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p' "$tmp/job/plan.json" |
    awk '{print int(($1 + 255) / 256) * 256 + 2097152}' | tr '\n' ' ')
under 1 DOUBLE_REPORT=1 >"$tmp/hash"
taken=$(sed -n 's/.*allocation [0-9]*: \([0-9]*\) bytes.*/\1/p' "$tmp/job.log" | tr '\n' ' ')
if [ "$planned" = "$taken" ]; then pass; else fault "allocated $taken, planned $planned"; fi

# Pinned memory: a stage that loads data has as many rooms for its largest input as 32 MiB hold, from 2 to 16, for a thread that
# reads ahead, and from 1 to 16 for the other reads; no other stage has any.  Pictures go up as bytes, and so do their rooms.
# Each has 16 for step values and what is as small, 2 copies of those, and 256 KiB for all else.
{ picture_model 1024 128 128; cat <<'PICTURES'
train: {batch: {global: 8, micro: 4}, steps: 3, optimizer: {type: sgd, lr: 1e-3}}
data: {train: {format: idx, arrays: {image: pictures, labels: kinds}}}
PICTURES
} >"$tmp/pictures.yaml"
number_of() { printf "\\$(printf %03o $(($1 / 256 % 256)))\\$(printf %03o $(($1 % 256)))"; }
{ printf '\000\000\010\004\000\000'; number_of 16; printf '\000\000'; number_of 1024; printf '\000\000'; number_of 1024
    printf '\000\000'; number_of 3; yes "$(cat "$data")" 2>/dev/null | head -c $((48 << 20)); } >"$tmp/pictures"
{ printf '\000\000\010\001\000\000'; number_of 16; head -c 16 "$data"; } >"$tmp/kinds"
at_home=$run cwd=$tmp run="--no-checkpoint --quiet --hash"
want=$(cd "$tmp" && "$root/build/interp" pictures.yaml 2>"$tmp/interp.log" | sed -n 's/^sha256 //p')
right "pictures" "$want" "$tmp/pictures.yaml" --stages 2 --cuts 2 --schedule gpipe
said=$(under 1 DOUBLE_REPORT=1 DOUBLE_OPEN=1)
pinned=$(sed -n 's/^double: pinned: \([0-9]*\) bytes/\1/p' "$tmp/job.log")
if [ "$pinned" = $(((2 + 2) * (4 * 1024 * 1024 * 3) + 2 * (256 * 1024 + (16 + 2) * 112))) ]; then pass
else fault "pinned: $pinned bytes"; fi
# The first step reads its data when it begins, later ones find them: a thread has read them beside the step before.  The host's
# own work between a step's end and the next one's first kernel is then that of one step, however many there are.
waiting() {     # STEPS SETTING...: microseconds
    arguments="--steps $1"
    shift
    under 1 DOUBLE_REPORT=1 DOUBLE_OPEN=1 "$@" >"$tmp/hash"
    sed -n 's/^double: from waits to kernels: \([0-9]*\) us/\1/p' "$tmp/job.log"
}
one=$(waiting 1) all=$(waiting 6) arguments=
if [ "$one" -gt 0 ] && [ "$all" -lt $((3 * one)) ]; then pass
else fault "the host's work before the first kernels: $all us in six steps, $one in one"; fi
# Floats and bytes of a load to come go up beside the step, to a place for the largest behind the workspace, which the plan has
# counted.  Order is that of events alone: under any seed the bits are right.  Steps that overlap have no such place.
$cc -std=c11 -O1 -o "$tmp/npy" tests/npy.c || fault "tests/npy.c"
(cd "$tmp" && ./npy x.npy f4 -1 1 40 24 && ./npy z.npy f4 -1 1 40 16 && ./npy y.npy i4 0 4 40) || fault "arrays"
cat >"$tmp/floats.yaml" <<'FLOATS'
dpgen: 1
model:
  name: floats
  inputs:
    x: {shape: [B, 24], dtype: f32}
    z: {shape: [B, 16], dtype: f32}
    y: {shape: [B], dtype: i32, range: [0, 4]}
  graph:
    - {op: Concat, in: [x, z], axis: 1}
    - {op: Linear, name: a, out: 12}
    - {op: Gelu}
    - {op: Linear, name: b, out: 4}
    - {op: SoftmaxCrossEntropy, targets: y, as: loss}
  loss: loss
train: {batch: {global: 12, micro: 4}, steps: 12, optimizer: {type: sgd, lr: 1e-2}, clip_norm: 0}
data: {train: {format: npy, arrays: {x: x.npy, z: z.npy, y: y.npy}}}
FLOATS
landed() {      # WHAT BYTES MODEL OPTION...
    what=$1 bytes=$2
    shift 2
    want=$(cd "$tmp" && "$root/build/interp" "$1" 2>"$tmp/interp.log" | sed -n 's/^sha256 //p')
    shown=$seeds seeds="0 1 2 3 4 5 6 7" slow=$SLOW SLOW=1
    right "$what" "$want" "$tmp/$@"
    seeds=$shown SLOW=$slow
    planned=$(sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p' "$tmp/job/plan.json" | head -n 1)
    under 1 DOUBLE_REPORT=1 >"$tmp/hash"
    taken=$(sed -n 's/.*allocation 0: \([0-9]*\) bytes.*/\1/p' "$tmp/job.log")
    if [ "$taken" = $(((planned + 255) / 256 * 256 + 2097152 + bytes)) ]; then pass
    else fault "$what: allocated $taken, planned $planned, $bytes of the next step"; fi
}
landed "floats" $((4 * 24 * 4)) floats.yaml --stages 1
landed "floats, 2 stages" $((4 * 24 * 4)) floats.yaml --stages 2 --schedule 1f1b
landed "large pictures" $((4 * 1024 * 1024 * 3)) pictures.yaml --stages 1
# The thread and the steps share rooms and counters: without a race, as the compiler's detector sees it.
races() {       # [SETTING]
    if $cc -fsanitize=thread -g -O1 -D_GNU_SOURCE -std=c11 -Irt -I"$tmp/job" -isystem "$cuda/include" -DBUILT_FOR='"90"' \
        -o "$tmp/races" "$tmp"/job/launch.c "$tmp"/job/stage?.c rt/cuda/ahead.c rt/cuda/arena.c rt/cuda/record.c rt/data.c \
        $with >"$tmp/said" 2>&1
    then
        said=$(cd "$tmp" && env $1 DOUBLE_OPEN=1 timeout 120 ./races $run 2>&1)
        if [ "$said" = "sha256 $want" ]; then pass; else fault "races, $1: $(echo "$said" | grep -e SUMMARY -e sha256)"; fi
    else skip "no detector of races: $(grep -m 1 error "$tmp/said")" 1; fi
}
races DPGEN_GRAPH=1
# Those of steps that are graphs are read while one is recorded, which takes its own time, then beside the step before.
one=$(waiting 1) first=$(waiting 1 DPGEN_GRAPH=1) all=$(waiting 12 DPGEN_GRAPH=1) arguments=
if [ "$one" -gt 0 ] && [ "$all" -lt $((first + 4 * one)) ]; then pass
else fault "the host's work before twelve graphs: $all us, before one $first, for the data of a step $one"; fi
least=$(sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p' "$tmp/job/plan.json")
for less in 0 1; do         # a byte less is too little
    memory=$((least + 2097152 + 4 * 1024 * 1024 * 3 - less))
    sed "s/memory: 2GiB, workspace/memory: $memory, reserve: 0, workspace/; s/count: 8/count: 1/" "$tmp/gpus" >"$tmp/exact"
    ./dpgen plan "$tmp/pictures.yaml" --devices "$tmp/exact" --stages 1 --estimate >"$tmp/said" 2>&1
    if [ $? = $((4 * less)) ]; then pass; else fault "pictures, $less bytes too few: $(tail -n 1 "$tmp/said")"; fi
done
if grep -q "data to come of stage 0 take 12.00 MiB of its device beside that" "$tmp/said"; then pass
else fault "what takes the rest: $(cat "$tmp/said")"; fi
right "pictures again" "$want" "$tmp/pictures.yaml" --stages 2 --cuts 2 --schedule gpipe
# An estimate has two loads of 48 MiB of numbers, read and written on the GPU, and little else
step=$(./dpgen plan "$tmp/pictures.yaml" $gpus --stages 1 --estimate 2>/dev/null |
    sed -n 's/^predicted step \([0-9.]*\) ms.*/\1/p')
if awk -v ms="$step" 'BEGIN { load = 4 * 48 * 1048576 / 4.8e9; exit !(ms > load && ms < 4 * load) }'; then pass
else fault "a step with large pictures: predicted $step ms"; fi
generate "$tmp/late" "$tmp/floats.yaml" --stages 2 --schedule pipedream --set train.batch.micro=12 $gpus
if [ -e "$tmp/late/stage0.c" ] && ! grep -q '\.landing' "$tmp/late/stage0.c"; then pass; else fault "steps that overlap"; fi
races
# A target that is wrong ends the job in its own step, not in the one before, beside which it is read.
printf '\310' | dd of="$tmp/kinds" bs=1 seek=20 conv=notrunc 2>/dev/null
rm -rf "$tmp/job"
said=$(generate "$tmp/job" "$tmp/pictures.yaml" --stages 1 $gpus --set data.train.order=sequential && compile "$tmp/job")
said=$said$(cd "$tmp" && job/job $run --steps 1 2>&1 | sed -n 's/^sha256 //p')
if [ ${#said} = 64 ]; then pass; else fault "a wrong target of the next step: $said"; fi
rm -f "$tmp/own.log"
refuse "a wrong target" 1 "element 12 is 200, outside \[0, 128) of input .labels" \
    sh -c "cd '$tmp' && DOUBLE_OPEN=1 exec job/job $run --log own.log"
if [ "$(grep -c '"event":"step"' "$tmp/own.log")" = 1 ]; then pass
else fault "a wrong target: $(grep -c '"event":"step"' "$tmp/own.log") steps"; fi
run=$at_home cwd=

# ---- waits ---------------------------------------------------------------------------------------------------------
# A wait is for data, that they are made, or for room, that a buffer may be written.  One for data is missed, unless the others
# imply it.  One for room may be spare: whoever had the buffer before is gone long since, for another reason.  So may one for a
# tied weight: it is read in the next step, whose first message comes behind it on the same stream, and after the last step
# nobody reads it at all: the last message of each stream is not asked about.  Memory stays open to the host, of which the
# whole job has been seen to keep away: closing it takes longer than the job.
# kinds STAGES: each wait S:I of three steps with its kind.  Streams of a stage: compute, out, in, one from each other stage.
kinds() {
    for stage in $(seq 0 $(($1 - 1))); do
        sed -n "/^static void stage${stage}_step/,/^}/p" "$tmp/job/stage$stage.c" | awk -v s="$stage" -v p="$1" '
        /action\(/ { kind = /received|fetched/ && !/received: [^ ]*weight"/ ? "data" : "room" }
        /(transfer|copy)_wait/ { of[n++] = kind }
        END {
            for (i = 0; i < 3 * n; i++) print s * (2 + p) ":" i, of[i % n]
            for (i = 0; i < 300; i++) print s * (2 + p) + 1 ":" i, "data\n" s * (2 + p) + 2 ":" i, "room"
            for (q = 3; q < 2 + p; q++) for (i = 0; i < 300; i++) print s * (2 + p) + q ":" i, i % 2 ? "room" : "data"
        }'
    done
}
drops() {       # WHAT STAGES OPTION...: one wait in $each is left out at a time
    what=$1 short="$model --set train.steps=3 --set train.batch.global=8" missed=0
    stages=$2
    shift 2
    want=$(interpret $short)
    rm -rf "$tmp/job"
    said=$(eval "generate $tmp/job $short --stages $stages $* $gpus" && compile "$tmp/job")
    [ -z "$said" ] || { fault "$what: $said"; return; }
    said=$(under 0 DOUBLE_REPORT=1)
    if [ "$said" = "$want" ]; then pass; else fault "$what: $said, not $want"; fi
    kinds "$stages" >"$tmp/kinds"
    sed -n 's/^double: wait //p' "$tmp/job.log" | sort -t: -k1n -k2n >"$tmp/all"
    sort -t: -k1n -k2nr "$tmp/all" | awk -F: -v p="$stages" '$1 != s { s = $1; n = 0 } s % (2 + p) < 3 || n++ > 1' |
        sort -t: -k1n -k2n | awk -v n="$each" 'NR % n == 1 || n == 1' |
        awk 'NR == FNR { kind[$1] = $2; next } { print $1, kind[$1], $2 }' "$tmp/kinds" - >"$tmp/waits"
    while read -r wait class implied; do
        caught=
        case $class$implied in data) tries=$more_seeds ;; *implied) tries=${more_seeds% 5 *} ;; *) continue ;; esac
        for patience in 1000 30000; do
            for seed in $tries; do
                said=$(under "$seed" "DOUBLE_DROP=$wait" DOUBLE_PATIENCE=$patience DOUBLE_OPEN=1 2>&1)
                [ "$said" = "$want" ] || { caught=$seed; break 2; }
            done
            [ "$class$implied" = data ] || break        # only a machine under load needs more
        done
        case $class$implied:$caught in
            data:) fault "$what: nobody misses the data of wait $wait" ;;
            *implied:?*) fault "$what: wait $wait is implied and missed, by seed $caught" ;;
            data:?*) missed=$((missed + 1)); pass ;;
            *implied:) pass ;;
        esac
    done <"$tmp/waits"
    if [ $missed -gt 0 ]; then pass; else fault "$what: no wait was missed"; fi
}
each=19
[ -z "$SLOW" ] || each=1
drops "2 stages, 1f1b" 2 --schedule 1f1b
drops "2 stages, gpipe, offload" 2 --schedule gpipe --offload "\"['h.*.attn.*', h.1.gelu]\""
finish
