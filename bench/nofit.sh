#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Random questions that nothing fits: the processor time and memory of each report, and of the plan at the limit that it
# promises.
#
#   bench/nofit.sh [-b DPGEN] [-n QUESTIONS] [-s SEED]
#
# A question draws a model, a device file, stages, a schedule, --offload, and a limit below the least.  A line is: processor
# seconds and resident KiB of the report, the limit promised, status, seconds and KiB of its plan, the question.  Reports are
# due in 10 s and 2 GB.  The exit status is 1 if a report takes more, or a promised limit does not plan.
cd "$(dirname "$0")/.." || exit 2
export LC_ALL=C
binary=./dpgen n=50 seed=1
while getopts b:n:s: option; do
    case $option in
        b) binary=$OPTARG ;; n) n=$OPTARG ;; s) seed=$OPTARG ;;
        *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
    esac
done
[ -x /usr/bin/time ] || { echo "nofit: /usr/bin/time is not there (Debian: apt-get install time)" >&2; exit 2; }
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# cost FILE COMMAND...: "seconds KiB"; the status is that of the command
cost() {
    said=$1
    shift
    (ulimit -t 120; exec /usr/bin/time -q -o "$tmp/time" -f '%U %S %M' "$@" --estimate >"$said" 2>&1)
    status=$?
    awk 'NF == 3 { printf "%7.2f %8d\n", $1 + $2, $3 }' "$tmp/time"
    return $status
}

awk -v n="$n" -v seed="$seed" '
    function any(list,  at, k) { k = split(list, at, " "); return at[1 + int(k * rand())] }
    BEGIN { srand(seed)
            for (i = 0; i < n; i++) {
                model = any("bert-base bert-large gpt2-124m gpt2-355m gpt2-774m t5-small t5-large")
                printf "examples/%s.yaml --devices devices/%s.yaml --stages %d --schedule %s --offload %s --recompute auto",
                    model, any("v100-16gb rtx2080ti a100-40gb h100"), 1 + int(8 * rand()), any("1f1b gpipe"),
                    any("none auto")
                printf " --limit %dMiB\n", 1100 + int(600 * rand()) } }' >"$tmp/questions"
while read -r question; do
    first=$(cost "$tmp/report" "$binary" plan $question </dev/null)
    status=$?
    [ $status -ne 0 ] || continue               # it fits
    more=$(sed -n 's/.*fits: --limit \([0-9A-Za-z]*\).*/\1/p' "$tmp/report")
    then="- - -"
    if [ -n "$more" ]; then
        then=$(cost "$tmp/plan" "$binary" plan ${question% --limit *} --limit "$more" </dev/null)
        then="$? $then"
    fi
    echo "$first $status ${more:--} $then $question"
done <"$tmp/questions" | tee "$tmp/lines"
awk '{ n++; if ($1 > slow) slow = $1; if ($2 > big) big = $2; if ($6 > plan) plan = $6
       bad += $3 != 4 || $1 > 10 || $2 > 2097152
       none += $4 == "-"; if ($4 != "-") bad += $5 != 0 }
     END { printf "%d reports: slowest %.2f s, most memory %d KiB; slowest promised plan %.2f s; %d promise none; %d wrong\n",
               n, slow, big, plan, none, bad; exit bad > 0 }' "$tmp/lines"
