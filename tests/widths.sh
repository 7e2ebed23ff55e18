#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Stages that several devices have a copy of, not all as many: one hash, that of one device with the same gradient groups.  A
# GPT with dropout, a tied head and clipping by the norm; losses, norms, evaluations, gradients and checkpoints have no trace of
# the widths.  What does not go is refused, with what would do.
#
# SLOW=1: all widths of up to three stages, both schedules.
. "$(dirname "$0")/lib.sh"
need dpgen dpgen-verify build/emitted build/librt.a
use_portable

with_eval "$models/tiny-gpt.yaml" >"$tmp/model.yaml"
cpus 16 >"$tmp/many"
model="$tmp/model.yaml --set train.batch.global=16 --set train.batch.micro=1 --set train.batch.groups=4 --devices $tmp/many"
arguments="--steps 4 --eval-data $root/README.md"
# wide NAME WIDTHS OPTION...: a line for `plans`
wide() { name=$1 widths=$2; shift 2; echo "$name.$widths --widths $widths --stages $(echo "$widths" | tr -dc , | wc -c | awk \
    '{ print $1 + 1 }') $*"; }

keep="one.1 1f1b.2,1 1f1b.1,4,2 gpipe.2,1,1"
{ echo "one.1 $model --stages 1 --schedule gpipe"
  wide 1f1b 2,1 $model --schedule 1f1b; wide gpipe 2,1,1 $model --schedule gpipe
  wide 1f1b 1,4,2 $model --schedule 1f1b --recompute full; wide team 1,2 $model --schedule 1f1b --offload "\"['*']\""
  [ -z "$SLOW" ] || for a in 1 2 4; do for b in 1 2 4; do for c in "" ,1 ,2 ,4; do for s in 1f1b gpipe; do
      wide slow.$s $a,$b$c $model --schedule $s
  done; done; done; done; } | plans
one_hash "widths"
whole=$hash
# lists that planners choose themselves
cpus 6 >"$tmp/six"
keep="$keep own.dapple own.spp own.pipedream:replicated"
for planner in dapple spp pipedream:replicated; do
    echo "own.$planner $model --devices $tmp/six --schedule 1f1b --set plan.stages=auto --widths auto --planner $planner"
done | plans
one_hash "widths of planners" "$whole"
[ "$(grep -l '"widths": \[' "$tmp"/own.*/plan.json | wc -l)" = 3 ] && pass ||
    fault "planners chose no widths: $(grep -h '"schedule"' "$tmp"/own.*/plan.json)"
