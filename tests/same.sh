#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The same bits under any plan.  A tiny GPT with tied weights and dropout, 8 micro-batches, trained under 11
# plans, of 38 that SLOW=1 takes: 1 to 4 stages, gpipe and 1f1b, nothing, some, all recomputed, everything offloaded, much of
# it to a file while some is recomputed, operators apart that are one call elsewhere.  Each schedule is there with each stage
# count and with each policy.  All parameters must have one SHA-256, that of the graph interpreter, which knows no plan.
# Again with several chunks a device, with gradient groups, with sums in blocks, in bf16, with the kernels of oneDNN, between
# two processes, and after a stop at step 10 of 20 under another plan.  The others run 3 steps; with SLOW=1 all run 20.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a build/interp build/interp_bf16

model="$models/tiny-gpt.yaml --set train.batch.global=16"
some="'[h.*.ln_*, h.*.gelu, h.1.attention, h.2.dropout, wpe]'"

# plans_of STAGES OPTION...: a line for each schedule and recompute policy
plans_of() {
    count=$1
    shift
    for n in $count; do
        for schedule in gpipe 1f1b; do
            for what in none full "$some"; do
                case $what in none | full) label=$what ;; *) label=some ;; esac
                echo "$n.$schedule.$label $model --stages $n --schedule $schedule --recompute $what $*"
            done
            echo "$n.$schedule.away $model --stages $n --schedule $schedule --offload \"['*']\" $*"
            [ $((n % 2)) = 1 ] || echo "$n.$schedule.disk $model --stages $n --schedule $schedule --recompute $some \
                --offload '{to: disk, what: [h.*.attn.*, h.*.mlp.*, h.*.add*, h.2.attention, h.0.attention]}' \
                --set links.cpu-host.rate=8GB/s --set links.cpu-host.latency=1ns $*"
        done
        [ $((n % 2)) = 0 ] || echo "$n.gpipe.apart $model --stages $n --schedule gpipe --fuse none $*"
    done
}

# maps_of OPTION...: several chunks a device: in turn, as a V, neighbours, all on one, the middle on another
maps_of() {
    for map in "2 0,1,0,1" "2 0,1,1,0" "3 0,1,2,2,1,0" "3 0,1,2,0" "2 0,0,1,1" "1 0,0,0" "3 2,1,0,1" "4 0,1,2,3,0,1,2,3"; do
        for schedule in gpipe 1f1b; do
            case $schedule$map in
                1f1b*0,1,0,1 | gpipe*0,1,1,0 | 1f1b*2,1,0,1) what=$some ;;
                *1,2,2*) what=full ;;
                *) what=none ;;
            esac
            echo "map.$(echo "$map" | tr -d ' ,').$schedule $model --stages ${map% *} --map ${map#* } --schedule $schedule" \
                "--recompute $what $*"
        done
    done
}

# replicas_of GROUPS: the whole pipeline several times, each with its share of the groups
replicas_of() {
    for plan in "2 1" "2 2" "2 3" "4 1" "4 2" "2 2 --map 0,1,1,0"; do
        set -- "$1" $plan
        [ "$2" -le "$1" ] || continue
        for schedule in gpipe 1f1b; do
            case $schedule$3 in gpipe3) what=full ;; 1f1b2) what=$some ;; *) what=none ;; esac
            echo "replicas$2.$3${5:+v}.$schedule $model --replicas $2 --stages $3 $4 $5 --schedule $schedule" \
                "--recompute $what --set train.batch.groups=$1 --devices $tmp/ten"
        done
    done
}
cpus 10 >"$tmp/ten"

# Of the 38 those that have each pair of schedule with stages, and of schedule with policy; all with SLOW=1
pairs() {
    if [ -n "$SLOW" ]; then cat; return; fi
    grep -E -e '^(1.gpipe.none|1.1f1b.away|2.gpipe.away|2.1f1b.(some|disk)|3.gpipe.(some|apart)|3.1f1b.full) ' \
        -e '^(4.gpipe.(full|disk)|4.1f1b.none) '
}

# Two, of each schedule, for what differs by numbers only; all of them with SLOW=1
few() { if [ -n "$SLOW" ]; then cat; else grep -E '^(2.1f1b.some|4.gpipe.away) '; fi; }

