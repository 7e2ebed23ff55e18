#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Schedules whose steps overlap, end to end.  The graph interpreter computes each rule of weight versions from its definition,
# one step after the other; jobs of 1 to 4 stages must give its bits: 2bw those of one stage under any cuts, pipedream and
# vertical those of their cuts; 1f1b* has the bits of 1f1b.  Again with gradient groups, recomputation, clipping, in bf16,
# between processes, with evaluations, and stopped at several places.  A checkpoint of other versions is refused.  SLOW=1: all
# stage counts of all.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a build/interp build/interp_bf16 build/compare

# tiny-gpt of one block, without its tie, which such a schedule refuses on two stages
sed 's/, tie: wte//; s/L: 3/L: 1/' "$models/tiny-gpt.yaml" >"$tmp/gpt.yaml"
model="$tmp/gpt.yaml"
each="--set train.batch.micro=8 --set train.clip_norm=0"            # a step is one micro-batch
cuts1= cuts2=8 cuts3=5,10 cuts4=3,6,11
few() { if [ -n "$SLOW" ]; then cat; else grep -E "$1"; fi; }
interpret() { $interp "$model" "$@" 2>"$tmp/interp.log" | sed -n 's/^sha256 //p'; }
interp="build/interp --data $data"

# ---- on paper ---------------------------------------------------------------------------------------------------------
# The losses w*w/2 of the versions that are read.  2bw: 1 1 3/4 1/2 5/16; vertical with 3 stages: 1 1 1 3/4 1/2 1/4 1/16.
use_portable
$cc -std=c11 -O1 -o "$tmp/npy" tests/npy.c || fault "tests/npy.c"
(cd "$tmp" && ./npy one.npy f4 1 1 8 1 && ./npy zero.npy f4 0 0 8 1)
event=step
losses() {
    generate "$tmp/s" "$models/scalar.yaml" "$@" && compile "$tmp/s" && (cd "$tmp" && timeout 60 s/job --quiet \
        --no-checkpoint --log "$tmp/s.log.json") >/dev/null 2>&1
    sed -n "s/.*\"event\":\"$event\".*\"loss\":\([^,}]*\)[,}].*/\1/p" "$tmp/s.log.json" | head -n "$count" | tr '\n' ' '
    rm -f "$tmp/s.log.json"
}
paper() {       # WHAT LOSSES OPTION...
    what=$1 want=$2 count=$(echo "$2" | wc -w)
    shift 2
    said=$(losses "$@")
    if [ "$said" = "$want " ]; then pass; else fault "$what: losses $said, not $want"; fi
}
paper "2bw, 3 stages" "0.5 0.5 0.28125 0.125 0.048828125" --schedule 2bw --stages 3
paper "vertical, 3 stages" "0.5 0.5 0.5 0.28125 0.125 0.03125 0.001953125" --schedule vertical --stages 3 \
    --set train.batch.micro=4
# evaluations drain the pipeline and read the newest: w = 1/2 after 2 steps, 3/16 after 4
event=eval
paper "2bw, evaluations" "0.125 0.017578125" --schedule 2bw --stages 2

# ---- 2bw: one hash ------------------------------------------------------------------------------------------------------
stages="1 3"
[ -z "$SLOW" ] || stages="1 2 3 4"
two() {         # NAME OPTION...: a line for each stage count
    name=$1
    shift
    for n in $stages; do
        echo "$name$n $model --schedule 2bw --stages $n $*"
    done
}
agree() {       # WHAT OPTION...
    what=$1
    shift
    want=$(interpret --set plan.schedule=2bw "$@")
    if [ -n "$want" ]; then pass; else fault "$what: the interpreter gives no hash: $(tail -n 1 "$tmp/interp.log")"; fi
    one_hash "$what" "$want"
}
keep=yes
two plain | plans
keep=
agree "2bw"
reference=$hash
if [ "$(interpret --set plan.schedule=1f1b)" != "$reference" ]; then pass; else fault "2bw has the bits of 1f1b"; fi
two groups --set train.batch.micro=1 --set train.batch.groups=4 --recompute "'[h.*.ln_*, wpe]'" | few '^groups3 ' | plans
agree "2bw, groups" --set train.batch.micro=1 --set train.batch.groups=4
# Long enough that the stages meet, which they do once in a hundred steps of this size
long=120
[ -z "$SLOW" ] || long=230
arguments="--steps $long" interp="$interp --steps $long" stages=${SLOW:+"1 2 3 "}4
two long --set train.batch.global=16 --set train.clip_norm=0 --recompute full | plans
agree "2bw, $long steps, no clipping, recomputed" --set train.batch.global=16 --set train.clip_norm=0
arguments=
use_bf16
interp="build/interp_bf16 --data $data"
two bf16 --set train.precision.compute=bf16 | plans
agree "2bw, bf16" --set train.precision.compute=bf16
interp="build/interp --data $data"

