#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# GPUs that share the operators of a stage, over the doubles of CUDA and NCCL, with the kernels for GPUs.  One hash over stages,
# schedules, replicas, recomputation, transports and the order in which streams run, over whole and divided rows, parts of
# experts and whole ones; losses and norms are those of processors; files know nothing of the layout.  Processes over NCCL stop
# for a random time before each call: no job hangs.  SLOW=1: more plans and seeds.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a
. tests/cuda.sh
have_cuda nccl.h || { skip "no headers of CUDA and NCCL: $cuda_remedy" 30; finish; }
need_double
eight_gpus >"$tmp/gpus"
# 251 words: the last device has fewer of them
sed 's/V: 256/V: 251/; s/D: 24, H: 3/D: 32, H: 4/' "$models/tiny-gpt.yaml" >"$tmp/gpt.yaml"
gpt="$tmp/gpt.yaml --devices $tmp/gpus --set train.batch.groups=2 --set train.steps=4"
# use_own TYPE TRANSPORT
use_own() {
    case $1 in f32) kind=$flags ;; *) kind="$flags -DREAL_BF16" ;; esac
    quick=$tcc linker=$cc
    with="$root/build/double/$1/own.obj $root/build/double/$1/$2.obj $root/build/double/$1.a -lpthread -lm -lstdc++"
}
unset SLURM_STEP_NUM_TASKS OMPI_COMM_WORLD_SIZE DPGEN_RENDEZVOUS
number=0
# ranks N SEED ARGUMENT...: the job in so many processes; what the first prints, or why another ended
ranks() {
    number=$((number + 1)) n=$1 seed=$2
    shift 2
    for i in $(seq $((n - 1)) -1 0); do
        (cd "$tmp" && exec env TMPDIR="$tmp" PMI_SIZE="$n" PMI_RANK="$i" MPI_LOCALRANKID="$i" PMI_JOBID="$$.$number" \
            DOUBLE_DEVICES=1 DOUBLE_FIRST="$i" DPGEN_TIMEOUT=20 DOUBLE_SEED="$seed" DOUBLE_PAUSE=300 DOUBLE_OPEN=1 \
            timeout -s KILL 60 job/job "$@") >"$tmp/out.$i" 2>"$tmp/err.$i" &
    done
    wait
    sed -n 's/^sha256 //p' "$tmp/out.0"
    cat "$tmp"/err.* | awk '!/has ended before this one/ { print; why = 1; exit } { last = $0 }
        END { if (!why && NR) print last }'
}
# right WHAT DEVICES STAGES TRANSPORT OPTION...: the folder is proved, and the job has $want under a seed; the first one says it
right() {
    what="$1: $2 devices, $3 stages, $4, $5 $6 $7" t=$2 n=$3 transport=$4
    shift 4
    rm -rf "$tmp/job"
    use_own "${type:-f32}" "$transport"
    said=$(generate "$tmp/job" $model --set train.blocks="$t" --set plan.tensor="$t" --stages "$n" \
        --set plan.transport="$transport" "$@" && compile "$tmp/job")
    [ -z "$said" ] || { fault "$what: $said"; return; }
    for seed in ${SLOW:+1 2 3} 4; do
        case $transport in
            nccl) said=$(ranks $((t * n * ${rows:-1})) "$seed" $run) ;;
            *) start="env DOUBLE_SEED=$seed DOUBLE_DEVICES=3" said=$(job_hash "$tmp/job") ;;
        esac
        want=${want:-$said}
        if [ ${#want} = 64 ] && [ "$said" = "$want" ]; then pass; else fault "$what, seed $seed: $said, not $want"; fi
    done
}

# ---- one hash for each number of devices -------------------------------------------------------------------------------------
model=$gpt want=
right gpt 2 1 local --schedule gpipe
two=$want
right gpt 2 2 nccl --schedule 1f1b --recompute full
rows=2
right gpt 2 1 nccl --schedule 1f1b --replicas 2 --set train.shard=optimizer
rows=
divided="--set plan.positions=divided"
right gpt 2 1 local $divided --schedule gpipe
right gpt 2 2 nccl $divided --schedule 1f1b --recompute "['*.gather']"
[ -z "$SLOW" ] || { right gpt 2 3 local --schedule zb-h1; right gpt 2 2 local --schedule interleaved --recompute full; }
want=
right gpt 4 1 nccl --schedule gpipe
graph=$(DPGEN_GRAPH=1 DOUBLE_REPORT=1 ranks 4 2 $run | grep -v '^double')
if [ "$graph" = "$want" ] && grep -q '^double: a graph of [1-9]' "$tmp/err.3"; then pass
else fault "a graph for each step: $graph, not $want"; fi
right gpt 4 2 local --schedule 1f1b
# a sum from the memory of all is no copy between GPUs; where one does not reach another, each level is two
ways() { sed -n 's/^double: between GPUs: //p' "$tmp/job.log"; }
start="env DOUBLE_SEED=2 DOUBLE_REPORT=1 DOUBLE_DEVICES=4" said=$(job_hash "$tmp/job") few=$(ways)
start="env DOUBLE_SEED=3 DOUBLE_REPORT=1 DOUBLE_DEVICES=4 DOUBLE_PEERS=0" said="$said $(job_hash "$tmp/job")" many=$(ways)
if [ "$said" = "$want $want" ] && [ "${few%% *}" -gt 0 ] && [ "$(echo "$many" | sed 's/.* \([0-9]*\) through.*/\1/')" -gt \
    $((2 * ${few%% *})) ]; then pass
else fault "sums from the memory of all: $few; level by level: $many; $said"; fi
right gpt 4 1 local $divided --schedule gpipe
start="env DOUBLE_SEED=5 DOUBLE_DEVICES=4 DOUBLE_PEERS=0" said=$(job_hash "$tmp/job")
[ "$said" = "$want" ] && pass || fault "divided rows level by level: $said, not $want"
[ "$want" != "$two" ] && pass || fault "2 and 4 devices have one hash, and two numeric keys"
[ -z "$SLOW" ] || { want=; right gpt 8 1 local --schedule gpipe; right gpt 8 1 nccl --schedule gpipe --recompute full; }

type=bf16 model="$gpt --set train.precision.compute=bf16" want=
right bf16 2 1 local --schedule gpipe
right bf16 2 2 nccl --schedule 1f1b
type=
# a head within its loss, in chunks; evaluations count hits
sed '/name: lm_head/d; s/op: SoftmaxCrossEntropy, targets/op: LinearCrossEntropy, name: lm_head, out: V, tie: wte, '\
'bias: false, chunk: 32, top: 3, targets/' "$tmp/gpt.yaml" >"$tmp/head.yaml"
model="$tmp/head.yaml --devices $tmp/gpus --set train.steps=4" want=
right head 4 1 local --schedule gpipe
right head 4 2 nccl --schedule 1f1b
# a Dropout of divided elements draws as those of the whole do; shared heads, Gate and Rotary
awk '/op: Gelu/ { print; sub(/[^ ].*/, ""); print $0 "- {op: Dropout, name: mlp.drop, p: 0.3}"; next } 1' "$tmp/gpt.yaml" \
    >"$tmp/draws.yaml"
model="$tmp/draws.yaml --devices $tmp/gpus --set train.steps=4" want=
right draws 2 2 local --schedule 1f1b
# its attention draws: a device has some of the heads of all
cp "$models/tiny-llama.yaml" "$tmp/llama.yaml"
model="$tmp/llama.yaml --devices $tmp/gpus --set train.steps=4" want=
right llama 2 1 local --schedule gpipe
right llama 2 2 nccl $divided --schedule 1f1b
# 26 rows of 4 devices: the last one has 5 of its 7; a device keeps the rows of its words
sed '/PositionEmbedding/d' "$tmp/gpt.yaml" >"$tmp/words.yaml"
model="$tmp/words.yaml --devices $tmp/gpus --set train.steps=4 -D T=13" want=
right "rows that are not even" 4 1 local --schedule gpipe
right "rows that are not even" 4 1 nccl $divided --schedule gpipe
right "rows that are not even" 4 1 local $divided --schedule gpipe --recompute "['*.gather']"
# parts of experts and whole ones, tokens whole and divided; the second layer has one choice
sed 's/F: 9/F: 16/; s/T: 10/T: 16/; s/E: 5/E: 8/; s/out: 3,/out: E,/; s/experts: 3,/experts: E,/' "$models/experts.yaml" \
    >"$tmp/experts.yaml"
$cc -std=c11 -O1 -o "$tmp/npy" tests/npy.c && (cd "$tmp" && for name in tokens targets; do
    ./npy $name.npy i4 0 29 24 16; done) || fault "no arrays"
cp tests/ref/images.*.npy "$tmp"
at_home=$run cwd=$tmp run="--no-checkpoint --quiet --hash"
model="$tmp/experts.yaml --devices $tmp/gpus --set train.steps=4" want=
right experts 4 1 local --schedule gpipe
right experts 4 1 nccl --set plan.experts=devices --schedule gpipe
right experts 4 1 local --set plan.experts=devices $divided --schedule gpipe
type=bf16 model="$model --set train.precision.compute=bf16" want=
right "experts in bf16" 2 1 local --schedule gpipe
right "experts in bf16" 2 1 nccl --set plan.experts=devices $divided --schedule gpipe
type=
# channels of images
sed 's/out: 3,/out: 16,/; s/out: 12,/out: 32,/' tests/ref/resnet.yaml >"$tmp/resnet.yaml"
model="$tmp/resnet.yaml --devices $tmp/gpus --set train.batch.micro=1 --set train.batch.global=4 --set train.steps=3" want=
right channels 2 1 local --schedule gpipe
right channels 2 2 nccl --schedule 1f1b --recompute full
cwd= run=$at_home
# a smoothed loss over a divided vocabulary
sed 's/op: SoftmaxCrossEntropy,/op: SoftmaxCrossEntropy, smoothing: 0.1,/' "$tmp/gpt.yaml" >"$tmp/smooth.yaml"
model="$tmp/smooth.yaml --devices $tmp/gpus --set train.steps=4" want=
right smooth 4 1 nccl --schedule gpipe
right smooth 4 2 local --schedule 1f1b

# ---- the numbers are those of processors -------------------------------------------------------------------------------------
# near NAME DEVICES OPTION...: losses and norms of four steps beside those of processors with as many blocks; $layout: of GPUs
steps() { sed -n 's/.*"event":"step".*"loss":\([^,]*\),"norm":\([^,]*\),.*/\1 \2/p' "$1"; }
near() {
    what=$1 t=$2
    shift 2
    use_own f32 local
    said=$(generate "$tmp/job" "$@" $layout --devices "$tmp/gpus" --set plan.tensor="$t" --set train.blocks="$t" --stages 1 &&
        compile "$tmp/job")
    use_portable
    said="$said$(generate "$tmp/cpu" "$@" --set train.blocks="$t" --stages 1 && compile "$tmp/cpu")"
    rm -f "$tmp"/*.jsonl
    for at in job cpu; do
        given="--data $data"
        [ $what = experts ] && given=
        (cd "$tmp" && DOUBLE_DEVICES=2 exec "$at/job" --quiet --no-checkpoint --steps 4 $given --log "$at.jsonl") \
            >"$tmp/said" 2>&1
        steps "$tmp/$at.jsonl" >"$tmp/$at.steps"
    done
    if [ -z "$said" ] && paste "$tmp/job.steps" "$tmp/cpu.steps" | awk '
            function far(a, b) { return a - b > 1e-5 * b || b - a > 1e-5 * b }
            NF != 4 || far($1, $3) || far($2, $4) { exit 1 } END { exit NR != 4 }'; then pass
    else fault "$what: not the losses and norms of processors: $said $(paste "$tmp/job.steps" "$tmp/cpu.steps" | head -n 1)"; fi
}
near gpt 2 "$tmp/gpt.yaml"
near head 4 "$tmp/head.yaml"
near draws 4 "$tmp/draws.yaml"
near smooth 4 "$tmp/smooth.yaml"
layout=$divided
near rows 4 "$tmp/gpt.yaml"
near words 4 "$tmp/words.yaml" -D T=13
near llama 2 "$tmp/llama.yaml"
layout="--set plan.experts=devices"
near experts 4 "$tmp/experts.yaml"
layout=

# ---- files know nothing of the layout ----------------------------------------------------------------------------------------
use_own f32 local
model=$gpt want=
right gpt 2 2 local --schedule 1f1b
job() { (cd "$tmp" && env DOUBLE_DEVICES=2 job/job --quiet --data "$data" "$@" 2>&1); }
at_once=$(job --no-checkpoint --hash)
job --steps 2 --checkpoint saved >"$tmp/said"
rm -rf "$tmp/job"
said=$(generate "$tmp/job" $gpt --set train.blocks=2 --set plan.tensor=2 --stages 1 --set plan.transport=nccl &&
    use_own f32 nccl && compile "$tmp/job")
said=$said$(ranks 2 1 --quiet --data "$data" --hash --checkpoint saved --resume)
if [ "sha256 $said" = "$at_once" ]; then pass; else fault "stopped with two stages, resumed with one: $said, not $at_once"; fi
# gradients and weights of the first two steps, as on processors with two blocks, by name and shape
ranks 2 1 --quiet --data "$data" --steps 2 --no-checkpoint --gradients "$tmp/gpu.grads" --export "$tmp/gpu.weights" >"$tmp/said"
use_portable
generate "$tmp/cpu" "$tmp/gpt.yaml" --set train.batch.groups=2 --set train.steps=4 --set train.blocks=2 --stages 1 >"$tmp/said"
compile "$tmp/cpu" && "$tmp/cpu/job" --quiet --data "$data" --steps 2 --no-checkpoint --gradients "$tmp/cpu.grads" \
    --export "$tmp/cpu.weights" >"$tmp/said" 2>&1
for file in grads weights/model.safetensors; do
    # the header, then as many bytes
    head -c 600 "$tmp/gpu.$file" >"$tmp/gpu.head" && head -c 600 "$tmp/cpu.$file" >"$tmp/cpu.head"
    if cmp -s "$tmp/gpu.head" "$tmp/cpu.head" && [ "$(wc -c <"$tmp/gpu.$file")" = "$(wc -c <"$tmp/cpu.$file")" ]; then pass
    else fault "$file: not the names and sizes of processors: $(cat "$tmp/said")"; fi
done

# ---- what a plan says --------------------------------------------------------------------------------------------------------
# norms of the table, and of 6 parameters in each of 3 blocks: 8 bytes a level
for t in 2 4; do
    said=$(./dpgen check $gpt --set train.blocks=$t --set plan.tensor=$t | sed -n 's/^ *sends for norms *\([0-9,]*\) .*/\1/p')
    if [ "$said" = $((19 * 8 * t / 2)) ]; then pass; else fault "norms of $t devices: $said bytes a step"; fi
done

# ---- what is not offered, and what goes wrong --------------------------------------------------------------------------------
refuse "one block a device" 3 "train.blocks: 4, plan.tensor: 2, and a GPU adds up one block of each sum" \
    ./dpgen $gpt --set train.blocks=4 --set plan.tensor=2 --estimate -o "$tmp/no"
refuse "any number" 3 "train.blocks: 4, plan.tensor: auto, and a GPU adds up one block of each sum" \
    ./dpgen $gpt --set train.blocks=4 --set plan.tensor=auto --estimate -o "$tmp/no"
refuse "rows of a product" 3 'plan.positions: everywhere, and a GPU adds up a product of some rows in another order' \
    ./dpgen $gpt --set train.blocks=2 --set plan.tensor=2 --set plan.positions=everywhere --estimate -o "$tmp/no"
[ ! -e "$tmp/no" ] && pass || fault "a folder is there"
said=$(generate "$tmp/job" $gpt --set train.blocks=2 --set plan.tensor=2 --stages 1 --set plan.transport=nccl &&
    use_own f32 nccl && compile "$tmp/job")
said=$said$(DOUBLE_COMM=breaks DOUBLE_MESSAGES=40 ranks 2 1 $run)
if cat "$tmp"/err.* | grep -q "^[^:]*: *sums of stage 0, device [01]: remote error"; then pass
else fault "a fault of the network within a sum: $said"; fi
finish
