#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A training step of convolutional models, against the sum of its convolutions and products in oneDNN, and beside PyTorch's
# step where Python has torch, and for models other than ResNet-50 and VGG-16 torchvision; all in one run.
#
#   run.sh [-a] [-c] [-k KERNELS] [-i ISA] [-r ROUNDS] [-t THREADS] [-b BATCH] [-m "MODEL..."] [-y "TYPE..."] [-o FILE]
#
# -a: the ten convolutional files of examples/ that torchvision has, in place of ResNet-50 and VGG-16; or -m names them.
# -k: the kernels of the step, onednn or portable.  A Linear counts as a convolution of one pixel.
# -i: the instruction set of the step and of the floor, x86-64-v3 or x86-64-v4; otherwise the best of this machine.  PyTorch
#     takes what it finds.
#
# Programs take turns, ROUNDS times (3).  A run of a step has three, of which the first is dropped, for it pays for page faults;
# a run counts with its median, and so does what is printed over the runs, with their range.  PyTorch is measured with both
# layouts.  PYTHON, CC and CFLAGS may be set.  Whoever shares the machine is in the figures: the range shows it.  -c: time of
# the processors, over the threads, in place of the wall's, for a machine that others use; that of a step is half the
# difference of a run of three steps and one of one.
set -eu
export LC_ALL=C
rounds=3 threads=2 batch=8 models="resnet50 vgg16" types="f32 bf16" file=/dev/stdout clock=wall isa= kernels=onednn
while getopts aci:k:r:t:b:m:y:o: option; do
    case $option in
    a) models="resnet18 resnet50 vgg16 vgg16-bn densenet121 inception-v3 squeezenet mobilenetv2 efficientnet-b0"
        models="$models convnext-tiny" ;;
    c) clock=cpu ;;
    i) isa=$OPTARG ;;
    k) kernels=$OPTARG ;;
    r) rounds=$OPTARG ;;
    t) threads=$OPTARG ;;
    b) batch=$OPTARG ;;
    m) models=$OPTARG ;;
    y) types=$OPTARG ;;
    o) file=$OPTARG ;;
    *) exit 2 ;;
    esac
done
cd "$(dirname "$0")/../.."
bin=$(mktemp -d) || exit 1
trap 'rm -rf "$bin"' EXIT
trap 'exit 1' HUP INT TERM
: "${CC:=cc}" "${PYTHON:=python3}"
: "${CFLAGS:=-O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math}"
"$CC" -march=native -dM -E -x c /dev/null >"$bin/macros"
if [ -n "$isa" ]; then CFLAGS="$CFLAGS -march=$isa"
elif grep -q __AVX512BF16__ "$bin/macros"; then isa=x86-64-v4+bf16
elif grep -q __AVX512F__ "$bin/macros"; then isa=x86-64-v4
else isa=x86-64-v3
fi
torch= vision=
if "$PYTHON" -c 'import torch' 2>"$bin/said"; then torch="last contiguous"; fi
if "$PYTHON" -c 'import torchvision' 2>"$bin/said"; then vision=$torch; fi

median() { sort -g | awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
flag() { case $1 in bf16) echo -DREAL_BF16 ;; *) echo -UREAL_BF16 ;; esac; }
sizes() {       # MODEL TYPE
    echo "examples/$1.yaml --set train.batch.global=$batch --set train.batch.micro=$batch --set train.precision.compute=$2"
}
options() {     # MODEL TYPE
    echo "$(sizes "$1" "$2") --stages 1 --recompute none --estimate --set devices.0.threads=$threads" \
        "--set devices.0.kernels=$kernels --set devices.0.isa=$isa --set train.optimizer.lr=1e-4"
}
# pixels of a side of a model's images: its data lie in a folder of that name
side() { sed -n 's/^ *dims: {S: \([0-9]*\),.*/\1/p' "examples/$1.yaml"; }
cc -O1 -o "$bin/npy" tests/npy.c
for model in $models; do
    s=$(side "$model")
    [ -n "$s" ] || { echo "run.sh: examples/$model.yaml has no dim S" >&2; exit 2; }
    if [ ! -d "$bin/$s" ]; then
        mkdir "$bin/$s"
        (cd "$bin/$s" && ../npy images.npy f4 -1 1 "$((2 * batch))" "$s" "$s" 3 &&
            ../npy labels.npy i4 0 1000 "$((2 * batch))")
    fi
