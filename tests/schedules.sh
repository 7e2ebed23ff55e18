#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dpgen schedules: its rows have the figures of dpgen plan, its bubbles those of the formulas, and each synchronous schedule has
# a row.  A row that does not fit lacks the bytes that the report of status 4 names.  The drawing has a box for every forward
# and backward of the named schedule.  Wrong asks are refused, and nothing is written.
. "$(dirname "$0")/lib.sh"
need dpgen

even="$models/tiny-gpt.yaml --estimate --stages 2 --planner even"
model="$even --schedule auto"

# row SCHEDULE: its line of the data, a field a line
row() { sed -n "s/.*{\"schedule\": \"$1\", \(.*\)}.*/\1/p" "$tmp/rows" | sed 's/, "/\n"/g; s/"//g'; }
# of SCHEDULE FIELD
of() { row "$1" | sed -n "s/^$2: //p"; }
# same WHAT GOT WANT
same() { if [ -n "$2" ] && [ "$2" = "$3" ]; then pass; else fault "$1: $2, not $3"; fi; }

./dpgen schedules $even --json >"$tmp/rows" 2>"$tmp/said" || fault "rows: $(cat "$tmp/said")"
sed -n 's/.*"schedule": "\([^"]*\)".*/\1/p' "$tmp/rows" | sort >"$tmp/got"
# its name, by its traits: steps that do not overlap, lists that nobody has to give
awk -F'"' '/^SCHEDULE/ { name = $2; row[name] = "" } name { row[name] = row[name] $0 } /^LATER/ { name = "" }
    END { for (n in row) if (row[n] !~ /\.(async|given|custom) = true/) print n }' gen/schedules.def | sort >"$tmp/want"
expect "every synchronous schedule: $(diff "$tmp/want" "$tmp/got" | head -n 2)" cmp "$tmp/want" "$tmp/got"

# ---- the figures of dpgen plan
for name in 1f1b zb-v; do
    ./dpgen plan $even --schedule $name --json >"$tmp/plan" 2>"$tmp/said" || fault "$name: $(cat "$tmp/said")"
    step=$(sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p' "$tmp/plan")
    same "$name: the step" "$(of $name step_ns)" "$step"
    same "$name: the bound" "$(of $name bound_ns)" "$(sed -n 's/.*"step_bound_ns": \([0-9]*\).*/\1/p' "$tmp/plan")"
    same "$name: the peak" "$(of $name arena_bytes)" \
        "$(sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p' "$tmp/plan" | sort -n | tail -n 1)"
    same "$name: idle" "$(of $name idle)" "$(sed -n 's/.*"busy_ns": \([0-9]*\).*/\1/p' "$tmp/plan" |
        awk -v step="$step" '{ idle += step - $1 } END { printf "%.6f", idle / step / NR }')"
    same "$name: messages" "$(of $name messages)" \
        "$(./dpgen plan $even --schedule $name -d c 2>"$tmp/said" | grep -c '^action [0-9]* kind=send')"
    same "$name: copies" "$(of $name weight_copies)" 1
done

