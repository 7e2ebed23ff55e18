#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A process a stage, over the double of NCCL: how they find each other under what launchers say, each with a GPU of its own;
# strangers, old files, settings that are wrong, a stage that does not come, that dies, whose communicator fails: one line, its
# status, and nobody waits for good.
. "$(dirname "$0")/lib.sh"
. tests/cuda.sh
need dpgen build/emitted
have_cuda nccl.h || { skip "no headers of CUDA and NCCL: $cuda_remedy" 20; finish; }
need_double
kind=$flags with="$root/build/double/f32/nccl.obj $root/build/double/f32.a -lpthread -lm"
eight_gpus >"$tmp/gpus"
said=$(generate "$tmp/job" "$models/tiny-gpt.yaml" --stages 2 --set plan.transport=nccl --set train.steps=2 \
    --devices "$tmp/gpus" && compile "$tmp/job")
[ -z "$said" ] || { fault "no job: $said"; finish; }
$cc -D_GNU_SOURCE -std=c11 -Wall -Wextra -Werror -o "$tmp/silent" tests/silent.c || { fault "tests/silent.c"; finish; }
cd "$tmp" || exit 1
unset PMI_JOBID SLURM_JOB_ID SLURM_STEP_ID PMIX_NAMESPACE DPGEN_RENDEZVOUS DPGEN_TIMEOUT
mpich='PMI_SIZE=2 PMI_RANK=$i MPI_LOCALRANKID=$i'
pmi="$mpich PMI_JOBID=$$" guard='timeout -s KILL 60'

# both WHAT SETTING...: both stages; $i in a setting is the stage's number; $kill: stage 0 is killed
both() {
    what=$1
    shift
    for i in 1 0; do
        eval "exec env TMPDIR=. DOUBLE_DEVICES=8 DPGEN_TIMEOUT=20 $*" $guard job/job $run $arguments >"out.$i" 2>"err.$i" &
        [ $i = 0 ] || other=$!
    done
    first=$!
    [ -z "$kill" ] || { sleep 1; kill -KILL "$(pgrep -P $first)"; }
    wait $first 2>>err.0; status=$?
    wait $other 2>>err.1; status="$status $?"
}
meet() {
    both "$@"
    if [ "$status" = "0 0" ] && grep -q '^sha256 ' out.0; then pass
    else fault "$what: status $status: $(cat err.0 err.1 | head -n 2)"; fi
}
# fail STATUSES TEXT WHAT SETTING...: within ten seconds
fail() {
    want=$1 text=$2 since=$(date +%s)
    shift 2
    both "$@"
    if [ "$status" = "$want" ] && cat err.0 err.1 | grep -q "$text" && [ $(($(date +%s) - since)) -lt 10 ]; then pass
    else fault "$what: status $status, $(($(date +%s) - since)) s: $(cat err.0 err.1 | head -n 3)"; fi
}

guard=
meet "MPICH on one host" $mpich
guard='timeout -s KILL 60'              # so that parents differ
meet "MPICH on two" $mpich DPGEN_RENDEZVOUS=./here
meet "Slurm" SLURM_STEP_NUM_TASKS=2 'SLURM_PROCID=$i SLURM_LOCALID=$i' SLURM_JOB_ID=7 SLURM_STEP_ID=0
# Slurm's names are those of a helper on each host; then those of one process each, in which mpirun of PMI has no say
meet "Hydra, started by Slurm" $mpich SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_JOB_ID=7 'SLURM_STEP_ID=$i'
meet "Slurm with PMI-2" SLURM_STEP_NUM_TASKS=2 'SLURM_PROCID=$i SLURM_LOCALID=0' SLURM_JOB_ID=7 SLURM_STEP_ID=0 PMI_SIZE=2 \
    'PMI_RANK=$i' DOUBLE_DEVICES=1 'DOUBLE_FIRST=$i'
meet "PMI without a number on the host" PMI_SIZE=2 'PMI_RANK=$i' PMI_JOBID=8
meet "Open MPI, started by Slurm on the other host" OMPI_COMM_WORLD_SIZE=2 'OMPI_COMM_WORLD_RANK=$i' \
    'OMPI_COMM_WORLD_LOCAL_RANK=$i' PMIX_NAMESPACE=all SLURM_JOB_ID=7 'SLURM_STEP_ID=$i'
