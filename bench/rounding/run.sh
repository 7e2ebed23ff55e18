#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What rounding costs: products of GPT-2 124M against exact ones, and the losses of 20 steps against double precision.
#
#   run.sh [-b DPGEN] [MODEL...]
#
#   MODEL   of tests/ref, trained by PyTorch in double precision: gpt bert t5 resnet mobilenet convnext vit
#   -b      another dpgen beside this one, such as that of 0.2.0, whose sums were of order 1
#
# Of products: products.c.  Of losses: the largest relative difference in 20 steps, portable kernels, f32.
set -eu
export LC_ALL=C
other=
while getopts b: option; do
    case $option in
    b) other=$OPTARG ;;
    *) sed -n 's/^# *\(  run.sh.*\)/usage: \1/p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- gpt bert t5 resnet mobilenet convnext vit
cd "$(dirname "$0")/../.."
root=$PWD tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
: "${CC:=cc}"
make -s dpgen build/compare
$CC -std=c11 -O3 -march=native -ffp-contract=off -fopenmp -D_POSIX_C_SOURCE=200809L bench/rounding/products.c \
    rt/op/linear.c rt/op/pointwise.c rt/op/gemm.c -o "$tmp/products" -lm
"$tmp/products"

# worst DPGEN MODEL: the largest relative difference of a loss
worst() {
    rm -rf "$tmp/out" "$tmp/log"
    "$1" "$2.yaml" --estimate -o "$tmp/out" && make -s -C "$tmp/out" && "$tmp/out/train" --weights "$2.start.safetensors" \
        --steps 20 --log "$tmp/log" --no-checkpoint --quiet || return
    "$root/build/compare" --loss "$2.losses.txt" "$tmp/log" 1
} >"$tmp/said" 2>&1
cd tests/ref
printf '\n%-10s %10s%s\n' losses "this dpgen" "${other:+      other}"
for model; do
    printf '%-10s' "$model"
    for dpgen in "$root/dpgen" $other; do
        worst "$dpgen" "$model" || { cat "$tmp/said" >&2; exit 1; }
        printf ' %10s' "$(sed -n 's/.*worst loss \([^,]*\),.*/\1/p' "$tmp/said")"
    done
    echo
done
