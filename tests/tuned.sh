#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fine-tuning under plans: frozen parameters, parameter groups and adapters have one hash over stages, schedules, fates,
# replicas and types, that of the graph interpreter.  Losses and gradients are compared with PyTorch's in reference.sh.  A
# checkpoint holds frozen values, goes on with more of them, and says so, and is refused with fewer.  Evaluations end a training
# and choose what is kept, alike on all stages.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a build/interp build/interp_bf16
model="$models/tiny-gpt.yaml --set train.batch.global=16"
middle="[h.0.*, wpe.*, h.1.*.bias, h.2.ln_2.weight, h.2.attn.c_attn.weight]"     # gradients pass through
front="[wte.*, wpe.*, h.0.*, h.1.*]"                                # backward ends in the middle: stages without one
groups="[{match: [h.1.*, '*.bias'], lr: x0.1, weight_decay: 0}, {match: '*.ln_*', lr: 0.01, betas: [0.8, 0.9], eps: 1e-6}]"
arguments="--steps 3"

# agree LABEL INTERPRETER SET...: the plans that have been made against the interpreter
agree() {
    label=$1 interpreter=$2
    shift 2
    want=$($interpreter --data "$data" $model $arguments "$@" 2>"$tmp/interp.log" | sed -n 's/^sha256 //p')
    if [ -n "$want" ]; then pass; else fault "$label: the interpreter: $(tail -n 1 "$tmp/interp.log")"; fi
    one_hash "$label" "$want"
}
# under SET: plans of a model with it
under() {
    cat <<END
one $model --stages 1 $1
full $model --stages 2 --schedule 1f1b --recompute full $1
split $model --stages 3 --schedule zb-h1 $1
away $model --stages 4 --schedule 1f1b --offload "['*']" $1
END
}
cpus 10 >"$tmp/ten"
of_replicas() { echo "replicas $model --stages 2 --replicas 2 --set train.batch.groups=2 --devices $tmp/ten $1"; }

use_portable
keep="one full"
under "--set \"train.freeze=$middle\"" | plans
agree "frozen in the middle" build/interp --set "train.freeze=$middle"
frozen=$hash
# 2 steps, and 1 more under another plan; then with less to learn, and with more
resume="--resume --checkpoint $tmp/ckpt"
run="--quiet --hash --data $data --checkpoint $tmp/ckpt"
said=$(job_hash "$tmp/one" --steps 2) && said=$(job_hash "$tmp/full" --resume --steps 3)
if [ "$said" = "$frozen" ]; then pass; else fault "a checkpoint with frozen parameters, and on: $said"; fi
fewer="[h.0.*, wpe.*, h.1.*, h.2.ln_2.weight, h.2.attn.c_attn.weight]" others="[wpe.*, h.0.*]"
generate "$tmp/less" $model --stages 2 --set train.freeze="$fewer" && compile "$tmp/less" ||
    fault "less to learn: $(head -n 1 "$tmp/less.log")"
expect "less learns" "$tmp/less/job" --quiet --data "$data" $resume --steps 4
if grep -q 'other settings: train.freeze 2[0-9] parameters .* (now 2[0-9] parameters' "$tmp/said"; then pass
else fault "less learns, and nobody says so: $(cat "$tmp/said")"; fi
generate "$tmp/more" $model --stages 2 --set train.freeze="$others" && compile "$tmp/more" || fault "more to learn"
refuse "more learns" 5 'tensor `h.1.*m. is missing; start anew' "$tmp/more/job" --quiet --data "$data" $resume --steps 5
expect "its parameters" "$tmp/more/job" --quiet --data "$data" --no-checkpoint --steps 1 \
    --weights "$(ls -d "$tmp"/ckpt/step-* | tail -n 1)"
run="--no-checkpoint --quiet --hash --data $data"
keep=

{ under "--set \"train.freeze=$front\" --set train.batch.groups=2"; of_replicas "--set \"train.freeze=$front\""; } | plans
agree "frozen in front" build/interp --set train.freeze="$front" --set train.batch.groups=2
own="--set \"train.optimizer.groups=$groups\" --set train.freeze=wpe.weight"
{ under "$own --set train.batch.groups=2" | grep -v ^split; of_replicas "$own"; } | plans
agree "groups" build/interp --set train.optimizer.groups="$groups" --set train.batch.groups=2 --set train.freeze=wpe.weight
use_bf16
keep="full away"
own="--set train.precision.compute=bf16 --set \"train.freeze=$middle\" --set \"train.optimizer.groups=$groups\""
under "$own" | grep -v -e ^one | plans
agree "bf16" build/interp_bf16 --set train.precision.compute=bf16 --set train.freeze="$middle" \
    --set train.optimizer.groups="$groups"
