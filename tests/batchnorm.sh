#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Running statistics, on paper (tests/models/running.yaml): an evaluation reads them, a step moves them once, `track: micro`
# once a micro-batch, whatever is made again, wherever the cuts are, also between mean and its reader, in overlapping steps,
# with replicas and after a resume.  They stand in checkpoints under PyTorch's names.
. "$(dirname "$0")/lib.sh"
need dpgen build/librt.a
model=$models/running.yaml
$cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/npy" tests/npy.c || { fault "tests/npy.c"; finish; }
(cd "$tmp" && ./npy one.npy f4 1 1 16 1 && ./npy zero.npy f4 0 0 16 1)
cwd=$tmp

# evaluations OPTION...: k of each, from its loss
evaluations() {
    (cd "$tmp" && timeout 60 s/job --quiet --log s.log.json "$@") >"$tmp/said" 2>&1 || { tail -n 1 "$tmp/said"; return; }
    sed -n 's/.*"event":"eval".*"loss":\([^,}]*\)[,}].*/\1/p' "$tmp/s.log.json" | awk '{
        for (k = 0; k < 64; k++) {
            want = 4^-k / (2^-k + 2^-10)
            if ($1 > want * (1 - 1e-5) && $1 < want * (1 + 1e-5)) break
        }
        printf "%s ", k < 64 ? k : "loss=" $1
    }'
    rm -f "$tmp/s.log.json"
}
# paper WHAT K... : OPTION...
paper() {
    what=$1 want=$2
    shift 2
    rm -rf "$tmp/s"
    said=$(generate "$tmp/s" "$model" "$@" && compile "$tmp/s" && evaluations --no-checkpoint)
    if [ "$said" = "$want " ]; then pass; else fault "$what: $said, not $want"; fi
}

use_portable
paper "one stage" "2 4 6"
paper "made again" "2 4 6" --recompute full
paper "two stages" "2 4 6" --stages 2 --schedule 1f1b --recompute full
paper "a cut between mean and reader" "2 4 6" --stages 3 --cuts 0,1 --schedule 1f1b
paper "W delayed" "2 4 6" --stages 2 --cuts 1 --schedule zb-h1
paper "groups, replicas" "2 4 6" --stages 2 --replicas 2 --set train.batch.groups=2
paper "groups, replicas, shards" "2 4 6" --replicas 2 --set train.batch.groups=2 --set train.shard=optimizer
paper "copies" "2 4 6" --widths 2,1 --stages 2 --cuts 1 --schedule 1f1b --set train.batch.groups=2
paper "steps overlap" "2 4 6" --stages 2 --cuts 1 --schedule 2bw
paper "two directions" "2 4 6" --stages 2 --cuts 1 --schedule chimera --set train.batch.groups=2
paper "steps overlap, one micro-batch" "2 4 6" --stages 2 --cuts 2 --schedule pipedream --set train.batch.micro=8
sed 's/BatchNorm, /BatchNorm, track: micro, /' "$model" >"$tmp/micro.yaml"
model=$tmp/micro.yaml
paper "micro" "8 16 24"
paper "micro, made again" "8 16 24" --stages 3 --cuts 0,1 --recompute full --schedule 1f1b
paper "micro, groups, replicas" "8 16 24" --stages 2 --replicas 2 --set train.batch.groups=2
copies="--stages 2 --cuts 1 --schedule 1f1b --set train.batch.groups=2 --set devices.0.count=3"
paper "micro, copies" "8 16 24" --widths 1,2 $copies
model=$models/running.yaml

# Stop after 3 steps; the checkpoint has the three states
rm -rf "$tmp/s"
said=$(generate "$tmp/s" "$model" --stages 2 --schedule 1f1b && compile "$tmp/s" && evaluations --checkpoint ckpt --steps 3)
[ "$said" = "2 3 " ] && pass || fault "3 steps: $said"
said=$(cat "$tmp"/ckpt/step-000003/index.json | tr ',' '\n' | sed -n 's/.*"\(norm\.[a-z_]*\)".*/\1/p' | sort -u | tr '\n' ' ')
want="norm.bias norm.num_batches_tracked norm.running_mean norm.running_var norm.weight "
[ "$said" = "$want" ] && pass || fault "names: $said"
said=$(evaluations --checkpoint ckpt --resume)
[ "$said" = "4 6 " ] && pass || fault "resumed: $said"
finish