# ---- the other rules: one hash for each set of cuts ----------------------------------------------------------------------
# rule NAME SCHEDULE STAGES OPTION...
rule() {
    name=$1 schedule=$2 n=$3
    shift 3
    eval "cuts=\$cuts$n"
    echo "$name$n $model --schedule $schedule --stages $n ${cuts:+--cuts $cuts} $*" | plans
    one_hash "$name: $schedule, $n stages" "$(interpret --set plan.schedule=$schedule --set plan.stages=$n \
        ${cuts:+--set "plan.cuts=[$cuts]"} "$@")"
}
use_portable
arguments="--steps 30" interp="build/interp --steps 30 --data $data"
keep="pipedream3 spectrain4 several_pipedream3 several_xpipe4"
for schedule in pipedream vertical spectrain spectrain-once; do
    for n in 1 2 3 4; do
        case $SLOW$schedule$n in pipedream[124] | vertical[123] | spectrain[123] | *-once[134]) continue ;; esac
        rule $schedule $schedule $n $each
    done
done
# several micro-batches an update: a step then has micro-batches of two versions
for case in pipedream:3:2 pipedream:4:4 vertical:4:4 pipedream:2:1 xpipe:4:4 xpipe:3:2 xpipe:3:8 xpipe:2:1 xpipe:1:2 \
    timeprest:3:2 timeprest:3:8 timeprest:4:4 timeprest:2:1 timeprest:1:2; do
    case $SLOW$case in vertical* | pipedream:[24]* | xpipe:[123]* | timeprest:[124]* | *:8) continue ;; esac
    n=${case#*:}
    rule several_${case%%:*} ${case%%:*} ${n%:*} --set train.clip_norm=0 --set train.batch.micro=${case##*:}
done
arguments= interp="build/interp --data $data" keep=
# one stage is the synchronous job; a rate of 0 moves nothing
still="$each --set train.optimizer.lr=0 --set train.optimizer.weight_decay=0"
for schedule in ${SLOW:+spectrain xpipe timeprest}; do
    echo "single $model --schedule $schedule --stages 1 $each" | plans
    one_hash "$schedule, 1 stage" "$(interpret --set plan.schedule=1f1b $each)"
    echo "still $model --schedule $schedule --stages 3 --cuts $cuts3 $still" | plans
    one_hash "$schedule, a rate of 0" "$(interpret --set plan.schedule=1f1b $still --steps 1)"
done
use_bf16
bf16="$each --set train.precision.compute=bf16"
echo "bf16 $model --schedule pipedream --stages 3 --cuts $cuts3 $bf16 --recompute full" | plans
interp="build/interp_bf16 --data $data"
one_hash "pipedream, bf16" "$(interpret --set plan.schedule=pipedream --set plan.stages=3 --set "plan.cuts=[$cuts3]" $bf16)"
interp="build/interp --data $data"
use_portable

# ---- pb, pipemare: an update that knows how late its gradients are ----------------------------------------------------------
# nag has a kernel of its own too; its gradients are those of pipedream
ahead="$each --set train.optimizer.type=nadamw --set train.optimizer.betas=[0.99,0.999]"
arguments="--steps 30" interp="build/interp --steps 30 --data $data"
for n in 1 2 3 4; do
    case $SLOW$n in [124]) continue ;; esac
    rule nag nag $n $ahead
    [ $n != 1 ] || [ "$hash" = "$(interpret --set plan.schedule=1f1b $ahead)" ] || fault "nag, 1 stage: $hash"
done
gpt=$model model="$tmp/sgd.yaml"
sed 's/optimizer: .*/optimizer: {type: sgd, lr: 0.02, momentum: 0.9, weight_decay: 0.1, decay_only: matrices}/' "$gpt" >"$model"
arguments="--steps 30" interp="build/interp --steps 30 --data $data" keep="pb3 pipemare3"
synchronous=$(interpret --set plan.schedule=1f1b $each)
first=$(interpret --set plan.schedule=1f1b $each --set train.optimizer.lr=0 --steps 1)
for schedule in pb pipemare; do
    for n in 1 2 3 4; do
        case $SLOW$n in [24]) continue ;; esac
        rule $schedule $schedule $n $each
        [ $n != 1 ] || alone=$hash
    done
    if [ "$alone" = "$synchronous" ]; then pass; else fault "$schedule, 1 stage, is not the synchronous job: $alone"; fi
    rule still $schedule 3 $each --set train.optimizer.lr=0
    if [ "$hash" = "$first" ]; then pass; else fault "$schedule, a rate of 0: $hash, not $first"; fi
