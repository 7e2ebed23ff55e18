# SPDX-License-Identifier: Apache-2.0
#
# cuda.sh: read by the suites that need the headers or libraries of CUDA.  $cuda is where they are, empty where they are
# not: $CUDA_HOME, what the nvcc in the path belongs to, the customary folder, or what tools/cuda got.  CUDA_PLACES: others
# than the last two.
cuda=
for folder in "$CUDA_HOME" "$(dirname "$(command -v nvcc)" 2>/dev/null)/.." ${CUDA_PLACES-/usr/local/cuda "$PWD/build/cuda"}; do
    if [ -n "$folder" ] && [ -f "$folder/include/cuda_runtime_api.h" ]; then
        cuda=$folder
        break
    fi
done
cuda_remedy="set CUDA_HOME, or let tools/cuda get it"
# have_cuda HEADER: is it there?
have_cuda() { [ -n "$cuda" ] && [ -f "$cuda/include/$1" ]; }
# cuda_library NAME: its file, as a compiler takes it, or nothing
cuda_library() { ls "$cuda/lib64/lib$1.so" "$cuda/lib/lib$1.so" "$cuda"/lib/*/"lib$1.so" 2>/dev/null | head -n 1; }
# quick_nvcc: the name of an nvcc that takes no time over fast code
quick_nvcc() {
    cat >"$tmp/nvcc" <<NVCC
#!/bin/sh
for word; do
    shift
    [ "\$word" != -O3 ] || word=-O0
    set -- "\$@" "\$word"
done
exec "$cuda/bin/nvcc" -Xptxas -O0 -Xcicc -O1 "\$@"
NVCC
    chmod +x "$tmp/nvcc"
    echo "$tmp/nvcc"
}
# need_double: tests/double, or the suite cannot go on (lib.sh); tests/run makes it before its workers start.  It has storage of
# threads, which tcc cannot link.
double_needs="build/librt.a build/librt_bf16.a build/kernels.o build/kernels_bf16.o build/simt.o"
need_double() {
    need $double_needs
    tests/double/build.sh "$cuda/include" >"$tmp/build" 2>&1 || { tail -n 3 "$tmp/build" >&2; fault "the double"; finish; }
    quick=$tcc linker=$cc
}
# eight_gpus: a device file for small jobs of the double
eight_gpus() {
    cat <<'GPUS'
devices:
  - {name: gpu, kind: cuda, arch: sm_90, count: 8, memory: 2GiB, workspace: 2MiB, bandwidth: 4800GB/s, call: 4us,
     flops: 67TFLOP/s, vector: 67TFLOP/s}
links: {gpu-gpu: {rate: 360GB/s, latency: 1us}}
GPUS
}
# picture_model SIDE WINDOW CLASSES: bytes of pictures, averaged over windows; without train and data
picture_model() {
    cat <<MODEL
dpgen: 1
model:
  name: pictures
  inputs:
    image:  {shape: [B, $1, $1, 3], dtype: u8, mean: [0.4, 0.5, 0.6], std: [0.2, 0.25, 0.3]}
    labels: {shape: [B], dtype: i32, range: [0, $3]}
  graph:
    - {op: AvgPool, in: image, kernel: $2, stride: $2}
    - {op: Flatten}
    - {op: Linear, name: head, out: $3}
    - {op: SoftmaxCrossEntropy, targets: labels, as: loss}
  loss: loss
MODEL
}