# Of a parameter that kernels read in bf16, and no update changes, there is nothing else; files hold it all the same.
run="--quiet --hash --data $data --checkpoint $tmp/ckpt16"
said=$(job_hash "$tmp/away" --steps 2) && said=$(job_hash "$tmp/full" --resume --steps 3 --export "$tmp/made")
if [ "$said" = "$hash" ]; then pass; else fault "bf16: a checkpoint, and on: $said"; fi
masters=$(grep -c 'parameter \*/' "$tmp/full/stage0.h")
if [ "$masters" -gt 3 ] && ! grep -q 'wpe_weight  *=' "$tmp/full/stage0.h"; then pass
else fault "bf16: stage 0 has $masters masters, and one of wpe.weight"; fi
names=$(tr '{' '\n' <"$tmp/made/model.safetensors" | grep -a -c -o '"dtype"')
if [ "$names" = 40 ]; then pass; else fault "bf16: an export has $names tensors of 40"; fi
run="--no-checkpoint --quiet --hash --data $data"
keep=
use_portable

at=$tmp/run                     # where run_job puts what a job says
# ---- adapters ----------------------------------------------------------------------------------------------------------
adapt="{match: [h.*.c_attn, h.1.mlp.*], rank: 4, alpha: 6, dropout: 0.1, learn: [ln_f.*]}"
use_portable
keep="one split"
{ under "--set \"adapt=$adapt\" --set train.batch.groups=2"; of_replicas "--set \"adapt=$adapt\""; } | plans
agree "adapters" build/interp --set adapt="$adapt" --set train.batch.groups=2
adapted=$hash
run="--quiet --hash --data $data --checkpoint $tmp/ckpt.adapt"
said=$(job_hash "$tmp/one" --steps 2) && said=$(job_hash "$tmp/split" --resume --steps 3)
if [ "$said" = "$adapted" ]; then pass; else fault "a checkpoint with adapters, and on: $said"; fi
expect "adapters in PEFT's form" ./dpgen export "$tmp/ckpt.adapt" --adapter "$tmp/peft"
expect "the model with them merged in" ./dpgen export "$tmp/ckpt.adapt" --hf "$tmp/merged"
whole=$(tr '{' '\n' <"$tmp/merged/model.safetensors" | grep -a -c -o '"dtype"')
if [ "$whole" = 40 ]; then pass; else fault "a merged export has $whole tensors of 40"; fi
# The merged model computes what the adapted one does, to rounding: an evaluation drops nothing
evals="{format: bytes, files: $data, tokens: tokens, next: targets, every: 2, batches: 8}"
generate "$tmp/beside" $model --set data.eval="$evals" --set adapt="$adapt" && compile "$tmp/beside" ||
    fault "adapters, evaluated"
generate "$tmp/plain" $model --stages 2 --set data.eval="$evals" && compile "$tmp/plain" || fault "without adapters"
run="--quiet --no-checkpoint --eval-only"
run_job "$tmp/beside/job" "" --weights "$(ls -d "$tmp"/ckpt.adapt/step-* | tail -n 1)" --log "$tmp/beside.jsonl"
run_job "$tmp/plain/job" "" --weights "$tmp/merged" --log "$tmp/plain.jsonl"
said=$(cat "$tmp/beside.jsonl" "$tmp/plain.jsonl" | sed -n 's/.*"event":"eval".*"loss":\([^,}]*\).*/\1/p' | tr '\n' ' ')
if echo "$said" | awk '{d = $1 - $2; exit !(NF == 2 && $1 > 0 && d < 1e-5 && d > -1e-5)}'; then pass
else fault "merged: $said"; fi
run="--quiet --no-checkpoint --steps 1 --data $data --weights $tmp/merged"
for wrong in "rank 8;alpha 6 and rank 4, and this job has 6 and 8" "alpha 12;alpha 6 and rank 4, and this job has 12" \
    "match h.2.mlp.c_proj;no tensor for"; do
    what=${wrong%;*}
    changed=$(echo "$adapt" | sed "s/${what% *}: [^,]*[],]*,/${what% *}: ${what#* },/")
    [ "${what% *}" != match ] || changed="{match: h.2.mlp.c_proj, rank: 4, alpha: 6}"
    generate "$tmp/wrong" $model --set adapt="$changed" && compile "$tmp/wrong" || fault "$what"
    refuse "an adapter: $what" 5 "${wrong#*;}" "$tmp/wrong/job" $run --adapter "$tmp/peft"
