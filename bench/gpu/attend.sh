#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Instructions of attention for each product of tensor cores, from the machine code of sm_90 in bf16 (attend.awk): of this tree,
# and of a commit beside it.  Needs nvcc and nvdisasm, and no GPU.
#   bench/gpu/attend.sh [COMMIT]
cd "$(dirname "$0")/../.." || exit 1
. tests/cuda.sh
nvdisasm=$(command -v nvdisasm || ls "$cuda/bin/nvdisasm" 2>/dev/null)
[ -n "$nvdisasm" ] && [ -x "$cuda/bin/nvcc" ] || { echo "attend: no nvcc or no nvdisasm: $cuda_remedy" >&2; exit 2; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
counted() {     # TREE
    "$cuda/bin/nvcc" -O3 -std=c++17 -arch=sm_90 -DREAL_BF16 -I"$1" -cubin -o "$tmp/cubin" "$1/rt/op/cuda/attention_mma.cu" &&
        "$nvdisasm" "$tmp/cubin" | awk -f bench/gpu/attend.awk | sort
}
counted . >"$tmp/now" || exit 1
[ -n "$1" ] || { cat "$tmp/now"; exit; }
mkdir "$tmp/then"
git archive "$1" rt | tar -x -C "$tmp/then" || exit 1
counted "$tmp/then" >"$tmp/old" || exit 1
awk 'NR == FNR { old[$1] = $2 / $3; next }
    $1 in old { printf "%s, %.1f then, times %.2f\n", $0, old[$1], old[$1] / ($2 / $3) }' "$tmp/old" "$tmp/now"