done
arguments= interp="build/interp --data $data" keep=
pb_want=$(interpret --set plan.schedule=pb --set plan.stages=3 --set "plan.cuts=[$cuts3]" $each)
pipemare_want=$(interpret --set plan.schedule=pipemare --set plan.stages=3 --set "plan.cuts=[$cuts3]" $each)
sgd=$model model=$gpt

# ---- 1f1b*: the bits of any synchronous schedule ----------------------------------------------------------------------------
echo "star $model --schedule '1f1b*' --stages 4" | plans
one_hash "1f1b*" "$(interpret --set plan.schedule=1f1b)"

# ---- stop and go on -----------------------------------------------------------------------------------------------------
# resume WHAT DIR STEPS DIR HASH: so many steps of one job, the rest of another
resume() {
    what=$1
    rm -rf "$tmp/ckpt"
    run="--quiet --hash --data $data --checkpoint $tmp/ckpt"
    said=$(job_hash "$2" --steps "$3") || { fault "$what, $3 steps: $said"; return; }
    [ "$said" != "$5" ] || fault "$what: $3 steps give the hash of all"
    said=$(job_hash "$4" --resume)
    if [ "$said" = "$5" ]; then pass; else fault "$what, after $3 steps: $said"; fi
}
resume "2bw" "$tmp/plain1" 1 "$tmp/plain3" "$reference"
resume "2bw" "$tmp/plain3" 7 "$tmp/plain1" "$reference"
want=$(interpret --set plan.schedule=pipedream --set plan.stages=3 --set "plan.cuts=[$cuts3]" $each)
for at in 1 2 3 11; do
    resume "pipedream" "$tmp/pipedream3" $at "$tmp/pipedream3" "$want"
done
want=$(interpret --set plan.schedule=pipedream --set plan.stages=3 --set "plan.cuts=[$cuts3]" --set train.clip_norm=0 \
    --set train.batch.micro=2)
for at in 5; do
    resume "pipedream, micro-batches of 2" "$tmp/several_pipedream3" $at "$tmp/several_pipedream3" "$want"
done
want=$(interpret --set plan.schedule=spectrain --set plan.stages=4 --set "plan.cuts=[$cuts4]" $each)
for at in 1 5; do
    resume "spectrain" "$tmp/spectrain4" $at "$tmp/spectrain4" "$want"
done
want=$(interpret --set plan.schedule=xpipe --set plan.stages=4 --set "plan.cuts=[$cuts4]" --set train.clip_norm=0 \
    --set train.batch.micro=4)
for at in 1 5; do
    resume "xpipe" "$tmp/several_xpipe4" $at "$tmp/several_xpipe4" "$want"
done
resume "pb" "$tmp/pb3" 5 "$tmp/pb3" "$pb_want"
resume "pipemare" "$tmp/pipemare3" 5 "$tmp/pipemare3" "$pipemare_want"
run="--no-checkpoint --quiet --hash --data $data"

# A checkpoint every 3 steps and evaluations in between drain the pipeline, and change nothing
generate "$tmp/often" "$model" --schedule 2bw --stages 3 --set checkpoint.every=3 >"$tmp/said" &&
    compile "$tmp/often" >"$tmp/said" || fault "often: $(cat "$tmp/said")"
rm -rf "$tmp/ckpt"
run="--quiet --hash --data $data --checkpoint $tmp/ckpt"
said=$(job_hash "$tmp/often")
if [ "$said" = "$reference" ]; then pass; else fault "a checkpoint every 3 steps: $said"; fi
# ... where steps take longer than files, and commits longer than steps: the next checkpoint is due meanwhile, and waits
cat >"$tmp/slow.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    usleep(4000);
    return real(clock, now);
}
int fsync(int file)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    struct stat is;
    if (fstat(file, &is) == 0 && S_ISDIR(is.st_mode))
        usleep(200000);
    return real(file);
}
END
if ${CC:-cc} -shared -fPIC -o "$tmp/slow.so" "$tmp/slow.c" -ldl 2>"$tmp/said"; then
    rm -rf "$tmp/ckpt"
    said=$(export LD_PRELOAD="$tmp/slow.so"; job_hash "$tmp/often")
    if [ "$said" = "$reference" ]; then pass; else fault "a checkpoint every 3 steps, and slow commits: $said"; fi
    for file in "$tmp"/ckpt/step-*/index.json; do       # what stands there is what the index says
        sed -n 's/.*"name":"\(stage[0-9]*.safetensors\)".*"sha256":"\([0-9a-f]*\)".*/\2  \1/p' "$file" >"$tmp/sums"
        expect "whole: ${file#"$tmp/ckpt/"}" sh -c 'cd "$1" && [ "$(wc -l <"$2")" = 3 ] && sha256sum --strict -c "$2"' sh \
            "${file%/*}" "$tmp/sums"
    done
