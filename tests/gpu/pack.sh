#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What visit.sh runs where the GPU is, as stripped programs in one archive: DIR/kit.tar.xz.  No GPU is needed here, and there
# neither dpgen nor make nor a compiler.  Kernels of programs that have the same are compiled once.
#   tests/gpu/pack.sh [-s] [-o NAMES] [-p LOGS] [DIR]      build/gpu by default;  -o: these programs alone
#   -p   folder with the logs profile.* of an earlier visit, whose kit was of these sources: gpt2-profiled, which is gpt2-most
#        with the algorithms that were measured there
#   PACK_NCCL=FILE    a libnccl.so.2 that goes along, of 2.30.3 or later: several processes can share one GPU there.  Built
#                     with `make src.build ONLY_FUNCS=SendRecv NVCC_GENCODE=-gencode=arch=compute_90,code=sm_90` it is small.
#   -s   small: models are cut to two layers and little data, as tests/gpu_visit.sh runs them over the doubles
# CUDA_HOME: the toolkit.  PACK_MAKE: more arguments for make.  DIR/objects is kept: what did not change is not compiled again.
#
#   kit/visit.sh, torch_side.py    what runs there
#   kit/bin/NAME                   the programs
#   kit/lib                        that library
#   kit/text, kit/arrays           their data: bytes; arrays that visit.sh makes, as FILE TYPE LOW HIGH DIM...
#   kit/predicted                  NAME CARD MS, and whether by bench/gpu/model.sh or the estimate of the plan
#   kit/timed                      NAME, what a step has of samples or tokens, its FLOP
#   kit/folder                     the source of one program, for a machine that lacks a library
set -eu
export LC_ALL=C
small= only= logs= times=--estimate press=--lzma2=preset=9,dict=192MiB
while getopts so:p: option; do
    case $option in
        s) small=yes press=-1 ;;
        o) only=$OPTARG ;;
        p) logs=$(cd "$OPTARG" && pwd) ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
mkdir -p "${1:-build/gpu}"
to=$(cd "${1:-build/gpu}" && pwd)
cd "$(dirname "$0")/../.."
root=$PWD kit=$to/kit begun=$(date +%s)
. tests/cuda.sh
die() { echo "pack.sh: $*" >&2; exit 1; }
say() { echo "pack: $(($(date +%s) - begun)) s: $*"; }
[ -n "$cuda" ] || die "no CUDA toolkit: $cuda_remedy"
rm -rf "$kit" "$to/folders"
mkdir -p "$kit/bin" "$to/folders" "$to/objects"
: >"$kit/arrays" >"$kit/predicted" >"$kit/timed" >"$to/programs" >"$to/units"
cp LICENSE "$kit/text"
write_array() { grep -qxF "$*" "$kit/arrays" || echo "$*" >>"$kit/arrays"; }
samples=4
. tests/small.sh

wanted() { case " $only " in '  ' | *" $1 "*) ;; *) return 1 ;; esac; }
# program NAME MODEL OPTION...: its folder
program() {
    name=$1
    shift
    wanted "$name" || return 0
    ./dpgen "$@" --devices devices/h100.yaml $times -o "$to/folders/$name" >"$to/said" 2>&1 ||
        die "$name: $(head -n 2 "$to/said")"
    echo "$name" >>"$to/programs"
}
# predict NAME MODEL OPTION...: on each card, on paper if the model has all of its calls
predict() {
    name=$1
    shift
    wanted "$name" || return 0
    for card in H100:3.35 H200:4.8; do
        on="--devices devices/$(echo "${card%:*}" | tr H h).yaml"
        ms=$(bench/gpu/model.sh -b "${card#*:}" "$@" $on 2>/dev/null | sed -n 's/^step: \([0-9.]*\) ms.*/\1 model/p')
        [ -n "$ms" ] || ms=$(./dpgen "$@" $on --estimate -o "$to/estimate" >"$to/said" 2>&1 &&
            sed -n 's/.*\.step_ns = \([0-9]*\).*/\1/p' "$to/estimate/launch.c" | awk '{ printf "%.1f estimate", $1 / 1e6 }')
        rm -rf "$to/estimate"
        echo "$name ${card%:*} $ms" >>"$kit/predicted"
    done
}

