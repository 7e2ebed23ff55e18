#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# SLOW=1: dpgen-verify proves every example, and every schedule that dpgen knows and docs/systems.md names.  What it costs: a
# hundred thousand calls in a second and 200 MB; 70 billion parameters on 512 devices in a minute and 4 GB.
. "$(dirname "$0")/lib.sh"
need dpgen dpgen-verify
[ -n "$SLOW" ] || { skip "SLOW=1"; finish; }

# proved NAME OPTION...: the folder that dpgen writes; nothing is left out of the proof.  What dpgen says would fit is taken
proved() {
    name=$1
    shift
    rm -rf "$tmp/out"
    ./dpgen --estimate --no-verify "$@" -o "$tmp/out" >"$tmp/said" 2>&1
    if [ $? = 4 ]; then
        more=$(sed -n 's/.*tried and fits: //p' "$tmp/said" | head -n 1)
        ./dpgen --estimate --no-verify "$@" $more -o "$tmp/out" >"$tmp/said" 2>&1
    fi
    ./dpgen-verify "$tmp/out" >"$tmp/verdict" 2>&1
    if [ $? = 0 ] && ! grep -q 'not compared' "$tmp/verdict"; then pass
    else fault "$name: $(tail -n 1 "$tmp/said"): $(grep -m 1 -e 'not compared' -e dpgen-verify "$tmp/verdict")"; fi
}

# ---- examples
for model in examples/*.yaml; do proved "$model" "$model"; done

# ---- schedules
tiny=$models/tiny-gpt.yaml
sed 's/, tie: wte//' "$tiny" >"$tmp/untied.yaml"
sgd='train.optimizer={type: sgd, lr: 0.05, momentum: 0.9}'
./dpgen schedules "$tiny" --estimate --stages 2 --set train.batch.global=16 --csv zb-h1 >"$tmp/table.csv" 2>"$tmp/said"
for schedule in $(./dpgen --schedule '?' | sed 's/ .*//'); do
    case $schedule in
        auto) continue ;;       # no schedule of its own
        row) set -- --set 'plan.schedule={map: line, lead: p-i, lag: i}' ;;
        row-v) set -- --set 'plan.schedule={map: v, lead: v*g-1}' ;;
        table) set -- --schedule auto --order "$tmp/table.csv" ;;
        chimera | bitpipe | dualpipe) set -- --schedule "$schedule" --set train.batch.groups=2 ;;
        pb | pipemare) set -- --schedule "$schedule" --set "$sgd" ;;
        nag) set -- --schedule "$schedule" --set 'train.optimizer={type: nadamw, lr: 1e-3}' ;;
        *) set -- --schedule "$schedule" ;;
    esac
    case $schedule in
        2bw | pipedream | vertical | spectrain* | pb | xpipe | nag | pipemare | timeprest)
            set -- "$tmp/untied.yaml" "$@" --set train.clip_scope=parameter ;;
        *) set -- "$tiny" "$@" ;;
    esac
    case $schedule in spectrain* | pb | pipemare) set -- "$@" --set train.batch.micro=16 ;; esac
    grep -q -F "\`$schedule\`" docs/systems.md && pass || fault "systems.md has no $schedule"
    for stages in 2 4; do
        [ "$schedule.$stages" != table.4 ] || continue
        proved "$schedule on $stages" "$@" --stages $stages --set train.batch.global=16
        grep -q -F "\"schedule\": \"$schedule\"" "$tmp/out/plan.json" && pass || fault "$schedule on $stages: another schedule"
    done
done

# ---- cost, of the proof alone
# cost SECONDS KB CALLS: of the folder that was written last
cost() {
    (ulimit -t "$1" && ulimit -v "$2" && ./dpgen-verify --edited "$tmp/out") >"$tmp/verdict" 2>&1
    calls=$(sed -n 's/.* \([0-9]*\) calls, .*/\1/p' "$tmp/verdict" | head -n 1)
    if [ "${calls:-0}" -ge "$3" ]; then pass; else fault "$1 s, $2 KB for $3 calls: $(tail -n 1 "$tmp/verdict")"; fi
}
proved "a hundred thousand calls" examples/convnext-tiny.yaml
cost 1 200000 100000
proved "70 billion parameters" examples/llama-3.2-1b.yaml -D D=8192 -D H=64 -D W=128 -D F=28672 -D L=80 -D FACTOR=8 -D TIE=0 \
    -D T=8192 --devices cpu --set devices.0.count=512 --set devices.0.memory=80GiB --set train.blocks=8 --set plan.tensor=8 \
    --stages 8 --replicas 8 --set train.batch.groups=8 --set train.batch.global=512 --set train.batch.micro=1 --schedule 1f1b \
    --planner even
expect "on 512 devices" grep -q 'proved: 64 stages of 8 devices, one step of 512 micro-batches' "$tmp/verdict"
cost 60 4000000 1500000
finish
