#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One training step of a model against the floor of its matrix products, on the same machine in the same run.
#
#   run.sh [-c] [-r ROUNDS] [-t THREADS] [-s TOKENS] [-k KERNELS] [-y TYPE] [-i ISA] [-p] gpt2 | llama | lstm
#
#   gpt2    124 million parameters, 4 x 256 tokens, clipped by the global norm
#   llama   125 million parameters, 12 layers of 768, 4 x 256 tokens; attention is no product of the floor
#   lstm    one layer, 64 samples, 50 steps, 1024 wide; products of single steps count with 64 rows
#   -s      tokens of a sample: 256
#   -k      kernel library of the job: onednn
#   -y      compute type of job and floor: f32, bf16
#   -i      instruction set of job and floor, such as x86-64-v3; with it, and in bf16, PyTorch is left out
#   -p      the floor's table has the portable product beside each; it counts no more there
#   -c      counts instructions by callgrind instead, portable kernels, one thread, smaller: calls against products
#
# Where Python has torch (PYTHON=python3), the same step in PyTorch is measured too, as it is and compiled.
#
# Floor, job and PyTorch take turns, ROUNDS times (5).  The floor is that of bench/gpt2-step/floor.c, of the products that
# `dpgen -d f` prints.  The second floor has all other calls as well, as the bytes that each moves once, by the same table, at
# the rate that floor.c measures.  The first step of a run is dropped; a run counts with its median step; printed are the
# medians over the runs, their range, and the ratios.  Must: llama 1.35, lstm 1.3.
set -eu
export LC_ALL=C
rounds=5 threads=2 count='' tokens=256 kernels=onednn type=f32 isa='' own=''
while getopts cr:t:s:k:y:i:p option; do
    case $option in
    c) count=1 ;;
    r) rounds=$OPTARG ;;
    t) threads=$OPTARG ;;
    s) tokens=$OPTARG ;;
    k) kernels=$OPTARG ;;
    y) type=$OPTARG ;;
    i) isa=$OPTARG ;;
    p) own=-p ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
cd "$(dirname "$0")/../.."
bin=$(mktemp -d) || exit 1
trap 'rm -rf "$bin"' EXIT
trap 'exit 1' HUP INT TERM
: "${CC:=cc}" "${PYTHON:=python3}"
torch=
if [ "$count$type$isa" = f32 ] && "$PYTHON" -c 'import torch' 2>"$bin/said"; then torch="eager compiled"; fi

common="--set train.precision.compute=$type --set train.steps=6 --stages 1 --schedule gpipe --recompute none --estimate"
common="$common --set devices.0.count=1"
case ${1:-} in
gpt2)
    file=examples/gpt2-124m.yaml batch=4
    size="-D T=$tokens --set data.train.files=tokens.bin --set data.eval.files=tokens.bin"
    [ -z "$count" ] || { size="$size -D L=2 -D V=4096 -D T=128" batch=1; } ;;
llama)
    file=examples/tinyllama.yaml data=bin/tokens
    size="-D D=768 -D H=12 -D K=12 -D W=64 -D F=2048 -D TIE=1 --set data.train.files=tokens.bin"
    if [ "$count" ]; then size="$size -D L=2 -D V=4096 -D T=128" batch=1
    else size="$size -D L=12 -D V=52000 -D T=$tokens" batch=4; fi ;;
lstm)
    file=bench/model-step/lstm.yaml size= batch=64
    [ -z "$count" ] || { size="-D T=20 -D H=256" batch=32; } ;;
*) sed -n 's/^# *\(  run.sh.*\)/usage: \1/p' "$0" >&2; exit 2 ;;
esac
size="$size --set train.batch.global=$batch --set train.batch.micro=$batch"
[ -z "$count" ] || { kernels=portable threads=1; }
has() { [ -z "$count" ] && $CC -march=native -dM -E - </dev/null | grep -q "$1"; }
march=${isa:-native} narrow=
[ "$type" = f32 ] || narrow=-DREAL_BF16
if [ -z "$isa" ]; then
    isa=x86-64-v3
    if has __AVX512BW__; then isa=x86-64-v4; fi
    if [ "$narrow" ] && has __AVX512BF16__; then isa=x86-64-v4+bf16; fi
    if [ "$narrow" ] && has __AMX_BF16__; then isa=x86-64-v4+amx; fi
fi
size="$size --set devices.0.kernels=$kernels --set devices.0.threads=$threads --set devices.0.isa=$isa"

make -s dpgen
# shellcheck disable=SC2086
./dpgen "$file" $common $size -o "$bin/job" >"$bin/said" 2>&1 || { cat "$bin/said" >&2; exit 1; }
make -s -C "$bin/job" >"$bin/said" 2>&1 || { tail -n 5 "$bin/said" >&2; exit 1; }
# Tokens in llm.c's format, 100000 pairs of ASCII bytes below 2^12; or numbers between -1 and 1
cd "$bin/job"
if [ "$1" != lstm ]; then
    { printf '\210\330\064\001\001\000\000\000\240\206\001\000'; head -c 1012 /dev/zero
      tr -dc '\000-\017' </dev/urandom | head -c 200000; } >tokens.bin