# ---- every plan of a small language model: one hash a type --------------------------------------------------------------
bits() {
    name=$1
    shift
    case $name in *bf16*) set -- "$@" --set train.precision.compute=bf16 ;; esac
    if [ -n "$small" ]; then set -- "$@" -D D=32 -D H=4 -D T=16 -D L=2 --set train.batch.micro=2 --set train.batch.global=4
    else set -- "$@" -D D=256 -D H=4 -D T=256 --set train.batch.micro=4 --set train.batch.global=32; fi
    program "$name" $model --set "data={train: {format: bytes, files: text, tokens: tokens, next: targets}}" "$@"
}
model=examples/bytes-gpt.yaml
for type in f32 bf16; do
    bits bits.$type.1 --stages 1 --schedule gpipe --recompute none
    bits bits.$type.2 --stages 2 --schedule 1f1b --recompute full
    bits bits.$type.3 --stages 3 --schedule 1f1b --recompute none
    bits bits.$type.4 --stages 4 --schedule gpipe --recompute none
    bits bits.$type.2offload --stages 2 --schedule 1f1b --offload "['h.*']"
    bits bits.$type.2v --stages 2 --schedule 1f1b --map 0,1,1,0
    bits bits.$type.2apart --stages 2 --schedule 1f1b --recompute none --fuse none
done
# a process a stage over NCCL, and what it has to equal: in one process, with the same groups of gradients
if [ -n "${PACK_NCCL:-}" ]; then
    bits nccl.bf16.2 --stages 2 --schedule 1f1b --set plan.transport=nccl
    for transport in local nccl; do
        bits pairs.bf16.$transport --stages 2 --schedule 1f1b --set train.batch.groups=2 --replicas 2 \
            --set plan.transport=$transport
    done
fi
bits own.fp8.bf16 --stages 1 --set train.precision.compute=fp8
bits own.tf32 --stages 1 --set train.precision.compute=tf32
# the head and its loss as one operator: chunks of 96, 96 and 64
sed -e '/op: Linear, name: lm_head/d' -e 's/op: SoftmaxCross/op: LinearCross/; s/targets: targets, as/name: lm_head, out: V, \
      chunk: 96, &/' $model >"$to/chunked.yaml"
model=$to/chunked.yaml
for type in f32 bf16; do
    bits chunked.$type.1 --stages 1 --schedule gpipe --recompute none
    bits chunked.$type.2 --stages 2 --schedule 1f1b --recompute full
    bits chunked.$type.3 --stages 3 --schedule 1f1b --recompute none
done

# ---- examples that between them call most kernels, each with small dims -------------------------------------------------
small_examples >"$to/examples"
example() {     # NAME TYPE
    line=$(grep "^$1 " "$to/examples")
    set -- "$1" "$2" $line
    arrays= kind_of=$4 name=$1 type=$2
    shift 4
    sized "$@"
    wanted "own.$name.$type" || return 0
    $kind_of
    program "own.$name.$type" "examples/$name.yaml" $dims --stages 1 --set train.batch.global=4 --set train.batch.micro=2 \
        --set "train.precision.compute=$type" --set "data={train: {format: npy, arrays: {$arrays}}}"
}
for one in bert-base-cuda:bf16 tinyllama:bf16 gemma2-2b:bf16 mixtral-8x7b:bf16 awd-lstm:f32 t5-small:f32 resnet50:bf16 \
    resnet50:f32 unet:bf16 convnext-tiny:bf16 efficientnet-b0:bf16 phi-2:bf16; do
    example "${one%:*}" "${one#*:}"
