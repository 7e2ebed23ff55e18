#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The published inputs of Piper (Tarnawski et al., NeurIPS 2021): under its own costs the plan is as short as that of its
# published program, or shorter, and proven the least; the row `piper` is as short as that program.  What is wrong with such a
# file is said with its place.  SLOW=1: every number of devices and memory, those of PIPER=DIR too.
. "$(dirname "$0")/lib.sh"
need dpgen
from=tests/data/piper
bert=$from/bert32a100.json

# at FILE BYTES MICRO DEVICES OPTION...
at() {
    file=$1 bytes=$2 micro=$3 devices=$4
    shift 4
    ./dpgen plan --from "$file" --limit "${bytes}B" --set "train.batch.global=$micro" --set "devices.*.count=$devices" \
        --link 26.843545600GB/s "$@" 2>&1
}
# case_of NAME BYTES MICRO DEVICES SECONDS: ours within a millionth of a millionth of a second for each of its terms
case_of() {
    for planner in exact piper; do
        at "$file" "$2" "$3" "$4" --planner $planner --json >"$tmp/said"
        got=$(grep -o '"bottleneck[a-z_]*": [a-z0-9]*' "$tmp/said" | sed 's/.*: //' | tr '\n' ' ')
        if [ "$5" = - ]; then
            grep -q 'no plan fits' "$tmp/said" && pass || fault "$1, $2 bytes, $4 devices, $planner: Piper has none"
        elif echo "$got" | awk -v want="$5" -v planner=$planner '{
                value = $1 / 1e12
                other = planner == "exact" ? $1 != $2 : value < want * (1 - 1e-6) - 1e-9
                exit !(value > 0 && value <= want * (1 + 1e-9) + 1e-9 && $3 == "true" && !other) }'; then
            pass
        else
            fault "$1, $2 bytes, $4 devices, $planner: '$got', and Piper has $5 s"
        fi
    done
}
while IFS=, read -r name bytes micro devices seconds _; do
    file=$from/$name.json
    [ -f "$file" ] || file=${PIPER:-none}/$name.json
    short="$bytes/$devices"
    [ -n "${SLOW:-}" ] || case $short in
        1073741824/64|2147483648/64|8589934592/8|8589934592/512|85899345920/128) ;;
        *) continue ;;
    esac
    [ -f "$file" ] && case_of "$name" "$bytes" "$micro" "$devices" "$seconds"
done <"$from/reference.csv"

# ---- its ablations, by algo.cpp with DATA_PARALLELISM_ALLOWED and its kind false: 2 GiB, 64 devices, 25 GB/s -----------------
while read -r ms option; do
    got=$(./dpgen plan --from "$bert" --limit 2GiB --set train.batch.global=1920 --set 'devices.*.count=64' --link 25GB/s \
        --json $option 2>&1 | sed -n 's/.*"bottleneck_ps": \([0-9]*\),.*/\1/p' | awk '{ printf "%.6f", $1 / 1e9 }')
    [ "$got" = "$ms" ] && pass || fault "Piper with $option: $got ms, not $ms"
done <<'END'
79.356232 --replicas 1
44.572009 --set plan.tensor=1
160.761167 --recompute none
32.553826 --recompute auto --set plan.tensor=auto
END
refuse "a number of copies" 3 '\^~* 1, or delete it' ./dpgen plan --from "$bert" --replicas 2 --set train.batch.groups=2

# ---- PipeDream's program: machines of several devices, from its own profiles; milliseconds of its time per stage --------
# VGG-16 on 16 devices is the published plan, 15 copies and 1, at 4 and 16 GB/s; the program itself gives others at 10 GB/s.
replicated() {  # MODEL DEVICES MACHINES RATE ACROSS MS STAGES
    ./dpgen plan --from "tests/data/planner/$1.txt" --objective throughput --planner pipedream:replicated --limit 1TiB --json \
        --set "devices.*.count=$2" --set "hosts.count=$3" --set "links.cpu-cpu=$4GB/s" --set "links.host-host=$5GB/s" \
        >"$tmp/said" 2>&1
    got=$(sed -n 's/.*"claim_ps": \([0-9]*\),.*/\1/p' "$tmp/said" | awk '{ printf "%.6f", $1 / 1e9 }')
    got="$got $(grep -o '"copies": [0-9]*' "$tmp/said" | tr -dc '0-9\n' | tr '\n' '-')"
    if [ "${got%-}" = "$6 $7" ] || { [ -z "$7" ] && [ "${got% *}" = "$6" ]; }; then pass
    else fault "$1, $2 devices of $3 machines, $4 and $5 GB/s: '${got%-}', not '$6 $7'"; fi
}
replicated vgg16 16 1 4 4 44.828262 15-1
replicated vgg16 16 1 16 16 42.962516 15-1
replicated vgg16 16 1 10 10 43.227074 12-3-1
replicated alexnet 16 1 16 16 5.564592 14-1-1
replicated vgg16 16 4 16 1.25 43.972259 12-3-1
replicated vgg16 16 4 4 0.1 49.065535 8-4-3-1
replicated alexnet 16 4 16 1.25 5.836924 8-4-2-1-1
while IFS=, read -r model k _ _ _ _ seconds _; do
    [ "$model" = model ] || { [ "$k" != 4 ] && [ -z "${SLOW:-}" ]; } ||
        replicated "$model" "$k" 1 1 1 "$(echo "$seconds" | awk '{ printf "%.6f", $1 * 1000 }')"
