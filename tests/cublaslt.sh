#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The products of the cuda kernels against their definition in double, f32 and bf16, on the CPU: over a double of cublasLt.
# Only the headers of CUDA are needed; skipped where there are none.
cd "$(dirname "$0")/.." || exit 2
. tests/cuda.sh
passed=0 failed=0 skipped=0
mkdir -p build
for flag in -UREAL_BF16 -DREAL_BF16; do
    if ! have_cuda cublasLt.h; then
        echo "cublaslt: the headers of CUDA are not installed" >&2
        skipped=$((skipped + 1))
        continue
    fi
    "${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -O2 -g $flag -D_GNU_SOURCE -I. -Irt -isystem "$cuda/include" \
        tests/unit_cublaslt.c tests/double/cublaslt.c rt/op/cuda/product.c rt/op/cuda/linear.c rt/op/cuda/matmul.c \
        -o build/unit_cublaslt -lm || exit 1
    said=$(build/unit_cublaslt | tail -n 1)
    p=$(expr "$said" : '.*[ :]\([0-9]*\) passed') f=$(expr "$said" : '.* \([0-9]*\) failed')
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
done
echo "cublaslt: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