else
    fault "slow.c: $(cat "$tmp/said")"
fi

# ---- refused --------------------------------------------------------------------------------------------------------------
# the checkpoint of 2bw holds one older version
refuse "pipedream from 2bw" 5 "weight versions of .2bw.*--weights" "$tmp/pipedream3/job" --data "$data" --checkpoint \
    "$tmp/ckpt" --resume --quiet
rm -rf "$tmp/ckpt"
expect "some steps of pipedream" "$tmp/pipedream3/job" --data "$data" --checkpoint "$tmp/ckpt" --steps 5 --quiet
generate "$tmp/other" "$model" --schedule pipedream --stages 3 --cuts 5,9 $each >"$tmp/said" &&
    compile "$tmp/other" >"$tmp/said" ||
    fault "other cuts: $(cat "$tmp/said")"
refuse "pipedream of other cuts" 5 "pipedream cuts 5,11.*pipedream cuts 5,10" "$tmp/other/job" --data "$data" \
    --checkpoint "$tmp/ckpt" --resume --quiet
expect "its weights" "$tmp/other/job" --data "$data" --no-checkpoint --weights "$tmp/ckpt/step-000005" --steps 2 --quiet
run="--no-checkpoint --quiet --hash --data $data"
# Every rule, with the optimizer of its own: a tie on two stages is refused in its line, and nothing is written.
ties=$(grep -n 'tie: wte' "$models/tiny-gpt.yaml" | cut -d : -f 1)
awk -F'"' '/^(SCHEDULE|LATER)/ { name = /^SCHEDULE/ ? $2 : "" } name && /\.async = true/ { rule[name] = "adamw" }
    name && match($0, /\.optimizer = "[a-z]*"/) { rule[name] = substr($0, RSTART + 14, RLENGTH - 15) }
    END { for (name in rule) print name, rule[name] }' gen/schedules.def | sort >"$tmp/rules"
expect "a rule is known" grep -q '^pipemare sgd$' "$tmp/rules"
while read -r rule type; do
    sed "s/optimizer: {.*}/optimizer: {type: $type, lr: 0.01}/" "$models/tiny-gpt.yaml" >"$tmp/tied.yaml"
    numbers=$each
    [ "$rule" != 2bw ] || numbers=
    refuse "$rule and a tie" 3 "tied.yaml:$ties:.*wte.weight is used by wte on stage 0 and by lm_head on stage 1" \
        ./dpgen "$tmp/tied.yaml" --schedule "$rule" --stages 2 $numbers --recompute none --estimate -o "$tmp/tied"
    if [ -e "$tmp/tied" ]; then fault "$rule and a tie: something is written"; else pass; fi
    expect "$rule, one stage" ./dpgen plan "$tmp/tied.yaml" --schedule "$rule" --stages 1 $numbers --recompute none --estimate
done <"$tmp/rules"
refuse "too few micro-batches" 3 "two weight versions serve 4 stages from 4" \
    ./dpgen plan "$model" --schedule 2bw --stages 4 --set train.batch.micro=4 --estimate
refuse "spectrain with several" 3 "make train.batch.micro and train.batch.global equal" \
    ./dpgen plan "$model" --schedule spectrain --stages 2 --set train.clip_norm=0 --estimate
refuse "spectrain in bf16" 3 "train.precision.compute: f32" \
    ./dpgen plan "$model" --schedule spectrain --stages 2 $each --set train.precision.compute=bf16 --estimate
refuse "pipemare in bf16" 3 "train.precision.compute: f32" \
    ./dpgen plan "$sgd" --schedule pipemare --stages 2 $each --set train.precision.compute=bf16 --estimate
# Forward and backward read two versions: a BatchNorm and its Relu stay two calls, or backward's mask is of other weights
cifar="examples/cifar.yaml -D S=8 -D W=4 --stages 2 --estimate --set train.clip_norm=0 --set train.batch.micro=2"
for schedule in spectrain xpipe timeprest; do
    expect "$schedule and BatchNorm" ./dpgen $cifar --set train.batch.global=$([ $schedule = spectrain ] && echo 2 || echo 4) \
        --schedule $schedule -o "$tmp/norms.$schedule"
    expect "$schedule: two calls" sh -c "! grep -q batchnorm_relu '$tmp/norms.$schedule/stage0.c'"
