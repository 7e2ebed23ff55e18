#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Random questions under tight limits: the gap between the plan and the bound that no plan beats.
#
#   bench/gap.sh [-b DPGEN] [-n QUESTIONS] [-s SEED] [-f FILE]
#
# A question draws a model and its layers, a device file, stages, a schedule, micro-batches and --offload.  The report of a
# limit that nothing fits promises a limit.  The question is asked at 1 to 1.5 times the bytes that it leaves to the plan.
# FILE has the questions of an earlier run, which are asked again, whatever the seed.  A line is: gap in percent, step and bound
# in ms, processor seconds of the plan, the question.
cd "$(dirname "$0")/.." || exit 2
export LC_ALL=C
binary=./dpgen n=50 seed=1 file=
while getopts b:n:s:f: option; do
    case $option in
        b) binary=$OPTARG ;; n) n=$OPTARG ;; s) seed=$OPTARG ;; f) file=$OPTARG ;;
        *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
    esac
done
[ -x /usr/bin/time ] || { echo "gap: /usr/bin/time is not there (Debian: apt-get install time)" >&2; exit 2; }
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# limit QUESTION MORE: the limit of the question, drawn above the least
limit() {
    least=$("$binary" plan $1 --limit 1060MiB --estimate 2>&1 | sed -n 's/.*fits: --limit \([0-9]*\)MiB.*/\1/p')
    [ -n "$least" ] && awk -v least="$least" -v more="$2" 'BEGIN { printf "%dMiB\n", 1056 + (least - 1056) * (1 + more) }'
}

awk -v n="$n" -v seed="$seed" '
    function any(list,  at, k) { k = split(list, at, " "); return at[1 + int(k * rand())] }
    BEGIN { srand(seed)
            for (i = 0; i < n; i++) {
                stages = 2 + int(4 * rand())
                micro = any("1 2 4")
                printf "%.3f examples/%s.yaml -D L=%d", rand() / 2, any("bert-base gpt2-124m gpt2-355m t5-small t5-large"),
                    any("3 4 6 8")
                printf " --devices devices/%s.yaml --stages %d", any("v100-16gb rtx2080ti a100-40gb"), stages
                printf " --schedule %s --offload %s --recompute auto", any("1f1b 1f1b gpipe"), any("none auto")
                printf " --set train.batch.micro=%d --set train.batch.global=%d\n", micro, micro * stages * any("2 4") } }
    ' >"$tmp/drawn"
if [ -n "$file" ]; then
    sed -n 's/^ *[0-9.]* *[0-9.]* *[0-9.]* *[0-9.]* \(examples.*\)/\1/p' "$file"
else
    while read -r more question; do
        bytes=$(limit "$question" "$more" </dev/null) && echo "$question --limit $bytes"
    done <"$tmp/drawn"
fi >"$tmp/questions"
while read -r question; do
    /usr/bin/time -q -o "$tmp/time" -f '%U %S' "$binary" plan $question --estimate </dev/null >"$tmp/plan" 2>/dev/null ||
        continue
    sed -n 's/^predicted step \([0-9.]*\) ms.* faster than \([0-9.]*\) ms: gap \([0-9.]*\) %/\3 \1 \2/p' "$tmp/plan" |
        awk -v time="$(cat "$tmp/time")" -v question="$question" '
            { split(time, t, " "); printf "%6.1f %9.3f %9.3f %6.2f %s\n", $1, $2, $3, t[1] + t[2], question }'
done <"$tmp/questions" | tee "$tmp/lines"
sort -n "$tmp/lines" | awk '
    { gap[++n] = $1; within += $1 <= 10; seconds += $4 }
    END { if (n) printf "%d plans: median gap %.1f %%, 9 of 10 up to %.1f %%, most %.1f %%; %d within 10 %%; %.1f s\n",
                     n, gap[int((n + 1) / 2)], gap[int((9 * n + 9) / 10)], gap[n], within, seconds }'
