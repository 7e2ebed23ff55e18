#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What dpgen itself takes, in seconds of the processor, which who else uses the machine changes little: the median of N runs
# of each command, and their range.
#
#   bench/plan-time/run.sh [-n N]       # 7; the table goes to bench/results/plan-time.txt as well
cd "$(dirname "$0")/../.." || exit 2
n=7
[ "$1" != -n ] || n=$2
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
make -s dpgen || exit 2

# seconds COMMAND...: user and system time of it and its children, the second line of `times`
seconds() {
    sh -c '"$@" >"$0" 2>&1 || { echo failed; exit; }; times' "$tmp/said" "$@" | tail -n 1 |
        awk '/failed/ { print; exit }
            { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += 60 * t[1] + t[2] } printf "%.2f\n", s }'
}
row() {         # COMMAND...: one line of the table
    for i in $(seq "$n"); do
        seconds "$@"
    done | sort -n >"$tmp/list"
    ! grep -q failed "$tmp/list" || { echo "plan-time: $*: $(tail -n 1 "$tmp/said")" >&2; exit 1; }
    awk -v what="$*" -v tmp="$tmp" '{ s[NR] = $1 } END { gsub(tmp "/", "", what)
        printf "%6.2f  %6.2f .. %-6.2f  %s\n", s[int((NR + 1) / 2)], s[1], s[NR], what }' "$tmp/list" |
        fold -s -w 100 | sed '2,$s/^/                          /; s/ *$//'
}
table() {
    echo "# median of $n and range, seconds of the processor; commit $(git rev-parse --short HEAD)"
    echo "# command: bench/plan-time/run.sh"
    row ./dpgen examples/gpt2-124m.yaml --estimate --stages 4 --schedule 1f1b -o "$tmp/out"
    row ./dpgen examples/gpt2-124m.yaml --estimate --stages 4 -o "$tmp/out"
    row make -B -C "$tmp/out"
    for b in 64 100 112 118; do         # of 16 GB: 118 is the largest that fits
        row ./dpgen plan examples/bert-large.yaml --devices devices/v100-16gb.yaml --estimate --stages 4 --schedule 1f1b \
            --recompute auto --set train.batch.micro=$b --set train.batch.global=$((16 * b)) --json
    done
}
table | tee "$tmp/table"
cp "$tmp/table" bench/results/plan-time.txt