done

# ---- what is timed ------------------------------------------------------------------------------------------------------
# gpt NAME MODEL LAYERS WIDTH HEADS BATCH PARAMETERS OPTION...
gpt() {
    name=$1 file=examples/$2.yaml l=$3 d=$4 h=$5 b=$6 n=$7
    shift 7
    t=1024 v=50304
    [ -z "$small" ] || t=16 v=64 l=2 d=32 h=4 b=2
    set -- $file -D V=$v -D P=$t -D T=$t -D D=$d -D H=$h -D L=$l --set train.precision.compute=bf16 --stages 1 \
        --set train.batch.micro=$b --set train.batch.global=$b "$@"
    write_array tokens.bin tokens 0 $([ -n "$small" ] && echo 61 || echo 50257) 2000000
    wanted "$name" || return 0
    predict "$name" "$@" --set "model.inputs.tokens.range=[0,$v]" --set "model.inputs.targets.range=[0,$v]"
    program "$name" "$@" --set "model.inputs.tokens.range=[0,$v]" --set "model.inputs.targets.range=[0,$v]" \
        --set "data={train: {format: llmc-tokens, files: tokens.bin, tokens: tokens, next: targets}}"
    awk -v name="$name" -v b=$b -v t=$t -v n="$n" -v l=$l -v d=$d 'BEGIN {
        printf "%s %d tokens %.0f\n", name, b * t, b * t * (6 * n + 12 * l * t * d) }' >>"$kit/timed"
}
gpt gpt2-most gpt2-124m-cuda 12 768 12 32 124475904 --fuse most
gpt gpt2-auto gpt2-124m-cuda 12 768 12 32 124475904 --fuse auto
for compute in fp8 fp8-fast; do
    gpt gpt2-$compute gpt2-124m-cuda 12 768 12 32 124475904 --set train.precision.compute=$compute
done
gpt gpt2-1558m gpt2-774m 48 1600 25 8 1557686400
images() {      # NAME WORKSPACE TYPE HIGH: of its pictures
    wanted "$1" || return 0
    samples=256 dims= arrays= name=$1 room=$2
    if [ -n "$small" ]; then samples=4; sized S=32 C=5 N2=1 N3=1; else sized S=224 C=1000; fi
    array image "$3" "$4" "$S" "$S" 3 && array labels i4 "$C"
    set -- examples/resnet50.yaml $dims --stages 1 --set train.precision.compute=bf16 \
        --set "model.inputs.image.dtype=$(echo "$3" | sed 's/u1/u8/; s/f4/f32/')" --set train.batch.global=$samples \
        --set train.batch.micro=$samples
    sed "s/reserve: 1GiB/workspace: $room, &/" devices/h100.yaml >"$to/gpu.yaml"
    predict "$name" "$@"
    program "$name" "$@" --set "devices.0.workspace=$room" --set "data={train: {format: npy, arrays: {$arrays}}}"
    echo "$name $samples images 0" >>"$kit/timed"
    samples=4
}
images resnet50.204MiB 204MiB f4 1       # what the images of 3 channels want, copied with 8
images resnet50.512MiB 512MiB f4 1
images resnet50.bytes 512MiB u1 256