else
    $CC -std=c11 -O1 -o "$bin/npy" "$OLDPWD/tests/npy.c"
    width=1024 time=50
    [ -z "$count" ] || width=256 time=20
    for array in x wanted; do "$bin/npy" $array.npy f4 -1 1 $batch $time $width; done
fi
cd "$OLDPWD"

if [ "$count" ]; then
    (cd "$bin/job" && valgrind --tool=callgrind --callgrind-out-file="$bin/counts" ./train --steps 2 --quiet \
        --no-checkpoint) >"$bin/said" 2>&1 || { tail -n 5 "$bin/said" >&2; exit 1; }
    callgrind_annotate --inclusive=yes --threshold=100 "$bin/counts" >"$bin/table" 2>&1
    # Calls that stages make, by the names of rt.h, and the products inside them
    sed -n 's/^void \([a-z_]*\)(Stage \*st,.*/\1/p' rt/rt.h >"$bin/names"
    awk 'NR == FNR { call[$1]; next }
        !match($0, /:[A-Za-z_0-9]+/) { next }
        { name = substr($0, RSTART + 1, RLENGTH - 1); gsub(",", "", $1) }
        name ~ /^product_(to|give|on)$/ { products += $1 }
        name in call { calls += $1; printf "%14.0f  %s\n", $1, name }
        END { printf "%14.0f  products of matrices\n%14.0f  all calls: %.3f times\n", products, calls, calls / products }' \
        "$bin/names" "$bin/table"
    exit
fi

# The products: KIND ROWS IN OUT, of a Linear, and of the steps of an LSTM
make -s dpgen
# shellcheck disable=SC2086
./dpgen "$file" $common $size -d f 2>&1 | awk '
    { for (i = 1; i <= NF; i++) if (split($i, part, "=i:") == 2) value[part[1]] = part[2] }
    function put(kind, rows, in_, out, times) { n[kind ":" rows ":" in_ ":" out] += times }
    / call=linear_forward /    { put("f", value["rows"], value["in"], value["out"], 1) }
    / call=linear_backward_x / { put("x", value["rows"], value["in"], value["out"], 1) }
    / call=linear_backward_w / { put("w", value["rows"], value["in"], value["out"], 1) }
    / call=recur_forward /     { put("f", value["batch"], value["hidden"], 4 * value["hidden"], value["time"]) }
    / call=recur_backward /    { put("x", value["batch"], value["hidden"], 4 * value["hidden"], value["time"]) }
    / call=recur_backward_w /  { put("w", value["batch"] * value["time"], value["hidden"], 4 * value["hidden"], 1) }
    / moved=/ && !/ call=(linear_(forward|backward_[xw])|recur_[a-z_]*) / { bytes += substr($0, index($0, " moved=") + 7) }
    END { for (i in n) print "-w", i ":" n[i]; printf "-m %d\n", bytes / 1048576 }' | sort >"$bin/products"
$CC -std=c11 -O3 -march=$march -mprefer-vector-width=512 -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp \
    -D_POSIX_C_SOURCE=200809L bench/gpt2-step/floor.c rt/op/onednn/library.c rt/op/onednn/product.c rt/op/onednn/start.c \
    rt/op/linear.c rt/op/pointwise.c rt/op/gemm.c $narrow -o "$bin/floor" -ldnnl -ldl

median() { sort -g | awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
for round in $(seq "$rounds"); do
    # shellcheck disable=SC2046
    "$bin/floor" -t "$threads" -n 5 $own $(cat "$bin/products") >"$bin/floor.$round"
    sed -n 's/^floor //p' "$bin/floor.$round" >>"$bin/floor.ms"
    sed -n 's/^second floor //p' "$bin/floor.$round" >>"$bin/second.ms"
    rm -f "$bin/log"
    (cd "$bin/job" && ./train --steps 6 --quiet --no-checkpoint --log "$bin/log")
    sed -n '/"event":"step"/s/.*"ms":\([0-9.]*\).*/\1/p' "$bin/log" | tail -n +2 | median >>"$bin/step.ms"
    for how in $torch; do
        "$PYTHON" bench/model-step/step.py "$1" "$threads" 5 "$how" "$tokens" >"$bin/pytorch" 2>"$bin/said" ||
            { tail -n 3 "$bin/said" >&2; exit 1; }
        median <"$bin/pytorch" >>"$bin/$how.ms"
    done
done
cat "$bin/floor.1"
echo "$(nproc) cores, $(uname -m); compiler: $($CC --version | sed -n 1p); commit $(git rev-parse --short HEAD 2>&1 || true)"
[ -z "$torch" ] || echo "PyTorch $("$PYTHON" -c 'import torch; print(torch.__version__)')"
floor=$(median <"$bin/floor.ms") second=$(median <"$bin/second.ms") step=$(median <"$bin/step.ms")
for name in floor second step $torch; do
    sort -g "$bin/$name.ms" | awk -v name="$1 $name" -v base="$floor" -v second="$second" -v step="$step" \
        -v ms="$(median <"$bin/$name.ms")" '
        { if (NR == 1) low = $1; high = $1 }
        END { printf "%-14s %9.1f ms  %8.1f to %8.1f   %6.2f x floor  %6.2f x second floor  %6.2f x step\n",
                     name, ms, low, high, ms / base, ms / second, ms / step }'
done
