#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# devices.order: free.
#
#   brute     unequal devices in every order, each planned by itself: the free order has the shortest of these steps, and its
#             bound is above none of them; planners that prove nothing, devices left out, memory that few orders have enough of
#   job       the same bits as in the given order; stages on the ranks of their devices
#   refused   what also says which device does what
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a
use_portable

number() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$tmp/json" | head -n 1; }

# One line of device each; a is fast, c slow, with little or much memory.
entry() {
    case $1 in
    a) echo "  - {name: a, memory: $a}" ;;
    b) echo "  - {name: b, memory: $b, flops: 100GFLOP/s, bandwidth: 12GB/s}" ;;
    c) echo "  - {name: c, memory: $c, flops: 30GFLOP/s, bandwidth: 5GB/s}" ;;
    esac
}
devices() { echo "devices:"; for d in "$@"; do entry "$d"; done; echo "links: {a-c: {rate: 200MB/s, latency: 20us}}"; }

# brute OPTION...: the best of all orders against the free one
brute() {
    best= bound=0
    for order in "a b c" "a c b" "b a c" "b c a" "c a b" "c b a"; do
        devices $order >"$tmp/in_order.yaml"
        ./dpgen plan "$@" --estimate --devices "$tmp/in_order.yaml" --json >"$tmp/json" 2>"$tmp/err" || continue
        step=$(number step_ns)
        [ -n "$best" ] && [ "$best" -le "$step" ] || best=$step
    done
    devices $given >"$tmp/free.yaml"
    ./dpgen plan "$@" --estimate --devices "$tmp/free.yaml" --device-order free --json >"$tmp/json" 2>"$tmp/err"
    status=$? step=$(number step_ns) bound=$(number step_bound_ns)
    if [ -z "$best" ]; then
        [ "$status" != 0 ] && pass || fault "$*: no order fits, and free has a plan"
    elif [ "$step" = "$best" ] && [ "${bound:-0}" -le "$best" ]; then pass
    else fault "$*: free takes ${step:-nothing}, bound $bound; the best order $best: $(head -n 1 "$tmp/err")"; fi
}

a=1GiB b=1GiB c=1GiB given="c a b"
gpt="$models/tiny-gpt.yaml --set train.batch.global=16 --estimate"
brute $gpt --stages 3 --schedule 1f1b
brute $gpt --stages 2 --schedule gpipe --planner pipedream:strong
a=600KiB b=400KiB c=100KiB
brute $gpt --stages 3 --schedule 1f1b --planner vpipe:paper --recompute auto

# ---- job ----
a=1GiB b=1GiB c=1GiB
devices c a b >"$tmp/free.yaml"
free="$gpt --set train.steps=3 --stages 3 --schedule 1f1b --devices $tmp/free.yaml"
said=$(generate "$tmp/given" $free && compile "$tmp/given" && job_hash "$tmp/given")
hash=$said
said=$(generate "$tmp/order" $free --device-order free && compile "$tmp/order" && job_hash "$tmp/order")
if [ ${#hash} = 64 ] && [ "$said" = "$hash" ]; then pass; else fault "the job: $said, in the given order $hash"; fi
grep -q '^stage 0 .* (a)' "$tmp/order.said" 2>/dev/null || ./dpgen plan $free --device-order free >"$tmp/order.said" 2>&1
grep -q 'stage 0 .* (a)' "$tmp/order.said" && grep -q 'note .*device order a ' "$tmp/order.said" && pass ||
    fault "what the plan says: $(sed -n 4,5p "$tmp/order.said")"
expect "the order in the file" ./dpgen plan $free --set devices.order=free
expect "a map with the list" ./dpgen plan $gpt --devices "$tmp/free.yaml" --set devices.order=free --set devices.0.memory=2GiB

# read back: the same plan, with its devices
./dpgen plan $free --device-order free -d a >"$tmp/plan" 2>"$tmp/said"
grep -q 'place=2' "$tmp/plan" && ./dpgen plan $free --from "$tmp/plan" >"$tmp/said" 2>&1 &&
    grep -q 'stage 0 .* (a)' "$tmp/said" && pass || fault "read back: $(head -n 1 "$tmp/said")"
sed 's/place=2/place=1/' "$tmp/plan" >"$tmp/twice"
refuse "a device twice" 3 "each has another one" ./dpgen plan $free --from "$tmp/twice"

# ---- ranks: each names itself; stage i is the rank of its device ----
if over_mpi 3 2; then
    said=$(generate "$tmp/ranks" $free --device-order free --set plan.transport=mpi && compile "$tmp/ranks" &&
        job_hash "$tmp/ranks" </dev/null)
    [ "$said" = "$hash" ] && pass || fault "mpi: $said, not $hash"
    ranks=$(sed -n 's/^static const int rank.. = {\(.*\)};/\1/p' "$tmp/ranks/launch.c")
    names=$(sed -n 's/.*{"device": "\(.\)".*/\1/p' "$tmp/ranks/plan.json" | tr -d '\n')
    expected=$(echo "$names" | sed 's/./&, /g; s/c/0/; s/a/1/; s/b/2/; s/, $//')
    [ "$ranks" = "$expected" ] && pass || fault "stages are on ranks $ranks, their devices are $names"
fi

# ---- refused ----
plan="./dpgen plan $gpt --devices $tmp/free.yaml --device-order free"
refuse "a map" 3 "plan.map names them" $plan --map 0,1,2
refuse "chunks" 3 "plan.chunks gives each several" $plan --stages 2 --set plan.chunks=2
refuse "any chunks" 3 "plan.chunks gives each several" $plan --stages 2 --set plan.chunks=auto
refuse "replicas" 3 "replicas take them in the order" $plan --stages 1 --replicas auto
refuse "a word" 3 "did you mean 'free'" ./dpgen plan $gpt --device-order fre
refuse "too little" 4 "device order" $plan --stages 3 --limit 20KiB
finish
