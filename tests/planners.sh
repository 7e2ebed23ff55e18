#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The planners through the whole line, every checker behind them.
#
#   listed      each planner that --planner ? lists can be asked for; another word is refused with the nearest
#   worse       none has a shorter step than exact, on one model under limits from plenty to less than enough; madpipe, which
#               may give a device several pieces and so has another space, has a plan or says that it has none
#   proof       where a planner has no plan and exact has one, status 1 says so; where exact has none, status 4
#   published   PipeDream's stages for BERT-large on four devices are 13, 13, 13 and 10 units, as vPipe's authors publish
#               for it (their profile is another one, and so are the GPUs: RTX 2080 Ti in both)
#   fleet       where it keeps everything, BaPipe moves layers until the stages fit and DAPPLE does not; DAPPLE's formula is
#               within 8 % of the step, which also updates; SPP puts devices of one server behind each other
#   systems     docs/systems.md has the word of each schedule and planner, and no schedule there is refused but those it says
#   falling     vPipe recomputes most on the first stage and nothing on the last, BERT with 48 layers on eight devices, as in
#               the published plan (1, .85, .8, .6, .5, .2, 0, 0 of each stage)
. "$(dirname "$0")/lib.sh"

planned() {
    ./dpgen plan examples/bytes-gpt.yaml --set devices.0.count=3 --stages 3 --schedule 1f1b --recompute auto \
        --estimate --json "$@" >"$tmp/json" 2>"$tmp/err"
}
step() { sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p' "$tmp/json"; }

# ---- listed
./dpgen --planner '?' >"$tmp/list" || fault "--planner ? failed"
planners=$(awk '{ print $1 }' "$tmp/list" | grep -v brute)
[ "$(echo "$planners" | wc -l)" -ge 14 ] && pass || fault "--planner ? lists too few"
refuse "an unknown planner" 3 "did you mean 'vpipe'" ./dpgen plan examples/bytes-gpt.yaml --planner vpip

# ---- systems
words=$(sed -n 's/^\(SCHEDULE\|PLANNER\|LATER\)("\([^":]*\).*/\2/p' gen/schedules.def gen/planners.def | grep -vx brute)
for word in $words; do
    grep '^|' docs/systems.md | grep -qF -e "\`$word\`" -e "\`$word:" && pass || fault "docs/systems.md has no row for $word"
done
refused=$(sed -n 's/^|.*`\(.*\)` is known and refused.*/\1/p' docs/systems.md | sort | paste -s -d ' ')
later=$(sed -n 's/^LATER("\(.*\)")/\1/p' gen/schedules.def | sort | paste -s -d ' ')
[ "$refused" = "$later" ] && pass || fault "docs/systems.md calls $refused refused, schedules.def $later"

# ---- worse, proof
for limit in 20MiB 24MiB 28MiB 40MiB; do
    planned --limit $limit && best=$(step) || fault "exact has no plan in $limit"
    for planner in $planners; do
        planned --limit $limit --planner "$planner"
        case $? in
        0) [ "$(step)" -ge "$best" ] || [ "$planner" = madpipe ] && pass ||
            fault "$planner in $limit: $(step) ns, exact $best" ;;
        1) grep -q "planner $planner has no plan that can be built.*--planner exact" "$tmp/err" && pass ||
            fault "$planner in $limit: $(tail -n 1 "$tmp/err")" ;;
        *) fault "$planner in $limit: $(tail -n 1 "$tmp/err")" ;;
        esac
    done
done
refuse "interval in too little" 4 "" \
    ./dpgen plan examples/bytes-gpt.yaml --stages 2 --recompute auto --limit 12MiB --planner interval
refuse "MadPipe with chunks" 3 "plan.chunks" \
    ./dpgen plan examples/bytes-gpt.yaml --stages 2 --planner madpipe --set plan.chunks=2
refuse "2BW without blocks" 1 "not applicable" ./dpgen plan tests/models/mlp.yaml --planner twobw --estimate

# depth, width, micro-batch and recomputation by its formulas; samples of a step as given, the note names the choice
auto="--set train.batch.micro=auto --set train.batch.global=64 --set train.batch.groups=8 --stages auto --replicas auto"
./dpgen compare tests/models/tiny-gpt.yaml --estimate --quick --recompute auto --set devices.0.count=8 $auto \
    --planners exact,twobw --json >"$tmp/json" 2>"$tmp/err"
grep '"twobw"' "$tmp/json" | grep -q '"note": "depth [0-9]*, width [0-9]*, micro-batches of' && pass ||
    fault "compare: twobw does not name its choice: $(tail -n 1 "$tmp/json")"

