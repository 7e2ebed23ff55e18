#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Paced jobs: eight stages of devices that are not here run with the plan's actions, messages and addresses, and no step
# is shorter than its prediction (less 3 %: a clock is read twice).  How much longer it is depends on who else uses the
# machine, and is measured in bench/paced.
. "$(dirname "$0")/lib.sh"
need dpgen
use_ready -O0

cat >"$tmp/eight.yaml" <<END
devices: [{name: slow, kind: paced, count: 8, memory: 64GiB, flops: 40MFLOP/s, bandwidth: 10MB/s}]
links: {slow-slow: 5MB/s}
END
first=
# try MODEL SCHEDULE OPTION...
try() {
    model=$1 schedule=$2
    shift 2
    dir=$tmp/$(basename "$model" .yaml).$schedule
    what="$(basename "$model") $schedule"
    if ! ./dpgen "$model" --devices "$tmp/eight.yaml" --schedule "$schedule" "$@" -o "$dir" >"$tmp/said" 2>&1 ||
        ! { [ ! -e "$first" ] || take_objects "$first" "$dir"; } || ! make_quickly "$dir" >"$tmp/said" 2>&1; then
        fault "$what: $(tail -n 1 "$tmp/said")"
        return
    fi
    first=$dir
    (cd "$dir" && timeout 60 ./train --steps 2 --log log --trace trace --watchdog 30 >said 2>&1) ||
        { fault "$what: $(tail -n 1 "$dir/said")"; return; }
    pass
    awk -F'[:,}]' '/"start"/ { for (i = 1; i < NF; i++) if ($i ~ /predicted_ms/) want = $(i + 1) }
        /"step"/ { for (i = 1; i < NF; i++) if ($i ~ /"ms"/) { n++; bad += $(i + 1) < 0.97 * want } }
        END { exit !(want > 0 && n == 2 && !bad) }' "$dir/log" && pass ||
        fault "$what: shorter than predicted: $(cat "$dir/log")"
    grep -q '"pid":2' "$dir/trace" && pass || fault "$what: no trace"
}
try $models/tiny-gpt.yaml 1f1b --stages 8 --set train.batch.global=32
try $models/tiny-t5.yaml gpipe --stages 8
try $models/branches.yaml 1f1b --stages 4
try $models/branches.yaml gpipe --stages 4 --offload "['*']" --set links.slow-host.rate=5MB/s
refuse "mpi" 3 "paced stages share one process" ./dpgen $models/mlp.yaml --pace --set plan.transport=mpi -o "$tmp/mpi"
expect "--pace" ./dpgen $models/mlp.yaml --pace -o "$tmp/pace"
expect "its kernels" grep -q '^OBJ.*' "$tmp/pace/Makefile"
[ -f "$tmp/pace/rt/op/paced/kernels.c" ] && [ ! -f "$tmp/pace/rt/op/linear.c" ] && pass || fault "kernels of a paced job"
finish
