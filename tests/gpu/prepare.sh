#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What check.sh and bench/gpu run, as folders that need no dpgen: made here, run where the GPU is.
#   tests/gpu/prepare.sh DIR [ARCH]     DIR/bits/TYPE.NAME: one hash for all of a TYPE;  DIR/bench/NAME;  sm_90
#                                       DIR/profile: the benchmark of dpgen profile
set -eu
cd "$(dirname "$0")/../.."
to=$1 arch=${2:-sm_90}
rm -rf "$to"
mkdir -p "$to/bits" "$to/bench"
cp LICENSE "$to/text"
cat >"$to/gpu.yaml" <<GPU
devices:
  - {name: gpu, kind: cuda, arch: $arch, count: 8, memory: 16GiB, flops: {f32: 67TFLOP/s, bf16: 989TFLOP/s}, vector: 67TFLOP/s,
     bandwidth: 4800GB/s, efficiency: {product: 0.6, memory: 0.9}, call: 4us}
links: {gpu-gpu: {rate: 1TB/s, latency: 10us}, gpu-host: {rate: 50GB/s, latency: 10us}}
hosts: {count: 1, memory: 256GiB, offload: 64GiB}
GPU
# bits TYPE.NAME OPTION...: of $model
model=examples/bytes-gpt.yaml
bits() {
    name=$1
    shift
    case $name in bf16*) set -- "$@" --set train.precision.compute=bf16 ;; esac
    ./dpgen $model --devices "$to/gpu.yaml" --estimate -D D=256 -D H=4 -D T=256 --set train.batch.micro=4 \
        --set train.batch.global=32 "$@" -o "$to/bits/$name" >/dev/null
}
for type in f32 bf16; do
    bits $type.1 --stages 1 --schedule gpipe --recompute none
    bits $type.2 --stages 2 --schedule 1f1b --recompute full
    bits $type.3 --stages 3 --schedule 1f1b --recompute none
    bits $type.4 --stages 4 --schedule gpipe --recompute none
    bits $type.2offload --stages 2 --schedule 1f1b --offload "['h.*']"
    bits $type.2v --stages 2 --schedule 1f1b --map 0,1,1,0
    bits $type.2apart --stages 2 --schedule 1f1b --recompute none --fuse none
done
# the head and its loss as one operator: chunks of 96, 96 and 64
sed -e '/op: Linear, name: lm_head/d' -e 's/op: SoftmaxCross/op: LinearCross/; s/targets: targets, as/name: lm_head, out: V, \
      chunk: 96, &/' $model >"$to/chunked.yaml"
model=$to/chunked.yaml
for type in f32-chunked bf16-chunked; do
    bits $type.1 --stages 1 --schedule gpipe --recompute none
    bits $type.2 --stages 2 --schedule 1f1b --recompute full
    bits $type.3 --stages 3 --schedule 1f1b --recompute none
done
# bench NAME MODEL OPTION...
bench() {
    name=$1 model=$2
    shift 2
    ./dpgen "examples/$model.yaml" --devices "$to/gpu.yaml" --set devices.0.memory=138GiB --estimate \
        --set train.precision.compute=bf16 "$@" -o "$to/bench/$name" >/dev/null
}
gpt="--set train.batch.micro=16 --set train.batch.global=64"
bench gpt2-124m gpt2-124m-cuda --stages 1 $gpt
bench gpt2-355m gpt2-355m -D V=50304 --stages 1 $gpt
bench gpt2-774m gpt2-774m -D V=50304 --stages 1 --set train.batch.micro=8 --set train.batch.global=32
# dpgen profile builds its folder, runs it and takes it away: a make that keeps it stands in for the real one, and a library
# of that name for the driver that may not be here
mkdir "$to/bin"
printf '#!/bin/sh\ncp -R "$3" "%s/profile"\nexit 1\n' "$to" >"$to/bin/make"
chmod +x "$to/bin/make"
"${CC:-cc}" -shared -fPIC -o "$to/bin/libcuda.so.1" tests/double/stubcuda.c
PATH="$to/bin:$PATH" LD_LIBRARY_PATH="$to/bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ./dpgen profile \
    examples/gpt2-124m-cuda.yaml --devices "$to/gpu.yaml" --stages 2 -o "$to/times" >/dev/null 2>&1 ||
    [ -e "$to/profile/stage0.c" ]
rm -r "$to/bin"
echo "prepare: $(ls "$to/bits" | wc -l) folders for bits, $(ls "$to/bench" | wc -l) for speed in $to"
