#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# bench/megatron/run.sh [BILLIONS...]: the ten models of Narayanan et al., Efficient Large-Scale Language Model Training on GPU
# Clusters Using Megatron-LM, SC 2021, table 1, each on the GPUs of one of its replicas: A100 of 80 GB, eight a host, from
# devices/a100-80gb.yaml.  Theirs is their tensor and pipeline degree, recomputation of everything, 1F1B or its interleaved form
# with two chunks, and the best micro-batch.  Ours has the same GPUs and samples, divided rows, and recomputation as the planner
# wants it.  dpgen simulates both steps, with its own sums over the devices of a stage.  A replica's exchange with others is the
# same for both, and left out.  The published step follows from the published TFLOP/s.  Status 1: theirs is faster somewhere, or
# one of both has no plan within LIMIT seconds (300) a layout.
cd "$(dirname "$0")/../.." || exit 1
dpgen=${DPGEN:-./dpgen}

# plan HEADS WIDTH LAYERS GPUS SAMPLES OPTION...: the predicted step in ns; nothing: no plan fits
plan() {
    h=$1 d=$2 l=$3 n=$4 b=$5
    shift 5
    hosts=$(((n + 7) / 8))
    [ $hosts = 1 ] || set -- "$@" --set 'links.host-host={rate: 160GB/s, latency: 15us}'
    timeout "${LIMIT:-300}" $dpgen plan examples/gpt2-124m.yaml -D V=51200 -D P=2048 -D T=2048 -D D=$d -D H=$h -D L=$l \
        --devices devices/a100-80gb.yaml --set devices.0.count=$n --set hosts.count=$hosts \
        --set train.precision.compute=bf16 --set train.batch.global=$b --set train.blocks=8 --estimate --json "$@" 2>/dev/null |
        sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p'
}

# tried HEADS WIDTH LAYERS GPUS SAMPLES TENSOR STAGES MICRO SCHEDULE OPTION...: `NS WORDS`, or nothing
tried() {
    model="$1 $2 $3 $4 $5" t=$6 p=$7 micro=$8 schedule=$9 waits=$(($5 / $8))
    [ $(($5 % micro)) = 0 ] && [ "$p" -le "$3" ] || return
    case $schedule in
    i*) [ "$p" -gt 1 ] && [ $waits -ge "$p" ] && [ $((2 * p)) -le "$3" ] || return ;;
    esac
    shift 9
    step=$(plan $model --set plan.tensor=$t --stages $p --set train.batch.micro=$micro --schedule $schedule "$@")
    [ -z "$step" ] || echo "$step t $t, p $p, mb $micro, $(case $schedule in i*) echo 2 chunks ;; *) echo "$schedule" ;; esac)"
}

two="interleaved --set plan.chunks=2"
theirs() {      # HEADS WIDTH LAYERS GPUS SAMPLES TENSOR STAGES
    for micro in 1 2 4 8; do
        tried "$@" $micro 1f1b --recompute full
        tried "$@" $micro "$two" --recompute full
    done | sort -n | head -n 1
}

# With their degrees, and half of their devices of a stage; all of it with more time: SLOW=1.
ours() {
    t=$6 n=$4 model="$1 $2 $3 $4 $5"
    { for tensor in $t $((t / 2)) ${SLOW:+1 2 4 8}; do
        [ $tensor -gt 0 ] && [ $((n % tensor)) = 0 ] || continue
        rows=divided
        [ $tensor -gt 1 ] || rows=whole
        for micro in 1 2 ${SLOW:+4 8}; do
            tried $model $tensor $((n / tensor)) $micro 1f1b --recompute auto --set plan.positions=$rows
            [ $tensor != $t ] && [ -z "${SLOW:-}" ] ||
                tried $model $tensor $((n / tensor)) $micro "$two" --recompute auto --set plan.positions=$rows
        done
    done; } | sort -n | head -n 1
}

status=0
# billions, heads, width, layers, t, p, GPUs, batch, published TFLOP/s of a GPU
while read -r name h d l t p gpus batch rate; do
    case " ${*:-$name} " in *" $name "*) ;; *) continue ;; esac
    n=$((t * p)) b=$((batch * t * p / gpus)) from=$(date +%s)
    model="$h $d $l $n $b"
    a=$(theirs $model "$t" "$p")
    between=$(date +%s)
    o=$(ours $model "$t")
    now=$(date +%s)
    # Their section 5.1: 96 B s l h^2 (1 + s / 6 h + V / 16 l h) operations a step
    awk -v name="$name" -v n=$n -v b=$b -v a="$a" -v o="$o" -v took=$((now - between)) -v h="$d" -v l="$l" \
        -v rate="$rate" 'BEGIN {
        x = a + 0; y = o + 0; sub(/^[0-9]* /, "", a); sub(/^[0-9]* /, "", o)
        paper = 96 * b * 2048 * l * h * h * (1 + 2048 / (6 * h) + 51200 / (16 * l * h)) / (n * rate * 1e12)
        printf "%sB %d GPUs published %.2f s theirs %.2f s (%s) ours %.2f s (%s) %d s\n",
            name, n, paper, x / 1e9, a, y / 1e9, o, took
        exit !(x && y && y <= x) }' || status=1
done <<'END'
1.7 24 2304 24 1 1 32 512 137
3.6 32 3072 30 2 1 64 512 138
7.5 32 4096 36 4 1 128 512 142
18.4 48 6144 40 8 1 256 1024 135
39.1 64 8192 48 8 2 512 1536 138
76.1 80 10240 60 8 4 1024 1792 140
145.6 96 12288 80 8 8 1536 2304 148
310.1 128 16384 96 8 16 1920 2160 155
529.6 128 20480 105 8 35 2520 2520 163
1008.0 160 25600 128 8 64 3072 3072 163
END
exit $status
