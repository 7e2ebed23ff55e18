#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program of the kit that has every kernel of ours under the tests of the portable ones, as tests/gpu/pack.sh links it with
# the real toolkit: each call that those tests make has a kernel, or is named in GPULACKS.  Without a GPU it says so.
# SLOW=1: in bf16 too, and as a user's make compiles it.
. "$(dirname "$0")/lib.sh"
. tests/cuda.sh
need dpgen
have_cuda cudnn.h && [ -x "$cuda/bin/nvcc" ] || { skip "no nvcc and cuDNN: $cuda_remedy" 2; finish; }
types=f32
if [ "$SLOW" ]; then types="f32 bf16"
else export PACK_MAKE="NVCC=$(quick_nvcc)"; fi

for type in $types; do
    expect "kernels.$type" tests/gpu/pack.sh -s -o "bits.$type.1 kernels.$type" "$tmp/kit"
    if [ -e /dev/nvidiactl ]; then skip "there is a GPU here" 1
    else refuse "no GPU" 1 "^kernels: the GPU: " "$tmp/kit/kit/bin/kernels.$type"; fi
done
finish