# of one device of a team
{ for w in 1 2,1 1,2; do wide team $w $model --schedule 1f1b --set train.blocks=2 --set plan.tensor=$((2 - (${#w} < 2))); done
} | sed 's/^team.1 --widths 1/team.1/' | plans
one_hash "widths of teams"
[ "$hash" != "$whole" ] && pass || fault "blocks are in no key"

# ---- steps that overlap ---------------------------------------------------------------------------------------------------
sed 's/, tie: wte}/}/' "$tmp/model.yaml" >"$tmp/untied.yaml"
late="$tmp/untied.yaml ${model#* } --set train.clip_scope=parameter"
keep="$keep late.1 late.1,4,2"
{ echo "late.1 $late --stages 1 --schedule 2bw"; for w in 2,1 1,2 1,4,2; do wide late $w $late --schedule 2bw; done; } | plans
one_hash "2bw"
# pipedream on paper: stage 0 has the one weight, which is 1, and the mean of w*w/2; its copies have 2 micro-batches each of a
# step, or its device has 4 in turn.  So many are behind: in flight less one.
$cc -std=c11 -O1 -o "$tmp/npy" tests/npy.c || fault "tests/npy.c"
(cd "$tmp" && ./npy one.npy f4 1 1 8 1 && ./npy zero.npy f4 0 0 8 1) || fault "no data for one weight"
for way in "2,1 2 1" "1,2 4 3" "1,1,4 4 7"; do
    set -- $way
    want=$(awk -v n="$2" -v lag="$3" 'BEGIN {
        w[0] = 1
        for (t = 0; t < 7; t++) {
            for (j = loss = sum = 0; j < n; j++) {
                v = (t * n + j - lag) / n
                v = v < 0 ? 0 : int(v)
                loss += w[v] * w[v] / 2 / n
                sum += w[v] / n
            }
            w[t + 1] = w[t] - sum / 4
            printf "%.6g ", loss
        } }')
    stages=$(echo "$1" | tr , '\n' | wc -l)
    got=$(generate "$tmp/one" "$models/scalar.yaml" --schedule pipedream --widths "$1" --stages $stages --devices "$tmp/many" \
        --set train.batch.groups=$((stages > 2 ? 4 : 2)) --set data.eval.every=99 && compile "$tmp/one" && cd "$tmp" &&
        one/job --quiet --no-checkpoint --log "$tmp/one.jsonl" 2>&1 &&
        sed -n 's/.*"event":"step".*"loss":\([^,}]*\)[,}].*/\1/p' "$tmp/one.jsonl" | awk '{ printf "%.6g ", $1 }')
    rm -f "$tmp/one.jsonl"
    if [ "$got" = "$want" ]; then pass; else fault "pipedream, $1: $got, not $want"; fi
done

# ---- files know nothing of the widths -------------------------------------------------------------------------------------
job() { dir=$1; shift; "$tmp/$dir/job" --quiet --data "$data" --eval-data "$root/README.md" "$@" 2>&1; }
said=$(job one.1 --steps 9 --no-checkpoint --hash)
for way in "1f1b.2,1 gpipe.2,1,1 one.1" "one.1 1f1b.1,4,2 1f1b.2,1" "late.1,4,2 late.1 late.1,4,2"; do
    set -- $way
    [ $1 = one.1 ] || [ $1 = 1f1b.2,1 ] || said=$(job late.1 --steps 9 --no-checkpoint --hash)
    rm -rf "$tmp/ckpt"
    got=$(job $1 --steps 3 --checkpoint "$tmp/ckpt" && job $2 --steps 6 --checkpoint "$tmp/ckpt" --resume &&
        job $3 --steps 9 --checkpoint "$tmp/ckpt" --resume --hash)
    if [ ${#said} = 71 ] && [ "$got" = "$said" ]; then pass; else fault "begun by $1, ended by $3: $got, not $said"; fi
done
trained() {
    job $1 --steps 4 --no-checkpoint --gradients "$tmp/$1.grads" --export "$tmp/$1.weights" --log "$tmp/$1.jsonl" >"$tmp/said"
    steps_of "$tmp/$1.jsonl"
    cat "$tmp/$1.grads" "$tmp/$1.weights/model.safetensors" | sha256sum
}
want=$(trained one.1)
[ "$(echo "$want" | grep -c '"accuracy":0\.[0-9]*$')" = 2 ] && [ "$(echo "$want" | grep -c '"step","step"')" = 4 ] && pass ||
    fault "the log of one device: $want"
late=$(trained late.1)
for dir in 1f1b.2,1 1f1b.1,4,2 gpipe.2,1,1 late.1,4,2; do
    got=$(trained $dir)
    [ $dir != late.1,4,2 ] || want=$late
    if [ "$got" = "$want" ]; then pass; else fault "$dir: other facts: $(echo "$got" | head -n 1) $(cat "$tmp/said")"; fi
done

# ---- who has which copy ---------------------------------------------------------------------------------------------------
cat >"$tmp/grid" <<'END'
  stage  copy 0     copy 1     copy 2     copy 3     a device's micro-batches
      0  cpu.0      cpu.0      cpu.0      cpu.0      16
      1  cpu.1      cpu.3      cpu.4      cpu.6      4
      2  cpu.2      cpu.2      cpu.5      cpu.5      8
END
./dpgen plan $model --estimate --planner even --stages 3 --widths 1,4,2 --schedule 1f1b >"$tmp/said" 2>&1
sed -n '/^  stage/,/^      2/p' "$tmp/said" | cmp -s - "$tmp/grid" && pass || fault "the grid: $(head -n 7 "$tmp/said")"
grep -q '1f1b, 3 stages in 1, 4, 2 copies' "$tmp/said" && pass ||
    fault "the grid: $(head -n 7 "$tmp/said")"
grep -q '<td colspan="4">cpu.0</td><td>16</td>' "$tmp/1f1b.1,4,2/report.html" &&
    grep -q '"widths": \[1, 4, 2\]' "$tmp/1f1b.1,4,2/plan.json" &&
    grep -q 'stage 2 of 3, copy 1 of 2' "$tmp/1f1b.1,4,2/stage5.c" && pass || fault "a folder tells nothing of its widths"
# as many under way as devices from the stage on, shared out among its own
flights=$(sed -n 's/^stage .* \([0-9]*\) in flight$/\1/p' "$tmp/said" | tr '\n' ' ')
[ "$flights" = "7 2 1 " ] && pass || fault "in flight: $flights, not 7 2 1"
# each view counts stages by the list; of 465 KiB of states three devices of 160 KiB could hold all
views="$model --estimate --stages 3 --widths 1,4,2 --schedule 1f1b"
./dpgen compare $views --quick --planners even --json 2>&1 | paste -s >"$tmp/said"
grep -q '"devices": 7, "schedule": "1f1b".*"depth": 3, "width": 4, .*"widths": \[1, 4, 2\]' "$tmp/said" && pass ||
    fault "compare: $(cat "$tmp/said")"
./dpgen schedules $views --planner even --json >"$tmp/said" 2>&1
grep -q '"gpipe", "fits": true, "widths": \[1, 4, 2\], "stages": 3, .*"closed_form": 0' "$tmp/said" && pass ||
    fault "schedules: $(cat "$tmp/said")"
./dpgen plan $views --limit 160KiB >"$tmp/none" 2>&1
grep -q 'no plan fits 7 devices' "$tmp/none" && ! grep -q 'nothing can fit' "$tmp/none" && pass || fault "$(cat "$tmp/none")"

# ---- a mistake is seen ----------------------------------------------------------------------------------------------------
for wrong in 's/turns = 4/turns = 2/' 's/copy = 2/copy = 0/'; do
    rm -rf "$tmp/wrong"
    cp -r "$tmp/1f1b.1,4,2" "$tmp/wrong"
    sed -i "$wrong" "$tmp"/wrong/stage?.c
    said=$(./dpgen-verify "$tmp/wrong" 2>&1) && fault "proved, with $wrong" || pass
done

# ---- over mpi -------------------------------------------------------------------------------------------------------------
if over_mpi 7 2; then
    { wide mpi 1,4,2 $model --schedule 1f1b --set plan.transport=mpi; } | plans
    one_hash "over mpi" "$whole"
fi
use_portable

# ---- what does not go -----------------------------------------------------------------------------------------------------
plan="./dpgen plan $model --estimate --stages 2 --schedule 1f1b"
refuse "three copies" 3 'plan.widths\[0\]: 3 is no power of two' $plan --widths 3,1
refuse "the nearest" 3 '\^ 8$' $plan --widths 7,1
refuse "more than groups" 3 '4 gradient groups cannot be dealt out to 8' $plan --widths 8,1
refuse "more than devices" 3 'plan.widths: 6 copies of 4 devices, and 16 devices' $plan --widths 4,2 --set plan.tensor=4 \
    --set train.blocks=4
refuse "other stages" 3 'plan.widths: 3 stages, and other stages' $plan --widths 2,1,1
refuse "replicas too" 3 'plan.replicas: plan.widths says that there are 2 copies' $plan --widths 2,1 --replicas 4
refuse "another schedule" 3 '\^~* delete plan.widths, or take 1f1b' $plan --widths 2,1 --schedule zb-h1
sed 's/^plan: .*/plan: {schedule: zb-h1,\n  widths: [2, 1]}/' "$tmp/model.yaml" >"$tmp/zb.yaml"
refuse "at the list" 3 'zb.yaml:[0-9]*:11: error: plan.widths: schedule zb-h1: its copies' ./dpgen check "$tmp/zb.yaml" \
    ${model#* }
refuse "a norm from step to step" 3 'clip_scope: parameter' ./dpgen plan "$tmp/untied.yaml" ${model#* } --estimate --stages 2 \
    --schedule 2bw --widths 2,1
over="./dpgen plan $tmp/untied.yaml ${model#* } --estimate --set train.clip_norm=0 --set train.batch.micro=1 --planner even"
refuse "too few for copies" 3 'serve 2 stages in 1, 2 copies from 4 micro-batches a step on, and there are 2; make' $over \
    --stages 2 --schedule 2bw --widths 1,2 --set train.batch.global=2 --set train.batch.groups=2
expect "as many as copies need" $over --stages 2 --schedule 2bw --widths 1,2 --set train.batch.global=4 \
    --set train.batch.groups=2
for schedule in 2bw pipedream; do
    refuse "$schedule: a circle" 3 'updates of stage 1 and forwards of stage 2 would wait for each other' $over --stages 3 \
        --schedule $schedule --widths 4,2,1
    expect "$schedule: no circle" $over --stages 3 --schedule $schedule --widths 4,1,1
done
refuse "a tie" 3 'same_stage' $plan --widths 2,1 --schedule 2bw --set train.clip_norm=0
refuse "shard" 3 '\^~* set train.shard: none' $plan --widths 2,1 --set train.shard=optimizer
refuse "a library" 3 'delete plan.widths' ./dpgen $model --estimate --planner even --stages 2 --schedule 1f1b --widths 2,1 \
    --library -o "$tmp/none"
refuse "no list" 3 'a list of devices' $plan --set plan.widths=2
open="./dpgen plan $model --estimate --set plan.stages=auto --schedule 1f1b --widths auto"
refuse "auto, another schedule" 3 '\^~* take plan.replicas: auto in place of' $open --schedule zb-h1
refuse "auto, replicas too" 3 'plan.widths: auto chooses' $open --replicas 2
refuse "auto, shard" 3 '\^~* set train.shard: none' $open --set train.shard=optimizer
refuse "auto, inference" 3 'infer has one device a stage' $open --mode infer
refuse "auto, stages that a planner does not take" 3 '\^~* a list, or --planner exact' $open --planner pipedream:replicated \
    --set plan.stages=9
refuse "another word" 3 'auto, or a list' $open --set plan.widths=most
# equal ones are replicas
for way in "--widths 2,2" "--replicas 2"; do $plan $way --json 2>"$tmp/err" | sed '/"options"\|--widths\|--replicas/d'; done |
    sort | uniq -u | grep . && fault "equal widths are no replicas" || pass

# a copy of stage 1 on a device of little memory; stage 0, with 828 KiB, is on none
cpu='memory: 64MiB, threads: 1, kernels: portable}' small='{name: small, kind: cpu, count: 1, memory: 400KiB'
sed "s/count: 4, $cpu/count: 2, $cpu\\
  - $small, threads: 1, kernels: portable}/" "$models/tiny-gpt.yaml" >"$tmp/small.yaml"
expect "little memory" ./dpgen plan "$tmp/small.yaml" --widths 1,2 --stages 2 --cuts 20 --estimate \
    --set train.batch.groups=2

# ---- auto: what the best of all lists comes to, asked for one by one ---------------------------------------------------------
few() { cpus $1 >"$tmp/few"; }
step() { sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p'; }
asked() { ./dpgen plan $model --devices "$tmp/few" --estimate --schedule 1f1b --set plan.stages="$@" 2>"$tmp/err"; }
few 64
refuse "many" 3 '\^~* plan.stages: {min: 1, max: [2-9]}' $open --devices "$tmp/few"
# 1 + 2 + 3 + 6 + 10 + 18 + 31 + 55 ways to write 1 to 8 as sums of 1, 2 and 4
few 8
asked auto --widths auto >"$tmp/said"
grep -q 'note .*others: 125 plans not below [0-9.]* ms, [1-9][0-9]* of them not searched' "$tmp/said" && pass ||
    fault "lists that are not searched: $(grep note "$tmp/said")"
few 5
for widths in 4 1,4 4,1 2,2 2,2,1 2,1,2 1,2,2 1,1,1,1 2,1,1,1 1,2,1,1 1,1,2,1 1,1,1,2 1,1,1,1,1; do
    echo "$(asked $(echo "$widths" | tr -dc 0-9 | wc -c) --widths $widths --json | step) $widths"
done | sort -n >"$tmp/each"
read -r least widths <"$tmp/each"
[ "$(grep -c '^[1-9][0-9]* ' "$tmp/each")" = 13 ] && pass || fault "some list has no plan: $(cat "$tmp/each" "$tmp/err")"
got=$(asked auto --widths auto --json | step)           # lists that are not taken are searched in less than full
[ "${got:-0}" -ge "$least" ] && [ "$got" -le $((least + least / 100)) ] && pass || fault "auto: $got, and $widths is $least"
# DAPPLE's own list has the least latency by its formula of all of them
formula() { sed -n "s/.*a step of \([0-9.]*\) ms by DAPPLE's formula.*/\1/p"; }
while read -r _ widths; do
    echo "$(asked $(echo "$widths" | tr -dc 0-9 | wc -c) --widths $widths --planner dapple --json | formula) $widths"
done <"$tmp/each" | sort -n >"$tmp/formula"
took=$(asked auto --widths auto --planner dapple --json | paste -s)
own="$(echo "$took" | formula) $(echo "$took" | sed -n 's/.*"note": "widths \[\([0-9, ]*\)\].*/\1/p' | tr -d ' ')"
[ "$own" = "$(head -n 1 "$tmp/formula")" ] && pass || fault "DAPPLE's list: $own, and the least is $(head -n 2 "$tmp/formula")"
asked auto --widths auto >"$tmp/said"
grep -q 'not searched' "$tmp/said" && fault "all lists of 5 devices are searched: $(grep note "$tmp/said")" || pass
took=$(sed -n 's/.*note *widths \[\([0-9, ]*\)\]; others: \[.* ms, and [0-9]* plans not below .*/\1/p' "$tmp/said" | tr -d ' ')
[ "$(sed -n "s/ $took\$//p" "$tmp/each")" = "$got" ] && pass || fault "the note of auto: $(sed -n '1,4p' "$tmp/said"), not $got"
finish