done
refuse "no adapters" 2 'this job has no adapters' "$tmp/plain/job" $run --adapter "$tmp/peft"
refuse "no model beside them" 2 'needs --weights' "$tmp/beside/job" --adapter "$tmp/peft"
refuse "a checkpoint without" 5 'has no adapters' ./dpgen export "$tmp/ckpt" --adapter "$tmp/none"
refuse "both" 3 'train.freeze and adapt exclude each other' ./dpgen check $model --set adapt="$adapt" \
    --set train.freeze=wpe.weight
refuse "no such Linear" 3 "no Linear is named 'h.9.*'" ./dpgen check $model --set adapt="{match: h.9.*}"
run="--no-checkpoint --quiet --hash --data $data"
use_bf16
keep=
under "--set train.precision.compute=bf16 --set \"adapt=$adapt\"" | grep -v -e ^one | plans
agree "adapters in bf16" build/interp_bf16 --set train.precision.compute=bf16 --set adapt="$adapt"
use_portable

# ---- weights in few bits -----------------------------------------------------------------------------------------------
keep="one split"
own="--set \"adapt=$adapt\" --set quantize={}"
{ under "$own --set train.batch.groups=2"; of_replicas "$own"; } |
    grep -v ^away | plans
agree "nf4" build/interp --set adapt="$adapt" --set quantize={} --set train.batch.groups=2
few=$hash
# 1728 numbers in 27 blocks of 36 bytes: nothing else of them is in the arena
if grep -q 'h_0_attn_c_attn_weight_copy  *= .*  972  u8 \[972\]' "$tmp/one/stage0.h" &&
    ! grep -q 'h_0_attn_c_attn_weight  *=' "$tmp/one/stage0.h"; then pass; else fault "nf4: not 972 bytes"; fi
run="--quiet --hash --data $data --checkpoint $tmp/ckpt.few"
said=$(job_hash "$tmp/one" --steps 2) && said=$(job_hash "$tmp/split" --resume --steps 3)
if [ "$said" = "$few" ]; then pass; else fault "nf4: a checkpoint, and on: $said"; fi
expect "merged into weights that are wide again" ./dpgen export "$tmp/ckpt.few" --hf "$tmp/merged.few"
# The bits are those of frozen weights that have been narrow before
generate "$tmp/wide" $model --stages 2 --set adapt="$adapt" --set train.batch.groups=2 && compile "$tmp/wide" ||
    fault "wide weights"
run="--no-checkpoint --quiet --hash --data $data"
said=$(job_hash "$tmp/one" --steps 0 --export "$tmp/made.few") &&
    said=$(job_hash "$tmp/wide" --steps 3 --weights "$tmp/made.few")
if [ "$said" = "$few" ]; then pass; else fault "nf4: wide weights have other bits: $said"; fi
use_bf16
keep=
under "--set train.precision.compute=bf16 --set train.freeze=[h.*] --set \"quantize={type: int8, match: '*.c_*'}\"" |
    grep -e ^full -e ^split | plans
agree "int8 in bf16" build/interp_bf16 --set train.precision.compute=bf16 --set train.freeze=[h.*] \
    --set quantize="{type: int8, match: '*.c_*'}"
use_portable
refuse "quantize: explained" 0 'bits    4 a number, 972 bytes with' ./dpgen explain $model --estimate --set adapt="$adapt" \
    --set quantize={} h.0.attn.c_attn.weight
