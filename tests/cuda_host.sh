#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The host's half of the cuda kernels, on the CPU: products, attention and convolutions over doubles of cublasLt and cuDNN,
# against their definition in double, f32 and bf16; and what a machine is asked before a job starts.  Only headers are needed;
# skipped where there are none.  Where cublasLt is installed, it is asked whether it takes what it would be given.
cd "$(dirname "$0")/.." || exit 2
. tests/cuda.sh
if ! have_cuda cublasLt.h || ! have_cuda cudnn.h; then
    echo "cuda_host: no headers of CUDA and cuDNN: $cuda_remedy" >&2
    echo "cuda_host: 0 passed, 0 failed, 7 skipped"
    exit
fi
mkdir -p build
passed=0 failed=0 skipped=0
# program NAME OPTION...: build and run tests/NAME.c
program() {
    name=$1
    shift
    "${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -O0 -D_GNU_SOURCE -I. -Irt -Itests/double \
        -isystem "$cuda/include" -o "build/$name" "tests/$name.c" "$@" -lpthread -lm || exit 1
    said=$("build/$name" | tail -n 1)
    p=$(expr "$said" : '.*[ :]\([0-9]*\) passed') f=$(expr "$said" : '.* \([0-9]*\) failed')
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
}
runtime="tests/double/cudart.c tests/double/capture.c tests/double/device.c"
program unit_capture $runtime
for real in -UREAL_BF16 -DREAL_BF16 -DTF32; do
    program unit_cublaslt $real rt/op/cuda/product.c rt/op/cuda/linear.c rt/op/cuda/linear_gelu.c \
        rt/op/cuda/linear_fp8.c rt/op/cuda/linear_team.c rt/op/cuda/linear_xent.c rt/op/cuda/matmul.c tests/double/cublaslt.c
done
# with spare multiprocessors the double takes products alone that count on the 124 others of its 132
DOUBLE_TARGET=124 program unit_cublaslt -DSPARE=8 rt/op/cuda/product.c rt/op/cuda/linear.c rt/op/cuda/linear_gelu.c \
    rt/op/cuda/linear_fp8.c rt/op/cuda/linear_team.c rt/op/cuda/linear_xent.c rt/op/cuda/matmul.c tests/double/cublaslt.c
program unit_cuda_attention -UREAL_BF16 rt/op/cuda/attention.c
program unit_cuda_attention -DREAL_BF16 rt/op/cuda/attention.c rt/op/cuda/attention_graph.c rt/op/cuda/graph.c \
    tests/double/cudnn.c
# the case that wants most memory of those that a GPU alone runs, in pinned memory and on a stream; each access is checked
ASAN_OPTIONS=detect_leaks=0 program unit_cuda_attention -DREAL_BF16 -DON_GPU -DREPEATS=1 -DFIRST=13 -O2 \
    -fsanitize=address rt/op/cuda/attention.c rt/op/cuda/attention_graph.c rt/op/cuda/graph.c tests/double/cudnn.c $runtime
program unit_cuda_conv -UREAL_BF16 rt/op/cuda/conv.c
program unit_cuda_conv -DREAL_BF16 rt/op/cuda/conv.c rt/op/cuda/conv_graph.c rt/op/cuda/graph.c tests/double/cudnn.c
program unit_cuda_start '-DBUILT_FOR="86 90"' rt/op/cuda/start.c $runtime \
    tests/double/cublaslt.c
program unit_cuda_start -DCUDNN '-DBUILT_FOR="90 100 103 120"' rt/op/cuda/start.c $runtime \
    tests/double/cublaslt.c
# the GPU as a file for devices/: 2 x 5120 / 8 bytes at 2.619 GHz, 132 multiprocessors at 1.83 GHz with 4096 operations of bf16
"${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -D_GNU_SOURCE -isystem "$cuda/include" -o build/gpu_device \
    tests/gpu/device.c $runtime -lpthread || exit 1
described() {   # WHAT STATUS TEXT SETTING...
    want=$1/$2 text=$3
    shift 3
    env CUDA_DEVICE_MAX_CONNECTIONS=32 "$@" build/gpu_device >build/gpu_device.yaml 2>&1
    if [ "${want#*/}" = $? ] && grep -q "$text" build/gpu_device.yaml; then passed=$((passed + 1))
    else echo "cuda_host: a GPU's description, $want: $(head -n 3 build/gpu_device.yaml)" >&2; failed=$((failed + 1)); fi
}
described "none" 6 "no CUDA-capable device" DOUBLE_DEVICES=0
described "its rates" 0 "bandwidth: 3352GB/s, flops: {f32: 62TFLOP/s, bf16: 989TFLOP/s}" DOUBLE_MEMORY=85899345920
described "its kind" 0 "arch: sm_90, count: 2, memory: 81920MiB" DOUBLE_MEMORY=85899345920 DOUBLE_DEVICES=2
# a cuDNN that is older than start.c takes is refused when graph.h is compiled, and no other
mkdir -p build/old_cudnn
for minor in 15 16; do
    for file in "$cuda"/include/cudnn*.h; do
        sed "s/^\(#define CUDNN_[A-Z_]*MINOR\) .*/\1 $minor/" "$file" >"build/old_cudnn/${file##*/}"
    done
    said=$("${CC:-cc}" -D_GNU_SOURCE -fsyntax-only -Irt -Irt/op -isystem build/old_cudnn -isystem "$cuda/include" \
        rt/op/cuda/graph.c 2>&1)
    got=$?
    case $minor,$got,$said in
        16,0,*) passed=$((passed + 1)) ;;
        15,1,*'cuDNN 9.16 or newer is needed (start.c says why): install it, or say make CUDNN_HOME=FOLDER'*)
            passed=$((passed + 1)) ;;
        *) echo "cuda_host: cuDNN 9.$minor: status $got: $(echo "$said" | head -n 1)" >&2; failed=$((failed + 1)) ;;
    esac
done
make -s dpgen || exit 1
if ./dpgen plan examples/gpt2-124m-cuda.yaml --devices build/gpu_device.yaml --stages 2 --estimate >build/gpu_device.said 2>&1
then passed=$((passed + 1)); else head -n 3 build/gpu_device.said >&2; failed=$((failed + 1)); fi
library=$(cuda_library cublasLt)
if [ -n "$library" ]; then
    for sums in -UFAST_SUMS -DFAST_SUMS; do
        program unit_cublaslt_real -DREAL_BF16 $sums rt/op/cuda/product.c rt/op/cuda/linear.c rt/op/cuda/linear_gelu.c \
            rt/op/cuda/linear_fp8.c rt/op/cuda/matmul.c "$library" \
            "-Wl,-rpath,$(dirname "$library")" "-Wl,-rpath-link,$(dirname "$library")"
    done
else
    echo "cuda_host: cuBLAS is not installed" >&2
    skipped=1
fi
echo "cuda_host: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
