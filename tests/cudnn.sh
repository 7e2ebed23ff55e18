#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Attention on GPUs: the scratch that dpgen plans, and the graphs that cuDNN is given, planned by the real library for described
# chips (cudnn_plans.c).  No GPU is needed, and where there is no driver a stub of it; skipped where cuDNN is not installed.
#   SLOW=1 tests/cudnn.sh     more shapes and chips
. "$(dirname "$0")/lib.sh"
. tests/cuda.sh

# scratch WANTED OPTION...: what backward of attention gets in a small GPT on H200s
scratch() {
    want=$1
    shift
    got=$(./dpgen plan examples/bytes-gpt.yaml --devices devices/h200.yaml --stages 1 --estimate -d g -D L=1 "$@" 2>&1 |
          sed -n 's/^op I:h.0.attention .* tmp=\([0-9]*\) .*/\1/p')
    if [ "$got" = "$want" ]; then pass; else fault "scratch of $*: ${got:-none}, not $want"; fi
}
bf16="--set train.precision.compute=bf16"
# 2 samples, 7 heads of 32, 128 positions: sums 7168 bytes, dS in bf16, 256 for alignment
scratch $((7168 + 2 * 7 * 128 * 128 * 2 + 256)) $bf16
# 200 positions are 256 both ways, 130 are 192 queries and 256 keys; sums are rounded up to 256
scratch $((11264 + 2 * 7 * 256 * 256 * 2 + 256)) $bf16 -D T=200
scratch $((7424 + 2 * 7 * 192 * 256 * 2 + 256)) $bf16 -D T=130
# our own kernels: f32, heads of 36, of 136
scratch 7168 --set train.precision.compute=f32
scratch 7168 $bf16 -D D=252
scratch 7168 $bf16 -D D=952

library=$(cuda_library cudnn)
if ! have_cuda cudnn.h || [ -z "$library" ]; then
    skip "no cuDNN: $cuda_remedy"
    finish
fi
folder=$(dirname "$library")
include="-isystem $cuda/include"
$cc -std=c11 -Wall -Wextra -Wpedantic -Werror -O1 -DREAL_BF16 -D_GNU_SOURCE -I. -Irt $include -o "$tmp/plans" \
    tests/cudnn_plans.c rt/op/cuda/attention.c rt/op/cuda/graph.c "$library" \
    -Wl,--disable-new-dtags,-rpath,"$folder",-rpath-link,"$folder" 2>"$tmp/said" ||
    { cat "$tmp/said" >&2; fault "cudnn_plans.c does not build"; finish; }
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
    $cc -shared -fPIC -Wall -Wextra -Werror -o "$tmp/libcuda.so.1" tests/double/stubcuda.c || fault "stubcuda.c"
    LD_LIBRARY_PATH=$LD_LIBRARY_PATH${LD_LIBRARY_PATH:+:}$tmp
    export LD_LIBRARY_PATH
fi
"$tmp/plans" ${SLOW:+all} >"$tmp/out" || tail -n 5 "$tmp/out" >&2
said=$(tail -n 1 "$tmp/out")
p=$(expr "$said" : '.*[ :]\([0-9]*\) passed') f=$(expr "$said" : '.* \([0-9]*\) failed')
passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
finish
