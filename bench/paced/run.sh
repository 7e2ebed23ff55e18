#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Does the simulator tell the truth about order and messages?  Plans of several models and schedules on devices that are
# not here run as paced jobs: a thread a stage, real actions and messages, kernels that sleep for their planned time.
# Prints predicted and measured step (median of STEPS after one to warm up, or between the filling and the draining of the
# pipeline where steps overlap), their ratio, and the share of the machine
# that others used meanwhile; above 5 % the row says so, because a thread that is woken late measures the others.
#
# -s: instead of these rows every synchronous schedule, on eight stages, and how many are within 1.5 % of their prediction.
#
#   bench/paced/run.sh [-s] [-n STEPS] [-D DEVICES.yaml] [-m MODEL,SCHEDULE,STAGES[,OPTION...]]...
cd "$(dirname "$0")/../.." || exit 2
steps=5 devices= rows= every=
while getopts sn:D:m: option; do
    case $option in
        s) every=yes ;;
        n) steps=$OPTARG ;; D) devices=$OPTARG ;; m) rows="$rows $OPTARG" ;;
        *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
    esac
done
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
[ -n "$devices" ] || { devices=$tmp/devices.yaml
    echo 'devices: [{name: d, kind: paced, count: 8, memory: 40GiB, flops: 2TFLOP/s, bandwidth: 200GB/s}]' >"$devices"
    echo 'links: {d-d: 10GB/s}' >>"$devices"; }
slow=--set,devices.0.flops=20GFLOP/s,--set,devices.0.bandwidth=20GB/s
each=--set,train.batch.global=4,--set,train.batch.micro=4,--set,train.clip_norm=0
if [ -n "$every" ]; then        # groups: what two directions need; 16 micro-batches: what zb-h2 and dualpipe need
    set -- examples/bytes-gpt.yaml -D L=16 --set train.batch.global=32 --set train.batch.groups=2
    for schedule in $(awk -F '"' '/^(SCHEDULE|LATER)/ { if (name && all !~ /\.(async|given) =/) print name
                                                        name = /^S/ ? $2 : ""; all = "" }
                                  { all = all $0 }' gen/schedules.def); do
        rows="$rows $1,$schedule,8$(shift; printf ',%s' "$@"),$slow"
    done
fi
[ -n "$rows" ] || rows="examples/gpt2-124m.yaml,1f1b,8 examples/gpt2-124m.yaml,gpipe,8 examples/gpt2-124m.yaml,1f1b*,8
    examples/bert-base.yaml,1f1b,8 examples/bert-base.yaml,gpipe,8 examples/bert-large.yaml,1f1b,8
    examples/gpt2-355m.yaml,1f1b,8 examples/t5-small.yaml,1f1b,8 examples/t5-small.yaml,gpipe,8
    examples/bytes-gpt.yaml,2bw,8,-D,L=16,$slow
    examples/bytes-gpt.yaml,pipedream,8,-D,L=16,$each,$slow"

busy() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8, $2 + $3 + $4 + $5 + $6 + $7 + $8 }' /proc/stat; }
own() { awk '{ sub(/.*\) /, ""); print $14 + $15 }' "/proc/$$/stat"; }         # of children that have ended: ticks
printf '%-28s %-14s %6s  %12s  %12s  %7s  %s\n' model schedule stages predicted_ms measured_ms ratio others
for row in $rows; do
    IFS=, read -r model schedule stages options <<END
$row
END
    options=$(printf %s "$options" | tr , ' ')
    case $schedule in 2bw | pipedream | vertical) fill=$((2 * stages)) drain=$stages ;; *) fill=1 drain=0 ;; esac
    name=$(basename "$model" .yaml)
    # shellcheck disable=SC2086
    if ! ./dpgen "$model" --devices "$devices" --pace --schedule "$schedule" --stages "$stages" $options -o "$tmp/out" \
        >"$tmp/said" 2>&1 || ! make -s -C "$tmp/out" >"$tmp/said" 2>&1; then
        printf '%-28s %-14s %6s  %s\n' "$name" "$schedule" "$stages" "$(head -n 1 "$tmp/said")"
        continue
    fi
    from=$(busy) mine=$(own)
    (cd "$tmp/out" && ./train --quiet --steps $((fill + steps + drain)) --log log)
    sed -n 's/.*"event":"step".*"ms":\([0-9.]*\).*/\1/p' "$tmp/out/log" | tail -n +$((fill + 1)) | head -n "$steps" | sort -n |
        awk -v model="$name" -v schedule="$schedule" -v stages="$stages" -v from="$from" -v to="$(busy)" \
            -v mine="$mine" -v own="$(own)" \
            -v want="$(sed -n 's/.*"predicted_ms":\([0-9.]*\).*/\1/p' "$tmp/out/log" | head -n 1)" '
            { ms[NR] = $1 }
            END {
                split(from, a, " "); split(to, b, " ")
                load = 100 * (b[1] - a[1] - (own - mine)) / (b[2] - a[2])
                median = ms[int((NR + 1) / 2)]
                printf "%-28s %-14s %6s  %12.2f  %12.2f  %7.4f  %.1f %%%s\n", model, schedule, stages, want, median,
                    median / want, load, (load > 5 ? "  not measured: others use the machine" : "")
            }' | tee -a "$tmp/rows"
    rm -rf "$tmp/out"
done
[ -z "$every" ] || awk '!/not measured/ { n++; near += $6 > 0.985 && $6 < 1.015 }
    END { printf "%d of %d measured rows within 1.5 %% of their prediction\n", near, n }' "$tmp/rows"
