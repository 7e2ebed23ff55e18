#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Are the checkers enough?  Good plans are damaged at random (damage.awk).  dpgen --from must refuse such a plan with status 3
# and write nothing, or what it writes must be the same job: the same sources, or else the same bits when it runs.
#
#   tests/damage.sh [COUNT [SEED]]    COUNT plans of each kind: 2000 with SLOW=1; else 8 of two kinds
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a
use_portable
count=${1:-${SLOW:+2000}} from=${2:-1}
every=${count:+yes} count=${count:-8}
kept=$root/build/damaged

# one DIR SEED: `pass`, or `fail` and, on standard error, what is wrong
one() {
    d=$1/out
    awk -v seed="$2" -f tests/damage.awk "$good" >"$1/bad"
    (ulimit -t 20; exec ./dpgen "$model" $options --from "$1/bad" -o "$d") >"$1/said" 2>&1
    status=$? why=
    if [ $status = 3 ]; then
        [ ! -e "$d" ] || why="refused, and written"
    elif [ $status != 0 ]; then
        why="status $status: $(tail -n 1 "$1/said")"
    elif ! same_sources "$d"; then
        why=$(compile "$d" && job_hash "$d")
        [ "$why" != "$hash" ] || why=
        [ ${#why} != 64 ] || why="accepted, and other bits"
    fi
    rm -rf "$d" "$d.log" "$d.out"
    if [ -z "$why" ]; then echo pass; return; fi
    mkdir -p "$kept"
    cp "$1/bad" "$kept/$name.$2"
    echo fail
    echo "$suite: $model $options --from build/damaged/$name.$2: $why" >&2
}
same_sources() { for s in "$tmp/whole"/*.[ch]; do cmp -s "$s" "$1/$(basename "$s")" || return 1; done; }

damaged() {     # NAME MODEL OPTIONS
    name=$1 model=$2
    shift 2
    case ${every:-$name} in yes | groups | shard) ;; *) return ;; esac
    options=$* good=$tmp/good
    ./dpgen "$model" $options -d a >"$good" || { fault "$model $options"; return; }
    rm -rf "$tmp/whole"
    ./dpgen "$model" $options --from "$good" -o "$tmp/whole" >"$tmp/said" 2>&1 && compile "$tmp/whole"
    hash=$(job_hash "$tmp/whole")
    rm -rf "$tmp/whole/job"
    if [ ${#hash} = 64 ]; then pass; else fault "$name: the whole plan: $hash"; return; fi
    for worker in $(seq "$cores"); do
        mkdir -p "$tmp/$worker"
        seed=$((from + worker - 1))
        while [ $seed -lt $((from + count)) ]; do
            one "$tmp/$worker" $seed
            seed=$((seed + cores))
        done >"$tmp/result.$worker" &
    done
    wait
    passed=$((passed + $(cat "$tmp"/result.[0-9]* | grep -c '^pass')))
    failed=$((failed + $(cat "$tmp"/result.[0-9]* | grep -c '^fail')))
}

sed 's/, tie: wte//' "$models/tiny-gpt.yaml" >"$tmp/untied.yaml"
tiny="--set train.batch.global=16 --estimate"
damaged again $models/tiny-gpt.yaml --stages 3 --recompute full $tiny
damaged groups $models/tiny-gpt.yaml --stages 2 --set train.batch.groups=4 $tiny
damaged chunks $models/tiny-gpt.yaml --stages 2 --map 0,1,0,1 --schedule 1f1b $tiny
damaged zb $models/tiny-gpt.yaml --stages 2 --schedule zb-h1 $tiny
damaged replicas $models/tiny-gpt.yaml --stages 2 --replicas 2 --schedule 1f1b --set train.batch.groups=2 $tiny
damaged shard $models/tiny-gpt.yaml --stages 2 --replicas 2 --schedule 1f1b --set train.batch.groups=2 \
    --set train.shard=optimizer $tiny
damaged offload $models/tiny-gpt.yaml --stages 2 --schedule 1f1b --set links.cpu-host.rate=4GB/s \
    --set links.cpu-host.latency=1ns --offload '[h.*]' $tiny
damaged async "$tmp/untied.yaml" --stages 2 --schedule 2bw $tiny
damaged ways "$tmp/untied.yaml" --stages 2 --schedule chimera --set train.batch.groups=2 $tiny
damaged tied $models/branches.yaml --stages 2 --estimate
write_ops_data "$tmp/ops"
damaged ops $models/ops.yaml --stages 2 --estimate
finish
