#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What checkpoints cost a step: a job that writes none, one that writes them beside its steps, and one that waits.
#
#   checkpoint.sh [-r ROUNDS] [-n STEPS] [-e EVERY] [-d WIDTH] [-l LAYERS] [-t THREADS] [-o DIR]
#
# The byte-level GPT of examples/ on one device, wide and with few positions, so that its states are large for a step.  The
# three take turns, ROUNDS times (3).  Printed is the mean step of a run from the first checkpoint to the last
# step, checkpoints included, and the longest step: the median of the rounds, and their range.  Checkpoints go to DIR, which
# should be on the disk in question.
set -eu
export LC_ALL=C
rounds=3 steps=41 every=10 width=512 layers=8 threads=1 where=
while getopts r:n:e:d:l:t:o: option; do
    case $option in
    r) rounds=$OPTARG ;; n) steps=$OPTARG ;; e) every=$OPTARG ;; d) width=$OPTARG ;; l) layers=$OPTARG ;;
    t) threads=$OPTARG ;; o) where=$OPTARG ;;
    *) exit 2 ;;
    esac
done
cd "$(dirname "$0")/.."
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp" "$where/checkpoint.$$"' EXIT
trap 'exit 1' HUP INT TERM
where=${where:-$tmp}

for job in none beside waits; do
    case $job in waits) beside=false ;; *) beside=true ;; esac
    ./dpgen examples/bytes-gpt.yaml -D "D=$width" -D H=8 -D T=32 -D "L=$layers" --devices cpu --stages 1 --estimate \
        -o "$tmp/$job" --set devices.0.count=1 --set "devices.0.threads=$threads" --set train.batch="{micro: 1, global: 2}" \
        --set data="{train: {format: bytes, files: $PWD/LICENSE, tokens: tokens, next: targets}}" \
        --set checkpoint="{every: $every, async: $beside}" >"$tmp/said" 2>&1 && make -s -j2 -C "$tmp/$job" >>"$tmp/said" 2>&1 ||
        { cat "$tmp/said" >&2; exit 1; }
done
run() {         # JOB: mean and longest step behind the first checkpoint, in ms
    rm -rf "$tmp/log" "$where/checkpoint.$$"
    case $1 in none) to=--no-checkpoint ;; *) to="--checkpoint $where/checkpoint.$$" ;; esac
    "$tmp/$1/train" --steps "$steps" --quiet $to --log "$tmp/log" >"$tmp/said" || exit 1
    sed -n 's/.*"event":"step","step":\([0-9]*\).*"ms":\([0-9.]*\).*"time":\([0-9.]*\).*/\1 \2 \3/p' "$tmp/log" |
        awk -v every="$every" '$1 == every { from = $3 - $2 / 1000; n = $1 - 1 }
            $1 >= every { if ($3 - last > long && $1 > every) long = $3 - last; last = $3; k = $1 }
            END { printf "%.1f %.1f\n", 1000 * (last - from) / (k - n), 1000 * long }'
}
for round in $(seq "$rounds"); do
    for job in none beside waits; do run $job >>"$tmp/$job.ms"; done
done
row() {         # COLUMN JOB
    awk -v c="$1" '{ print $c }' "$tmp/$2.ms" | sort -g |
        awk '{ x[NR] = $1 } END { printf "%s ms (%s to %s)", x[int((NR + 1) / 2)], x[1], x[NR] }'
}
parameters=$(./dpgen check examples/bytes-gpt.yaml -D "D=$width" -D H=8 -D "L=$layers" 2>/dev/null |
    sed -n 's/.*parameters *//p' | head -n 1)
echo "D=$width, L=$layers: $parameters parameters; $steps steps, a checkpoint every $every, $threads threads, $rounds rounds"
for job in none beside waits; do echo "$job: step $(row 1 $job), longest $(row 2 $job)"; done
