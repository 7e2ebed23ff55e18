#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# cuda_build.sh: all kernels for GPUs pass the real compiler, as one unit, as jobs build them; warnings are errors.
# sm_90 and bf16; SLOW=1: sm_80 too, f32 too, and each file by itself.  Skipped where nvcc is not found.
cd "$(dirname "$0")/.." || exit 2
. tests/cuda.sh
passed=0 failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

nvcc=$cuda/bin/nvcc
if [ ! -x "$nvcc" ]; then
    echo "cuda_build: no nvcc: $cuda_remedy" >&2
    echo "cuda_build: 0 passed, 0 failed, 1 skipped"
    exit 0
fi

# one NAME FLAGS FILE: compile
one() {
    if $nvcc -O3 -std=c++17 $2 -Werror all-warnings -Xcompiler -Wall,-Wextra,-fno-exceptions -I. -c -o "$tmp/x" "$3" \
        >"$tmp/said" 2>&1; then
        passed=$((passed + 1))
    else
        echo "cuda_build: $1" >&2
        sed 's/^/    /' "$tmp/said" >&2
        failed=$((failed + 1))
    fi
}

for file in rt/op/cuda/*.cu rt/cuda/*.cu; do
    echo "#include \"$PWD/$file\""
done >"$tmp/all.cu"
one "bf16, sm_90" "-arch=sm_90 -DREAL_BF16" "$tmp/all.cu"
if [ "${SLOW:-0}" = 1 ]; then
    one "f32, sm_90" "-arch=sm_90" "$tmp/all.cu"
    one "bf16, sm_80" "-arch=sm_80 -DREAL_BF16" "$tmp/all.cu"
    one "f32, sm_80" "-arch=sm_80" "$tmp/all.cu"
    for file in rt/op/cuda/*.cu rt/cuda/*.cu; do
        one "$file alone" "-arch=sm_90" "$file"
    done
fi
echo "cuda_build: $passed passed, $failed failed"
[ $failed = 0 ]
