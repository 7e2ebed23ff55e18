#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Does split backward gain on the clock?  Two stages on two cores, 8 micro-batches, f32: 1f1b, 1f1b-split and zb-h1, each
# planned with the times of one profile that is measured first.  The jobs run turn by turn; a round gives each the median of
# its steps, and the median of the rounds is printed, with its gain over 1f1b, the gain that the plans predict, and the ideal
# one: steps of 27, 26 and 25 units of F, I or W, of the closed forms in docs/schedules.md.
#
# Where other programs used more than 5 % of the machine the table is no measurement, and the last line says so.
#
#   bench/split/run.sh [-n STEPS] [-r ROUNDS] [-p PROFILE] [MODEL.yaml [OPTION...]]
cd "$(dirname "$0")/../.." || exit 2
steps=20 rounds=7 profile=
while getopts n:r:p: option; do
    case $option in
        n) steps=$OPTARG ;; r) rounds=$OPTARG ;; p) profile=$OPTARG ;;
        *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ -n "$1" ] || set -- examples/bytes-gpt.yaml
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

stop() { echo "split: $1" >&2; exit 1; }
busy() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8, $2 + $3 + $4 + $5 + $6 + $7 + $8 }' /proc/stat; }
own() { awk '{ sub(/.*\) /, ""); print $14 + $15 }' "/proc/$$/stat"; }         # of children that have ended: ticks
median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

[ -n "$profile" ] || { profile=$tmp/profile
    ./dpgen profile "$@" --stages 2 -o "$profile" >"$tmp/said" 2>&1 || stop "$(head -n 1 "$tmp/said")"; }
rows="1f1b 1f1b-split zb-h1"
for row in $rows; do
    ./dpgen "$@" --profile "$profile" --stages 2 --schedule "$row" -o "$tmp/$row" >"$tmp/said" 2>&1 &&
        make -s -C "$tmp/$row" >"$tmp/said" 2>&1 || stop "$(head -n 1 "$tmp/said")"
done
from=$(busy) mine=$(own)
for round in $(seq "$rounds"); do
    for row in $rows; do
        "$tmp/$row/train" --no-checkpoint --quiet --hash --steps "$steps" --log "$tmp/log" >"$tmp/$row.hash" ||
            stop "$row failed"
        sed -n 's/.*"event":"step".*"ms":\([0-9.]*\).*/\1/p' "$tmp/log" | tail -n +2 | median >>"$tmp/$row.ms"
        sed -n 's/.*"predicted_ms":\([0-9.]*\).*/\1/p' "$tmp/log" | head -n 1 >"$tmp/$row.want"
        rm -f "$tmp/log"
    done
done
to=$(busy) used=$(own)
printf '%-12s %12s %12s %10s %10s %8s\n' schedule predicted_ms measured_ms gain predicted ideal
for row in $rows; do
    case $row in 1f1b) units=27 ;; 1f1b-split) units=26 ;; *) units=25 ;; esac
    awk -v row="$row" -v ms="$(median <"$tmp/$row.ms")" -v want="$(cat "$tmp/$row.want")" -v base="$(median <"$tmp/1f1b.ms")" \
        -v plan="$(cat "$tmp/1f1b.want")" -v units=$units 'BEGIN {
            printf "%-12s %12.3f %12.3f %8.1f %% %8.1f %% %6.1f %%\n", row, want, ms, 100 * (1 - ms / base),
                100 * (1 - want / plan), 100 * (1 - units / 27) }'
    cmp -s "$tmp/1f1b.hash" "$tmp/$row.hash" || echo "bits: $row DIFFERENT"
done
awk -v from="$from" -v to="$to" -v mine="$mine" -v used="$used" 'BEGIN {
    split(from, a, " "); split(to, b, " ")
    load = 100 * (b[1] - a[1] - (used - mine)) / (b[2] - a[2])
    printf "others used %.1f %% of the machine%s\n", load, (load > 5 ? ": times above are not a measurement" : "") }'