done
# A key counts cuts before calls are joined: one key, one place, whatever the calls
key_of() {
    ./dpgen plan $cifar --schedule pipedream --stages 3 --set devices='[{count: 3, memory: 1GiB}]' --json \
        --set train.batch.global=4 "$@" 2>/dev/null | sed -n 's/.*versions=\([^"]*\)".*/\1/p'
}
if [ "$(key_of --cuts 21,24)" = "pipedream cuts 29,32" ]; then pass; else
    fault "the key of joined calls: $(key_of --cuts 21,24)"
fi
if [ "$(key_of --fuse none --cuts 29,32)" = "pipedream cuts 29,32" ]; then pass; else
    fault "the key of calls apart: $(key_of --fuse none --cuts 29,32)"
fi
refuse "spectrain, recomputed" 4 "recompute none" \
    ./dpgen plan "$model" --schedule spectrain --stages 2 $each --recompute full --estimate
expect "spectrain-once, recomputed" ./dpgen plan "$model" --schedule spectrain-once --stages 2 $each --recompute full --estimate
refuse "pb and AdamW" 3 "train.optimizer.type: sgd" ./dpgen plan "$model" --schedule pb --stages 2 $each --estimate
sed 's/- {name: cpu.*/- {name: gpu, kind: cuda, count: 2, memory: 16GiB}/' "$sgd" >"$tmp/gpu.yaml"
expect "pb on GPUs" ./dpgen plan "$tmp/gpu.yaml" --schedule pb --stages 2 $each --estimate
refuse "pipemare and AdamW" 3 "train.optimizer.type: sgd" ./dpgen plan "$model" --schedule pipemare --stages 2 $each --estimate
refuse "pb and Nesterov's look ahead" 3 "delete train.optimizer.nesterov" \
    ./dpgen plan "$sgd" --schedule pb --stages 2 $each --set train.optimizer.nesterov=true --estimate
refuse "nag and AdamW" 3 "train.optimizer.type: nadamw" ./dpgen plan "$model" --schedule nag --stages 2 $each --estimate
refuse "pb in bf16" 3 "train.precision.compute: f32" \
    ./dpgen plan "$sgd" --schedule pb --stages 2 $each --set train.precision.compute=bf16 --estimate
refuse "pb, recomputed" 4 "recompute none" ./dpgen plan "$sgd" --schedule pb --stages 2 $each --recompute full --estimate
refuse "pipedream and the norm" 3 "train.clip_scope: parameter" \
    ./dpgen plan "$model" --schedule pipedream --stages 2 --set train.batch.micro=8 --estimate
expect "pipedream and a norm a parameter" ./dpgen plan "$model" --schedule pipedream --stages 2 \
    --set train.batch.micro=8 --set train.clip_scope=parameter --estimate
if ./dpgen plan "$model" --schedule auto --stages 2 --estimate 2>&1 | grep -q -e 2bw -e pipedream; then
    fault "auto takes a schedule that trains otherwise"
else pass; fi

# ---- two processes --------------------------------------------------------------------------------------------------------
if over_mpi 2 3; then
    echo "mpi $model --schedule 2bw --stages 2 --set plan.transport=mpi" | plans
    one_hash "2bw, mpi" "$reference"
    several="--set train.clip_norm=0 --set train.batch.micro=2"
    echo "mpi $model --schedule pipedream --stages 2 --cuts $cuts2 $several --set plan.transport=mpi" | plans
    one_hash "pipedream, micro-batches of 2, mpi" "$(interpret --set plan.schedule=pipedream --set plan.stages=2 \
        --set "plan.cuts=[$cuts2]" $several)"
    model=$sgd
    rule mpi pb 2 $each --set plan.transport=mpi
    model=$gpt
fi
# ---- cuts that wait for ever --------------------------------------------------------------------------
deep="examples/bytes-gpt.yaml --estimate --stages 8 --schedule pipedream --set train.batch.micro=16 --set devices.0.count=8 \
    --set train.clip_norm=0"
refuse "skips over stages" 4 "values that skip over stages make stage 0 wait for ever" ./dpgen plan $deep \
    --cuts 6,10,16,21,26,32,38
expect "a neighbour that waits for ever" ./dpgen explain $deep h.1.add_2
if grep -q "earlier: waits for ever, or later: +" "$tmp/said"; then pass; else fault "which neighbour waits is not said"; fi
finish