done <tests/data/planner/reference.csv

# ---- by hand ----------------------------------------------------------------------------------------------------------
# Node 7 (8 s, 4 bytes of parameters) sends 1 byte to node 9 (2 s); 2 bytes/s, 4 micro-batches, 3 devices.  Two copies of 7:
# (8 + 2 * 1 / 2 + 4 * 4 / (4 * 2)) / 2 = 5.5 s, with ceil(3 / 2) micro-batches of 4 bytes; then 9: 2 + 1 = 3 s.  Under 7 bytes
# node 7 is made again: (10 + 1 + 2) / 2 = 6.5 s, 2 * 3 bytes.  One stage of two copies takes 6 s, and 7 under 7 bytes.
node() {    # ID SECONDS PARAMETERS EACH FW BW, a second choice
    printf '{"id": %s, "TMPCs": {"1": [{"id": "v", "timePerSample": %s, "parameterSize": %s, ' "$1" "$2" "$3"
    printf '"memoryUsageA": %s, "memoryUsageB": 0, "syncTimeFw": {%s}, "syncTimeBw": {%s}}%s]}}' "$4" "$5" "$6" "$7"
}
again=', {"id": "r", "timePerSample": 10, "parameterSize": 4, "memoryUsageA": 3, "memoryUsageB": 0, '
again=$again'"syncTimeFw": {}, "syncTimeBw": {"9": 0}}'
hand() {
    printf '{"maxDevices": 3, "maxMemoryPerDevice": 10, "bandwidth": 2, "mbsInBatch": 4, "nodes": [\n'
    node 7 8 4 4 '' '"9": 0' "$again"
    printf ',\n'
    node 9 2 0 4 '"7": 0' '' ''
    printf '],\n"edges": [\n{"sourceId": 7, "destId": 9, "communicationCost": 1}]}\n'
}
hand >"$tmp/hand.json"
hand_is() {
    got=$(grep copies "$tmp/said" | sed 's/.*"copies": //; s/, "nodes": \[[^]]*\]//; s/"[a-z_]*": //g; s/}.*//; s/,//g' |
        tr '\n' ';')
    if [ "$got" = "$2" ]; then pass; else fault "$1: '$got', not '$2'"; fi
}
expect "by hand" ./dpgen plan --from "$tmp/hand.json" --json
hand_is "by hand" '2 1 8 5500000000000 [];1 1 4 3000000000000 [];'
expect "by hand, 7 bytes" ./dpgen plan --from "$tmp/hand.json" --limit 7B --json
hand_is "by hand, 7 bytes" '2 1 6 6500000000000 ["7"];1 1 4 3000000000000 [];'
expect "compare" ./dpgen compare --from "$tmp/hand.json" --planners piper
grep -q '^piper  *5500.000000  2x1 1x1$' "$tmp/said" && pass || fault "compare: $(cat "$tmp/said")"
# These look at no memory: all on three copies, (8 + 2 + 2 * 2) / 3 s by the costs above.  By their own: PipeDream 10 s and
# 4 * 2 * 4 / 3 bytes, 10, at 2 a second, over 3; SPP 4 micro-batches of 10 / 3 s; DAPPLE as long, and 2 * 2 * 4 / 3 bytes, 5.
./dpgen compare --from "$tmp/hand.json" --limit 7B --json >"$tmp/said" 2>&1
got=$(grep -o '"planner": "[a-z:]*"\|"bottleneck_ps": [0-9]*' "$tmp/said" | sed 's/.*: //' | tr '\n' ' ')
want='"exact" 6500000000000 "pipedream:replicated" 4666666666667 "dapple" 4666666666667 "spp" 4666666666667 '
[ "$got" = "$want\"piper\" 6500000000000 " ] && pass || fault "compare as data: '$got', not '$want'"
got=$(grep -o '"claim_ps": [0-9]*' "$tmp/said" | tr -dc '0-9\n' | tr '\n' ' ')
[ "$got" = "6500000000000 5000000000000 15833333333336 13333333333336 6500000000000 " ] && pass ||
    fault "by their own objectives: $got"
