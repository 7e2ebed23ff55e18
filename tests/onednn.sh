#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The onednn kernels against their definition in double, f32 and bf16; SLOW=1: f32 also as for AVX2 alone.  Skipped where
# oneDNN's headers are not installed.
cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0 skipped=0
for flag in -UREAL_BF16 ${SLOW:+"-UREAL_BF16 -mno-avx512f"} -DREAL_BF16; do
    if ! printf '#include <dnnl.h>\n' | "${CC:-cc}" -E - >build/onednn.said 2>&1; then
        echo "onednn: oneDNN is not installed" >&2
        skipped=$((skipped + 1))
        continue
    fi
    if [ "$flag" = -DREAL_BF16 ] && ! "${CC:-cc}" -march=native -dM -E - </dev/null | grep -q __AVX512BW__; then
        echo "onednn: it multiplies bf16 on CPUs with AVX-512 only" >&2
        skipped=$((skipped + 1))
        continue
    fi
    # shellcheck disable=SC2086
    "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -O1 -march=native -ffp-contract=off -fno-math-errno -fopenmp $flag \
        -D_POSIX_C_SOURCE=200809L -DPIECE=60000 -I. tests/unit_onednn.c rt/op/onednn/*.c rt/op/gemm.c -o build/unit_onednn \
        -ldnnl -lm || exit 1
    said=$(timeout 300 build/unit_onednn | tail -n 1)
    p=$(expr "$said" : '.*[ :]\([0-9]*\) passed') f=$(expr "$said" : '.* \([0-9]*\) failed')
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
done
echo "onednn: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
