#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A loss or a norm that is not finite ends the job with 7, in all its processes, and the checkpoints before it stay; with
# --allow-nan it goes on.  A rate of a million makes a small GPT useless in its fourth step.  In the model of one weight w the
# loss is (w x)^2/2: with x = 10^19 and that rate the first loss is 5 10^37, a float, and the weight after it is
# 1 - 10^6 10^38, no float, so no checkpoint may hold it.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a
use_portable
ck=$tmp/ck
wild="--set train.optimizer.lr=1e6 --set train.schedule.warmup=0 --set checkpoint.every=1 --set checkpoint.keep=9"

# build NAME OPTION...: a job in $tmp/NAME
build() {
    name=$1
    shift
    said=$(generate "$tmp/$name" "$@" && compile "$tmp/$name")
    [ -z "$said" ] || { fault "$name: $said"; finish; }
}
# left WHAT STEPS: the checkpoints that are there
left() {
    got=$(cd "$ck" 2>/dev/null && echo step-*)
    if [ "$got" = "$2" ]; then pass; else fault "$1 leaves '$got', not '$2'"; fi
    rm -rf "$ck"
}
# ends WHAT NAME OPTION...: in the fourth step
ends() {
    what=$1 name=$2
    shift 2
    refuse "$what" 7 "after step 4 the loss is not finite.*--allow-nan" \
        $start "$tmp/$name/job" --quiet --data "$data" --checkpoint "$ck" "$@"
    left "$what" "step-000001 step-000002 step-000003"
}

build gpt $models/tiny-gpt.yaml --stages 2 $wild
ends "a NaN" gpt
expect "a NaN that is allowed" "$tmp/gpt/job" --quiet --data "$data" --checkpoint "$ck" --allow-nan --steps 5
left "a NaN that is allowed" "step-000001 step-000002 step-000003 step-000004 step-000005"
build wide $models/tiny-gpt.yaml --set plan.stages=1 --set plan.replicas=2 --set train.batch.groups=2 $wild
ends "a NaN of two replicas" wide
if over_mpi 2 2; then
    build ranks $models/tiny-gpt.yaml --stages 2 --set plan.transport=mpi $wild
    ends "a NaN of two ranks" ranks
    ! turn_mpi "$tmp/ranks" || ends "a NaN of two ranks, $other_mpi" ranks
    use_portable
fi

# ---- one weight ------------------------------------------------------------------------------------------------------------
$cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/npy" tests/npy.c || { fault "tests/npy.c"; finish; }
(cd "$tmp" && ./npy zero.npy f4 0 0 8 1 && ./npy one.npy f4 1 1 8 1 && ./npy huge.npy f4 1e19 1e19 8 1 &&
    ./npy nan.npy f4 nan nan 8 1) || fault "no arrays"
build scalar $models/scalar.yaml --schedule gpipe --set train.optimizer.lr=1e6 --set checkpoint.every=1
one() { (cd "$tmp" && exec "$tmp/scalar/job" --quiet "$@"); }
refuse "an evaluation that is not finite" 7 "after step 2 the loss of the evaluation is not finite" \
    one --no-checkpoint --eval-data nan.npy zero.npy --steps 3
expect "the same, allowed" one --no-checkpoint --eval-data nan.npy zero.npy --steps 3 --allow-nan
refuse "a weight that is not finite" 7 "after step 1 .w.weight. is not finite" \
    one --checkpoint "$ck" --data huge.npy zero.npy --steps 3
left "a weight that is not finite" ""
build overlap $models/scalar.yaml --set train.optimizer.lr=1e6 --set train.steps=40 --set data.eval.every=50
one_of_40() { (cd "$tmp" && exec "$tmp/overlap/job" --quiet "$@"); }
refuse "a loss where steps overlap" 7 "after step [0-9]* the loss is not finite" one_of_40 --checkpoint "$ck"
left "a loss where steps overlap" ""
expect "the same, allowed" one_of_40 --no-checkpoint --allow-nan
expect "a weight that may be so" one --checkpoint "$ck" --data huge.npy zero.npy --steps 1 --allow-nan
# A NaN is never the best evaluation, and counts as one without a better one, also over a resume
build chosen $models/scalar.yaml --schedule gpipe --set train.steps=40 --set data.eval.keep_best=true \
    --set data.eval.patience=3
chosen() {
    eval=$1
    shift
    (cd "$tmp" && exec "$tmp/chosen/job" --quiet --checkpoint "$ck" --allow-nan --eval-data "$eval" zero.npy "$@")
}
rm -rf "$ck"
expect "evaluations that are none" chosen nan.npy --steps 4
expect "none of them is the best" test ! -L "$ck/best"
expect "one that is finite" chosen one.npy --resume --steps 6
expect "and others behind it" chosen nan.npy --resume --steps 8
said=$(readlink "$ck/best")
if [ "$said" = step-000006 ]; then pass; else fault "the best evaluation was of $said, not of step-000006"; fi
rm -rf "$ck"
expect "two of three evaluations" chosen nan.npy --steps 4
expect "and the third" chosen nan.npy --resume --log "$tmp/tired"
expect "which ends the job" grep -q '"event":"stop","step":6,"detail":"no better evaluation"' "$tmp/tired"
rm -rf "$ck"
# Steps whose targets are all ignored: the second and the fourth of eight tokens each.  The first one is told, once, wherever
# the loss is; its loss is 0.
cat >"$tmp/blank.yaml" <<END
dpgen: 1
model:
  dims: {V: 256, T: 8, D: 4}
  inputs: {tokens: {shape: [B, T], dtype: i32, range: [0, V]}, targets: {shape: [B, T], dtype: i32, range: [0, V]}}
  graph:
    - {op: Embedding, name: table, in: tokens, rows: V, out: D}
    - {op: Linear, name: inner, out: D}
    - {op: LinearCrossEntropy, name: head, out: V, targets: targets, ignore: 120, as: loss}
  loss: loss
train: {batch: {micro: 1, global: 2}, steps: 4, optimizer: {lr: 0.01}}
data: {train: {format: bytes, files: text, tokens: tokens, next: targets, order: sequential}}
END
printf '%s%s%s%s%s' 0123456789abcdefg xxxxxxxxxxxxxxxx 0123456789abcdef xxxxxxxxxxxxxxxx 0123456789 >"$tmp/text"
for plan in "--stages 1" "--stages 2" "--stages 1 --set plan.replicas=2 --set train.batch.groups=2" \
    "--stages 2 --schedule 2bw"; do
    build blank "$tmp/blank.yaml" $plan
    expect "blank steps, $plan" sh -c '"$@" >"$0/out" 2>"$0/err"' "$tmp" "$tmp/blank/job" --no-checkpoint \
        --data "$tmp/text" --log "$tmp/log" --record
    if [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q '^train: step 2 has no valid target: every one of input .targ' "$tmp/err" &&
        [ "$(sed -n 's/{"event":"blank",\(.*\),"time.*/\1/p' "$tmp/log")" = '"step":2,"input":"targets"' ] &&
        grep -q '^no valid target in step 2, the first' "$tmp/out" &&
        [ "$(sed -n 's/^loss \([0-9]*\) 0$/\1/p' "$tmp/out" | tr '\n' ' ')" = "2 4 " ]; then pass
    else fault "blank steps, $plan: $(cat "$tmp/err"), $(grep '^loss' "$tmp/out" | tr '\n' ' ')"; fi
    rm -f "$tmp/log"
done
finish
