#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Folders for GPUs with the real toolkit, as a user builds them: examples compile and link, need no library that docs/cuda.md
# does not list, and say what is missing where there is no GPU; what make cannot find, where it looked.  Warnings are errors.
# Kernels that no folder here has are read by nvcc as far as PTX.
# SLOW=1: every example, and transport nccl; all kernels as units for sm_80 and sm_90, in f32 and bf16, and each file by itself.
# No kernel takes more registers than tests/cuda_registers says, or keeps more bytes in memory for want of them.
. "$(dirname "$0")/lib.sh"
. tests/cuda.sh
need dpgen
have_cuda cudnn.h && [ -x "$cuda/bin/nvcc" ] || { skip "no nvcc and cuDNN: $cuda_remedy" 8; finish; }

# Without SLOW=1 the host's part of a folder's kernels is compiled by -O0, and what ptxas sees is small
strict="-Werror all-warnings -Xcompiler -Wall,-Wextra" nvcc=$cuda/bin/nvcc
if [ -z "$SLOW" ]; then
    use_ready -O0
    nvcc=$(quick_nvcc)
fi
built() {       # NAME OPTION...
    name=$1
    shift
    ./dpgen "$@" --estimate -o "$tmp/$name" >"$tmp/said" 2>&1 || { fault "$name: $(head -n 1 "$tmp/said")"; return 1; }
    expect "$name" make -s -j2 -C "$tmp/$name" CUDA_HOME="$cuda" NVCC="$nvcc $strict"
    expect "$name: its program" test -x "$tmp/$name/train"
    if objdump -p "$tmp/$name/train" | grep -q '^ *RPATH '; then pass; else fault "$name: no path that counts for libraries"; fi
    for library in $(make -s -C "$tmp/$name" CUDA_HOME="$cuda" needed); do
        if grep -qF " $library" docs/cuda.md; then pass; else fault "$name needs $library, which docs/cuda.md does not list"; fi
    done
}
built gpt examples/gpt2-124m-cuda.yaml --stages 2
if [ -e /dev/nvidiactl ]; then skip "there is a GPU here" 1
else refuse "no GPU" 6 "newer NVIDIA driver" "$tmp/gpt/train" --steps 1; fi
refuse "no toolkit" 2 "no CUDA toolkit: there is no include/cuda_runtime_api.h in: $tmp/none" \
    make -s -C "$tmp/gpt" CUDA_HOME="$tmp/none" train
refuse "no cuDNN" 2 "no cuDNN: there is no include/cudnn.h in: $tmp/none.  Install it, or say make CUDNN_HOME=FOLDER" \
    make -s -C "$tmp/gpt" CUDA_HOME="$cuda" CUDNN_HOME="$tmp/none" train
refuse "a space" 2 "CUDA_HOME=\"a b\": make cannot take a folder" make -s -C "$tmp/gpt" CUDA_HOME="a b" train
# a program of the kit that has the kernels of a folder: what pack.sh links it with is enough
sources=$(sed -n 's/^unit passes .* \(bench.*\)/\1/p' tests/gpu/pack.sh | sed "s,\$ops,rt/op/cuda,g; s,[a-z/]*\.c,$root/&,g")
expect "the kit's passes" make -s -C "$tmp/gpt" -f "$root/tests/gpu/unit.mk" CUDA_HOME="$cuda" NVCC=false UNIT=passes \
    ROOT="$root" SOURCES="${sources:-none}" passes
expect "nothing is compiled twice" make -s -C "$tmp/gpt" CUDA_HOME="$cuda" NVCC=false train
refuse "other chips are" 2 "kernels.o" make -s -C "$tmp/gpt" CUDA_HOME="$cuda" NVCC=false CUDA_ARCHS="80 90" train
refuse "a chip where cuDNN is not proven" 2 "cuDNN is not proven to give the same bits.* on sm_100" \
    make -s -C "$tmp/gpt" CUDA_HOME="$cuda" NVCC=false CUDA_ARCHS="90 100" train