# VGG-16 on 16 devices at 10 Gbit/s: 15 copies of the convolutions and one of the rest, as DAPPLE publishes for VGG-19
./dpgen plan --from tests/data/planner/vgg16.txt --objective throughput --planner dapple --limit 1TiB \
    --set 'devices.*.count=16' --link 1.25GB/s --set train.batch.global=64 >"$tmp/said" 2>&1
sed -n '3,4p' "$tmp/said" | awk '{ print $1, $3, $9 }' | paste -s -d, | grep -qx '0 15 node2,1 1 node35' &&
    grep -q '^node35 -- Linear(in_features=25088' tests/data/planner/vgg16.txt && pass ||
    fault "DAPPLE's VGG-16: $(cat "$tmp/said")"
many="--from $bert --limit 8GiB --set devices.*.count=512 --set train.batch.global=512"
set -f
refuse "a graph of too many devices" 0 '^spp  *no plan  its program takes too long for so many devices and nodes$' \
    ./dpgen compare $many --planners spp,exact
refuse "nor a plan of it" 1 'planner spp: its program takes too long' ./dpgen plan $many --planner spp
set +f
refuse "no page of it" 3 "planned, and neither" ./dpgen compare --from "$tmp/hand.json" -o "$tmp/page.html"
sed 's/"timePerSample": 8/"timePerSample": 9999/' "$tmp/hand.json" >"$tmp/long.json"
refuse "sums too large" 3 "too large for 2048 devices" ./dpgen plan --from "$tmp/long.json" --set 'devices.*.count=2048'
printf '%s\n' 'dpgen-nodes 1' 'graph one' 'node a forward=1' 'time a on=gpu forward=2' >"$tmp/kinds.txt"
refuse "kinds of devices" 3 "devices of one kind" ./dpgen plan --from "$tmp/kinds.txt" --objective throughput
refuse "nothing fits" 4 "no plan fits: 3 devices of 3 bytes" ./dpgen plan --from "$tmp/hand.json" --limit 3B
refuse "nothing to generate" 3 "planned, and neither" ./dpgen check --from "$tmp/hand.json"
refuse "a number of stages" 3 "part of the plan" ./dpgen plan --from "$tmp/hand.json" --stages 2
refuse "a planner without widths" 3 "no stages of several widths" ./dpgen plan --from "$tmp/hand.json" --planner even
refuse "no such planner" 2 "did you mean 'even'" ./dpgen compare --from "$tmp/hand.json" --planners evn

# ---- what is wrong with a file ------------------------------------------------------------------------------------------
wrong() {   # WHAT TEXT SED: what, at which line and with which text, after this change
    sed "$3" "$tmp/hand.json" >"$tmp/bad.json"
    refuse "$1" 3 "$2" ./dpgen plan --from "$tmp/bad.json"
}
wrong "no time" 'bad.json:2:.*there is no timePerSample' 's/"timePerSample": 8/"time": 8/'
wrong "a negative time" 'bad.json:2:.*timePerSample is negative' 's/"timePerSample": 8/"timePerSample": -8/'
wrong "no number" 'bad.json:3:.*memoryUsageA is not a finite' '3s/"memoryUsageA": 4/"memoryUsageA": "x"/'
wrong "other parameters" 'bad.json:2:.*have the same parameters' 's/4, "memoryUsageA": 3/5, "memoryUsageA": 3/'
wrong "other bytes" 'bad.json:2:.*have the same syncTimeBw' 's/{}, "syncTimeBw": {"9": 0}}\]/{}, "syncTimeBw": {"9": 1}}]/'
wrong "three choices" 'bad.json:2:.*at most two choices' 's/{"id": "r"/{}, &/'
wrong "an id twice" 'bad.json:3:.*a second node 7' 's/"id": 9, "T/"id": 7, "T/'
wrong "no such end" 'bad.json:5:.*no such node' 's/"destId": 9/"destId": 8/'
wrong "a cycle" 'cycle: ' '5s/{\("sourceId": 7.*\)}\]/{\1}, {"sourceId": 9, "destId": 7, "communicationCost": 1}]/
    s/"syncTimeFw": {}/"syncTimeFw": {"9": 0}/g; 3s/"syncTimeBw": {}/"syncTimeBw": {"7": 0}/'
wrong "a degree of 0" "bad.json:2:.*'0' is no number of devices" '2s/"1": \[/"0": [/'
wrong "no devices" 'bad.json:1:.*maxDevices is an integer' 's/"maxDevices": 3/"maxDevices": 0/'
wrong "an edge without sync" 'bad.json:3:.*has no bytes for node 7' '3s/{"7": 0}/{}/'
finish
