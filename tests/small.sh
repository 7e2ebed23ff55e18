# SPDX-License-Identifier: Apache-2.0
#
# small.sh: read by what runs examples with small dims: those dims, and the arrays that each reads, of $samples samples.
# write_array FILE TYPE LOW HIGH DIM... is the reader's, and makes one.

# array NAME TYPE HIGH DIM...: its file, and NAME: FILE in $arrays.  The first axis is that of the samples.
array() {
    file=$(echo "$*" | tr ' .' '_-').npy
    arrays="$arrays${arrays:+, }$1: $file" of=$2 high=$3
    shift 3
    write_array "$file" "$of" 0 "$high" "$samples" "$@"
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

# sized DIM=SIZE...: as variables, and as options in $dims
sized() {
    dims=
    for dim; do
        eval "${dim%%=*}=${dim#*=}"
        dims="$dims -D $dim"
    done
}

# NAME KIND DIM=SIZE...
small_examples() {
    cat <<END
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
}