# Kernels by themselves, whether this job has a use for them or not
kernels=$(ls rt/op/cuda/*.cu rt/cuda/*.cu)
compiled() {    # WHAT FLAGS FILE...
    what=$1 options=$2
    shift 2
    for file; do echo "#include \"$root/$file\""; done >"$tmp/unit.cu"
    expect "$what" "$cuda/bin/nvcc" -O3 -std=c++17 $options $strict -Xcompiler -fno-exceptions -I. -c \
        -o "$tmp/unit.o" "$tmp/unit.cu"
}
# loads ARCH: no kernel of the model's table has fewer or narrower loads under way than tests/cuda_loads says
nvdisasm=$(command -v nvdisasm || ls "$cuda/bin/nvdisasm" 2>/dev/null)
loads() {
    [ -n "$nvdisasm" ] || { skip "no nvdisasm, which tools/cuda gets" 1; return; }
    "$cuda/bin/nvcc" --version | grep -q 'release 13\.0' || { skip "loads are recorded for nvcc 13.0" 1; return; }
    for file in norm xent update element embedding; do
        "$cuda/bin/nvcc" -O3 -std=c++17 "-arch=sm_$1" -DREAL_BF16 -I. -cubin -o "$tmp/loads.cubin" rt/op/cuda/$file.cu &&
            "$nvdisasm" "$tmp/loads.cubin" | awk -f tests/cuda_loads.awk | sed "s/^/$1 /"
    done | sort -u >"$tmp/loads"
    awk 'NR == FNR { least[$1, $2] = $3; wide[$1, $2] = $4; next }
        !(($1, $2) in least) { print $0 ": no line in tests/cuda_loads"; next }
        $3 < least[$1, $2] || $4 < wide[$1, $2] { print $0 ": recorded " least[$1, $2], wide[$1, $2] }' \
        tests/cuda_loads "$tmp/loads" >"$tmp/more"
    if [ -s "$tmp/loads" ] && [ ! -s "$tmp/more" ]; then pass; else fault "loads: $(head -n 3 "$tmp/more")"; fi
}
if [ -z "$SLOW" ]; then
    for file in $kernels; do [ -e "$tmp/gpt/$file" ] || echo "#include \"$root/$file\""; done >"$tmp/unit.cu"
    expect "kernels of other jobs" "$cuda/bin/nvcc" -std=c++17 -arch=sm_90 -DREAL_BF16 $strict -Xcicc -O0 -I. -ptx \
        -o "$tmp/unit.ptx" "$tmp/unit.cu"
else
    compiled "f32, sm_90" "-arch=sm_90" $kernels
    for arch in 80 90; do
        compiled "bf16, sm_$arch" "-arch=sm_$arch -DREAL_BF16 -Xptxas -v" $kernels
        awk -f tests/cuda_registers.awk "$tmp/said" | sed "s/^/$arch /" | sort >"$tmp/registers"
        awk 'NR == FNR { most[$1, $2] = $3; spilled[$1, $2] = $4; next }
            !(($1, $2) in most) { print $0 ": no line in tests/cuda_registers"; next }
            $3 > most[$1, $2] || $4 > spilled[$1, $2] { print $0 ": recorded " most[$1, $2], spilled[$1, $2] }' \
            tests/cuda_registers "$tmp/registers" >"$tmp/more"
        if ! "$cuda/bin/nvcc" --version | grep -q 'release 13\.0'; then skip "registers are recorded for nvcc 13.0" 1
        elif [ -s "$tmp/registers" ] && [ ! -s "$tmp/more" ]; then pass
        else fault "registers: $(head -n 3 "$tmp/more")"; fi
        loads "$arch"
    done
    compiled "f32, sm_80" "-arch=sm_80" $kernels
    for arch in 100 120; do compiled "bf16, sm_$arch" "-arch=sm_$arch -DREAL_BF16" $kernels; done
    for file in $kernels; do compiled "$file alone" "-arch=sm_90" "$file"; done
fi

# wheels: a toolkit in pieces, libraries without a link that has no version
wheels=$tmp/nvidia
mkdir "$wheels"
for part in cuda_runtime cublas cudnn cuda_nvcc cuda_nvrtc; do mkdir -p "$wheels/$part/include" "$wheels/$part/lib"; done
mkdir "$wheels/cuda_nvcc/bin"
ln -s "$cuda/bin/nvcc" "$wheels/cuda_nvcc/bin/nvcc"
for file in "$cuda"/include/*; do
    case ${file##*/} in
        cublas*) part=cublas ;;
        cudnn*) part=cudnn ;;
        crt | nvcc*) part=cuda_nvcc ;;
        *) part=cuda_runtime ;;
    esac
    ln -s "$file" "$wheels/$part/include/${file##*/}"
