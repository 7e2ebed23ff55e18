#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare against files that are right, and against the same files damaged: does it see every kind of difference?
#   compare.sh [path of the compare program]
compare=${1:-build/compare}
ref=$(dirname "$0")/ref
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0

# try STATUS WHAT ARGUMENTS: 0 equal, 1 different, 2 unreadable
try() {
    status=$1 what=$2
    shift 2
    "$compare" "$@" >"$tmp/out" 2>"$tmp/err"
    got=$?
    if [ $got -eq "$status" ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    echo "compare.sh: $what: status $got, expected $status: $(head -n 1 "$tmp/err")" >&2
}

# damage FILE OFFSET BYTES: a copy in $tmp/bad with bytes replaced
damage() { cp "$1" "$tmp/bad"; printf "$3" | dd of="$tmp/bad" bs=1 seek="$2" conv=notrunc 2>/dev/null; }

# The log our runtime would have written: the loss in column 2 times $3 at step $2, the norm times $4.
log() {
    awk -v at="$2" -v f="$3" -v g="$4" '!/^#/ {
        k = $1 == at
        printf "{\"event\":\"step\",\"step\":%d,\"loss\":%.9g,\"norm\":%.9g}\n", $1, $2 * (k ? f : 1), $3 * (k ? g : 1)
    }' "$1" >"$tmp/log"
}

start=$ref/gpt.start.safetensors
size=$(wc -c <"$start")
try 0 "a file and itself" "$start" "$start" 0
try 1 "start and end" "$start" "$ref/gpt.end.safetensors" 1e-4
try 1 "another model" "$start" "$ref/bert.start.safetensors" 1
try 1 "twice the same tensors" "$start" "$start" "$start" 1e-4
try 2 "no such file" "$start" "$tmp/none" 1
damage "$start" $((size - 2)) '\000'
try 1 "the last element damaged" "$start" "$tmp/bad" 1e-4
try 0 "the same, of a size that is rounding" --least 1e6 "$start" "$tmp/bad" 1e-4
try 1 "the same, of a size that is not" --least 1e-3 "$start" "$tmp/bad" 1e-4
damage "$start" $((size - 4)) '\000\000\300\177'
try 1 "a NaN" "$start" "$tmp/bad" 1e30
sed 's/wpe\.weight/wpf.weight/' "$start" >"$tmp/bad"
try 1 "a name changed" "$start" "$tmp/bad" 1
sed 's/\[27,9\]/[9,27]/' "$start" >"$tmp/bad"
try 1 "a shape changed" "$start" "$tmp/bad" 1e-4
sed 's/"F32"/"I32"/' "$start" >"$tmp/bad"
try 2 "a type changed" "$start" "$tmp/bad" 1
for n in 0 7 8 100 $((size - 1)); do
    head -c "$n" "$start" >"$tmp/bad"
    try 2 "cut off after $n bytes" "$start" "$tmp/bad" 1
done
damage "$start" 0 '\377\377\377\377\377\377\377\377'
try 2 "an absurd header length" "$start" "$tmp/bad" 1
for model in gpt bert t5; do
    losses=$ref/$model.losses.txt
    log "$losses" 0 1 1
    try 0 "$model: its own losses" --loss "$losses" "$tmp/log" 1e-7
    log "$losses" 20 1.0002 1
    try 1 "$model: one loss changed" --loss "$losses" "$tmp/log" 1e-4
    log "$losses" 7 1 0.9998
    try 1 "$model: one norm changed" --loss "$losses" "$tmp/log" 1e-4
    log "$losses" 0 1 1
    sed -i '$d' "$tmp/log"
    try 1 "$model: a step missing" --loss "$losses" "$tmp/log" 1e-4
    sed 5d "$tmp/log" >"$tmp/gap"
    try 2 "$model: a step missing inside" --loss "$losses" "$tmp/gap" 1e-4
    try 1 "$model: two gradients" "$ref/$model.grad1.safetensors" "$ref/$model.grad20.safetensors" 1e-4
done
echo "compare: $passed passed, $failed failed"
[ $failed -eq 0 ]
