#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Replicas from outside: what a job prints, logs and exports knows nothing of how many there are.  Losses, norms and
# evaluations of every step, the gradients of the last one, to the bit (same.sh compares parameters); and what cannot be
# dealt out is refused with what to do about it.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a
use_portable

with_eval "$models/tiny-gpt.yaml" >"$tmp/model.yaml"
cpus 9 >"$tmp/nine"
model="$tmp/model.yaml --set train.batch.global=16 --set train.batch.groups=4 --set train.steps=6 --devices $tmp/nine"

evals=yes
want=$(facts one $model --stages 2 --schedule 1f1b)
[ "$(echo "$want" | grep -c '"eval"')" = 3 ] && [ "$(echo "$want" | grep -c '"step","step"')" = 6 ] && pass ||
    fault "the log of one replica: $want"
[ "$(echo "$want" | grep -c '"eval".*"top":3,"accuracy":0\.[0-9]*$')" = 3 ] && pass || fault "no share of hits: $want"
for plan in "2 1" "2 2" "2 4" "4 1" "4 2"; do
    got=$(facts many $model --replicas ${plan% *} --stages ${plan#* } --schedule 1f1b)
    if [ "$got" = "$want" ]; then pass; else
        fault "$plan: $(echo "$got" | head -n 1)"
        echo "$got" >"$tmp/got"
        echo "$want" | diff - "$tmp/got" | head -n 6 >&2
    fi
done
# Gradients that leave while backward goes on, in so many pieces: between calls of the last backward and only there, by lists
# that have weight gradients apart too, with copies to the host in between, and by several chunks a device.
bucketed() {        # BUCKETS OPTION...
    got=$(facts pieces $model --set plan.buckets="$@")
    if [ "$got" = "$want" ]; then pass; else fault "buckets $*: $(echo "$got" | head -n 1)"; fi
}
bucketed 1 --replicas 4 --stages 1 --schedule gpipe
between() { awk '/^}/ { on = 0 } /^static void stage0_step/ { on = 1 } on && /chunk0_backward[_0-9]*\(st/ { last = NR }
    on && /send_begin/ { sent[NR] = 1 } END { for (n in sent) before += n + 0 < last; print before + 0 }' \
    "$tmp/pieces/stage0.c"; }
[ "$(between)" = 0 ] && pass || fault "one bucket: $(between) messages in front of the last call of backward"
bucketed 5 --replicas 4 --stages 1 --schedule gpipe
[ "$(between)" -gt 20 ] && pass || fault "five buckets: $(between) messages in front of the last call of backward"
grep -q 'gradients leave in 5 buckets' "$tmp/pieces/plan.json" && pass || fault "plan.json names no buckets"
bucketed 3 --replicas 4 --stages 2 --schedule zb-h1
bucketed 4 --replicas 4 --stages 2 --schedule interleaved --set plan.chunks=2
bucketed 2 --replicas 4 --stages 1 --schedule gpipe --offload "['*']"
# Copies cut backward elsewhere on a slower device, whose gradients leave in the same order
slower="devices=[{kind: cpu, count: 2, memory: 1GiB}, {name: slow, kind: cpu, count: 2, memory: 1GiB, flops: 2GFLOP/s}]"
for schedule in gpipe zb-h1; do
    bucketed 3 --replicas 2 --stages 2 --schedule $schedule --offload "['*']" --estimate --set "$slower"
    bucketed 4 --replicas 4 --stages 1 --schedule $schedule --offload "['*']" --estimate --set "$slower"
done
bucketed 16 --replicas 2 --stages 1 --schedule gpipe
[ "$(between)" -gt 0 ] && grep -q 'chunk0_fold_0(st' "$tmp/pieces/stage0.c" && pass ||
    fault "two groups a replica: folds are not cut, $(between) messages in front of the last call of backward"
grep -q '4 replicas of 2 stages over local' "$tmp/many.said" && pass || fault "what the job says: $(head -n 1 "$tmp/many.said")"
grep -q '"stages":2,"replicas":4' "$tmp/many.jsonl" && pass || fault "what its log says"
grep -q 'stage 1 of 2, replica 3 of 4' "$tmp/many/stage7.c" && pass ||
    fault "what a stage says: $(head -n 1 "$tmp/many/stage7.c")"
key() { sed -n 's/.*"numeric_key": //p' "$1/plan.json"; }
if [ "$(key "$tmp/one")" = "$(key "$tmp/many")" ]; then pass; else fault "the numeric key knows the replicas"; fi

# Sums of a few losses of one size are exact in double, whatever their order.  Here the first micro-batch has the loss 2^54, the
# others 1, which it swallows one by one; sums of each replica, added, would keep four of them.
$cc -std=c11 -O1 -o "$tmp/npy" tests/npy.c || fault "tests/npy.c"
(cd "$tmp" && ./npy one.npy f4 1 1 8 1 && { head -c 128 one.npy; word 0 0 0 316     # -2^29, then -3
    for i in 1 2 3 4 5 6 7; do word 0 0 100 300; done; } >zero.npy) || fault "no data for the order of losses"
sums() {        # losses of the step and of the evaluation
    said=$(generate "$tmp/sum" "$models/scalar.yaml" --schedule gpipe --set train.batch.global=8 --set train.batch.groups=8 \
        --set train.optimizer.lr=1e-30 --set train.steps=1 --set data.train.order=sequential --set data.eval.every=1 \
        --set data.eval.batches=8 --set devices.0.count=8 "$@" && compile "$tmp/sum" && cd "$tmp" &&
        sum/job --quiet --no-checkpoint --log "$tmp/sum.jsonl" 2>&1) || { echo "$said"; return; }
    sed -n 's/.*"event":"\(step\|eval\)".*"loss":\([^,}]*\)[,}].*/\2/p' "$tmp/sum.jsonl" | tr '\n' ' '
    rm -f "$tmp/sum.jsonl"
}
order=$(sums)
case $order in "18014398509481984 "?*) pass ;; *) fault "losses of one replica: $order" ;; esac
for r in 2 4 8; do
    got=$(sums --replicas $r)
    if [ "$got" = "$order" ]; then pass; else fault "losses of $r replicas: $got, not $order"; fi
done
# Now the second one is large.  A device that takes micro-batches of 4 copies in turn has it behind 4 others, and would keep 4.
(cd "$tmp" && { head -c 128 one.npy; word 0 0 100 300; word 0 0 0 316; for i in 1 2 3 4 5 6; do word 0 0 100 300; done; } \
    >zero.npy)
order=$(sums)
for w in 4,1 1,4; do
    got=$(sums --stages 2 --widths $w)
    if [ "$got" = "$order" ]; then pass; else fault "losses of $w copies: $got, not $order"; fi
done

# Parts of a mean, on paper (lib.sh)
write_parts
parts "1 11 0.75"
./dpgen "$tmp/parts.yaml" --estimate -d f >"$tmp/parts.graph" 2>"$tmp/said" || fault "no graph of parts"
parts "1 11 0.75" --from "$tmp/parts.graph"
parts "1 11 0.75" --stages 2 --replicas 2
parts "1 11 0.75" --stages 4         # the targets that are found are told by a stage that has not the loss
parts "1 17 0.6" --replicas 2 --set data.eval.batches=4
parts "0.5 11 0.75" --replicas 2 --set train.batch.micro=2 --set data.eval.batches=3

# All together send each element r - 1 times up the tree and as often down; the later use of the tied table goes up alone.
for r in 2 4 8; do
    ./dpgen plan "$tmp/model.yaml" --estimate --set train.batch.global=16 --set train.batch.groups=8 --devices "$tmp/nine" \
        --stages 1 --replicas $r -d m >"$tmp/plan.txt" 2>&1
    sent=$(awk '/^action [0-9]* kind=send .*state=.*grad/ { sub(/.* bytes=/, ""); n += $1 } END { print n }' "$tmp/plan.txt")
    have=$(awk '/^buf 0:[^ ]*grad\.[0-9]* / { twice = /grad\.0 / ? 2 : 1; sub(/.* bytes=/, ""); n += twice * $1 }
        END { print n }' "$tmp/plan.txt")
    [ "$sent" = $(((r - 1) * have)) ] && pass || fault "$r replicas send $sent bytes of gradients of $((have / 2)) each"
done
# Where a use is on another stage, what a replica has summed up goes home: a part.
./dpgen plan "$tmp/model.yaml" --estimate --set train.batch.global=16 --set train.batch.groups=4 --devices "$tmp/nine" \
    --stages 2 --replicas 4 --schedule 1f1b -d m >"$tmp/plan.txt" 2>&1
home=$(awk '/^action [0-9]* kind=send .*state=wte.weight.grad.1 / { peer = $0; sub(/.* peer=/, "", peer); peer += 0
    if (peer % 2 != $2 % 2) { sub(/.* bytes=/, ""); n += $1 } } END { print n }' "$tmp/plan.txt" 2>&1)
[ "$home" = $((256 * 24 * 4)) ] && pass || fault "ties of 4 replicas take $home bytes home"

plan="./dpgen plan $model"
refuse "three replicas" 3 'no power of two' $plan --replicas 3
refuse "more than groups" 3 '4 gradient groups cannot be dealt out to 8 replicas' $plan --stages 1 --replicas 8
refuse "no groups" 3 'set train.batch.groups to 2' ./dpgen plan "$tmp/model.yaml" --replicas 2
refuse "too few devices" 3 'list 12 devices' $plan --stages 3 --replicas 4
# auto: no other number is faster, and 3 groups or 9 devices leave what they leave
step() { ./dpgen plan "$@" --json 2>"$tmp/err" | sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p'; }
whole=$(step $model --stages 1 --replicas 4 --estimate --set plan.buckets=1)
for n in 2 8; do
    less=$(step $model --stages 1 --replicas 4 --estimate --set plan.buckets=$n)
    [ "$less" -lt "$whole" ] && pass || fault "$n buckets take $less ns, one takes $whole"
    whole=$less
done
# Gradients that leave early take less memory here: a plan is found again under the arena that it has.
early="examples/cifar.yaml --estimate --recompute none --offload none --set train.batch.groups=2 --replicas 2 --stages 1"
early="$early --schedule 1f1b"
arena=$(./dpgen plan $early --json 2>"$tmp/err" | sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p' | sort -n | tail -n 1)
want=$(step $early) got=$(step $early --limit "$arena")
[ -n "$got" ] && [ "$got" = "$want" ] && pass || fault "under its own arena, $arena bytes, a plan of $want ns takes $got"
refuse "no bucket" 3 "plan.buckets" $plan --replicas 2 --set plan.buckets=0
auto=$(step $model --set plan.stages=auto --schedule 1f1b --replicas auto --estimate) best=
for r in 1 2 4; do
    s=$(step $model --set plan.stages=auto --schedule 1f1b --replicas $r --estimate)
    [ -n "$best" ] && [ "$best" -le "$s" ] || best=$s
done
[ "$auto" = "$best" ] && pass || fault "auto takes $auto ns, the best of 1, 2 and 4 replicas $best"
refuse "a word" 3 "a number or auto is expected" $plan --replicas most
$plan --replicas auto --set train.batch.groups=1 --stages 2 >"$tmp/said" 2>&1
grep -q "warning: plan.replicas: auto: 1 gradient group can" "$tmp/said" && grep -q ", 2 stages" "$tmp/said" && pass ||
    fault "auto with one group: $(head -n 1 "$tmp/said")"
refuse "asynchronous" 3 'replicas' $plan --stages 2 --replicas 2 --schedule 2bw
expect "as many stages as fit" $plan --set plan.stages=auto --replicas 4
finish
