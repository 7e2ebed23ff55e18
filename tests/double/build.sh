#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a job for GPUs is linked with where there is none: the runtime, the double of CUDA, and kernels of processors behind it.
#   tests/double/build.sh INCLUDE     INCLUDE is the folder of cuda_runtime_api.h
# Makes build/double/f32.a and bf16.a, and beside them f32/local.obj and f32/nccl.obj, the transports; f32/own.obj, which stands
# before the archive, has the kernels and library calls of rt/op/cuda over tests/simt and doubles of the libraries, made by
#   make build/kernels.o build/kernels_bf16.o build/simt.o
set -e
cd "$(dirname "$0")/../.."
include=$1
awk=tests/double/defer.awk
warn="-Wall -Wextra -Werror -Wno-unknown-pragmas"
flags="-D_GNU_SOURCE -std=c11 -I. -Irt -Irt/op -Itests/double -isystem $include $warn"
mkdir -p build/double
for real in f32 bf16; do
    to=build/double/$real
    define=; [ $real = bf16 ] && define=-DREAL_BF16
    newest=$(ls -t rt/*.[ch] rt/cuda/*.[ch] rt/op/*.[ch] rt/op/cuda/*.[ch] build/kernels*.o tests/double/* | head -n 1)
    [ -e $to.a ] && [ $to.a -nt "$newest" ] && continue
    rm -rf $to $to.a
    mkdir -p $to
    awk -v part=names -f $awk rt/rt.h >$to/names.h
    awk -v part=calls -f $awk rt/rt.h >$to/calls.c
    for file in rt/op/*.c rt/fold.c rt/op/cuda/start.c; do
        case $file in
            rt/op/start.c) continue ;;
            rt/op/open.c | rt/op/cuda/start.c) rename="-DBUILT_FOR='\"90\"'" ;;
            *) rename="-include $to/names.h" ;;
        esac
        echo "$rename -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math" "$file"
    done >$to/list
    for file in rt/*.c rt/cuda/*.c; do
        case $file in */link_*.c | rt/fold.c) continue ;; esac
        case $file in rt/cuda/*) ;; *) [ -e "rt/cuda/$(basename $file)" ] && continue ;; esac
        echo "-O1 -g -ffp-contract=off" "$file"
    done >>$to/list
    echo "-O1 -g" tests/double/device.c >>$to/list
    for file in tests/double/cudart.c rt/link_local.c rt/cuda/link_nccl.c tests/double/nccl.c; do
        echo "-O1 -g $file"
    done >>$to/list
    echo "-O1" $to/calls.c >>$to/list
    nl -ba -w1 -s' ' $to/list | while read -r number args; do
        echo "${CC:-cc} $flags $define $args -c -o $to/$number.o"
    done | tr '\n' '\0' | xargs -0 -n 1 -P 2 sh -c
    last=$(wc -l <$to/list)
    mv $to/$((last - 3)).o $to/local.obj
    ld -r -o $to/nccl.obj $to/$((last - 2)).o $to/$((last - 1)).o
    rm -f $to/$((last - 2)).o $to/$((last - 1)).o
    ar rcsD $to.a $to/*.o
    kernels=build/kernels.o
    [ $real = f32 ] || kernels=build/kernels_bf16.o
    for file in rt/op/cuda/*.c tests/double/cublaslt.c tests/double/cudnn.c tests/double/simt.c; do
        ${CC:-cc} $flags $define -DBUILT_FOR='"90"' -O2 -ffp-contract=off -c -o "$to/$(basename "$file" .c).own" "$file"
    done
    ld -r -o $to/own.obj $to/*.own $kernels build/simt.o
done