meet "each is shown a GPU of its own" $pmi DOUBLE_DEVICES=1 'DOUBLE_FIRST=$i'
meet "one GPU for both" $pmi DOUBLE_DEVICES=1 NCCL_MULTI_RANK_GPU_ENABLE=1 DOUBLE_NCCL=23003
arguments=--help
both "help" $pmi
arguments=
meet "a context on its own GPU alone" $pmi DOUBLE_REPORT=1
if [ "$(cat err.0 err.1 | grep -c 'double: GPU .*: most')" = 2 ]; then pass
else fault "contexts: $(grep -h 'double: GPU' err.0 err.1 | tr '\n' ' ')"; fi
port=$(($$ % 20000 + 20000))
meet "an address" $pmi "DPGEN_RENDEZVOUS=localhost:$port"
if [ -e /proc/net/if_inet6 ] && grep -q ' lo$' /proc/net/if_inet6; then
    meet "an address of IPv6" $pmi "'DPGEN_RENDEZVOUS=[::1]:$((port + 1))'"
else skip "no IPv6 here" 1; fi

# strangers
./silent connect here &
stranger=$!
meet "strangers that say nothing" $pmi DPGEN_RENDEZVOUS=./here
kill $stranger
./silent listen >port &
stranger=$!
while [ ! -s port ]; do sleep 0.1; done
echo "localhost 1" >here
meet "a file that was left behind" $pmi DPGEN_RENDEZVOUS=./here
refuse "somebody who does not answer" 1 "stage 1 was turned away, or not answered, at localhost" env PMI_SIZE=2 PMI_RANK=1 \
    MPI_LOCALRANKID=1 DOUBLE_DEVICES=8 DPGEN_TIMEOUT=2 DPGEN_RENDEZVOUS="localhost:$(cat port)" timeout 10 job/job $run
kill $stranger

# wrong settings; nobody
alone() {
    what=$1 status=$2 text=$3
    shift 3
    refuse "$what" "$status" "$text" env DOUBLE_DEVICES=8 PMI_SIZE=2 PMI_RANK=0 "$@" timeout 30 job/job $run
}
refuse "no launcher" 2 "this job has 2 stages and runs one in each process, but no launcher started 1" job/job $run
alone "three processes" 2 "this job has 2 stages and runs one in each process, but PMI started 3" PMI_SIZE=3
alone "a port that is none" 2 "DPGEN_RENDEZVOUS is here:0; it wants HOST:PORT" DPGEN_RENDEZVOUS=here:0
alone "no host" 2 "DPGEN_RENDEZVOUS is :1234; it wants HOST:PORT" DPGEN_RENDEZVOUS=:1234
alone "patience that is none" 2 "DPGEN_TIMEOUT is soon; it wants a number of seconds" DPGEN_TIMEOUT=soon
alone "no such directory" 1 "cannot write the meeting place none/here: No such file" DPGEN_RENDEZVOUS=none/here
alone "a stage that does not come" 1 "stage 1 of 2 did not come within 1 s" DPGEN_TIMEOUT=1
alone "the first does not come" 1 "stage 1 of this job did not find stage 0" PMI_RANK=1 MPI_LOCALRANKID=1 DPGEN_TIMEOUT=1

# a stage that cannot go on
fail "6 6" "stages 0 and 1 are on one GPU, and NCCL wants one for each" "two on one GPU" $pmi DOUBLE_DEVICES=1
fail "6 6" "are on one GPU" "one does not want it" $pmi DOUBLE_DEVICES=1 'NCCL_MULTI_RANK_GPU_ENABLE=$i' DOUBLE_NCCL=23003
fail "6 6" "are on one GPU" "NCCL is too old for it" $pmi DOUBLE_DEVICES=1 NCCL_MULTI_RANK_GPU_ENABLE=1 DOUBLE_NCCL=23002
fail "1 1" "opening a communicator: system error" "a communicator that fails" $pmi 'DOUBLE_COMM=$([ $i = 0 ] || echo fails)'
fail "1 1" "stages [01] and [01] run, and NCCL has not connected them within 1 s: .*NCCL_SOCKET_IFNAME" \
    "a network that joins nobody" $pmi DOUBLE_COMM=hangs DPGEN_TIMEOUT=1
fail "1 1" "messages from stage [01] to stage [01]: remote error: the other one has ended, or the network has a fault" \
    "a network with a fault" $pmi DOUBLE_COMM=breaks
kill=yes arguments="--steps 1000000"
fail "137 1" "the process of stage 0 has ended before this one" "a stage that is killed" $pmi
fail "137 1" "the process of stage 0 has ended before this one" "one that is killed at the start" $pmi DOUBLE_COMM=hangs
kill= arguments=
if [ -z "$(ls -A | grep -e '^\.dpgen' -e '^here')" ]; then pass
else fault "meeting places are left behind: $(ls -A | grep -e '^\.dpgen' -e '^here' | tr '\n' ' ')"; fi
finish