wrong() { refuse "quantize: $1" 3 "$2" ./dpgen check $model --set quantize="$3" --set "$4"; }
wrong "learns" "'h.1.\*' takes h.1.attn.c_attn: h.1.attn.c_attn.weight learns" "{match: h.1.*}" train.freeze=[h.0.*]
wrong "shared" "takes lm_head: wte.weight is shared with lm_head.weight" "{match: lm_head}" train.freeze="[wte.*, h.0.*]"
wrong "no Linear" "no Linear is named 'wte'" "{match: wte}" train.freeze=[wte.*]
wrong "nothing frozen" "no Linear has a weight of its own that does not learn" "{}" train.freeze=[wpe.*]
wrong "another type" "one of nf4 and int8\|nf4, int8\|'int4'" "{type: int4}" train.freeze=[h.*]
refuse "quantize: a GPU" 3 "kernels for processors alone" ./dpgen check $model --set train.freeze=[h.*] --set quantize={} \
    --devices h100
# On a device of 8 GiB: 1,034,420,224 numbers of TinyLlama's products in 36 bytes for 64
small_device="[{name: cpu, kind: cpu, memory: 8GiB, threads: 1, kernels: portable}]"
for bits in 16 4; do
    [ $bits = 16 ] || set -- --set quantize={}
    ./dpgen plan examples/tinyllama.yaml --estimate --stages 1 --planner even --set plan.schedule=1f1b "$@" \
        --set devices="$small_device" --set adapt="{match: ['*.q_proj', '*.v_proj'], alpha: 16}" >"$tmp/said" 2>&1
    parameters=$(sed -n 's/.*at peak parameters \([^,]*\),.*/\1/p' "$tmp/said")
    if grep -q 'arena .* of 8.00 GiB' "$tmp/said" && case $bits,$parameters in 16,2.06*G* | 4,686.7*M*) ;; *) false ;; esac
    then pass; else fault "TinyLlama with weights of $bits bits on 8 GiB: $parameters: $(tail -n 1 "$tmp/said")"; fi
done

# ---- parameters that no file has ---------------------------------------------------------------------------------------
# What one job takes from a rule and the rest from a file is, for a job with the other half fresh, all by rules
half="[h.*]" rest="[wte.*, wpe.*, ln_f.*]" model=$models/tiny-gpt.yaml
generate "$tmp/base" $model && compile "$tmp/base" || fault "a job that writes weights: $(head -n 1 "$tmp/base.log")"
generate "$tmp/half" $model --stages 3 --set weights.fresh="$half" && compile "$tmp/half" || fault "half is fresh"
generate "$tmp/rest" $model --stages 2 --set weights.fresh="$rest" && compile "$tmp/rest" || fault "the rest is fresh"
start=
by_rule=$(job_hash "$tmp/base" --steps 0)
trained=$(job_hash "$tmp/base" --steps 2 --export "$tmp/trained")
mixed=$(job_hash "$tmp/half" --steps 0 --weights "$tmp/trained" --export "$tmp/mixed")
if grep -q '36 of 40 parameters are not read from .*trained and start from their rules: h.0.*, and 28 more' "$tmp/half.log"
then pass
else fault "the fresh are not named: $(cat "$tmp/half.log")"; fi
case "$by_rule $trained $mixed" in *" $by_rule"* | *"$trained $trained"*)
    fault "fresh: $by_rule, $trained, $mixed" ;;
*) pass ;; esac
said=$(job_hash "$tmp/rest" --steps 0 --weights "$tmp/mixed")
if [ "$said" = "$by_rule" ]; then pass; else fault "a half fresh, and then the other: $said, not $by_rule"; fi
sed 's/"h\.0\.ln_1\.weight"/"x.0.ln_1.weight"/' "$tmp/trained/model.safetensors" >"$tmp/lacks.safetensors"
said=$(job_hash "$tmp/half" --steps 0 --weights "$tmp/lacks.safetensors")
if [ "$said" = "$mixed" ]; then pass; else fault "a file lacks what is fresh: $said, not $mixed"; fi
refuse "a file lacks what is not fresh" 5 'tensor `h.0.ln_1.weight. is missing' "$tmp/rest/job" --no-checkpoint --quiet \
    --steps 0 \
    --weights "$tmp/lacks.safetensors"
refuse "fresh, and no such name" 3 'weights.fresh: no parameter is named .head' ./dpgen check $model \
    --set weights.fresh=head.weight
