#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The promises of the planner, held against random questions under eleven limits each.
#
#   bench/promises.sh [-b DPGEN] [-n QUESTIONS] [-s SEED] [-o LINES]
#
# Questions are those of bench/questions.sh, with untied models.  A report says which limit plans.  The limits asked are 96 to
# 200 % of that one.  A line: what is wrong, the limit in MiB, the step in ms, the question.
#
#   lost      a larger limit has no plan, where a smaller one has
#   slower    the step is longer than under a smaller limit, by more than 0.3 %
#   promise   the promised limit has no plan, or a report under another limit promises another one
#   below     a plan under a limit below the promised one; no promise is broken by that
#
# LINES: part of the promised limit, limit in KiB, step in ns, promise of this report and of the first one, question.  The exit
# status is 1 if a promise is broken.
cd "$(dirname "$0")/.." || exit 2
export LC_ALL=C
binary=./dpgen n=40 seed=1 out=
while getopts b:n:s:o: option; do
    case $option in
        b) binary=$OPTARG ;; n) n=$OPTARG ;; s) seed=$OPTARG ;; o) out=$OPTARG ;;
        *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
    esac
done
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$tmp/untied"
for file in examples/*.yaml; do sed 's/, tie: [a-z_.]*//' "$file" >"$tmp/untied/${file#*/}"; done
set -f

# plan QUESTION KIB: step in ns, 0 without a plan; the report stands in $tmp/said
plan() {
    (ulimit -t 120; exec "$binary" plan $1 --estimate --json --limit "$2KiB") </dev/null >"$tmp/plan" 2>"$tmp/said"
    awk '/"step_ns"/ { match($0, /"step_ns": [0-9]+/); step = substr($0, RSTART + 11, RLENGTH - 11); exit }
        END { print step + 0 }' "$tmp/plan"
}
promised() {
    sed -n 's/.*fits: --limit \([0-9]*\)\([KMG]\)iB.*/\1 \2/p' "$tmp/said" |
        awk '{ print $1 * ($2 == "K" ? 1 : $2 == "M" ? 1024 : 1048576) }'
}

bench/questions.sh -n "$n" -s "$seed" | sed "s|^examples/|$tmp/untied/|" >"$tmp/questions"
while read -r question; do
    plan "$question" 1089536 >"$tmp/step"
    least=$(promised)
    if [ -z "$least" ]; then echo "- 1089536 $(cat "$tmp/step") - $question"; continue; fi
    for part in 960 970 980 985 990 995 1000 1010 1050 1200 2000; do
        kib=$((least * part / 1000))
        [ "$kib" -gt 1089536 ] || continue
        step=$(plan "$question" "$kib")
        echo "$part $kib $step $(promised):$least $question"
    done
done <"$tmp/questions" >"$tmp/lines"
[ -z "$out" ] || cp "$tmp/lines" "$out" || exit 2
sed "s|$tmp/||" "$tmp/lines" | awk '
    function tell(what) { count[what]++; printf "%-8s %7.1f MiB %10.3f ms %s\n", what, $2 / 1024, $3 / 1e6, question }
    { question = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ [^ ]+ /, "", question)
      if (question != last) { asked++; best = 0; last = question }
      if ($1 == "-") { silent++; next }
      split($4, limit, ":"); plans++
      if ($3 == 0 && best > 0) tell("lost")
      if ($3 > 0 && best > 0 && $3 > best * 1.003) tell("slower")
      if ($1 == 1000 && $3 == 0 || limit[1] != "" && limit[1] != limit[2]) tell("promise")
      if ($1 < 1000 && $3 > 0) tell("below")
      if ($3 > 0 && (best == 0 || $3 < best)) best = $3 }
    END { broken = count["lost"] + count["slower"] + count["promise"]
          printf "%d questions, %d without a report, %d plans: %d lost, %d slower, %d wrong promises; %d below a promise\n",
              asked, silent, plans, count["lost"], count["slower"], count["promise"], count["below"]
          exit broken > 0 }'
