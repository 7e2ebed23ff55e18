#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Replicas over the double of NCCL, a process a stage: the first call on a communicator keeps its host until the peer calls, and
# hosts stop for a random time before each call.  No job hangs, and each has the bits of the graph interpreter; two of the four
# shapes deal optimiser states out.
# SLOW=1: a thousand jobs instead of twenty; with PART=1 .. 4 those of one shape.
. "$(dirname "$0")/lib.sh"
. tests/cuda.sh
need dpgen build/emitted build/interp
have_cuda nccl.h || { skip "no headers of CUDA and NCCL: $cuda_remedy" 20; finish; }
need_double
kind=$flags with="$root/build/double/f32/nccl.obj $root/build/double/f32.a -lpthread -lm"
eight_gpus >"$tmp/gpus"
model="$models/tiny-gpt.yaml --set train.batch.global=8 --set train.batch.micro=1 --set train.batch.groups=8"
model="$model --set train.steps=2"
want=$(build/interp --data "$data" $model 2>"$tmp/interp.log" | sed -n 's/^sha256 //p')
if [ ${#want} = 64 ]; then pass; else fault "no hash: $(tail -n 1 "$tmp/interp.log")"; finish; fi
unset SLURM_STEP_NUM_TASKS OMPI_COMM_WORLD_SIZE DPGEN_RENDEZVOUS
number=0
# ranks N SEED: the job in so many processes; the hash that the first prints, or what went wrong
ranks() {
    number=$((number + 1))
    for i in $(seq $(($1 - 1)) -1 0); do
        (cd "$tmp" && exec env TMPDIR="$tmp" PMI_SIZE="$1" PMI_RANK="$i" MPI_LOCALRANKID="$i" PMI_JOBID="$$.$number" \
            DOUBLE_DEVICES=1 DOUBLE_FIRST="$i" DPGEN_TIMEOUT=20 DOUBLE_SEED="$2" DOUBLE_PAUSE=1000 DOUBLE_OPEN=1 \
            timeout -s KILL 30 job/job $run) >"$tmp/out.$i" 2>"$tmp/err.$i" &
    done
    wait
    sed -n 's/^sha256 //p' "$tmp/out.0"
    # of a rank that says why, before those that say that it has ended
    cat "$tmp"/err.* | awk '!/has ended before this one/ { print; why = 1; exit } { last = $0 }
        END { if (!why && NR) print last }'
}
times=5
[ -z "$SLOW" ] || times=250
part=0
for shape in "2 2 none" "4 2 optimizer" "8 1 optimizer" "2 4 none"; do
    part=$((part + 1))
    [ "${PART:-$part}" = $part ] || continue
    set -- $shape
    rm -rf "$tmp/job"
    said=$(generate "$tmp/job" $model --replicas "$1" --stages "$2" --set train.shard="$3" --schedule 1f1b \
        --set plan.transport=nccl --devices "$tmp/gpus" && compile "$tmp/job")
    [ -z "$said" ] || { fault "$1 x $2, $3: $said"; continue; }
    for seed in $(seq "$times"); do
        said=$(ranks $(($1 * $2)) "$seed")
        if [ "$said" = "$want" ]; then pass; else fault "$1 x $2, $3, seed $seed: ${said:-it hangs}"; fi
        case $said in "$want") ;; *) break ;; esac
    done
done

# Messages of a pair that begin behind each other on both sides are one kernel: in every step as many fewer as the source says.
rm -rf "$tmp/job"
said=$(generate "$tmp/job" $model --replicas 2 --stages 2 --schedule 1f1b --set plan.transport=nccl --devices "$tmp/gpus" &&
    compile "$tmp/job")