# ---- fleet
planned --recompute none --limit 28MiB --planner bapipe && pass || fault "BaPipe moves no layer: $(tail -n 1 "$tmp/err")"
planned --recompute none --limit 28MiB --planner dapple
[ $? = 1 ] && pass || fault "DAPPLE looks at memory"
planned --limit 24MiB --planner piper && pass || fault "Piper: $(tail -n 1 "$tmp/err")"
refuse "Piper's formula" 1 "by its formula nothing fits" ./dpgen plan examples/bytes-gpt.yaml --set devices.0.count=3 \
    --stages 3 --schedule 1f1b --recompute auto --estimate --limit 20MiB --planner piper
./dpgen compare examples/gpt2-124m.yaml --estimate --stages 4 --limit 2GiB --recompute auto --schedule 1f1b --quick \
    --planners piper --json >"$tmp/json" 2>"$tmp/err"
grep -q '"planner": "piper", "fits": true.*"recompute_bytes": [1-9]' "$tmp/json" && pass ||
    fault "Piper computes nothing again: $(tail -n 1 "$tmp/err")"
# The row of exact is the answer of dpgen plan, which takes another schedule than gpipe and 1f1b here.
auto_row="examples/squeezenet.yaml --devices devices/v100-16gb.yaml --stages 3 --recompute auto --estimate --schedule auto
    --set train.batch.micro=2 --set train.batch.global=24"
told() { sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p' "$1" | head -n 1; }
./dpgen plan $auto_row --json >"$tmp/planned" 2>&1
./dpgen compare $auto_row --quick --planners exact --json >"$tmp/json" 2>&1
if [ -n "$(told "$tmp/planned")" ] && [ "$(told "$tmp/planned")" = "$(told "$tmp/json")" ]; then pass
else fault "compare, schedule auto: $(told "$tmp/json") ns, and plan has $(told "$tmp/planned")"; fi
./dpgen compare examples/bytes-gpt.yaml --set devices.0.count=3 --stages 3 --schedule 1f1b --estimate --quick \
    --planners dapple --json >"$tmp/json" 2>"$tmp/err"
formula=$(sed -n "s/.*a step of \([0-9]*\)[.]\([0-9]*\) ms by DAPPLE's.*/\1\2000/p" "$tmp/json")
[ "${formula:-0}" -gt $(($(step) * 92 / 100)) ] && [ "$formula" -le "$(step)" ] && pass ||
    fault "DAPPLE's formula gives ${formula:-nothing} ns of $(step)"
cat >"$tmp/servers" <<END
devices: [{name: a, memory: 1GiB}, {name: b, memory: 1GiB}, {name: c, memory: 1GiB}, {name: d, memory: 1GiB}]
links: {a-c: 10GB/s, b-d: 10GB/s, a-b: 100MB/s, a-d: 100MB/s, b-c: 100MB/s, c-d: 100MB/s}
END
./dpgen plan "$models/tiny-gpt.yaml" --estimate --stages 4 --devices "$tmp/servers" --device-order free \
    --planner spp >"$tmp/place" 2>&1
expect "SPP's order" grep 'device order a c b d: 1 of 1' "$tmp/place"

# ---- published, falling
gpus="--devices devices/rtx2080ti.yaml --schedule 1f1b --recompute auto --estimate"
place() { ./dpgen plan examples/bert-large.yaml $gpus "$@" -d p; }
ends() {
    awk '/^place F:/ { c = ""; for (i = 3; i <= NF; i++) if ($i ~ /^chunk=/) c = $i
        if (c != was) printf "%s ", before
        before = substr($2, 3); was = c }' "$tmp/place"
}
# Of each stage the share of its operators, in hundredths, that are made again; what nobody reads again is let go anywhere.
shares() {
    awk -F '"' '/^ "recompute":/ { for (i = 4; i <= NF; i += 2) again[$i] = 1 }
        /^     "operators":/ { n = m = 0; for (i = 4; i <= NF; i += 2) { n++; m += again[$i] }; printf "%d ", 100 * m / n }' \
        "$tmp/json"
}
place --stages 4 --set train.batch.micro=8 --set train.batch.global=128 --planner pipedream >"$tmp/place" 2>&1
[ "$(ends)" = "bert.encoder.layer.6.add bert.encoder.layer.12.add_2 bert.encoder.layer.19.add " ] && pass ||
    fault "PipeDream's stages end with $(ends)"
./dpgen plan examples/bert-large.yaml $gpus -D L=48 -D T=128 --stages 8 --set train.batch.micro=48 \
    --set train.batch.global=1536 --planner vpipe --json >"$tmp/json" 2>"$tmp/err" || fault "vPipe has no plan"
set -- $(shares)
falls=yes
[ $# = 8 ] && [ "$1" -ge $((2 * $8)) ] || falls=no
while [ $# -gt 1 ]; do
    [ $(($1 + 4)) -ge "$2" ] || falls=no        # stages without any differ by the head and by what nobody reads
    shift
done
[ $falls = yes ] && pass || fault "vPipe recomputes $(shares) hundredths"

echo "$suite: $passed passed, $failed failed"
