#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Does a profile predict the step?  Models are profiled, planned, built and trained here; the predicted step stands beside the
# median of the measured ones.
#
#   bench/profile/run.sh [-r ROUNDS] [-s STEPS]        5 rounds of 12 steps each
#
# Jobs run in turn, round after round, so that a slow minute hits all of them.  The first two steps of a run do not count.
# Other load is what the processors did while a job ran and the job did not do (/proc/stat against the job's own time): above
# 5 % a round does not count, and a job without three rounds that count is printed as not measured.
set -u
cd "$(dirname "$0")/../.." || exit 2
rounds=5 steps=12
while getopts r:s: option; do
    case $option in r) rounds=$OPTARG ;; s) steps=$OPTARG ;; *) exit 2 ;; esac
done
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
make -s dpgen || exit 2
gpt=examples/bytes-gpt.yaml
cat >"$tmp/jobs" <<END
small-1      $gpt --stages 1
small-2      $gpt --stages 2
small-again  $gpt --stages 2 --recompute full
wide-2       $gpt -D D=768 -D H=12 -D L=2 --stages 2 --limit 4GiB
onednn-2     $gpt --stages 2 --set devices.0.kernels=onednn
END

# Jiffies: of all processors but idle and waiting for files; of the children of this shell.
busy() { awk '$1 == "cpu" {print $2 + $3 + $4 + $7 + $8 + $9; exit}' /proc/stat; }
mine() { awk '{sub(/.*\) /, ""); print $14 + $15}' /proc/$$/stat; }

while read -r name options; do
    if ! ./dpgen profile $options -o "$tmp/$name.profile" >"$tmp/said" 2>&1 ||
        ! ./dpgen $options --profile "$tmp/$name.profile" -o "$tmp/$name" >"$tmp/said" 2>&1 ||
        ! make -s -C "$tmp/$name" >"$tmp/said" 2>&1; then
        echo "$name: $(tail -n 1 "$tmp/said")" >&2
        continue
    fi
    sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p' "$tmp/$name/plan.json" >"$tmp/$name.predicted"
    echo "$name" >>"$tmp/names"
done <"$tmp/jobs"

cores=$(nproc)
for round in $(seq "$rounds"); do
    while read -r name; do
        rm -f "$tmp/log"
        from=$(busy) own=$(mine) begun=$(date +%s%N)
        "$tmp/$name/train" --no-checkpoint --quiet --steps "$steps" --data LICENSE --log "$tmp/log" >"$tmp/said" 2>&1 ||
            { echo "$name: $(tail -n 1 "$tmp/said")" >&2; exit 1; }
        ended=$(date +%s%N)
        other=$(awk -v all=$(($(busy) - from)) -v own=$(($(mine) - own)) -v ns=$((ended - begun)) -v n="$cores" \
            -v hz="$(getconf CLK_TCK)" 'BEGIN {print 100 * (all - own) / (ns / 1e9 * hz * n)}')
        sed -n 's/.*"ms":\([0-9.]*\).*/\1/p' "$tmp/log" | awk -v other="$other" 'NR > 2 {print $1, other}' >>"$tmp/$name.ms"
    done <"$tmp/names"
done

echo "$(sed -n 2p "$tmp"/small-1.profile); $rounds rounds of $steps steps"
printf '%-12s %12s %12s %22s %9s  %s\n' job predicted measured 'quartiles' error 'other load'
while read -r name; do
    sort -n "$tmp/$name.ms" | awk -v name="$name" -v predicted="$(cat "$tmp/$name.predicted")" -v least=$((3 * (steps - 2))) '
        {load = load > $2 ? load : $2}
        $2 < 5 {ms[++n] = $1}
        END {
            if (n < least) {
                printf "%-12s %9.2f ms %12s %22s %9s  up to %.0f %%\n", name, predicted / 1e6, "not measured", "", "", load
                exit
            }
            m = ms[int((n + 1) / 2)]
            printf "%-12s %9.2f ms %9.2f ms %9.2f .. %9.2f %7.1f %%  up to %.0f %%\n", name, predicted / 1e6, m,
                ms[int((n + 3) / 4)], ms[int((3 * n + 3) / 4)], 100 * (predicted / 1e6 / m - 1), load
        }'
done <"$tmp/names"
