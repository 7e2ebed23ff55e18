#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A job under a memory limit against the same job without: does it stay inside, are its bits the same, does the step take
# what the plan predicts, and does offload overlap computation?
#
# The limit of every device is 60 % of the largest arena with everything kept, or midway between the smallest limit that
# works and that arena where 60 % is below the smallest.  Times are of a profile measured here first.  Both jobs run
# turn by turn; the median step of each round counts, and the median of the rounds is printed.  Where other
# programs used more than 5 % of the machine it says so, and where a profile measured behind the jobs predicts a step that is
# more than 5 % from the first: neighbours of a virtual machine are nobody's programs here.
#
#   bench/limit/run.sh [-n STEPS] [-r ROUNDS] [-p PROFILE] [-d DATA] MODEL.yaml [OPTION...]
cd "$(dirname "$0")/../.." || exit 2
steps=20 rounds=5 profile= data=LICENSE
while getopts n:r:p:d: option; do
    case $option in
        n) steps=$OPTARG ;; r) rounds=$OPTARG ;; p) profile=$OPTARG ;; d) data=$OPTARG ;;
        *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ -n "$1" ] || { sed -n 's/^#   //p' "$0" >&2; exit 2; }
data=$(realpath "$data")
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

stop() { echo "limit: $1" >&2; exit 1; }
measure() { ./dpgen profile "$@" >"$tmp/said" 2>&1 || stop "$(head -n 1 "$tmp/said")"; }
again=
if [ -z "$profile" ]; then
    profile=$tmp/profile again=$tmp/again
    measure "$@" -o "$profile"
fi
largest() { sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p' | sort -n | tail -n 1; }
plan() { ./dpgen plan "$@" --profile "$profile" --json 2>"$tmp/said"; }
keep=$(plan "$@" --recompute none --offload none | largest)
[ -n "$keep" ] || stop "$(head -n 1 "$tmp/said")"

# The smallest limit that works, to a per cent: halving between nothing and everything kept.
low=0 high=$keep
while [ $((high - low)) -gt $((keep / 100)) ]; do
    middle=$(((low + high) / 2))
    if [ -n "$(plan "$@" --recompute auto --offload auto --limit $middle)" ]; then high=$middle; else low=$middle; fi
done
limit=$((keep * 60 / 100))
[ $limit -ge $high ] || limit=$(((high + keep) / 2))
echo "keep all $keep bytes, smallest limit that works $high, limit $limit"

make_job() {    # NAME OPTION...
    name=$1
    shift
    ./dpgen "$@" --profile "$profile" -o "$tmp/$name" >"$tmp/said" 2>&1 || stop "$(head -n 1 "$tmp/said")"
    make -s -C "$tmp/$name" >"$tmp/said" 2>&1 || stop "$(head -n 1 "$tmp/said")"
    sed -n 's/^ \*   policy  /  &/p' "$tmp/$name"/stage*.c | sed "s/^/$name: /"
}
make_job free "$@" --recompute none --offload none
make_job limited "$@" --recompute auto --offload auto --limit $limit

busy() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 }' /proc/stat; }
own() { awk '{ print $16 + $17 }' /proc/$$/stat; }          # of children that have ended: ticks
run_job() {     # NAME: one round; appends the median step and prints nothing
    rm -f "$tmp/log"
    (cd "$tmp/$1" && ./train --data "$data" --no-checkpoint --quiet --hash --steps "$steps" --log "$tmp/log" \
        --trace "$tmp/$1.trace" >"$tmp/$1.hash") || stop "$1 failed"
    sed -n 's/.*"event":"step".*"ms":\([0-9.]*\).*/\1/p' "$tmp/log" | tail -n +2 | sort -n |
        awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }' >>"$tmp/$1.ms"
    sed -n 's/.*"predicted_ms":\([0-9.]*\).*/\1/p' "$tmp/log" | head -n 1 >"$tmp/$1.want"
}
from=$(busy) mine=$(own) start=$(cut -d' ' -f1 /proc/uptime)
for round in $(seq "$rounds"); do run_job free; run_job limited; done
awk -v a="$from" -v b="$(busy)" -v c="$mine" -v d="$(own)" -v s="$start" -v e="$(cut -d' ' -f1 /proc/uptime)" -v n="$(nproc)" '
    BEGIN { others = (b - a) - (d - c); all = (e - s) * 100 * n; if (others < 0) others = 0
            printf "others used %.1f %% of the machine%s\n", 100 * others / all,
                (100 * others / all > 5 ? ": times below are not a measurement" : "") }'
step() { sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p' | head -n 1; }
if [ -n "$again" ]; then
    measure "$@" -o "$again"
    free="--recompute none --offload none --json"
    before=$(./dpgen plan "$@" --profile "$profile" $free | step)
    awk -v a="$before" -v b="$(./dpgen plan "$@" --profile "$again" $free | step)" '
        BEGIN { off = 100 * (b / a - 1)
                printf "a profile measured behind the jobs predicts a step %+.1f %% from the first%s\n", off,
                    (off > 5 || off < -5 ? ": the machine changed its speed, times below are not a measurement" : "") }'
fi
for name in free limited; do
    sort -n "$tmp/$name.ms" | awk -v name=$name -v want="$(cat "$tmp/$name.want")" '{ a[NR] = $1 }
        END { m = a[int((NR + 1) / 2)]
              printf "%-8s predicted %10.3f ms, measured %10.3f ms, ratio %.3f\n", name, want, m, m / want }'
done
if cmp -s "$tmp/free.hash" "$tmp/limited.hash"; then echo "bits: the same"; else echo "bits: DIFFERENT"; fi
# Of the copies to and from the host, how much ran while their stage did anything but wait
tr '{' '\n' <"$tmp/limited.trace" | awk '
    function field(name,  at) { at = index($0, "\"" name "\":"); return substr($0, at + length(name) + 3) + 0 }
    /"ph":"X","pid":2/ {
        tid = field("tid"); from = field("ts"); to = from + field("dur")
        if (tid >= 1000) { n++; stage[n] = int((tid - 1000) / 2); a[n] = from; b[n] = to }
        else if ($0 !~ /"name":"wait/) { k = ++work[tid]; c[tid, k] = from; d[tid, k] = to }
    }
    END {
        for (i = 1; i <= n; i++) {
            all += b[i] - a[i]
            for (k = 1; k <= work[stage[i]]; k++) {
                x = a[i] > c[stage[i], k] ? a[i] : c[stage[i], k]; y = b[i] < d[stage[i], k] ? b[i] : d[stage[i], k]
                hidden += y > x ? y - x : 0
            }
        }
        if (n) printf "trace: %d copies, %.1f %% of their time beside computation\n", n, 100 * hidden / all
        else print "trace: no copies: recomputation alone was cheaper"
    }'