refuse "all are fresh" 3 'all 40 parameters start from their rules' ./dpgen check $model --set "weights.fresh='*'"
# ---- evaluations that decide -----------------------------------------------------------------------------------------
# A rate of 0 makes no evaluation better than the first; one that is too high makes some worse
evals="{format: bytes, files: $data, tokens: tokens, next: targets, every: 2, batches: 4"
model="$models/tiny-gpt.yaml --set train.steps=40"
said_by() { sed -n 's/.*"event":"eval","step":\([0-9]*\),"loss":\([^,}]*\).*/\1 \2/p' "$1"; }
patient="--set data.eval=\"$evals, patience: 3}\" --set train.optimizer.lr=0 --set train.optimizer.weight_decay=0"
keep=yes
{ echo "calm $model --stages 1 $patient"; echo "calm3 $model --stages 3 --schedule 1f1b $patient"
  echo "calm2 $model --stages 1 --replicas 2 --set train.batch.groups=2 --devices $tmp/ten $patient"; } | plans
for job in calm calm3 calm2; do
    "$tmp/$job/job" --quiet --data "$data" --no-checkpoint --log "$tmp/$job.jsonl" >"$tmp/said" 2>&1
    if [ $? = 0 ] && [ "$(said_by "$tmp/$job.jsonl" | tail -n 1 | cut -d' ' -f1)" = 8 ] &&
        grep -q '"event":"stop","step":8,"detail":"no better evaluation"' "$tmp/$job.jsonl"; then pass
    else fault "$job: patience 3 ends after 8 steps: $(tail -n 2 "$tmp/$job.jsonl")"; fi
done
# 4 steps, and on from the checkpoint: the evaluations before it count
run="--quiet --data $data --checkpoint $tmp/calm.ckpt"
said=$(run_job "$tmp/calm/job" "" --steps 4 && run_job "$tmp/calm3/job" "" --resume --log "$tmp/on.jsonl" 2>&1)
if [ "$(said_by "$tmp/on.jsonl" | tail -n 1 | cut -d' ' -f1)" = 8 ]; then pass
else fault "patience over a resume: $said $(cat "$tmp/on.jsonl")"; fi
# The best is kept beside the newest, DIR/best leads to it, and its evaluation alone gives its loss again
wild="--set data.eval=\"$evals, keep_best: true}\" --set train.optimizer.lr=0.3 --set train.schedule.warmup=8"
wild="$wild --set checkpoint.keep=1"
echo "wild $model --stages 2 $wild" | plans
run="--quiet --data $data --checkpoint $tmp/wild.ckpt"
said=$(run_job "$tmp/wild/job" "" --steps 20 --log "$tmp/wild.jsonl")
best=$(said_by "$tmp/wild.jsonl" | sort -g -k 2 | head -n 1)
kept=$(ls "$tmp/wild.ckpt" | tr '\n' ' ')
to=$(printf 'step-%06d' "${best% *}")
if [ "$kept" = "best $to step-000020 " ] && [ "$(readlink "$tmp/wild.ckpt/best")" = "$to" ]; then pass
else fault "the best is $best, and there are $kept: $said"; fi
run="--quiet --no-checkpoint"
run_job "$tmp/wild/job" "" --eval-only --weights "$tmp/wild.ckpt/best" --log "$tmp/alone.jsonl"
if [ "$(said_by "$tmp/alone.jsonl")" = "0 ${best#* }" ]; then pass
else fault "--eval-only: $(cat "$tmp/alone.jsonl"), not $best"; fi
run="--quiet --checkpoint $tmp/wild.ckpt"
run_job "$tmp/wild/job" "" --eval-only --resume --data "$tmp/none" --log "$tmp/newest.jsonl"
if [ "$(said_by "$tmp/newest.jsonl")" = "$(said_by "$tmp/wild.jsonl" | tail -n 1)" ]; then pass
else fault "--eval-only --resume: $(cat "$tmp/newest.jsonl" "$tmp/wild/job.log")"; fi
if [ "$(ls "$tmp/wild.ckpt" | tr '\n' ' ')" = "$kept" ]; then pass; else fault "--eval-only has written a checkpoint"; fi
said=$("$tmp/wild/job" $run --eval-only --resume 2>&1)
case $said in *'other data'*) fault "--eval-only: $said" ;; *) pass ;; esac
refuse "an evaluation of start values" 2 'eval-only evaluates given weights: name --weights' "$tmp/wild/job" --eval-only \
    --checkpoint "$tmp/wild.ckpt"
refuse "no evaluation" 2 'this job has no evaluation' "$tmp/base/job" --eval-only
keep=
finish
