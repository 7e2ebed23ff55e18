#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# An interrupt of a search that takes over twenty seconds: the best plan so far, with its gap and status 130.
. "$(dirname "$0")/lib.sh"
need dpgen
long="--devices v100-16gb --estimate --stages 4 --schedule zb* --recompute auto --set train.batch.micro=4"
long="$long --set train.batch.global=64"
# --foreground: else timeout sends the signal twice, to the program and to its group
after() { timeout --foreground --preserve-status -k 15 -s INT "$@" >"$tmp/out" 2>"$tmp/said"; got=$?; }

for seconds in 2 4 8 16; do               # a busy machine may have none so soon
    after $seconds ./dpgen plan examples/gpt2-774m.yaml $long
    grep -q 'before there was a plan' "$tmp/said" || break
done
if [ $got = 130 ] && grep -q '^predicted step [0-9.]* ms' "$tmp/out" && grep -q 'best plan so far' "$tmp/said"; then pass
else fault "plan: status $got, $(head -n 1 "$tmp/said")"; fi
after 1 ./dpgen compare examples/gpt2-774m.yaml --devices v100-16gb --estimate --stages 4 \
    --planners exact,pipedream:strong,vpipe:repo
if [ $got = 130 ] && grep -q 'interrupted' "$tmp/said"; then pass
else fault "compare: status $got, $(head -n 1 "$tmp/said")"; fi
finish