# ---- the benchmark of dpgen profile --------------------------------------------------------------------------------------
# It builds its folder, runs it and takes it away: a make that keeps it stands in for the real one, and a library of that name
# for the driver that may not be here.  benchmark COMMAND FILE: that make runs COMMAND in the folder
benchmark() {
    mkdir -p "$to/stand-in"
    printf '#!/bin/sh\ncd "$3"\n%s\n' "$1" >"$to/stand-in/make"
    chmod +x "$to/stand-in/make"
    "${CC:-cc}" -shared -fPIC -o "$to/stand-in/libcuda.so.1" tests/double/stubcuda.c
    out=$2
    set -- examples/gpt2-124m-cuda.yaml
    [ -z "$small" ] || set -- "$@" -D T=16 -D P=16 -D D=32 -D H=4 -D L=2 -D V=64 --set train.batch.micro=2 \
        --set train.batch.global=8 --set "model.inputs.tokens.range=[0,64]" --set "model.inputs.targets.range=[0,64]"
    PATH=$to/stand-in:$PATH LD_LIBRARY_PATH=$to/stand-in${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ./dpgen profile "$@" --devices \
        devices/h100.yaml --stages 2 -o "$out" >"$to/said" 2>&1 || true
    rm -r "$to/stand-in"
}
if wanted profile; then
    benchmark "cp -R . '$to/folders/profile'; exit 1" "$to/times"
    [ -e "$to/folders/profile/stage0.c" ] || die "profile: $(head -n 2 "$to/said")"
    echo "$(grep -c '^    {row' "$to/folders/profile/stage0.c") $(grep -c '^    {row.*, [0-9]*},$' \
        "$to/folders/profile/stage0.c")" >"$kit/profile"
    echo profile >>"$to/programs"
fi
# What it said there, read as if it ran here.  Rows count by their place: another number of them is of other sources.
if [ -n "$logs" ]; then
    benchmark "[ \$(grep -c '^    {row' stage0.c) = \$(grep -c '^op ' '$logs/profile.kernels') ] || exit 1
        printf '#!/bin/sh\\ncat \"%s/profile.\$1\"\\n' '$logs' >train; chmod +x train" "$to/measured"
    [ -e "$to/measured" ] || die "$logs: $(head -n 2 "$to/said")"
    times="--profile $to/measured"
    gpt gpt2-profiled gpt2-124m-cuda 12 768 12 32 124475904 --fuse most
    times=--estimate
    grep -q open_product_algorithm "$to/folders/gpt2-profiled/stage0.c" || die "gpt2-profiled: no algorithm of the profile"
fi

# ---- programs beside one of those folders ----------------------------------------------------------------------------------
# unit NAME FOLDER FLAGS SOURCE...
unit() { wanted "$1" && echo "$@" >>"$to/units" || true; }
ops=rt/op/cuda
for type in f32 bf16 tf32; do
    folder=bits.$type.1 flags=-DUNIT
    [ $type != tf32 ] || folder=bits.f32.1 flags=-DTF32
    unit unit.products.$type $folder $flags tests/unit_cublaslt.c $ops/product.c $ops/linear.c $ops/linear_gelu.c \
        $ops/linear_fp8.c $ops/linear_team.c $ops/linear_xent.c $ops/matmul.c
done
flags=-DUNIT
[ -z "$small" ] || flags=-DREPEATS=1,-DFIRST=12
unit unit.attention bits.bf16.1 $flags tests/unit_cuda_attention.c $ops/attention.c $ops/attention_graph.c $ops/graph.c
unit unit.conv bits.bf16.1 -DUNIT tests/unit_cuda_conv.c $ops/conv.c $ops/conv_graph.c $ops/graph.c
unit device bits.f32.1 -DUNIT tests/gpu/device.c
unit product bits.bf16.1 -DN=$([ -n "$small" ] && echo 64 || echo 8192) bench/gpu/product.c
flags=-DUNIT
[ -z "$small" ] || flags=-DROWS=64,-DSCORES=2048
unit passes bits.bf16.1 $flags bench/gpu/passes.c rt/number.c kernels.o $ops/attention.o $ops/attention_graph.o $ops/graph.o

# ---- make: a folder a core, and one more, as some wait for the kernels of another ------------------------------------------
# rt.h of a folder declares its own calls alone.  With all calls declared, what folders share has one text, and so have kernels.
say "$(wc -l <"$to/programs") folders"
nvcc=$(ls "$cuda/bin/nvcc" 2>/dev/null || command -v nvcc) || die "no nvcc: $cuda_remedy"
cat >"$to/make" <<MAKE
#!/bin/sh
d=$to/folders/\$1
shift
exec make -s -C "\$d" CUDA_HOME="$cuda" NVCC="$root/tests/gpu/once $to/objects $nvcc -include $root/rt/rt.h" \\
    CC="$root/tests/gpu/once $to/objects ${CC:-cc} -include $root/rt/rt.h" RPATH= ${PACK_MAKE:-} "\$@"
MAKE
chmod +x "$to/make"
cores=$(nproc 2>/dev/null || echo 2)
xargs -P $((cores + 1)) -I NAME sh -c '"$0" NAME train >"$1/folders/NAME/make.log" 2>&1 || { echo "NAME: $(grep -m 2 -i error \
    "$1/folders/NAME/make.log")" >&2; exit 255; }' "$to/make" "$to" <"$to/programs" || die "a folder is not built"
while read -r name; do cp "$to/folders/$name/train" "$kit/bin/$name"; done <"$to/programs"
say "programs"
while read -r name folder flags sources; do
    all=
    for file in $sources; do case $file in *.o) all="$all $file" ;; *) all="$all $root/$file" ;; esac; done
    "$to/make" "$folder" -f "$root/tests/gpu/unit.mk" UNIT="$name" ROOT="$root" UFLAGS="$(echo "$flags" | tr , ' ')" \
        SOURCES="$all" "$name" >"$to/said" 2>&1 || die "$name: $(grep -m 2 -i error "$to/said")"
    mv "$to/folders/$folder/$name" "$kit/bin/$name"