./dpgen schedules $model --json >"$tmp/rows" 2>"$tmp/said" || fault "rows: $(cat "$tmp/said")"
# ---- closed forms: m = 4, p = 2; v = 2 where chunks are dealt out
bubble() { same "the bubble of $1" "$(of "$1" bubble)" "$(awk "BEGIN { printf \"%.6f\", $2 }")"; }
bubble 1f1b "1 / 5"
bubble zb-h1 "1 / (3 * 4 + 1)"
bubble interleaved-zb "1 / (3 * 2 * 4 + 1)"
bubble zb-v "1 / (6 * 4 + 1)"
same "no form of 1f1b*" "$(of '1f1b\*' closed_form)" 0

# ---- auto: no row that trains alike is faster by more than a 64th; gpipe and 1f1b have the plans that they have alone
steps() { sed -n 's/.*"schedule": "\([^"]*\)", "fits": true.*"step_ns": \([0-9]*\).*/\1 \2/p' "$tmp/rows"; }
best() {            # OPTION...
    ./dpgen schedules $models/tiny-gpt.yaml --estimate "$@" --json >"$tmp/rows" 2>"$tmp/said"
    ./dpgen plan $models/tiny-gpt.yaml --estimate "$@" --schedule auto --json >"$tmp/plan" 2>"$tmp/said"
    least=$(steps | grep -v -e '^optimal ' -e '^1f1b\* ' | sort -n -k 2 | head -n 1)
    step=$(sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p' "$tmp/plan" | head -n 1)
    if [ -n "$step" ] && [ $((step * 64)) -le $((${least#* } * 65)) ]; then pass
    else fault "auto of $*: $step ns, and ${least#* } of ${least% *}"; fi
}
best --stages 3 --set train.batch.global=16 --set links.cpu-cpu.latency=200us --set links.cpu-cpu.rate=10GB/s
best --stages 2
./dpgen plan $models/tiny-gpt.yaml --estimate --stages 2 --json >"$tmp/plan" 2>"$tmp/said"
same "no other row where the model does not say auto" \
    "$(sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p' "$tmp/plan" | head -n 1)" "$(of gpipe step_ns)"

# ---- replicas: with room for all, zb* is no slower than zb-h1 and zb-h2, which are among its lists
two="$models/tiny-gpt.yaml --estimate --stages 3 --set devices.0.count=6 --set plan.replicas=2"
two="$two --set train.batch.groups=2 --set train.batch.global=32"
replicated() {      # SCHEDULE: the step of its plan
    ./dpgen plan $two --schedule "$1" --json 2>"$tmp/said" | sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p' | head -n 1
}
star=$(replicated 'zb*')
for name in zb-h1 zb-h2; do
    step=$(replicated $name)
    if [ -n "$star" ] && [ -n "$step" ] && [ "$star" -le "$step" ]; then pass
    else fault "two replicas: zb* takes $star ns, and $name $step: $(head -n 1 "$tmp/said")"; fi
done

# ---- the same as text, and where options of a row go
./dpgen schedules $model >"$tmp/text" 2>"$tmp/said"
expect "a line of zb-h1" grep -q '^zb-h1  *2 x 1 .* 7.7 %.* fits$' "$tmp/text"
./dpgen schedules $model --schedule hanayo --set plan.waves=2 --json >"$tmp/rows" 2>"$tmp/said"
same "waves of hanayo" "$(of hanayo chunks)" 4
same "and of no other" "$(of zb-v chunks)" 2
./dpgen schedules $model --set plan.chunks=2 --json >"$tmp/rows" 2>"$tmp/said"
same "chunks that a row has not" "$(of zb-h1 why)" "it takes one chunk a device; delete plan.chunks and plan.map"
same "no form of 1f1b with chunks" "$(of 1f1b closed_form)" 0
./dpgen schedules $model --map 0,1,1,0 --json >"$tmp/rows" 2>"$tmp/said"
same "a map: chunks" "$(of gpipe chunks)" 2
same "a map: the step" "$(of gpipe step_ns)" "$(./dpgen plan $model --map 0,1,1,0 --schedule gpipe --json 2>"$tmp/said" |
    sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p')"
./dpgen schedules $model --csv v-half -o "$tmp/v-half.csv" >"$tmp/said" 2>&1
./dpgen schedules $model --stages auto --order "$tmp/v-half.csv" --json >"$tmp/rows" 2>"$tmp/said"
same "a table among them" "$(of table step_ns)" "$(of v-half step_ns)"
refuse "a free order of devices with chunks" 0 '^zb-v .*takes one a device$' ./dpgen schedules $model --device-order free
refuse "too few micro-batches" 0 '^zb-v .*2 devices take at least 3 micro-batches' \
    ./dpgen schedules $model --set train.batch.global=4

# ---- too little memory: by as much as the report says
./dpgen schedules $model --limit 100KiB --json -o "$tmp/none.svg" >"$tmp/rows" 2>"$tmp/said"
same "nothing fits" $? 4
[ ! -e "$tmp/none.svg" ] && grep -q 'nothing is drawn' "$tmp/said" && pass || fault "a drawing of no plan: $(cat "$tmp/said")"
./dpgen plan $model --schedule gpipe --limit 100KiB >"$tmp/report" 2>&1
same "what gpipe lacks" "$(of gpipe why | sed 's/ (.*//')" \
    "$(sed -n 's/.*\(stage [0-9]\) needs .*: \(.*\)/\1: \2/p' "$tmp/report")"

# ---- the drawing
./dpgen schedules $model --schedule zb-v -o "$tmp/zb-v.svg" >"$tmp/said" 2>&1 || fault "a drawing: $(tail -n 1 "$tmp/said")"
for kind in forward 'input gradient' 'weight gradient'; do
    same "boxes, $kind" "$(grep -c "<title>$kind" "$tmp/zb-v.svg")" 16
done
expect "it says what it is" grep -q '<title>tiny-gpt: zb-v, 2 stages, 4 micro-batches of 2 samples' "$tmp/zb-v.svg"
if grep -v 'url(#tip)' "$tmp/zb-v.svg" | grep -q -i -e '<script' -e ' href' -e 'url(' -e 'var('; then
    fault "the drawing asks for more"
else pass; fi
for word in waiting message 'u: update'; do expect "its key: $word" grep -q ">$word</text>" "$tmp/zb-v.svg"; done
if command -v xmllint >/dev/null; then expect "the drawing is XML" xmllint --noout "$tmp/zb-v.svg"
else skip "there is no xmllint"; fi
./dpgen schedules $model -o "$tmp/auto.svg" --json >"$tmp/rows" 2>"$tmp/said"
fastest=$(sed -n 's/.*"schedule": "\([^"]*\)".*"step_ns": \([0-9]*\).*/\2 \1/p' "$tmp/rows" | sort -n | sed -n '1s/.* //p')
expect "auto draws the fastest, $fastest" grep -q "<title>tiny-gpt: $fastest, " "$tmp/auto.svg"
refuse "a drawing of steps that overlap" 3 "the steps of 2bw overlap" ./dpgen schedules $model --schedule 2bw -o "$tmp/none.svg"
[ ! -e "$tmp/none.svg" ] && pass || fault "a drawing of 2bw is there"
refuse "a folder that is not there" 1 "none/x.svg" ./dpgen schedules $model -o "$tmp/none/x.svg"
refuse "a dump" 2 "no use for -d" ./dpgen schedules $model -d o
refuse "planners" 2 "no use for --planners" ./dpgen schedules $model --planners even
./dpgen plan $model --schedule 1f1b -d a >"$tmp/plan.txt" 2>"$tmp/said"
refuse "a plan" 2 "plans of their own" ./dpgen schedules $model --from "$tmp/plan.txt"
# Rows that do not fit share less work: 25 s of CPU time before
[ -z "$SLOW" ] || expect "rows that do not fit, within 20 s" sh -c "ulimit -t 20
    exec ./dpgen schedules $models/tiny-gpt.yaml --stages 4 --limit 300KiB --estimate"
# One row of GPT-2 124M on four stages takes less than a second of CPU time; who shares the machine may double it
for name in ${SLOW:+$(cat "$tmp/want")}; do
    expect "$name of GPT-2 124M, within 2 s" sh -c "ulimit -t 2
        exec ./dpgen plan examples/gpt2-124m.yaml --estimate --stages 4 --schedule '$name' --set train.batch.groups=2 \
            >'$tmp/plan'"
done
finish