# third N: lines N, N + 3, ..., so that schedules take turns and the other thirds are for other calls; all with SLOW=1
third() { if [ -n "$SLOW" ]; then cat; else awk -v n="$1" 'NR % 3 == n % 3'; fi; }

# steps N: of jobs and interpreter, without SLOW=1
steps() { [ -n "$SLOW" ] || arguments="--steps $1"; }
interp="build/interp --data $data"
# agree WHAT OPTION...: the plans of the result against each other and the interpreter
agree() {
    label=$1
    shift
    want=$($interp $model $arguments "$@" 2>"$tmp/interp.log" | sed -n 's/^sha256 //p')
    if [ -n "$want" ]; then pass; else fault "$label: the interpreter gives no hash: $(tail -n 1 "$tmp/interp.log")"; fi
    one_hash "$label" "$want"
}

# ---- 11 plans, or 38 -----------------------------------------------------------------------------------------------------
use_portable
keep="1.gpipe.none 2.1f1b.some 2.1f1b.disk 3.1f1b.full 4.gpipe.full"        # to be resumed
steps 3
plans_of "1 2 3 4" | pairs | plans
keep=
agree "f32"
reference=$hash

# ---- stop at step 10, go on under another plan -----------------------------------------------------------------------
# resume FROM TO: stages.schedule.recompute of the two halves; $whole: the hash of 20 steps
resume() {
    rm -rf "$tmp/ckpt"
    run="--quiet --hash --data $data --checkpoint $tmp/ckpt"
    said=$(job_hash "$tmp/$1" --steps 10) || { fault "$1, the first 10 steps: $said"; return; }
    [ "$said" != "$whole" ] || fault "$1: 10 steps give the hash of 20"
    said=$(job_hash "$tmp/$2" --resume)
    if [ "$said" = "$whole" ]; then pass; else fault "$1, then $2: $said"; fi
}
whole=$($interp $model 2>"$tmp/interp.log" | sed -n 's/^sha256 //p')
resume 1.gpipe.none 3.1f1b.full
resume 4.gpipe.full 2.1f1b.some
resume 3.1f1b.full 1.gpipe.none
resume 2.1f1b.some 2.1f1b.some
resume 4.gpipe.full 2.1f1b.disk
resume 2.1f1b.disk 1.gpipe.none
run="--no-checkpoint --quiet --hash --data $data"

# ---- other maps, other warm-up ----------------------------------------------------------------------------------------
maps_of | third 1 | plans
one_hash "maps" "$reference"
# twice the warm-up of 1f1b: more in flight, receives posted earlier
for n in ${SLOW:+2} 3 4; do
    case $n in 2) what="--recompute $some" ;; 3) what="--cuts 11,23 --offload \"['*']\"" ;; 4) what= ;; esac
    echo "warm.$n $model --stages $n --schedule 1f1b --set plan.warmup=B $what"
done | plans
one_hash "warm-up B" "$reference"

# ---- a mistake is seen: the hash is of what was computed -------------------------------------------------------------
kind="$kind -Wno-unused-parameter"
said=$(generate "$tmp/wrong" $model --stages 2 && sed -i 's/linear_backward_w(\(.*\), acc, /linear_backward_w(\1, 1, /' \
    "$tmp"/wrong/stage1.c && compile "$tmp/wrong" && job_hash "$tmp/wrong" $arguments)
if [ ${#said} = 64 ] && [ "$said" != "$reference" ]; then pass; else fault "a wrong chain goes unseen: $said"; fi

# ---- gradient groups, bf16 -----------------------------------------------------------------------------------------
seen=$reference
other() { case " $seen " in *" $hash "*) fault "$1: the hash of another key" ;; *) pass; seen="$seen $hash" ;; esac; }
for groups in 2 4; do
    { plans_of "1 2 3 4" --set train.batch.groups=$groups | few
      maps_of --set train.batch.groups=$groups | grep -e 1f1b | third 3
      replicas_of $groups | third $((groups - 1)); } | plans
    agree "$groups groups" --set train.batch.groups=$groups
    other "$groups groups"
done
# ---- sums in blocks: another key, refused to a checkpoint of the first one --------------------------------------------
keep="2.1f1b.some"
plans_of "1 2 3 4" --set train.blocks=8 | few | plans
agree "8 blocks" --set train.blocks=8
other "8 blocks"
refuse "a checkpoint of one block" 5 "sums in one block, this job adds in 8; set train.blocks back" \
    "$tmp/2.1f1b.some/job" --quiet --data "$data" --checkpoint "$tmp/ckpt" --resume