done
for type in $types; do
    # shellcheck disable=SC2046,SC2086
    $CC -std=c11 $CFLAGS -fopenmp -D_GNU_SOURCE $(flag "$type") -I. -Irt bench/conv/floor.c rt/op/onednn/library.c \
        rt/op/onednn/conv_point.c rt/op/onednn/linear.c rt/op/onednn/product.c rt/op/onednn/start.c -o "$bin/floor.$type" -ldnnl
    for model in $models; do
        # shellcheck disable=SC2046
        ./dpgen $(options "$model" "$type") -o "$bin/$model.$type" >"$bin/said"
        make -s -C "$bin/$model.$type"
        # shellcheck disable=SC2046
        ./dpgen check $(sizes "$model" "$type") -d g >"$bin/graph"
        awk '/ call=linear_(forward|backward_x|backward_w) / {
            for (i = 1; i <= NF; i++) {
                if ($i ~ /^call=/) { line = substr($i, 6); sub(/linear/, "conv", line) }
                if (split($i, w, "=i:") == 2) size[w[1]] = w[2]
            }
            print line, 1, size["rows"], 1, size["in"], size["rows"], 1, size["out"], 1, 1, 1, 0, 0, 1, 1
        }
        / call=conv_/ {
            line = ""
            for (i = 1; i <= NF; i++) {
                if ($i ~ /^call=/) line = substr($i, 6)
                if ($i ~ /^(batch|height|width|in|yheight|ywidth|out|kheight|kwidth|stride|top|left|dilate|groups)=i:/)
                    line = line " " substr($i, index($i, ":") + 1)
            }
            print line
        }' "$bin/graph" | sort | uniq -c | awk '{ n = $1; $1 = ""; print $0, n }' >"$bin/$model.$type.calls"
    done
done

# used MODEL TYPE STEPS: seconds of processors of such a run
used() {
    (cd "$bin/$(side "$1")" && "../$1.$2/train" --steps "$3" --quiet --no-checkpoint >"$bin/said" 2>&1; times) | tail -n 1 |
        tr 'ms' '  ' | awk '{ print 60 * $1 + $2 + 60 * $3 + $4 }'
}
# once PROGRAM MODEL TYPE: one number of milliseconds
once() {
    case $1.$clock in
    floor.*)
        busy=
        if [ "$clock" = cpu ]; then busy=-c; fi
        "$bin/floor.$3" $busy -t "$threads" -n 3 <"$bin/$2.$3.calls" | sed -n 's/^floor //p' ;;
    step.cpu)
        echo "$(used "$2" "$3" 3) $(used "$2" "$3" 1) $threads" | awk '{ print 1e3 * ($1 - $2) / 2 / $3 }' ;;
    step.wall)
        rm -f "$bin/log"
        (cd "$bin/$(side "$2")" && "../$2.$3/train" --steps 3 --quiet --no-checkpoint --log "$bin/log") >"$bin/said"
        sed -n '/"event":"step"/s/.*"ms":\([0-9.]*\).*/\1/p' "$bin/log" | tail -n +2 | median ;;
    *) "$PYTHON" bench/conv/step.py "$2" "$3" "$threads" "$batch" 3 "${1#torch-}" $clock | tail -n +2 | median ;;
    esac
}
programs() {    # MODEL: what is measured of it
    layouts=$vision
    case $1 in resnet50 | vgg16) layouts=$torch ;; esac
    echo floor step
    for layout in $layouts; do echo "torch-$layout"; done
}
round=0
while [ "$round" -lt "$rounds" ]; do
    for model in $models; do
        for type in $types; do
            for program in $(programs "$model"); do once "$program" "$model" "$type" >>"$bin/$model.$type.$program.ms"; done
        done
    done
    round=$((round + 1))
done

{
    echo "$kernels, $clock time; $(nproc) cores, $threads threads, batch $batch, $rounds rounds, $isa; of the CPU's features: $(
        tr ' ' '\n' </proc/cpuinfo | grep -E '^(avx2|avx512f|avx512_bf16|amx_bf16)$' | sort -u | paste -s -d ' ')"
    echo "load when it ended: $(cut -d ' ' -f 1-3 /proc/loadavg); compiler: $($CC --version | sed -n 1p)"
    [ -z "$torch" ] || echo "PyTorch $("$PYTHON" -c 'import torch; print(torch.__version__)')"
    echo "model           type  program                ms     range                 x floor"
    for model in $models; do
        for type in $types; do
            floor=$(median <"$bin/$model.$type.floor.ms")
            for program in $(programs "$model"); do
                sort -g "$bin/$model.$type.$program.ms" | awk -v what="$model $type $program" -v floor="$floor" \
                    -v ms="$(median <"$bin/$model.$type.$program.ms")" '
                    { if (NR == 1) low = $1; high = $1 }
                    END { split(what, w, " ")
                          printf "%-15s %-5s %-18s %8.1f     %-8.1f to %8.1f   %6.2f\n", w[1], w[2], w[3], ms, low, high,
                              ms / floor }'
            done
        done
    done
} >"$file"
