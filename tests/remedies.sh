#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What a message of status 4 or 5 says to do is done, word by word, by a shell: then the command that failed works.
. "$(dirname "$0")/lib.sh"
need dpgen
model="$tmp/it's a model.yaml" file="$tmp/it's a model.cpu.profile"
cp "$models/mlp.yaml" "$model"
PATH=$root:$PATH
export PATH

use_ready -O0           # what is measured does not matter

# measure WHAT TEXT COMMAND...: it ends with status 5 and TEXT; what it says to run is run, and then it works
measure() {
    what=$1 text=$2
    shift 2
    refuse "$what" 5 "$text" "$@"
    sed -n 's/.*measure again: \(dpgen profile .*\)/\1/p' "$tmp/said" | sed 's/, or .*//' >"$tmp/remedy"
    expect "$what: its remedy" sh "$tmp/remedy"
    expect "$what: with it" "$@"
}
expect "a profile" dpgen profile "$model"
measure "another dim" "no line 'op" dpgen "$model" -D D=8 -o "$tmp/out"
printf 'devices: [{name: cpu, kind: cpu, count: 3, memory: 2MiB, threads: 1, kernels: portable}]\n' >"$tmp/three devices.yaml"
measure "another type, stages and devices" "measured with compute" dpgen plan "$model" --set train.precision.compute=bf16 \
    --stages=2 --set 'plan.recompute=[act]' --devices "$tmp/three devices.yaml"
sed 's/^device .*/device Intel 4004/' "$file" >"$tmp/some profile"
refuse "another machine" 5 "or plan for the machine of the profile: --elsewhere" \
    dpgen plan "$model" --set train.precision.compute=bf16 --profile "$tmp/some profile"
expect "another machine: elsewhere" \
    dpgen plan "$model" --set train.precision.compute=bf16 --profile "$tmp/some profile" --elsewhere
sed '12s/alone=[0-9]*/alone=x/' "$file" >"$tmp/some profile"
measure "a line that is none" "some profile:12: not a line" dpgen plan "$model" --profile "$tmp/some profile"

# fits WHAT COMMAND...: status 4; each remedy that is an option makes a plan
fits() {
    what=$1
    shift
    refuse "$what" 4 "tried and fits: " "$@"
    sed -n 's/^ *tried and fits: //p' "$tmp/said" | sed 's/; /\n/g' | sed 's/ ([^)]*)$//' >"$tmp/remedies"
    n=0
    while IFS= read -r remedy; do
        case $remedy in --*) ;; *) continue ;; esac
        n=$((n + 1))
        expect "$what: $remedy" sh -c "\"\$@\" $remedy" - "$@"
    done <"$tmp/remedies"
    [ "$n" -gt 0 ] && pass || fault "$what: no remedy is an option: $(cat "$tmp/remedies")"
}
fits "too little memory" dpgen plan "$model" --estimate --limit 1KiB
fits "one stage too little" dpgen plan "$models/tiny-gpt.yaml" --estimate --stages 1 --limit 400KiB
fits "more stages than operators" dpgen plan "$models/tiny-gpt.yaml" --estimate --set devices.0.count=99 --stages 99
fits "a full host" dpgen plan "$models/tiny-gpt.yaml" --estimate --stages 2 --schedule gpipe --offload '[h.*]' \
    --set hosts.offload=1KiB
finish