said=$said$(DOUBLE_REPORT=1 ranks 4 1 | head -n 1)
for i in 0 1 2 3; do
    fewer=$(awk 'match($0, /messages_together\(st, [0-9]+/) { left = substr($0, RSTART + 22, RLENGTH - 22) + 0
            split("", seen) }
        match($0, /(send|recv)_begin\(/) && left-- > 0 { way = substr($0, RSTART, 4)
            match($0, /peer \*\/ [0-9]+/)
            way = way substr($0, RSTART, RLENGTH); fewer += way in seen; seen[way] }
        END { print 2 * fewer }' "$tmp/job/stage$i.c")
    counted=$(awk '/^double: NCCL: / { print $3 - $6 }' "$tmp/err.$i")
    if [ "$fewer" -gt 20 ] && [ "$counted" = "$fewer" ]; then pass
    else fault "stage $i: $counted, not $fewer: $said"; fi
done
rm -f "$tmp"/err.*
sed -i 's/messages_together(st, /&1/' "$tmp/job/stage0.c"
if ! ./dpgen-verify --edited "$tmp/job" >"$tmp/said" 2>&1 && grep -q "more messages are to begin before this" "$tmp/said"
then pass; else fault "a run that is longer: $(tail -n 1 "$tmp/said")"; fi

# A fault of the network in the middle of a step, behind so many messages: the checkpoint of the step before is as it was, and
# the job goes on from it.
contents() { (cd "$tmp/saved/step-000001" && sha256sum * | sha256sum); }
at_home=$run
for shard in none optimizer; do
    rm -rf "$tmp/job" "$tmp/saved"
    said=$(generate "$tmp/job" $model --replicas 2 --stages 1 --set train.shard=$shard --schedule 1f1b \
        --set plan.transport=nccl --devices "$tmp/gpus" && compile "$tmp/job")
    run="--quiet --hash --data $data --checkpoint saved --steps 1"
    ranks 2 1 >"$tmp/first"
    before=$(contents) run="--quiet --hash --data $data --checkpoint saved --resume"
    said="$said$(DOUBLE_COMM=breaks DOUBLE_MESSAGES=20 ranks 2 1)"
    if cat "$tmp"/err.* | grep -q "messages from stage .*: remote error"; then pass         # by whoever meets it first
    else fault "$shard, a fault in a step: $said; $(cat "$tmp/first")"; fi
    if [ -s "$tmp/saved/step-000001/COMMIT" ] && [ "$(contents)" = "$before" ]; then pass
    else fault "$shard, a fault in a step: the checkpoint is another one"; fi
    said=$(ranks 2 1)
    if [ "$said" = "$want" ]; then pass; else fault "$shard, after a fault: $said"; fi
done
run=$at_home

# Settings from outside with which stages wait for each other, or receives leave products no multiprocessor: one process has one
# of them, all end at once with status 6, and one line says which.
rm -rf "$tmp/job"
said=$(generate "$tmp/job" $model --replicas 2 --stages 1 --schedule 1f1b --set plan.transport=nccl --devices "$tmp/gpus" &&
    compile "$tmp/job")
[ -z "$said" ] || fault "two replicas: $said"
# with SETTING [SETTING]: of process 1, and of both; statuses of both, and how many lines say so
with_setting() {
    number=$((number + 1))
    for i in 1 0; do
        (cd "$tmp" && env TMPDIR="$tmp" PMI_SIZE=2 PMI_RANK=$i MPI_LOCALRANKID=$i PMI_JOBID="$$.$number" DOUBLE_DEVICES=1 \
            DOUBLE_FIRST=$i DPGEN_TIMEOUT=20 DOUBLE_OPEN=1 $2 $([ $i = 0 ] || echo "$1") \
            timeout -s KILL 30 job/job $run >"$tmp/out.$i" 2>"$tmp/err.$i"; echo $? >"$tmp/status.$i") &
    done
    wait
    cat "$tmp/err.0" "$tmp/err.1" >"$tmp/both"
    echo "$(cat "$tmp/status.0") $(cat "$tmp/status.1") $(grep -c "^train: stage [01] has $1, .*; unset it$" "$tmp/both")"
}
for setting in CUDA_LAUNCH_BLOCKING=1 CUDA_DEVICE_MAX_CONNECTIONS=1 NCCL_LAUNCH_ORDER_IMPLICIT=1 NCCL_COMM_BLOCKING=0 \
    NCCL_MIN_CTAS=8 NCCL_MAX_CTAS=16 NCCL_MIN_NCHANNELS=8 NCCL_MIN_P2P_NCHANNELS=8; do
    said=$(with_setting $setting)
    if [ "$said" = "6 6 1" ]; then pass; else fault "$setting: $said: $(cat "$tmp"/err.* | head -n 1)"; fi
done
said=$(with_setting CUDA_LAUNCH_BLOCKING=1 CUDA_LAUNCH_BLOCKING=1)        # where it was not refused, they waited for good
if [ "$said" = "6 6 1" ]; then pass; else fault "both launch and wait: $said"; fi
said=$(with_setting NCCL_GRAPH_MIXING_SUPPORT=1 DPGEN_GRAPH=1)
if [ "$said" = "6 6 1" ]; then pass; else fault "graphs beside other calls: $said"; fi
said=$(with_setting NCCL_MAX_CTAS=2 NCCL_BUFFSIZE=1048576)
if [ "$said" = "0 0 0" ] && [ "$(sed -n 's/^sha256 //p' "$tmp/out.0")" = "$want" ]; then pass
else fault "settings that change neither: $said"; fi

# A plan leaves room for communicators, 40 MiB for each of two directions: with so little memory that something has to be made
# again, a job has all it needs.  Where another program has taken some, numbers say so; where no plan leaves any, status 4.
small="$models/tiny-gpt.yaml --set train.batch.global=8 --set train.steps=2 --stages 2 --cuts 17 --schedule gpipe"
memory=$((82 * 1024 + 600))
wanted=$(build/interp --data "$data" ${small%% --stages*} 2>"$tmp/interp.log" | sed -n 's/^sha256 //p')
rm -rf "$tmp/job"
said=$(generate "$tmp/job" $small --recompute auto --set plan.transport=nccl --devices "$tmp/gpus" \
    --set devices.0.memory=${memory}KiB && compile "$tmp/job")
[ -z "$said" ] || fault "little memory: $said"
said=$(DOUBLE_MEMORY=$((memory * 1024 + 1)) ranks 2 1)
if [ ${#wanted} = 64 ] && [ "$said" = "$wanted" ]; then pass; else fault "little memory: $said, not $wanted"; fi
less=$((memory * 1024 - 400000))
said=$(DOUBLE_MEMORY=$less ranks 2 1)
case $said in
    *"opening a communicator: unhandled cuda error; "[0-9]*" of $less bytes of its GPU are free, and NCCL takes"*) pass ;;
    *) fault "too little memory for communicators: $said" ;;
esac
refuse "no memory for communicators" 4 "messages of stage 1 take 80.00 MiB of its device beside that (transport nccl)" \
    ./dpgen plan $small --estimate --set plan.transport=nccl --devices "$tmp/gpus" --set devices.0.memory=60MiB
if grep -q "tried and fits: --limit 8[0-9]*KiB" "$tmp/said"; then pass; else fault "no limit: $(tail -n 1 "$tmp/said")"; fi

# More stages than the GPU of stage 0 has queues for two directions each: norms and factors of clipping go over sockets.
model="$models/tiny-gpt.yaml --set train.batch.global=4 --set train.batch.micro=1 --set train.steps=2"
want=$(build/interp --data "$data" $model 2>"$tmp/interp.log" | sed -n 's/^sha256 //p')
sed 's/count: 8/count: 17/' "$tmp/gpus" >"$tmp/many"
rm -rf "$tmp/job"
said=$(generate "$tmp/job" $model --stages 17 --schedule gpipe --planner pipedream --set plan.transport=nccl --devices \
    "$tmp/many" && compile "$tmp/job")
if [ -z "$said" ]; then pass; else fault "17 stages: $said"; fi
said=$(ranks 17 1)
if [ ${#want} = 64 ] && [ "$said" = "$want" ]; then pass; else fault "17 stages: $said, not $want"; fi
finish
