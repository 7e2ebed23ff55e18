#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a job for GPUs is linked with where there is none: the runtime, the double of CUDA, and kernels of processors behind it.
#   tests/double/build.sh INCLUDE     INCLUDE is the folder of cuda_runtime_api.h
# Makes build/double/f32.a and bf16.a, and beside them f32/local.obj and f32/nccl.obj, the transports; f32/own.obj, which stands
# before the archive, has the kernels and library calls of rt/op/cuda over tests/simt and doubles of the libraries.  What jobs
# for processors have too is taken as compiled for build/librt.a; all that is needed, by
#   make build/librt.a build/librt_bf16.a build/kernels.o build/kernels_bf16.o build/simt.o
set -e
cd "$(dirname "$0")/../.."
include=$1
awk=tests/double/defer.awk
flags="-D_GNU_SOURCE -std=c11 -I. -Irt -Irt/op -Itests/double -isystem $include -DBUILT_FOR='\"90\"' -O1 -ffp-contract=off
    -Wall -Wextra -Werror -Wno-unknown-pragmas"
mkdir -p build/double
for real in f32 bf16; do
    to=build/double/$real made=build/$real/rt
    define=; [ $real = bf16 ] && define=-DREAL_BF16
    newest=$(ls -t rt/cuda/*.[ch] rt/op/cuda/*.[ch] build/librt*.a build/kernels*.o tests/double/* | head -n 1)
    [ -e $to.a ] && [ $to.a -nt "$newest" ] && continue
    rm -rf $to $to.a
    mkdir -p $to
    awk -v part=names -f $awk rt/rt.h >$to/names
    awk -v part=calls -f $awk rt/rt.h >$to/calls.c
    for file in rt/*.c; do
        name=$(basename $file .c)
        case $name in link_* | fold) continue ;; esac
        [ -e rt/cuda/$name.c ] || cp $made/$name.o $to
    done
    for file in rt/fold.c rt/op/*.c; do
        name=$(basename $file .c)
        [ $name = start ] || objcopy --redefine-syms=$to/names build/$real/${file%.c}.o $to/$name.o
    done
    # compiled FILE...: OUTPUT and what it is made of
    {
        for file in rt/cuda/[!l]*.c rt/op/cuda/start.c tests/double/device.c tests/double/cudart.c tests/double/capture.c \
            tests/double/step.c tests/double/pictures.c $to/calls.c; do
            echo "$(basename $file .c).o" $file
        done
        echo link_nccl.half rt/cuda/link_nccl.c
        echo nccl.half tests/double/nccl.c
        for file in rt/op/cuda/*.c tests/double/cublaslt.c tests/double/cudnn.c tests/double/simt.c; do
            echo "$(basename $file .c).own" $file
        done
    } | while read -r output file; do
        echo "${CC:-cc}" $flags $define -c -o $to/$output $file
    done | tr '\n' '\0' | xargs -0 -n 1 -P 2 sh -c
    objcopy --redefine-sym step_begin=run_step_begin $to/feed.o
    cp $made/link_local.o $to/local.obj
    ld -r -o $to/nccl.obj $to/*.half
    ar rcsD $to.a $to/*.o
    kernels=build/kernels.o
    [ $real = f32 ] || kernels=build/kernels_bf16.o
    ld -r -o $to/own.obj $to/*.own $kernels build/simt.o
done
