#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# docs/compatibility.md: what each version in tests/data kept is still good.  Its folder builds and verifies; its stages are in
# the emitted language of today.  Today's dpgen takes its model file, has its numeric key but for the order of sums, and the job
# goes on from its checkpoint, to the hash that it had or saying that sums have another order; --weights, export and metrics
# read its files.  Fields and statuses are still there.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a
# fields FILE: the names of fields;  statuses FOLDER NAME: the number of an end
fields() { grep -o '"[a-z_0-9]*":' "$1" | sort -u; }
statuses() {
    printf '#include "run.h"\nint main(void) { return %s; }\n' "$2" >"$tmp/status.c"
    $cc -std=c11 -D_GNU_SOURCE -I"$1" -o "$tmp/status" "$tmp/status.c" 2>"$tmp/said" && { "$tmp/status"; echo $?; }
}
kept() {
    version=${1##*/} at=$tmp/${1##*/}
    mkdir "$at"
    for part in folder checkpoint; do
        tar xzf "$1/$part.tar.gz" -C "$at" || { fault "$version: $part.tar.gz"; return; }
    done
    expect "$version: below 300 KB" test "$(wc -c <"$1/folder.tar.gz")" -lt 300000
    if [ -n "$SLOW" ]; then verify="make -s -C $at/folder"; else verify="make_quickly $at/folder"; fi
    refuse "$version: make verify" 0 "every file and 3 steps agree" $verify WARN= verify
    expect "$version: the language" build/emitted "$at/folder/rt/rt.h" $(stages "$at/folder")
    echo >>"$at/folder/stage0.c"
    refuse "$version: a changed folder" 2 "stage0.c: FAILED" make -s -C "$at/folder" WARN= -o train verify

    cp "$1/model.yaml" "$at"
    said=$(cd "$at" && "$root/dpgen" model.yaml --estimate -o now 2>&1) || { fault "$version: model.yaml: $said"; return; }
    use_portable
    said=$(compile "$at/now") || { fault "$version: $said"; return; }
    go="$at/now/job --data LICENSE --quiet --hash" was=$(head -n 1 "$1/after")
    key=$(grep '^key ' "$1/after")
    now=$("$at/now/job" --version | grep '^key ')
    expect "$version: the numeric key" test "${now% order=*}" = "${key% order=*}"
    [ "$now" = "$key" ] && goes_on="^$was$" || goes_on="for sums are of another order now, ${now##*=}$"
    cp -R "$at/checkpoint" "$at/more"
    refuse "$version: its checkpoint" 0 "$goes_on" $go --checkpoint "$at/more" --resume --steps 10 --log "$at/log"
    refuse "$version: its weights" 0 "^sha256 " $go --no-checkpoint --weights "$at/checkpoint/step-000006" --steps 1
    expect "$version: export" ./dpgen export "$at/checkpoint/step-000006" --hf "$at/published"
    expect "$version: its log" ./dpgen metrics "$at/checkpoint/log.jsonl" --tensorboard "$at/board"
    for pair in folder/plan.json=now/plan.json checkpoint/log.jsonl=log \
        checkpoint/step-000006/index.json=more/step-000010/index.json; do
        fields "$at/${pair%=*}" >"$tmp/then"
        fields "$at/${pair#*=}" >"$tmp/now"
        expect "$version: fields of ${pair#*=} went: $(comm -23 "$tmp/then" "$tmp/now" | tr '\n' ' ')" \
            test "$(comm -23 "$tmp/then" "$tmp/now" | wc -l)" = 0 -a -s "$tmp/then"
    done
    for status in $(sed -n 's/^enum { \(DONE.*\) };/\1/p' "$at/folder/rt/run.h" | grep -o '[A-Z_]*'); do
        was=$(statuses "$at/folder/rt" "$status")
        expect "$version: $status" test "$was" = "$(statuses rt "$status")" -a -n "$was"
    done
    rm -rf "$at"
}
for version in tests/data/[0-9]*; do kept "$version"; done
finish
