#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GPT-2 124M, one training step, against the floor of its matrix products on the same machine in the same run.
#
#   run.sh [-r ROUNDS] [-t THREADS] [-b BATCH] [-s TOKENS] [-e DIR] [-E DIR]
#
#   -e, -E   folders that dpgen emitted for the same model and sizes, f32 and bf16: their programs are measured too
#
# Programs take turns, ROUNDS times (5).  The first step of each run is dropped, for it pays for page faults; a run
# counts with its median step; what is printed is the median over the runs, their range, and the ratio to the floor of
# the same type.  ARCH, CC and CFLAGS may be set.  Whoever shares the machine is in the figures: the range shows it.
set -eu
export LC_ALL=C
rounds=5 threads=2 batch=4 tokens=64 emitted='' emitted16=''
while getopts r:t:b:s:e:E: option; do
    case $option in
    r) rounds=$OPTARG ;;
    t) threads=$OPTARG ;;
    b) batch=$OPTARG ;;
    s) tokens=$OPTARG ;;
    e) emitted=$(cd "$OPTARG" && pwd) ;;
    E) emitted16=$(cd "$OPTARG" && pwd) ;;
    *) exit 2 ;;
    esac
done
command="run.sh -r $rounds -t $threads -b $batch -s $tokens${emitted:+ -e DIR}${emitted16:+ -E DIR}"
cd "$(dirname "$0")/../.."
bin=$(mktemp -d) || exit 1
trap 'rm -rf "$bin"' EXIT
trap 'exit 1' HUP INT TERM
: "${CC:=cc}" "${ARCH:=native}"
: "${CFLAGS:=-O3 -march=$ARCH -mprefer-vector-width=512 -ffp-contract=off -fno-math-errno -fno-trapping-math}"

# build NAME LIBRARY FLAG: the step with one kernel library.  A file of rt/op/onednn stands for that of the same name.
build() {
    name=$1 library=$2 flag=$3 files=rt/number.c
    for file in rt/op/*.c; do
        base=${file##*/}
        if [ "$library" = portable ]; then files="$files $file"
        elif [ ! -e "rt/op/onednn/$base" ]; then files="$files $file"
        fi
    done
    libs=-lm
    if [ "$library" = onednn ]; then files="$files rt/op/onednn/*.c" libs='-ldnnl -lm'; fi
    # shellcheck disable=SC2086
    $CC -std=c11 $CFLAGS -fopenmp -D_POSIX_C_SOURCE=200809L $flag bench/gpt2-step/step.c $files -o "$bin/$name" $libs
}
# shellcheck disable=SC2086
for flag in '' -DREAL_BF16; do
    $CC -std=c11 $CFLAGS -fopenmp -D_POSIX_C_SOURCE=200809L $flag bench/gpt2-step/floor.c rt/op/onednn/library.c \
        rt/op/onednn/product.c rt/op/onednn/start.c rt/op/linear.c rt/op/pointwise.c rt/op/gemm.c \
        -o "$bin/floor$flag" -ldnnl -ldl
done
build f32 onednn ''
build bf16 onednn -DREAL_BF16
build portable portable -DPORTABLE

# median: of the numbers in a column
median() { sort -g | awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
size="-t $threads -b $batch -s $tokens"
# once NAME: one run, one number of milliseconds
once() {
    # shellcheck disable=SC2086
    case $1 in
    floor*) "$bin/$1" $size -n 5 | sed -n 's/^floor //p' ;;
    emitted*)
        dir=$emitted
        if [ "$1" = emitted16 ]; then dir=$emitted16; fi
        rm -f "$bin/log"
        (cd "$dir" && ./train --steps 6 --quiet --no-checkpoint --data "$bin/tokens" --eval-data "$bin/tokens" \
            --log "$bin/log") >/dev/null
        sed -n '/"event":"step"/s/.*"ms":\([0-9.]*\).*/\1/p' "$bin/log" | tail -n +2 | median ;;
    *) "$bin/$1" $size -n 6 | awk '$1 == "step" && ++n > 1 { print $2 }' | median ;;
    esac
}

# Tokens for the emitted programs, in llm.c's format: 100000 of them, made of pairs of ASCII bytes.
{
    printf '\210\330\064\001\001\000\000\000\240\206\001\000'
    head -c 1012 /dev/zero
    cat gen/*/*.c rt/*.c rt/op/*.c | tr -cd '\000-\177' | head -c 200000
} >"$bin/tokens"

programs="floor f32 floor-DREAL_BF16 bf16 portable${emitted:+ emitted}${emitted16:+ emitted16}"
round=0
while [ "$round" -lt "$rounds" ]; do
    for program in $programs; do once "$program" >>"$bin/$program.ms"; done
    round=$((round + 1))
done

# shellcheck disable=SC2086
"$bin/floor" $size -n 1 | sed -n 1p
echo "$(nproc) cores, $(uname -m); of the CPU's features: $(
    tr ' ' '\n' </proc/cpuinfo | grep -E '^(avx2|avx512f|avx512_bf16|amx_bf16)$' | sort -u | paste -s -d ' ')"
echo "compiler: $($CC --version | sed -n 1p); commit $(git rev-parse --short HEAD 2>&1 || true)"
echo "command: $command"
floor=$(median <"$bin/floor.ms") floor16=$(median <"$bin/floor-DREAL_BF16.ms") f32=$(median <"$bin/f32.ms")
echo "program               ms     range                 x floor   x f32 step"
for program in $programs; do
    case $program in *16) base=$floor16 ;; *) base=$floor ;; esac
    sort -g "$bin/$program.ms" | awk -v name="${program%-DREAL_BF16}" -v base="$base" -v f32="$f32" \
        -v ms="$(median <"$bin/$program.ms")" -v type="${program#floor}" '
        { if (NR == 1) low = $1; high = $1 }
        END { if (name == "floor" && type != "") name = "floor bf16"
              printf "%-16s %9.1f     %-8.1f to %8.1f   %6.2f   %6.2f\n", name, ms, low, high, ms / base, ms / f32 }'
done