done
ln -s "$(cuda_library cudart)" "$wheels/cuda_runtime/lib/libcudart.so.1"
ln -s "$(cuda_library cublasLt)" "$wheels/cublas/lib/libcublasLt.so.1"
ln -s "$(cuda_library cudnn)" "$wheels/cudnn/lib/libcudnn.so.1"
touch "$wheels/cuda_nvrtc/lib/libnvrtc-builtins.so.1"
for home in "$wheels" "$wheels/cuda_runtime" "$wheels/cuda_runtime/"; do
    rm -f "$tmp"/gpt/rt/op/cuda/*.o
    [ "$home$SLOW" != "$wheels" ] || expect "headers of wheels" make -s -C "$tmp/gpt" CUDA_HOME="$home" rt/op/cuda/product.o
    [ -z "$SLOW" ] || expect "headers of wheels" make -s -C "$tmp/gpt" CUDA_HOME="$home" rt/op/cuda/product.o rt/op/cuda/graph.o
    for file in cuda_runtime/lib/libcudart.so.1 cublas/lib/libcublasLt.so.1 cudnn/lib/libcudnn.so.1 cuda_nvcc/bin/nvcc \
        cuda_nvcc/include cuda_nvrtc/lib; do
        if make -n -C "$tmp/gpt" CUDA_HOME="$home" train 2>&1 | grep -qe "$wheels/$file\( \|$\)"; then pass
        else fault "CUDA_HOME=$home: $file is not taken"; fi
    done
done
# a system's compiler and runtime, and all else in the wheels that python3 knows: so PyTorch's packages have it
system=$tmp/system site=$tmp/site
mkdir -p "$system/bin" "$system/include" "$system/lib64"
ln -s "$cuda/bin/nvcc" "$system/bin/nvcc"
ln -s "$(cuda_library cudart)" "$system/lib64/libcudart.so"
for part in cu13 cudnn nccl; do mkdir -p "$site/nvidia/$part/include" "$site/nvidia/$part/lib"; done
for file in "$cuda"/include/*; do
    case ${file##*/} in
        cublas*) to=$site/nvidia/cu13 ;;
        cudnn*) to=$site/nvidia/cudnn ;;
        nccl*) to=$site/nvidia/nccl ;;
        *) to=$system ;;
    esac
    ln -s "$file" "$to/include/${file##*/}"
