#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Two pipelines on the same devices, one in each direction, also where each is folded.  A tiny GPT with tied weights, dropout
# and a clipped norm gives the bits of 1f1b with the same gradient groups: on 2 and 4 stages, whatever is recomputed or waits
# in the host's memory, with replicas, in bf16, between processes, and after stop and resume under another schedule.  Losses,
# norms and gradients too.  SLOW=1 adds plans.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a

steps=6 stop=2
[ -z "$SLOW" ] || steps=20 stop=7
model="$models/tiny-gpt.yaml --set train.batch.global=16 --set train.steps=$steps"
line() { name=$1 n=$2; shift 2; echo "$name $model --stages $n $*"; }
more() { [ -z "$SLOW" ] || line "$@"; }
groups() { echo "--set train.batch.groups=$1"; }

use_portable
{ line one 2 --schedule 1f1b $(groups 2)
  line two 2 --schedule chimera --cuts 15 $(groups 2)
  more four 4 --schedule chimera $(groups 2)
  line full 4 --schedule chimera --recompute full $(groups 2)
  more dual.two 2 --schedule dualpipe --cuts 15 --recompute full $(groups 2)
  line dual.four 4 --schedule dualpipe $(groups 2)
  line bit.two 2 --schedule bitpipe $(groups 2)
  more bit.four 4 --schedule bitpipe --recompute full $(groups 2)
  line away 2 --schedule chimera --cuts 12 --offload "\"['*']\"" $(groups 2); } | plans
one_hash "2 groups"
reference=$hash
{ line four.one 2 --schedule 1f1b $(groups 4)
  more four.two 2 --schedule chimera --cuts 20 --recompute full $(groups 4)
  line four.four 4 --schedule chimera $(groups 4)
  line four.bit 2 --schedule bitpipe --recompute full $(groups 4)
  more four.dual 2 --schedule dualpipe --cuts 20 $(groups 4)
  line four.replicas 2 --schedule chimera --cuts 15 --replicas 2 $(groups 4) --set devices.0.count=4; } | plans
one_hash "4 groups"
if [ "$hash" != "$reference" ]; then pass; else fault "4 groups have the hash of 2"; fi
use_bf16
{ line bf16.one 2 --schedule 1f1b --set train.precision.compute=bf16 $(groups 2)
  line bf16.two 2 --schedule chimera --cuts 15 --set train.precision.compute=bf16 $(groups 2)
  more bf16.dual 2 --schedule dualpipe --cuts 15 --set train.precision.compute=bf16 $(groups 2)
  more bf16.four 4 --schedule chimera --recompute full --set train.precision.compute=bf16 $(groups 2); } | plans
one_hash "bf16"

# ---- stop and resume: of two directions and of one
use_portable
for name in a b; do
    case $name in a) n="2 --schedule 1f1b" ;; b) n="4 --schedule chimera" ;; esac
    said=$(generate "$tmp/$name" $model --stages $n $(groups 2) && compile "$tmp/$name") || fault "$name: $said"
done
for way in "a b" "b a"; do
    rm -rf "$tmp/kept"
    (cd "$tmp" && "$tmp/${way% *}/job" --quiet --data "$data" --checkpoint "$tmp/kept" --steps $stop) >"$tmp/said" 2>&1 &&
        got=$(cd "$tmp" && "$tmp/${way#* }/job" --quiet --hash --data "$data" --checkpoint "$tmp/kept" --resume 2>"$tmp/said" |
            sed -n 's/^sha256 //p')
    if [ "$got" = "$reference" ]; then pass; else fault "resume, $way: $got $(tail -n 1 "$tmp/said")"; fi
done

# ---- losses, norms and evaluations of every step, and the gradients of the last one
with_eval "$models/tiny-gpt.yaml" >"$tmp/model.yaml"
evals=yes logged="$tmp/model.yaml --set train.batch.global=16 --set train.steps=6 $(groups 4)"
want=$(facts one $logged --stages 2 --schedule 1f1b)
[ "$(echo "$want" | grep -c '"eval"')" = 3 ] && pass || fault "the log of 1f1b: $want"
for plan in "4 --schedule chimera" "2 --schedule chimera --replicas 2 --set devices.0.count=4"; do
    got=$(facts many $logged --stages $plan)
    rm -f "$tmp/many.jsonl"
    if [ "$got" = "$want" ]; then pass; else fault "facts of $plan: $(echo "$got" | head -n 2)"; fi
done

# ---- numbers that two directions do not allow
plan="./dpgen plan $model --estimate"
refuse "three stages" 3 "an even number of stages, and there are 3; take 4" $plan --stages 3 --schedule chimera $(groups 2)
refuse "one group" 3 "train.batch.groups is 1; set it to 2" $plan --stages 2 --schedule chimera
refuse "two groups of two replicas" 3 "train.batch.groups is 2; set it to 4" \
    $plan --stages 2 --schedule chimera --replicas 2 $(groups 2)
refuse "six micro-batches on four stages" 3 \
    "a multiple of 4 micro-batches, and a replica has 6; set train.batch.global to 16" \
    $plan --stages 4 --schedule chimera --set train.batch.global=12 $(groups 2)
refuse "six micro-batches of dualpipe" 3 "4 devices take a multiple of 2 micro-batches, 8 at least, and a replica has 6" \
    $plan --stages 4 --schedule dualpipe --set train.batch.global=12 $(groups 2)
refuse "six micro-batches of bitpipe" 3 "a multiple of 4 micro-batches, and a replica has 6; set train.batch.global to 16" \
    $plan --stages 4 --schedule bitpipe --set train.batch.global=12 $(groups 2)
refuse "three stages of bitpipe" 3 "an even number of stages, and there are 3; take 4" \
    $plan --stages 3 --schedule bitpipe $(groups 2)
refuse "three chunks of bitpipe" 3 "it takes 2 chunks a device, and plan.chunks is 3; delete plan.chunks" \
    $plan --stages 2 --schedule bitpipe --set plan.chunks=3 $(groups 2)
refuse "a map" 3 "delete plan.chunks and plan.map" $plan --stages 2 --map 1,0 --schedule chimera $(groups 2)
grep -q '^[^ ]*:[0-9]*:[0-9]*: error: ' "$tmp/said" && [ "$(grep -c error: "$tmp/said")" = 1 ] && pass ||
    fault "no place: $(head -n 1 "$tmp/said")"

# ---- between processes
if over_mpi 4 2; then
    { line mpi 4 --schedule chimera --set plan.transport=mpi $(groups 2)
      line mpi.dual 4 --schedule dualpipe --set plan.transport=mpi $(groups 2); } | plans
    one_hash "mpi" "$reference"
fi
finish
