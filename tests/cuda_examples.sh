#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Examples as jobs for GPUs: each is generated, compiled and run over the double of CUDA, with small dims; in its own type, and
# those of images in bf16, in which convolutions are cuDNN's.  One stage and two have one hash.  SLOW=1 takes all of them, and
# those of images in both types, but inception-v3, which runs by name alone: its second classifier wants images of
# 299 x 299, and two of them took six minutes in bf16.
#   cuda_examples.sh [NAME ...]
. "$(dirname "$0")/lib.sh"
. tests/cuda.sh
have_cuda nccl.h || { skip "no headers of CUDA and NCCL: $cuda_remedy" 2; finish; }
need dpgen build/emitted
need_double
$cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/npy" tests/npy.c || { fault "tests/npy.c"; finish; }
eight_gpus >"$tmp/gpus"
cwd=$tmp/data run="--no-checkpoint --quiet --hash --steps 1 --watchdog 0"
patience=3600
mkdir "$cwd"

write_array() { (cd "$cwd" && "$tmp/npy" "$@"); }
. tests/small.sh
samples=4

# example NAME KIND DIM=SIZE...
example() {
    name=$1 kind_of=$2 arrays=
    shift 2
    sized "$@"
    $kind_of || { fault "$name: no arrays"; return; }
    case $kind_of,$SLOW in
        pictures, | covers,) types=bf16 ;;
        pictures,* | covers,*) types="f32 bf16" ;;
        *) types=f32; ! grep -q 'compute: bf16' "examples/$name.yaml" || types=bf16 ;;
    esac
    for type in $types; do over_double; done
}
over_double() {
    [ $type = f32 ] && use_portable || use_bf16
    double=$root/build/double/$type first=
    with="$double/own.obj $double/local.obj $double.a -lpthread -lm -ldl -lstdc++" quick=$tcc linker=$cc
    for options in "--stages 1 --schedule gpipe" "--stages 2 --schedule 1f1b --recompute full"; do
        said=$(generate "$tmp/gpu" "examples/$name.yaml" $dims $options --devices "$tmp/gpus" --set train.batch.global=4 \
            --set train.batch.micro=2 --set train.precision.compute=$type \
            --set "data={train: {format: npy, arrays: {$arrays}}}" && compile "$tmp/gpu" && job_hash "$tmp/gpu")
        [ ${#said} = 64 ] && [ "$said" = "${first:-$said}" ] && pass || fault "$name, $type, $options: $said, not $first"
        first=$said
    done
}

chosen=${*:-$([ -n "$SLOW" ] && echo all || echo awd-lstm phi-2 squeezenet)}
small_examples >"$tmp/examples"
while read -r name kind_of dims; do
    case " $chosen " in " all ") [ "$name" != inception-v3 ] || continue ;; esac
    case " $chosen " in *" $name "* | " all ") example "$name" "$kind_of" $dims </dev/null ;; esac
done <"$tmp/examples"
finish