keep=
# heads WHAT OPTION...: two heads in chunks, whose products are others than those of the GPT
heads() {
    tiny=$model model=$models/heads.yaml what=$1
    shift
    { echo "heads.1 $model --stages 1 --schedule gpipe $*"
      echo "heads.2 $model --stages 2 --cuts 7 --schedule 1f1b --recompute full $*"; } | plans
    agree "$what" "$@"
    model=$tiny
}
heads "8 blocks, two heads" --set train.blocks=8
use_bf16
plans_of "1 2 3 4" --set train.precision.compute=bf16 | few | plans
interp="build/interp_bf16 --data $data"
agree "bf16" --set train.precision.compute=bf16
other "bf16"
plans_of "1 2 3 4" --set train.precision.compute=bf16 --set train.blocks=4 | few | plans
agree "bf16, 4 blocks" --set train.precision.compute=bf16 --set train.blocks=4
other "bf16, 4 blocks"
heads "bf16, 2 blocks, two heads" --set train.precision.compute=bf16 --set train.blocks=2

# ---- the same with replicas: a checkpoint is written by one of them and read by all -----------------------------------
use_portable
interp="build/interp --data $data"
arguments=
keep=yes
{ replicas_of 4 | grep -e '^replicas2.2.gpipe ' -e '^replicas4.1.1f1b '
  plans_of 3 --set train.batch.groups=4 | grep 1f1b.some; } | plans
agree "plans that are kept" --set train.batch.groups=4
keep=
whole=$hash
resume replicas2.2.gpipe replicas4.1.1f1b
resume replicas4.1.1f1b 3.1f1b.some
files=$(ls "$(ls -d "$tmp"/ckpt/step-* | head -n 1)" | tr '\n' ' ')
if [ "$files" = "COMMIT index.json stage0.safetensors " ]; then pass; else fault "a checkpoint of 4 replicas: $files"; fi
resume 3.1f1b.some replicas2.2.gpipe
run="--no-checkpoint --quiet --hash --data $data"
steps 3

# ---- two processes ---------------------------------------------------------------------------------------------------
# Ranks that wait take processors from those that have work, so steps are few
two_ranks() {
    over_mpi 2 10 || return
    plans_of 2 --set plan.transport=mpi | third 1 | plans
    agree "mpi"
    replicas_of 2 | grep '^replicas2.1.1f1b ' | sed 's/$/ --set plan.transport=mpi/' | plans
    agree "mpi, 2 replicas" --set train.batch.groups=2
    use_portable
    over_mpi 4 1 || return
    replicas_of 2 | grep '^replicas2.2v*.gpipe ' | sed 's/$/ --set plan.transport=mpi/' | plans
    one_hash "mpi, 2 replicas of 2 stages" "$hash"
    use_portable
}
steps 2
two_ranks
steps 3

# ---- oneDNN, one thread a stage: its own numbers ---------------------------------------------------------------------
# interpret TYPE: the interpreter with the same objects
interpret() {
    interp="$tmp/$1.interp --data $data"
    if $cc $kind -Igen -Ibuild -O1 -o "$tmp/$1.interp" tests/interp.c build/libgen.a $with -lyaml -ldl 2>"$tmp/interp.log"
    then pass; else fault "interp with oneDNN: $(grep -m 1 -e error -e undefined "$tmp/interp.log")"; fi
}
onednn="--set devices.0.kernels=onednn"
if have_onednn; then
    if use_onednn f32; then
        interpret f32
        plans_of "1 2 3 4" $onednn | few | plans
        agree "onednn" $onednn              # whose products of this size are fused chains too, so the hash may be the first one
        heads "onednn in f32, two heads" $onednn
    fi
    if ! have_onednn_bf16; then
        skip "oneDNN has no products in bf16 on this CPU" 16
    elif use_onednn bf16; then
        interpret bf16
        onednn="$onednn --set train.precision.compute=bf16"
        plans_of "1 2 3 4" $onednn | few | plans
        agree "onednn in bf16" $onednn
        other "onednn in bf16"
        heads "onednn in bf16, two heads" $onednn
    fi
else
    skip "there is no dnnl.h" 39
fi
finish
