#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What a visitor sees: examples/bytes-gpt.yaml as a pipeline of two stages learns text.  A small form of it, on the text of the
# licence; with SLOW=1 as `make demo` does it.  The first loss is that of a guess among 256 bytes, ln 256; the last lies
# below the entropy of the text's single bytes, which no model without context can pass.
. "$(dirname "$0")/lib.sh"
need dpgen
d=$tmp/out
small="-D L=1 -D D=56 --set train.steps=60"
[ -z "$SLOW" ] || small=
expect "dpgen" ./dpgen examples/bytes-gpt.yaml $small --estimate -o "$d"
expect "two stages" test -f "$d/stage1.c" -a ! -e "$d/stage2.c"
expect "make" make -s -j"$cores" -C "$d"
from=$(date +%s)
"$d/train" --no-checkpoint --data "$data" --log "$tmp/log" >"$tmp/progress" 2>&1 || fault "train: $(tail -n 1 "$tmp/progress")"
seconds=$(($(date +%s) - from))
if [ $seconds -lt 110 ]; then pass; else fault "trained for $seconds s, more than the two minutes of the demo allow"; fi
for word in 'step [0-9]*/[0-9]*' 'loss [0-9.]*' 'tokens/s' 'ms (predicted [0-9.]*)' 'arena [0-9.]* [KMG]iB'; do
    expect "the progress line says $word" grep -q "$word" "$tmp/progress"
done

entropy=$(od -An -v -tu1 "$data" | awk '{for (i = 1; i <= NF; i++) n[$i]++; all += NF}
    END {for (b in n) sum -= n[b] / all * log(n[b] / all); print sum}')
first=$(sed -n 's/.*"step":1,"loss":\([0-9.]*\).*/\1/p' "$tmp/log")
last=$(tail -n 1 "$tmp/log" | sed -n 's/.*"loss":\([0-9.]*\).*/\1/p')
less() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a != "" && b != "" && a + 0 < b + 0)}'; }
if less 5.4452 "$first" && less "$first" 5.6452; then pass; else fault "the first loss is $first, not ln 256"; fi
if less "$last" "$entropy"; then pass; else fault "the last loss is $last, the bytes alone have $entropy"; fi
finish
