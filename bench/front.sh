#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Random questions under ten limits each: what docs/planner.md promises about a larger limit, and about the limit of a report.
#
#   bench/front.sh [-b DPGEN] [-n QUESTIONS] [-s SEED] [-o LINES]
#
# The questions are those of bench/questions.sh.  The limit that a report promises is asked for under three limits that nothing
# fits.  Then the question is asked under the promise, and under limits up to what it takes without one.  Under the middle limit
# it is compared, and one with schedule auto is also asked with three rows of auto.  A line is: promises; steps in ms by growing
# limit, - is no plan; the fastest row of auto less the step of auto, 0 is none; the step by compare less that of plan; the
# slowest plan in processor seconds; the slowest report; the question.  The last lines count what differs.
cd "$(dirname "$0")/.." || exit 2
export LC_ALL=C
binary=./dpgen n=30 seed=1 out=
while getopts b:n:s:o: option; do
    case $option in
        b) binary=$OPTARG ;; n) n=$OPTARG ;; s) seed=$OPTARG ;; o) out=$OPTARG ;;
        *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
    esac
done
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
set -f

# plan QUESTION: into $tmp/plan and $tmp/said; processor seconds are added to $tmp/cost
plan() {
    (ulimit -t 300
     exec /usr/bin/time -q -a -o "$tmp/cost" -f '%U %S' "$binary" plan $1 --estimate --json) \
        </dev/null >"$tmp/plan" 2>"$tmp/said"
}
step() {
    awk '/"step_ns"/ && step == "" { match($0, /"step_ns": [0-9]+/); step = substr($0, RSTART + 11, RLENGTH - 11) / 1e6 }
        END { print step == "" ? "-" : step }' "$tmp/plan"
}
slowest() { awk '$1 + $2 > most { most = $1 + $2 } END { printf "%.1f", most }' "$tmp/cost"; rm -f "$tmp/cost"; }
promise() { plan "$1 --limit $2MiB"; sed -n 's/.*fits: --limit \([0-9A-Za-z]*\).*/\1/p' "$tmp/said"; }
mib() { echo "$1" | awk '{ n = $0 + 0; print /KiB/ ? n / 1024 : /GiB/ ? n * 1024 : /MiB/ ? n : n / 1048576 }'; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { print a == "-" || b == "-" || a == "" ? 0 : a - b }'; }

bench/questions.sh -n "$n" -s "$seed" | while read -r question; do
    plan "$question"
    most=$(sed -n 's/.*"arena_bytes": *\([0-9]*\).*/\1/p' "$tmp/plan" | sort -n | tail -n 1)
    rm -f "$tmp/cost"
    least=$(promise "$question" 1060)           # reserve and workspace of a device are 1056 MiB
    if [ -z "$most" ] || [ -z "$least" ]; then
        echo "${least:--} none 0 0 0 0 $question"
        continue
    fi
    low=$(mib "$least")
    promises=$least
    for part in 0.5 0.93; do
        other=$(promise "$question" "$(awk -v l="$low" -v p=$part 'BEGIN { printf "%d", 1056 + (l - 1056) * p }')")
        promises="$promises,${other:-$(step)ms}"
    done
    reports=$(slowest)
    steps= row=0
    for share in 0 0.01 0.03 0.06 0.1 0.16 0.25 0.4 0.6 1; do
        limit=$(awk -v l="$low" -v m="$most" -v s=$share 'BEGIN {
            m = m / 1048576 + 1056
            printf "%d", s == 0 || m < l ? l + 0.999 : l + s * (m - l) + 1 }')
        plan "$question --limit ${limit}MiB"
        steps="$steps,$(step)"
        [ $share != 0.25 ] || middle=$limit
    done
    seconds=$(slowest)
    plan "$question --limit ${middle}MiB"
    at=$(step)
    compared=$(less "$("$binary" compare $question --limit "${middle}MiB" --estimate --quick --json 2>/dev/null </dev/null |
        awk '/"exact"/ && match($0, /"step_ns": [0-9]+/) { print substr($0, RSTART + 11, RLENGTH - 11) / 1e6; exit }')" "$at")
    case $question in *"--schedule auto"*)
        for k in 1f1b zb-h1 'zb*'; do
            plan "$(echo "$question" | sed "s/--schedule auto/--schedule $k/") --limit ${middle}MiB"
            row=$(awk -v r="$row" -v d="$(less "$(step)" "$at")" 'BEGIN { print d < r ? d : r }')
        done ;;
    esac
    rm -f "$tmp/cost"
    echo "$promises ${steps#,} $row $compared $seconds $reports $question"
done | tee "${out:-$tmp/lines}"
awk '$2 == "none" { none++; next }
    { q++
      n = split($1, p, ",")
      for (i = 2; i <= n; i++)
          if (p[i] ~ /ms/) below++
          else if (p[i] != p[1]) differ++
      n = split($2, s, ",")
      broken += s[1] == "-"
      least = 0
      for (i = 1; i <= n; i++) {
          if (s[i] == "-") { lost += least > 0; continue }
          more = least > 0 ? s[i] / least - 1 : 0
          any += more > 0.0001
          slow += more > 0.003
          worst = more > worst ? more : worst
          if (least == 0 || s[i] < least) least = s[i] }
      rows += $3 < 0
      apart += $4 > 0.001 || $4 < -0.001
      plan = $5 > plan ? $5 : plan
      report = $6 > report ? $6 : report }
    END { printf "%d questions, %d without a promise\n", q, none
          printf "promises: %d differ, %d limits below plan, %d do not plan\n", differ, below, broken
          printf "larger limits: %d plans lost, %d slower by 0.01 %%, %d by 0.3 %%, at most %.1f %%\n", lost, any, slow,
              worst * 100
          printf "%d rows of auto are faster, %d steps of compare differ\n", rows, apart
          printf "slowest plan %.1f s, report %.1f s\n", plan, report }' "${out:-$tmp/lines}"
