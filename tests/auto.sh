#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# recompute: auto fits wherever full or none does: limits between what the plan of full needs and what that of none needs,
# for every stage count and schedule of small models.
. "$(dirname "$0")/lib.sh"
need dpgen

# arena OPTION...: the largest arena of the plan, in bytes
arena() {
    ./dpgen plan $options "$@" --json 2>"$tmp/said" | sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p' | sort -n | tail -n 1
}
fits() { ./dpgen plan $options "$@" >"$tmp/said" 2>&1; }

# try LIMIT: the plan of auto, where there is one of full or of none
try() {
    if fits --limit "$1" --recompute auto; then pass
    elif fits --limit "$1" --recompute full || fits --limit "$1" --recompute none; then
        fault "$options: $1 bytes: auto finds no plan"
    else pass; fi
}

# grid POINTS MODEL OPTION...
grid() {
    points=$1
    shift
    for stages in 1 2 3 4; do
        for schedule in gpipe 1f1b; do
            options="$* --stages $stages --schedule $schedule"
            most=$(arena --recompute none) least=$(arena --recompute full)
            [ -n "$most" ] && [ -n "$least" ] || { fault "$options: $(head -n 1 "$tmp/said")"; continue; }
            for i in $(seq 0 "$points"); do try $((least + (most - least) * i / points)); done
        done
    done
}
grid ${SLOW:+1}2 $models/tiny-gpt.yaml --set train.batch.global=16
grid ${SLOW:+1}1 $models/tiny-t5.yaml
grid ${SLOW:+1}2 $models/branches.yaml
options="$models/tiny-gpt.yaml --set train.batch.global=16 --stages 3 --schedule 1f1b"
try 309760
# such a plan is one of auto: read back, it passes the checks
options="$options --limit 309760 --recompute auto"
./dpgen plan $options -d a >"$tmp/plan" 2>"$tmp/said" || fault "no plan to read back"
expect "a plan read back" ./dpgen plan $options --from "$tmp/plan"
finish
