#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Throughput and latency of a pipeline of inference, predicted and measured: ViT-base in f32 over threads and processes.
#
#   serve.sh [-r ROUNDS] [-n SAMPLES] [-b BATCH] [-c "STAGES:TRANSPORT ..."]
#
# Portable kernels of one thread.  The machine may have other work, so its speed is no constant.  Each round therefore takes
# every case (1:local 2:local 2:mpi 4:local 4:mpi) in turn: a run, a profile, a run, one behind the other; in the first round
# the profile that the job is made by comes first.  The prediction is that of this profile for the cuts of the job.  Of ROUNDS
# rounds (5) the medians of both are printed, and the median of measured over predicted within the rounds.  Results must have
# the same bits in all cases.
#
# A run has SAMPLES samples (44) in micro-batches of BATCH (4).  A list has 16 micro-batches, and places without a sample are
# computed too.  So the pipeline is full until the last result, as in the prediction, if four places or more have none.
set -eu
export LC_ALL=C
rounds=5 samples=44 batch=4 cases="1:local 2:local 2:mpi 4:local 4:mpi"
while getopts r:n:b:c: option; do
    case $option in
    r) rounds=$OPTARG ;;
    n) samples=$OPTARG ;;
    b) batch=$OPTARG ;;
    c) cases=$OPTARG ;;
    *) exit 2 ;;
    esac
done
cd "$(dirname "$0")/.."
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
sed 's/name: heads.head, out: C, init: zeros/name: heads.head, out: C, as: scores/' examples/vit-b16.yaml >"$tmp/vit.yaml"
head -c $((224 * 224 * 3 * 4 * samples)) /dev/zero | tr '\0' '\77' >"$tmp/images.f32"        # 0x3f3f3f3f: 0.747

fail() { echo "serve.sh: $1" >&2; cat "$tmp/said" >&2; exit 1; }
# dpgen VERB CASE OPTION...
job() {
    verb=$1 stages=${2%:*} transport=${2#*:}
    shift 2
    ./dpgen $verb "$tmp/vit.yaml" --mode infer --stages "$stages" --set model.outputs=scores \
        --set train.batch="{micro: $batch, global: $((batch * 16))}" --set plan.transport="$transport" \
        --set devices="[{kind: cpu, count: $stages, memory: 8GiB, threads: 1, kernels: portable}]" "$@" 2>"$tmp/said"
}
measure() { job profile "$1" -o "$tmp/$1.profile" >/dev/null || fail "no profile of $1"; }
build() {
    measure "$1"
    job plan "$1" --profile "$tmp/$1.profile" --json >"$tmp/plan" || fail "no plan of $1"
    awk '/"operators":/ { last += gsub(/", "/, "") + 1; print last - 1 }' "$tmp/plan" | sed '$d' | paste -s -d, >"$tmp/$1.cuts"
    job "" "$1" --profile "$tmp/$1.profile" $(cuts "$1") -o "$tmp/$1" --no-verify >/dev/null || fail "no job of $1"
    make -j2 -C "$tmp/$1" >"$tmp/said" 2>&1 || fail "no program of $1"
}
cuts() { [ "${1%:*}" = 1 ] || echo "--cuts $(cat "$tmp/$1.cuts")"; }
# predict CASE: samples/s and ms
predict() {
    job plan "$1" --profile "$tmp/$1.profile" $(cuts "$1") --json >"$tmp/plan" || fail "no plan of $1"
    sed -n 's/.*"latency_ns": \([0-9]*\), "period_ns": \([0-9]*\).*/\2 \1/p' "$tmp/plan" |
        awk -v batch="$batch" '{ print batch * 1e9 / $1, $2 / 1e6 }'
}
run() {
    start=
    [ "${1#*:}" = local ] || start="mpirun --oversubscribe --bind-to none -n ${1%:*}"
    [ -z "$start" ] || [ "$(id -u)" != 0 ] || start="$start --allow-run-as-root"
    $start "$tmp/$1/serve" --untrained --in "$tmp/images.f32" --out "$tmp/out" 2>"$tmp/said" || fail "no run of $1"
    [ -f "$tmp/results" ] || cp "$tmp/out" "$tmp/results"
    cmp -s "$tmp/out" "$tmp/results" || fail "other results of $1"
    sed -n 's/.*samples; \([0-9.e+]*\) samples.*latency of a micro-batch of [0-9]* \([0-9.]*\) ms.*/\1 \2/p' "$tmp/said"
}
for round in $(seq "$rounds"); do
    for case in $cases; do
        [ "$round" -gt 1 ] || build "$case"
        run "$case" >"$tmp/first"
        [ "$round" = 1 ] || measure "$case"
        predict "$case" >"$tmp/predicted"
        run "$case" >"$tmp/second"
        paste -d' ' "$tmp/first" "$tmp/predicted" "$tmp/second" |
            awk '{ print $3, ($1 + $5) / 2, ($1 + $5) / 2 / $3, $4, ($2 + $6) / 2, ($2 + $6) / 2 / $4 }' >>"$tmp/$case.rounds"
    done
done
echo "ViT-base, f32, $(nproc) cores, micro-batches of $batch, medians of $rounds rounds; ratio: measured over predicted"
median() { cut -d' ' -f"$2" "$tmp/$1.rounds" | sort -g |
    awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
for case in $cases; do
    printf '%-8s samples/s %6.2f predicted, %6.2f measured, ratio %.2f; latency %7.0f ms, %7.0f ms, ratio %.2f\n' "$case" \
        "$(median "$case" 1)" "$(median "$case" 2)" "$(median "$case" 3)" "$(median "$case" 4)" "$(median "$case" 5)" \
        "$(median "$case" 6)"
done