done
ln -s "$(cuda_library cublasLt)" "$site/nvidia/cu13/lib/libcublasLt.so.13"
ln -s "$(cuda_library cudnn)" "$site/nvidia/cudnn/lib/libcudnn.so.9"
touch "$site/nvidia/nccl/include/nccl.h" "$site/nvidia/nccl/lib/libnccl.so.2" "$site/nvidia/cu13/lib/libnvrtc-builtins.so.13.0"
./dpgen examples/gpt2-124m-cuda.yaml --estimate --stages 2 --set plan.transport=nccl -o "$tmp/ranks" >"$tmp/said" 2>&1
# found WHAT VARIABLE...: the line that links, and the compiler, in such a place; python3 knows what is in $known
known=$site
there() { env -u CUDA_HOME -u CUDA_PATH PYTHONPATH="$known" PATH="$system/bin:$PATH" make -C "$tmp/ranks" CUDA_PLACES= "$@"; }
found() {
    what=$1
    shift
    rm -f "$tmp"/ranks/rt/op/cuda/*.o
    there -n "$@" train >"$tmp/line" 2>&1
    for file in "$system/lib64/libcudart.so" "$site/nvidia/cu13/lib/libcublasLt.so.13" "$site/nvidia/cudnn/lib/libcudnn.so.9" \
        "$site/nvidia/nccl/lib/libnccl.so.2" "rpath,$site/nvidia/cu13/lib" "isystem $site/nvidia/cudnn/include" \
        "bin/nvcc -O3"; do
        if grep -qe "$file\( \|$\)" "$tmp/line"; then pass; else fault "$what: $file is not taken"; fi
    done
}
if ! command -v python3 >/dev/null; then skip "no python3" 8
else
    found "nvcc of a system, libraries of wheels"
    expect "its headers" there -s rt/op/cuda/product.o
fi
known=
found "the same, said" CUDA_HOME="$system" CUBLAS_HOME="$site/nvidia/cu13" CUDNN_HOME="$site/nvidia/cudnn" \
    NCCL_HOME="$site/nvidia/nccl"
found "libraries beside one that is said" CUDNN_HOME="$site/nvidia/cudnn"
refuse "no cuBLAS" 2 "no cuBLAS: there is no include/cublasLt.h in: $tmp/none.  Install it, or say make CUBLAS_HOME=FOLDER" \
    make -s -C "$tmp/gpt" CUDA_HOME="$cuda" CUBLAS_HOME="$tmp/none" train
expect "clean needs nothing" make -s -C "$tmp/gpt" CUDA_HOME="$tmp/none" clean
# what README says is there
sed -n 's/^    \([a-z.]*[a-z]\/*\)  .*/\1/p' "$tmp/gpt/README" | grep -e '[./]' >"$tmp/listed"
if grep -q '^kernels.cu$' "$tmp/listed" && grep -q '^cuda.mk$' "$tmp/listed" && (cd "$tmp/gpt" && xargs ls -d <"$tmp/listed") \
    >"$tmp/said" 2>&1; then pass; else fault "README: $(tail -n 1 "$tmp/said")"; fi

# NCCL, where it is said to be
refuse "no NCCL" 2 "no NCCL: there is no include/nccl.h in: $tmp/none.  Install it, or say make NCCL_HOME=FOLDER" \
    make -s -C "$tmp/ranks" CUDA_HOME="$cuda" NCCL_HOME="$tmp/none" train
mkdir -p "$tmp/own/include" "$tmp/own/lib"
touch "$tmp/own/include/nccl.h" "$tmp/own/lib/libnccl.so.2"
if make -n -C "$tmp/ranks" CUDA_HOME="$cuda" NCCL_HOME="$tmp/own/" train 2>&1 |
    grep -q "$tmp/own/lib/libnccl.so.2 .*-rpath,$tmp/own/lib"; then pass; else fault "NCCL_HOME is not taken"; fi

# a job in f32 has no use for cuDNN
./dpgen examples/bytes-gpt.yaml --devices devices/h200.yaml --stages 1 --estimate -o "$tmp/plain" >"$tmp/said" 2>&1
if make -n -C "$tmp/plain" CUDA_HOME="$cuda" CUDNN_HOME="$tmp/none" train 2>&1 | grep -q 'libcublasLt'; then pass
else fault "f32 is not built without cuDNN"; fi
if [ -n "$SLOW" ]; then
    built nccl examples/gpt2-124m-cuda.yaml --stages 4 --set plan.transport=nccl
    built bert examples/bert-base-cuda.yaml --stages 2
    built lstm examples/awd-lstm.yaml --devices devices/h100.yaml --stages 1         # products, and no Gelu
    built f32 tests/models/ops.yaml --devices devices/h200.yaml --stages 2
fi

# ---- what cannot be generated ------------------------------------------------------------------------------------------
refused="./dpgen examples/gpt2-124m-cuda.yaml --estimate --stages 2 -o $tmp/none"
refuse "an old chip" 3 "is sm_75, and products and attention in bf16 need sm_80" $refused --set devices.0.arch=sm_75
refuse "no arch" 3 "'gpu' has no 'arch'" ./dpgen tests/models/tiny-gpt.yaml --estimate -o "$tmp/none" \
    --set "devices=[{name: gpu, kind: cuda, memory: 1GiB}]"
refuse "a small workspace" 3 "need 2MiB of it" $refused --set devices.0.workspace=1MiB
refuse "mpi" 3 "messages between GPUs do not go over mpi" $refused --set plan.transport=mpi
refuse "to a file" 3 "a GPU offloads to the host's memory" $refused --offload '{to: disk}'
refuse "nccl without GPUs" 3 "messages over nccl are between GPUs" ./dpgen tests/models/tiny-gpt.yaml --estimate --stages 2 \
    -o "$tmp/none" --set plan.transport=nccl
if [ ! -e "$tmp/none" ]; then pass; else fault "something was written"; fi
finish