done <"$to/units"

# Every kernel of ours, in a unit of its own a type, under the tests of the portable ones; calls that GPUs lack stay untested
lacks=$(make -s --eval 'lacks:;@echo $(GPULACKS:%=-Wl,--defsym=%=folds)' lacks)
for type in f32 bf16; do
    wanted kernels.$type || continue
    real=-DFOLDS
    [ $type = f32 ] || real=-DREAL_BF16
    for file in rt/op/cuda/*.cu rt/cuda/*.cu; do echo "#include \"$root/$file\""; done >"$to/folders/bits.$type.1/all.cu"
    all=
    for file in tests/opcheck*.c tests/gpu/kernels.c tests/simt/calls.c tests/simt/opcheck_fold.c rt/number.c; do
        all="$all $root/$file"
    done
    "$to/make" bits.$type.1 -f "$root/tests/gpu/unit.mk" UNIT=kernels.$type ROOT="$root" SOURCES="$all all.o" \
        UFLAGS="-DFOLDS $real $lacks -Dmain=opcheck_main -Daligned_alloc=pinned -Dfree=unpinned -I$root/rt" kernels.$type \
        >"$to/said" 2>&1 || die "kernels.$type: $(grep -m 2 -i error "$to/said")"
    mv "$to/folders/bits.$type.1/kernels.$type" "$kit/bin"
done

# ---- the archive -----------------------------------------------------------------------------------------------------------
say "$(ls "$kit/bin" | wc -l) programs"
strip -s "$kit"/bin/*
[ -z "${PACK_NCCL:-}" ] || { mkdir "$kit/lib"; cp -L "$PACK_NCCL" "$kit/lib/libnccl.so.2"; strip -S "$kit/lib/libnccl.so.2"; }
cp tests/gpu/visit.sh tests/gpu/ranks bench/gpu/torch_side.py "$kit"
if [ -e "$to/folders/gpt2-most" ]; then
    cp -R "$to/folders/gpt2-most" "$kit/folder"
    (cd "$kit/folder" && find . -name '*.[od]' -exec rm {} + && rm -f train make.log .flags*)
fi
tar -C "$to" -cf - --sort=name --mtime=@0 --owner=0 --group=0 kit | xz -T1 $press >"$to/kit.tar.xz"
say "$to/kit.tar.xz, $(wc -c <"$to/kit.tar.xz") bytes"
