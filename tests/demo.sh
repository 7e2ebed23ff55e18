#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What a visitor sees: tools/demo, a small form of it; with SLOW=1 the whole.  The first loss is that of a guess among 256
# bytes, ln 256; the last lies below the entropy of the text's single bytes, which no model without context can pass.
# The curve is the same on every machine, so the corpus is what make.awk prints.
. "$(dirname "$0")/lib.sh"
need dpgen
[ -n "$SLOW" ] || use_ready -O1
d=$tmp/out
corpus=examples/corpus
MORE="-D L=1 -D D=56 --set train.steps=40" OUT=$d LEARN=60
[ -z "$SLOW" ] || MORE= LEARN=75
export MORE OUT LEARN
expect "the demo" tools/demo
times >"$tmp/times"             # of the processor, so that a busy machine is as good as an idle one
seconds=$(awk -F '[ms ]+' -v cores="$cores" 'NR == 2 { print int(($1 * 60 + $2 + $3 * 60 + $4) / cores) }' "$tmp/times")
cp "$tmp/said" "$tmp/demo"
if [ "$seconds" -lt 110 ]; then pass; else fault "$seconds s, more than the two minutes of the demo allow"; fi
expect "two stages" test -f "$d/stage1.c" -a ! -e "$d/stage2.c"
for word in 'step [0-9]*/[0-9]*' 'loss [0-9.]*' 'tokens/s' 'ms (predicted [0-9.]*)' 'arena [0-9.]* [KMG]iB' \
    'eval loss [0-9.]*' \
    '^     loss +-----' '^[0-9]* steps in [0-9.]* s: mean step [0-9.]* ms, predicted [0-9.]* ([0-9.]* [%t]' \
    'on the data of the evaluation' \
    "^the plan as pictures: $d/report.html"; do
    expect "the demo says $word" grep -q -e "$word" "$tmp/demo"
done

entropy=$(od -An -v -tu1 "$corpus/train.txt" | awk '{for (i = 1; i <= NF; i++) n[$i]++; all += NF}
    END {for (b in n) sum -= n[b] / all * log(n[b] / all); print sum}')
first=$(sed -n 's/^loss \([0-9.]*\) at step 1,.*/\1/p' "$tmp/demo")
last=$(sed -n 's/^loss.* \([0-9.]*\) at the end.*/\1/p' "$tmp/demo")
held=$(sed -n 's/^loss.* \([0-9.]*\) on the data of the evaluation/\1/p' "$tmp/demo")
less() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a != "" && b != "" && a + 0 < b + 0)}'; }
if less 5.4452 "$first" && less "$first" 5.6452; then pass; else fault "the first loss is $first, not ln 256"; fi
if less "$last" "$entropy"; then pass; else fault "the last loss is $last, the bytes alone have $entropy"; fi
if less "$held" "$entropy"; then pass; else fault "the loss of the evaluation is $held, the bytes alone have $entropy"; fi

# What it writes: of the bytes of its text alone, and with spaces among them
sed '1,/^demo: text of the trained/d; /^next:/,$d' "$tmp/demo" >"$tmp/wrote"
expect "the demo writes text" test "$(wc -c <"$tmp/wrote")" -ge 160
tr -d "$(tr -d '\n' <$corpus/train.txt | fold -w 1 | sort -u | tr -d '\n-')\n-" <"$tmp/wrote" >"$tmp/strange"
if [ "$(wc -c <"$tmp/strange")" -le 8 ]; then pass; else fault "bytes that the text has not: $(cat "$tmp/strange")"; fi
expect "the text has words" test "$(tr -cd ' ' <"$tmp/wrote" | wc -c)" -ge 8

sed '1,/^next:/d' "$tmp/demo" >"$tmp/next"
expect "four commands to try" test "$(wc -l <"$tmp/next")" = 4
while read -r line; do expect "$line" sh -c "$line" </dev/null; done <"$tmp/next"

awk -v from=1 -v to=100 -f $corpus/make.awk >"$tmp/train.txt"
awk -v from=101 -v to=120 -f $corpus/make.awk >"$tmp/held-out.txt"
for text in train held-out; do expect "the corpus: $text.txt" cmp "$tmp/$text.txt" "$corpus/$text.txt"; done

# Other text; the clock; a terminal of 66 columns, whose line never wraps and never ends before the last step
tools="$d/train --no-checkpoint --data LICENSE --eval-data LICENSE"
expect "another text" $tools --steps 2
expect "an end by the clock" $tools --steps 1000000 --seconds 1 --log "$tmp/log"
expect "status and last event" grep -q '"event":"stop".*"after --seconds"' "$tmp/log"
expect "an evaluation after the clock" grep -q '"event":"eval"' "$tmp/log"
if command -v script >/dev/null 2>&1; then
    script -qec "stty cols 66; $tools --steps 12" /dev/null </dev/null >"$tmp/typed" 2>&1
    tr '\r' '\n' <"$tmp/typed" | sed 's/.\[K$//' | grep '^step' | grep -v eval >"$tmp/shown"
    expect "a terminal shows the last step" grep -q '^step 12/12  loss .* 0:00 left' "$tmp/shown"
    expect "a line of progress fits" test "$(awk 'length($0) > n {n = length($0)} END {print n}' "$tmp/shown")" -le 65
    expect "it is one line" test "$(grep -c '^step [0-9]*/12  loss' "$tmp/typed")" -le 1
else
    skip "no script(1): what a terminal shows" 3
fi
finish
