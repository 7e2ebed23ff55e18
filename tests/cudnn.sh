#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Attention and convolutions on GPUs: the scratch that dpgen plans, and the graphs that cuDNN is given, planned by the real
# library for described chips (cudnn_plans.c).  No GPU is needed, and where there is no driver a stub of it; skipped where cuDNN
# is not installed.
#   SLOW=1 tests/cudnn.sh     more shapes and chips
. "$(dirname "$0")/lib.sh"
. tests/cuda.sh

# scratch WANTED OPTION...: what backward of attention gets in a small GPT on H200s
scratch() {
    want=$1
    shift
    got=$(./dpgen plan examples/bytes-gpt.yaml --devices devices/h200.yaml --stages 1 --estimate -d g -D L=1 "$@" 2>&1 |
          sed -n 's/^op I:h.0.attention .* tmp=\([0-9]*\) .*/\1/p')
    if [ "$got" = "$want" ]; then pass; else fault "scratch of $*: ${got:-none}, not $want"; fi
}
bf16="--set train.precision.compute=bf16"
# 2 samples, 7 heads of 32, 128 positions: sums 7168 bytes, 192 that align what cuDNN works in, dS in bf16, 256 of its own
scratch $((7168 + 192 + 2 * 7 * 128 * 128 * 2 + 256)) $bf16
# 200 positions are 256 both ways, 130 are 192 queries and 256 keys; sums of 11200 and 7280 bytes are rounded up to 64
scratch $((11200 + 192 + 2 * 7 * 256 * 256 * 2 + 256)) $bf16 -D T=200
scratch $((7296 + 192 + 2 * 7 * 192 * 256 * 2 + 256)) $bf16 -D T=130
# our own kernels: f32, heads of 36, of 264
scratch 7168 --set train.precision.compute=f32
scratch 7168 $bf16 -D D=252
scratch 7168 $bf16 -D D=1848
# heads of 136 are cuDNN's on sm_90 alone
scratch $((7168 + 192 + 2 * 7 * 128 * 128 * 2 + 256)) $bf16 -D D=952
scratch 7168 $bf16 -D D=952 --set devices.0.arch=sm_80
# no engine is proven on later chips
scratch 7168 $bf16 --set devices.0.arch=sm_100
# 2 samples, 32 heads of 64 over 4 of keys, 200 positions: dk and dv of every query head too, 2 * 32 * 200 * 64 numbers each
shared=$(./dpgen plan examples/tinyllama.yaml --devices devices/h200.yaml --stages 1 --estimate -d g -D L=1 -D T=200 $bf16 \
    --set train.batch.micro=2 2>&1 | sed -n 's/^op I:model.layers.0.attention .* tmp=\([0-9]*\) .*/\1/p')
want=$((4 * 2 * 32 * 200 + 2 * 2 * 2 * 32 * 200 * 64 + 192 + 2 * 2 * 32 * 256 * 256 + 256))
if [ "$shared" = $want ]; then pass; else fault "scratch of shared keys: ${shared:-none}, not $want"; fi

# opened WANTED OPTION...: calls of attention that cuDNN prepares for its first stage; without any the job has no cuDNN
opened() {
    want=$1
    shift
    rm -rf "$tmp/folder"
    ./dpgen "$@" -D L=1 --stages 1 --estimate -o "$tmp/folder" >"$tmp/said" 2>&1 || fault "$*: $(head -n 1 "$tmp/said")"
    got=$(grep -c '^    open_attention' "$tmp/folder/stage0.c")
    needs=$(sed -n "s/^NEEDS = //p" "$tmp/folder/cuda.mk" | grep -c cudnn)$(cd "$tmp/folder" && grep -l cudnn.h -r rt | wc -l)
    [ "$want" = 0 ] && has=00 || has=11
    if [ "$got" = "$want" ] && [ "$needs" = $has ]; then pass
    else fault "$*: cuDNN prepares $got calls, not $want ($needs)"; fi
}
gpt="examples/bytes-gpt.yaml --devices devices/h200.yaml"
opened 2 $gpt $bf16
opened 2 examples/tinyllama.yaml --devices devices/h200.yaml $bf16
opened 0 $gpt
opened 0 $gpt $bf16 -D D=252
opened 2 $gpt $bf16 -D D=1792
opened 0 $gpt $bf16 -D D=1792 --set devices.0.arch=sm_80
for arch in sm_100 sm_120; do
    opened 0 $gpt $bf16 --set devices.0.arch=$arch
    if grep -q "cuDNN is not proven .* on $arch: attention_.* our own kernels" "$tmp/said"; then pass
    else fault "$arch: no line says that attention is slower"; fi
done
opened 0 tests/models/tiny-bert.yaml --devices devices/h200.yaml $bf16
# dropout, but not in an evaluation
sed 's/op: Attention, /&dropout: 0.1, /' examples/gpt2-124m-cuda.yaml >"$tmp/dropout.yaml"
opened 1 "$tmp/dropout.yaml"
sed '/^  eval:/d' "$tmp/dropout.yaml" >"$tmp/train.yaml"
opened 0 "$tmp/train.yaml"

# images of 3 channels are copied with 8 into the workspace, and tensor cores want that; tests/cudnn_plans.c asks the library
images="examples/resnet50.yaml --devices devices/h100.yaml --stages 1 --estimate -o $tmp/images"
for batch in 16 64 256; do
    need=$(((batch * 224 * 224 * 8 * 2 + (9 << 20) - 1) >> 20))
    ./dpgen $images $bf16 --set train.batch.micro=$batch --set train.batch.global=$batch >"$tmp/said" 2>&1 ||
        fault "ResNet-50: $(head -n 2 "$tmp/said")"
    got=$(sed -n 's/.*tensor cores for the images of .* --set devices.0.workspace=\([0-9]*\)MiB.*/\1/p' "$tmp/said")
    [ $need -gt 32 ] || need=
    if [ "$got" = "$need" ]; then pass; else fault "a workspace for $batch images: ${got:-none}, not ${need:-none}"; fi
done

library=$(cuda_library cudnn)
if ! have_cuda cudnn.h || [ -z "$library" ]; then
    skip "no cuDNN: $cuda_remedy"
    finish
fi
folder=$(dirname "$library")
include="-isystem $cuda/include"
$cc -std=c11 -Wall -Wextra -Wpedantic -Werror -O1 -DREAL_BF16 -D_GNU_SOURCE -I. -Irt $include -o "$tmp/plans" \
    tests/cudnn_plans.c rt/op/cuda/attention.c rt/op/cuda/attention_graph.c rt/op/cuda/conv_graph.c rt/op/cuda/graph.c \
    "$library" \
    -Wl,--disable-new-dtags,-rpath,"$folder",-rpath-link,"$folder" 2>"$tmp/said" ||
    { cat "$tmp/said" >&2; fault "cudnn_plans.c does not build"; finish; }
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
    $cc -shared -fPIC -Wall -Wextra -Werror -o "$tmp/libcuda.so.1" tests/double/stubcuda.c || fault "stubcuda.c"
    LD_LIBRARY_PATH=$LD_LIBRARY_PATH${LD_LIBRARY_PATH:+:}$tmp
    export LD_LIBRARY_PATH
fi
"$tmp/plans" ${SLOW:+all} >"$tmp/out" || tail -n 5 "$tmp/out" >&2
said=$(tail -n 1 "$tmp/out")
p=$(expr "$said" : '.*[ :]\([0-9]*\) passed') f=$(expr "$said" : '.* \([0-9]*\) failed')
passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
finish
