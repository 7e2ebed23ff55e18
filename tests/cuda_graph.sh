#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# DPGEN_GRAPH=1 over the double: a step is recorded before the first one and launched as one graph.  The bits are those of the
# graph interpreter under any plan of one stage, and of several stages and replicas over NCCL, whatever the order of the nodes;
# with evaluations and checkpoints between steps; and those of the same calls one by one, with the kernels for GPUs themselves.
# What cannot be a graph is said and runs call by call.  SLOW=1: more plans and seeds.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/interp build/interp_bf16
. tests/cuda.sh
have_cuda nccl.h || { skip "no headers of CUDA and NCCL: $cuda_remedy" 60; finish; }
need_double
eight_gpus | sed 's/^links: {/&gpu-host: {rate: 500GB\/s, latency: 1ns}, /' >"$tmp/gpus"
echo 'hosts: {count: 1, memory: 2GiB, offload: 1GiB}' >>"$tmp/gpus"
gpus="--devices $tmp/gpus"
unset SLURM_STEP_NUM_TASKS OMPI_COMM_WORLD_SIZE DPGEN_RENDEZVOUS
seeds="0 1"
[ -z "$SLOW" ] || seeds="0 1 2 3 4 5 6 7"
use_double() {
    case $1 in f32) kind=$flags ;; *) kind="$flags -DREAL_BF16" ;; esac
    with="$root/build/double/$1/${2:-local}.obj $root/build/double/$1.a -lpthread -lm"
}
interpret() { build/interp"$interpreter" --data "$data" "$@" 2>"$tmp/interp.log" | sed -n 's/^sha256 //p'; }
made() {        # WHAT OPTION...: $tmp/job
    what=$1
    shift
    rm -rf "$tmp/job"
    said=$(eval "generate $tmp/job $* $gpus" && compile "$tmp/job")
    [ -z "$said" ] || { fault "$what: $said"; false; }
}
graphs() { sed -n 's/^double: a graph of [1-9][0-9]* nodes, launched \([0-9]*\) times$/\1/p' "$1" | tr '\n' ' '; }
one() {         # SEED SETTING...: the hash of $tmp/job, its steps as graphs
    start="env DPGEN_GRAPH=1 DOUBLE_REPORT=1 DOUBLE_SEED=$1"
    shift
    start="$start $*"
    job_hash "$tmp/job" $arguments
}
right() {       # WHAT OPTION...: under every seed the job has $want, and launched a graph for each of $steps steps
    what=$1
    shift
    made "$what" "$@" || return
    for seed in $seeds; do
        said=$(one "$seed")
        if [ ${#want} = 64 ] && [ "$said" = "$want" ]; then pass; else fault "$what, seed $seed: $said, not $want"; fi
        if [ "$(graphs "$tmp/job.log")" = "$steps " ]; then pass
        else fault "$what, seed $seed: launched $(graphs "$tmp/job.log")graphs"; fi
    done
}

# ---- one stage -----------------------------------------------------------------------------------------------------------
steps=4
model="$models/tiny-gpt.yaml --set train.batch.global=8 --set train.steps=$steps"
use_double f32
want=$(interpret $model)
for plan in "gpipe none" "1f1b none" ${SLOW:+"1f1b full"} "gpipe '[h.*.ln_*,h.*.gelu,h.1.attention,h.2.dropout,wpe]'"; do
    right "one stage, $plan" $model --stages 1 --schedule "${plan%% *}" --recompute "${plan#* }"
done
right "offload" $model --stages 1 --schedule gpipe --offload "\"['*']\""
right "offload, one direction at a time" $model --stages 1 --schedule gpipe --offload "\"['*']\"" \
    --set links.gpu-host.duplex=half
want=$(interpret "$models/heads.yaml" --set train.steps=$steps)
right "two heads" "$models/heads.yaml" --set train.steps=$steps --stages 1 --schedule 1f1b
use_double bf16
interpreter=_bf16
want=$(interpret $model --set train.precision.compute=bf16)
right "bf16" $model --set train.precision.compute=bf16 --stages 1 --schedule 1f1b
interpreter=
use_double f32

losses() { sed -n 's/.*"event":\("step","step":[0-9]*,"loss":[0-9.]*\|"eval","step":[0-9]*,"loss":[0-9.]*\),.*/\1/p' "$1"; }
same_losses() {     # WHAT: in steps and evaluations, with graphs as without
    losses "$tmp/log.0" >"$tmp/without"
    losses "$tmp/log.1" >"$tmp/with"
    if [ "$(wc -l <"$tmp/without")" = $((2 * steps)) ] && cmp -s "$tmp/without" "$tmp/with"; then pass
    else fault "$1: losses with graphs: $(cat "$tmp/with"), without: $(cat "$tmp/without")"; fi
}
# Evaluations and checkpoints between steps; a job that was stopped goes on with a graph of its own.
sed "/^  train: {format/{p;s/train: /eval: /;s/}\$/, every: 1, batches: 2}/;}" "$models/tiny-gpt.yaml" >"$tmp/eval.yaml"
want=$(interpret $model)
if made "evaluations" "$tmp/eval.yaml" --set train.batch.global=8 --set train.steps=$steps --stages 1 --schedule 1f1b; then
    at_home=$run
    for graph in 0 1; do
        run="$at_home --eval-data $data --log $tmp/log.$graph"
        [ "$(DPGEN_GRAPH=$graph job_hash "$tmp/job")" = "$want" ] || fault "evaluations, DPGEN_GRAPH=$graph"
    done
    same_losses "evaluations"
    run="--quiet --hash --data $data --eval-data $data --checkpoint $tmp/saved"
    arguments="--steps 2"
    one 1 >"$tmp/first" || fault "two steps: $(cat "$tmp/first")"
    arguments=--resume
    said=$(one 1)
    if [ "$said" = "$want" ] && [ "$(graphs "$tmp/job.log")" = "2 " ]; then pass; else fault "resume: $said, not $want"; fi
    said=$(one 1)
    if [ "$said" = "$want" ] && [ -z "$(graphs "$tmp/job.log")" ]; then pass; else fault "no step is left: $said"; fi
    run=$at_home arguments=
fi

# Pictures, whose bytes go up as they are: channel by channel in the file, evaluated in between; with our own kernel, too.
{ picture_model 32 8 10; cat <<'PICTURES'
train: {batch: {global: 8, micro: 4}, steps: 4, optimizer: {type: sgd, lr: 1e-2}}
data:
  train: {format: cifar10, files: batch.bin, image: image, labels: labels}
  eval:  {format: cifar10, files: batch.bin, image: image, labels: labels, every: 1, batches: 2}
PICTURES
} >"$tmp/pictures.yaml"
for i in 0 1 2 3 4 5 6 7 8 9 10 11; do
    printf "\\$(printf %03o $((i % 10)))"
    { tail -c +$((i * 97 + 1)) "$data"; cat "$data" "$data" "$data"; } | head -c 3072
done >"$tmp/batch.bin"
at_home=$run cwd=$tmp run="--no-checkpoint --quiet --hash"
for type in f32 bf16; do
    use_double $type
    real="--set train.precision.compute=$type"
    interpreter=$(echo $type | sed 's/f32//; s/^bf/_bf/')
    want=$(cd "$tmp" && "$root/build/interp$interpreter" pictures.yaml $real 2>"$tmp/interp.log" | sed -n 's/^sha256 //p')
    right "pictures, $type" "$tmp/pictures.yaml" $real --stages 1
    said=$(start=; job_hash "$tmp/job")
    if [ "$said" = "$want" ]; then pass; else fault "pictures, $type, call by call: $said, not $want"; fi
    with="$root/build/double/$type/own.obj $with -lstdc++"
    made "pictures, own kernels" "$tmp/pictures.yaml" $real --stages 1
    own=$(start=; job_hash "$tmp/job")
    said=$(one 1)
    if [ ${#own} = 64 ] && [ "$said" = "$own" ]; then pass; else fault "pictures, own kernels, $type: $said, not $own"; fi
done
run=$at_home cwd= interpreter=
use_double f32

# ---- the kernels and library calls of GPUs themselves --------------------------------------------------------------------
# A table of parameters is an argument of a kernel; a graph keeps it as it was.  Means of an evaluation are those on paper.
write_parts
few=
[ -n "$SLOW" ] || few="--set train.batch.global=4"
for type in f32 bf16; do
    use_double $type
    with="$root/build/double/$type/own.obj $with -lstdc++"
    made "own kernels, $type" $model -D L=1 $few --set train.precision.compute=$type --stages 1 --schedule 1f1b ||
        continue
    start="env DOUBLE_SEED=1"
    want=$(job_hash "$tmp/job" --steps 2)
    arguments="--steps 2"
    for seed in $seeds; do
        said=$(one "$seed")
        if [ ${#want} = 64 ] && [ "$said" = "$want" ] && [ "$(graphs "$tmp/job.log")" = "2 " ]; then pass
        else fault "own kernels, $type, seed $seed: $said, not $want"; fi
    done
    arguments=
    refuse "a fault in a graph, $type" 1 "stage0: ending the step: .*(cudaErrorIllegalAddress); DPGEN_SYNC=1 names the call" \
        env DPGEN_GRAPH=1 DOUBLE_FAULT=cublasLtMatmul timeout 60 "$tmp/job/job" $run
    parts "1 11 0.75" $gpus --replicas 2 --set train.precision.compute=$type
done

# ---- several processes over NCCL -------------------------------------------------------------------------------------------
number=0
ranks() {       # N SEED SETTING...: the job in so many processes; the hash that the first prints, or what went wrong
    n=$1 seed=$2
    shift 2
    number=$((number + 1))
    for i in $(seq $((n - 1)) -1 0); do
        (cd "$tmp" && exec env TMPDIR="$tmp" PMI_SIZE="$n" PMI_RANK="$i" MPI_LOCALRANKID="$i" PMI_JOBID="$$.$number" \
            DOUBLE_DEVICES=1 DOUBLE_FIRST="$i" DPGEN_TIMEOUT=20 DOUBLE_SEED="$seed" DOUBLE_PAUSE=500 DOUBLE_REPORT=1 \
            DPGEN_GRAPH=1 "$@" timeout -s KILL 60 job/job $run $arguments) >"$tmp/out.$i" 2>"$tmp/err.$i" &
    done
    wait
    sed -n 's/^sha256 //p' "$tmp/out.0"
    grep -h -v '^double:' "$tmp"/err.* | head -n 1
}
over_nccl() {   # WHAT STAGES OPTION...
    what=$1 stages=$2
    shift 2
    made "$what" "$@" --set plan.transport=nccl || return
    for seed in $seeds; do
        said=$(ranks "$stages" "$seed")
        if [ ${#want} = 64 ] && [ "$said" = "$want" ]; then pass; else fault "$what, seed $seed: $said, not $want"; fi
        for i in $(seq 0 $((stages - 1))); do
            [ "$(graphs "$tmp/err.$i")" = "$steps " ] || fault "$what, stage $i: launched $(graphs "$tmp/err.$i")graphs"
        done
    done
}
use_double f32 nccl
want=$(interpret $model)
over_nccl "2 stages" 2 $model --stages 2 --schedule 1f1b
over_nccl "3 stages, offload" 3 $model --stages 3 --schedule gpipe --offload "\"['h.*']\""
over_nccl "4 stages, some with norms alone to tell" 4 $model --stages 4 --schedule 1f1b
grep -q '^static const char talk' "$tmp/job/launch.c" || fault "4 stages have no such pairs"
over_nccl "a V" 2 $model --stages 2 --map 0,1,1,0 --schedule gpipe --recompute full
[ -z "$SLOW" ] || over_nccl "interleaved" 2 $model --stages 2 --map 0,1,0,1 --schedule gpipe
model="$models/tiny-gpt.yaml --set train.batch.global=8 --set train.batch.micro=1 --set train.batch.groups=8"
model="$model --set train.steps=$steps"
want=$(interpret $model)
over_nccl "2 replicas of 2 stages" 4 $model --replicas 2 --stages 2 --schedule 1f1b
over_nccl "4 replicas with parts" 4 $model --replicas 4 --stages 1 --set train.shard=optimizer --schedule 1f1b
# kernels for GPUs count the losses of a replica's micro-batches on the host as they are queued, in steps and in evaluations
at_home=$run
with="$root/build/double/f32/own.obj $with -lstdc++"
if made "replicas, evaluations" "$tmp/eval.yaml" ${model#* } -D L=1 $few --set train.batch.groups=2 --replicas 2 \
    --stages 1 --schedule 1f1b --set plan.transport=nccl; then
    for graph in 0 1; do
        rm -f "$tmp/log.$graph"
        run="$at_home --eval-data $data --log $tmp/log.$graph"
        said=$(ranks 2 1 DPGEN_GRAPH=$graph)
        [ ${#said} = 64 ] || fault "replicas, evaluations, DPGEN_GRAPH=$graph: $said"
    done
    same_losses "replicas"
fi
run=$at_home

use_double f32 nccl

# ---- what is no graph: one line, and the same bits ---------------------------------------------------------------------------
says() {        # WHAT TEXT HASH COMMAND...: HASH empty: of no concern
    what=$1 text=$2 hash=$3
    shift 3
    : >"$tmp/job.log"
    said=$("$@")
    n=$(cat "$tmp/job.log" "$tmp"/err.* 2>/dev/null |
        grep -c "stage 0: a step is no graph: $text; calls go to the GPU one by one$")
    if [ "${hash:-$said}" = "$(echo "$said" | head -n 1)" ] && [ "$n" = 1 ]; then pass
    else fault "$what: said $n times; $said, not $hash"; fi
}
rm -f "$tmp"/err.*
many="$models/tiny-gpt.yaml --set train.batch.global=2 --set train.batch.micro=1 --set train.steps=1"
if made "17 stages" $many --stages 17 --schedule gpipe --planner pipedream --set plan.transport=nccl \
    --set devices.0.count=17; then
    want=$(interpret $many)
    says "17 stages" "a GPU has no queues for so many messages, and some go over sockets" "$want" ranks 17 1
fi
model="$models/tiny-gpt.yaml --set train.batch.global=8 --set train.steps=$steps"
if made "two settings" $model --stages 2 --schedule 1f1b --set plan.transport=nccl; then
    (cd "$tmp" && PMI_SIZE=2 PMI_RANK=1 MPI_LOCALRANKID=1 PMI_JOBID=$$.two DOUBLE_DEVICES=2 DPGEN_TIMEOUT=20 DPGEN_GRAPH=1 \
        timeout -s KILL 60 job/job $run) >"$tmp/out.1" 2>"$tmp/err.1" &
    (cd "$tmp" && PMI_SIZE=2 PMI_RANK=0 MPI_LOCALRANKID=0 PMI_JOBID=$$.two DOUBLE_DEVICES=2 DPGEN_TIMEOUT=20 \
        timeout -s KILL 60 job/job $run) >"$tmp/out.0" 2>"$tmp/err.0"
    status=$?
    wait
    if [ $status = 2 ] && grep -q "stage 1 has another DPGEN_GRAPH than stage 0; start" "$tmp/err.1"; then pass
    else fault "two settings: status $status; $(cat "$tmp"/err.*)"; fi
fi
rm -f "$tmp"/err.*
use_double f32
want=$(interpret $model)
made "no graph" $model --stages 1 --schedule 1f1b
says "a wait for each call" "DPGEN_SYNC waits for each call" "$want" one 1 DPGEN_SYNC=1 DOUBLE_OPEN=1
arguments="--trace $tmp/trace.json"
says "a trace" "--trace stamps each action" "$want" one 1
arguments="--selftest --steps 1"
says "a selftest" "--selftest, DPGEN_NVTX or a profiler looks at each call" "" one 1 DOUBLE_OPEN=1
arguments=
made "no graph" $model --stages 2 --schedule 1f1b
says "two stages in a process" "several stages run in one process, and a graph is of one" "$want" one 1

# ---- a wait that is missing ------------------------------------------------------------------------------------------------
# It leaves a stream outside of the capture, or one that nobody joins, and the job ends before its first step; or other bits.
if made "a wait that is missing" $model --stages 1 --schedule gpipe --offload "\"['*']\""; then
    waits=$(DOUBLE_REPORT=1 DPGEN_GRAPH=0 "$tmp/job/job" $run 2>&1 | grep -c '^double: wait 0:')
    refuse "without the first wait of a copy" 1 "dependency.*, recording a step; without DPGEN_GRAPH calls go to the GPU" \
        env DPGEN_GRAPH=1 DOUBLE_DROP=1:0 timeout 60 "$tmp/job/job" $run
    refuse "without the last wait" 1 "fork.*, recording a step; without DPGEN_GRAPH calls go to the GPU" \
        env DPGEN_GRAPH=1 DOUBLE_DROP=0:$((waits / steps - 1)) timeout 60 "$tmp/job/job" $run
    for wait in 1 2 141 144; do
        said=$(one 1 DOUBLE_DROP=0:$wait)
        if [ ${#said} = 64 ] && [ "$said" != "$want" ]; then pass; else fault "nobody misses wait 0:$wait: $said"; fi
    done
fi
finish
