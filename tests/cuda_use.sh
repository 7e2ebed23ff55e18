#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A folder for GPUs as its user has it, with its own Makefile, over a toolkit whose compiler and libraries are doubles: make,
# expected and verify, --prefix, and checkpoints: while tensors wait on the host, on a disk that is full, where nothing can be
# written.
. "$(dirname "$0")/lib.sh"
. tests/cuda.sh
need dpgen build/emitted
have_cuda nccl.h && have_cuda cublasLt.h && have_cuda cudnn.h || { skip "no headers of CUDA: $cuda_remedy" 15; finish; }
need_double
[ -n "$SLOW" ] || use_ready -O1

# The toolkit: nvcc gives the kernels that tests/simt runs, and what a library would be is a script of the linker.
double=$root/build/double/bf16
kit=$tmp/kit
mkdir -p "$kit/bin" "$kit/lib64"
ln -s "$cuda/include" "$kit/include"
printf '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nexec ld -r -o "$2" %s %s %s\n' "$root/build/kernels_bf16.o" \
    "$root/build/simt.o" "$double/simt.own" >"$kit/bin/nvcc"
chmod +x "$kit/bin/nvcc"
echo "INPUT($double.a -lpthread -lm -lstdc++)" >"$kit/lib64/libcudart.so"
echo "INPUT($double/cublaslt.own)" >"$kit/lib64/libcublasLt.so"
echo "INPUT($double/cudnn.own)" >"$kit/lib64/libcudnn.so"

cat >"$tmp/gpus" <<'GPUS'
devices:
  - {name: gpu, kind: cuda, arch: sm_90, count: 2, memory: 128MiB, workspace: 2MiB, bandwidth: 4800GB/s, call: 4us,
     flops: 67TFLOP/s, vector: 67TFLOP/s}
links: {gpu-gpu: {rate: 360GB/s, latency: 1us}, gpu-host: {rate: 500GB/s, latency: 1ns}}
hosts: {count: 1, memory: 2GiB, offload: 1GiB}
GPUS
model="$models/tiny-gpt.yaml --set train.precision.compute=bf16 --set train.steps=4 --set train.batch.global=8"
[ -n "$SLOW" ] || model="$model -D L=1 --set train.batch.global=4"
model="$model --set data.train.files=$data --stages 2"
model="$model --schedule 1f1b --devices $tmp/gpus"
# made NAME OPTION...: the folder, and what its make makes; what is the same in the first one is not compiled again
made() {
    name=$1
    shift
    said=$(eval "generate $tmp/$name $model $*") || { fault "$name: $said"; return 1; }
    [ "$name" = whole ] || { take_objects "$tmp/whole" "$tmp/$name" && cp "$tmp/whole/kernels.o" "$tmp/$name"; }
    expect "make $name" make_quickly "$tmp/$name" CUDA_HOME="$kit"
}
hash() { sed -n 's/^sha256 //p' "$1"; }

made whole --offload "\"['*']\"" || finish
(cd "$tmp/whole" && ./train --no-checkpoint --quiet --hash) >"$tmp/out" 2>"$tmp/err"
right=$(hash "$tmp/out")
if [ ${#right} = 64 ]; then pass; else fault "no hash: $(tail -n 1 "$tmp/err")"; finish; fi

# ---- checkpoints ----------------------------------------------------------------------------------------------------------
# steps SEED DIR OPTION...
steps() {
    seed=$1 dir=$2
    shift 2
    DOUBLE_SEED=$seed "$tmp/whole/train" --checkpoint "$dir" --quiet --hash "$@" >"$tmp/out" 2>"$tmp/err"
}
for seed in 1 2; do
    steps $seed "$tmp/c$seed" --steps 2
    steps 3 "$tmp/c$seed" --resume
    if [ "$(hash "$tmp/out")" = "$right" ]; then pass; else fault "resumed, seed $seed: $(cat "$tmp/out" "$tmp/err")"; fi
done
refuse "a disk that is full" 1 "cannot write\|File too large\|No space" sh -c 'trap "" XFSZ; ulimit -f 64; exec "$@"' sh \
    "$tmp/whole/train" --checkpoint "$tmp/c1" --resume --steps 6 --quiet
steps 1 "$tmp/c1" --resume --steps 4
if [ "$(hash "$tmp/out")" = "$right" ]; then pass; else fault "after a full disk: $(cat "$tmp/out" "$tmp/err")"; fi
refuse "nothing can be written" 1 "/proc/none" "$tmp/whole/train" --checkpoint /proc/none --quiet

# ---- expected and verify ----------------------------------------------------------------------------------------------------
check() { make_quickly "$tmp/whole" CUDA_HOME="$kit" STEPS=4 "$@"; }
refuse "nothing expected" 2 "there is no file 'expected'" check verify
expect "make expected" check expected
if [ "$(hash "$tmp/whole/expected")" = "$right" ] && grep -q 'CUDA [0-9.]* for sm_90, cuBLAS' "$tmp/whole/expected"; then pass
else fault "expected: $(cat "$tmp/whole/expected")"; fi
expect "make verify" check verify
cp "$tmp/whole/expected" "$tmp/good"
sed '$s/^sha256 ./sha256 x/' "$tmp/good" >"$tmp/whole/expected"
refuse "another hash" 2 "^< sha256 x" check verify
cp "$tmp/good" "$tmp/whole/expected"
echo >>"$tmp/whole/kernels.cu"
refuse "a kernel that was changed" 2 "kernels.cu: FAILED" check verify

# ---- an object in place of a program --------------------------------------------------------------------------------------
made net --prefix net
echo 'int net_main(int, char **); int main(int argc, char **argv) { return net_main(argc, argv); }' >"$tmp/main.c"
make -s -C "$tmp/net" CUDA_HOME="$kit" needed >"$tmp/needed"
expect "a program with it" $cc -o "$tmp/main" "$tmp/main.c" "$tmp/net/net.o" $(cat "$tmp/needed")
if [ "$(nm -g --defined-only "$tmp/net/net.o" | awk '{ print $3 }')" = net_main ]; then pass; else fault "net.o shows more"; fi
"$tmp/main" --no-checkpoint --quiet --hash >"$tmp/out" 2>"$tmp/err"
if [ "$(hash "$tmp/out")" = "$right" ]; then pass; else fault "as an object: $(cat "$tmp/out" "$tmp/err")"; fi
finish
