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

# array NAME TYPE HIGH DIM...: its file, and NAME: FILE in $arrays.  The first axis is that of four samples.
array() {
    file=$(echo "$*" | tr ' .' '_-').npy
    arrays="$arrays${arrays:+, }$1: $file" of=$2 high=$3
    shift 3
    (cd "$cwd" && "$tmp/npy" "$file" "$of" 0 "$high" 4 "$@")
}
# The inputs of a model of each kind, from its dims
words() { array tokens i4 61 "$T" && array targets i4 61 "$T"; }
pairs() { array source i4 61 "$S" && array present i4 2 "$S" && array target i4 61 "$T" && array next i4 61 "$T"; }
halves() { array ids i4 61 "$S" && array mask i4 2 "$S" && array decoder_ids i4 61 "$T" && array labels i4 61 "$T"; }
masked() {
    array tokens i4 61 "$T" && array types i4 2 "$T" && array mask i4 2 "$T" && array labels i4 61 "$T" && array next i4 2
}
pictures() { array image f4 1 "$S" "$S" 3 && array labels i4 5; }
covers() { array image f4 1 "$S" "$S" 3 && array mask f4 1 "$S" "$S" 1; }

# example NAME KIND DIM=SIZE...
example() {
    name=$1 kind_of=$2 arrays= dims=
    shift 2
    for dim; do
        eval "${dim%%=*}=${dim#*=}"
        dims="$dims -D $dim"
    done
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
while read -r name kind_of dims; do
    case " $chosen " in " all ") [ "$name" != inception-v3 ] || continue ;; esac
    case " $chosen " in *" $name "* | " all ") example "$name" "$kind_of" $dims </dev/null ;; esac
done <<END
amoebanet-d pictures S=32 C=5 L=6 F=8
cifar pictures S=16 C=5
convnext-tiny pictures S=32 C=5 F=8 N3=2
densenet121 pictures S=32 C=5 G=8 N0=16 N3=6
efficientnet-b0 pictures S=32 C=5
inception-v3 pictures S=299 C=5
mixer-b16 pictures S=32 C=5 D=32 L=2 TD=16 CD=48
mobilenetv2 pictures S=32 C=5
resnet18 pictures S=32 C=5
resnet50 pictures S=32 C=5 N2=1 N3=1
squeezenet pictures S=32 C=5
unet covers S=64 N=2 F=8
vgg16 pictures S=32 C=5
vgg16-bn pictures S=32 C=5
vit-b16 pictures S=32 C=5 D=32 H=4 L=2
awd-lstm words V=61 T=7 E=12 H=14
bert-base masked V=61 T=12 D=32 H=4 L=2 FF=48
bert-base-cuda masked T=12 D=32 H=4 L=2 FF=48
bert-large masked V=61 T=12 D=32 H=2 L=2 FF=48
bytes-gpt words T=16 D=32 H=4 L=2
gemma-2b words V=61 T=16 D=32 H=4 K=1 W=8 F=48 L=2
gemma2-2b words V=61 T=16 D=32 H=4 K=2 W=8 F=48 L=2
gnmt-8 pairs V=61 S=7 T=6 H=16
gpt2-124m words V=61 T=16 P=16 D=32 H=4 L=2
gpt2-124m-cuda words T=16 P=16 D=32 H=4 L=2
gpt2-355m words V=61 T=16 P=16 D=32 H=2 L=3
gpt2-774m words V=61 T=16 P=16 D=40 H=5 L=2
llama-3.2-1b words V=61 T=16 D=32 H=4 K=2 W=8 F=48 L=2
mixtral-8x7b words V=61 T=16 D=32 H=4 K=2 W=8 F=48 L=2 E=3
olmoe-1b-7b words V=61 T=16 D=32 H=4 K=4 W=8 F=24 L=2 E=5 TOP=3
opt-125m words V=61 T=16 D=32 H=4 L=2
phi-2 words V=61 T=16 D=80 H=2 W=40 F=96 L=2
qwen2.5-0.5b words V=61 T=16 D=32 H=4 K=2 W=8 F=48 L=2
qwen3-0.6b words V=61 T=16 D=32 H=4 K=2 W=8 F=48 L=2
t5-large halves V=61 S=12 T=9 D=32 H=4 W=8 FF=48 L=2
t5-small halves V=61 S=12 T=9 D=40 H=5 W=8 FF=48 L=2
tinyllama words V=61 T=16 D=32 H=4 K=2 W=8 F=48 L=2
END
finish
