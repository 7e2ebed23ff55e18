#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# --library: two jobs of examples/library in one program, one of two stages, each with the hash of its own program; every call
# that is refused; a stage that fails; what is saved, over cuts; headers and symbols.  SLOW=1: 10^5 steps under the address and
# leak sanitizers, threads under theirs, every kind of call in every kind of plan, and the boards, where their compilers and
# emulators are.
. "$(dirname "$0")/lib.sh"
need dpgen dpgen-verify build/emitted build/librt.a
use_portable
examples=$root/examples/library
steps=60
# library NAME MODEL OPTION...
library() {
    name=$1 model=$2
    shift 2
    ./dpgen "$examples/$model.yaml" --library --prefix "${name##*/}" --planner even --estimate "$@" -o "$tmp/$name" \
        >"$tmp/said" 2>&1 || fault "$name: $(head -n 1 "$tmp/said")"
}
library xor xor
library digits digits --stages 2
library whole digits
library sensor sensor --stages 2
mkdir "$tmp/lost" "$tmp/two"
library two/xor xor --stages 2
sed '/send_begin(st, A(relu/s|/[*] tag [*]/ 0|77|' "$tmp/digits/digits.c" >"$tmp/lost/lost.c"
cp "$tmp/digits/digits.h" "$tmp/lost"
strict="-std=c11 -Wall -Wextra -Wpedantic -Werror"
flags_of="$strict -ffp-contract=off -fno-math-errno -fPIC"
[ -n "$SLOW" ] && level=-O2 || level=-O0
for j in xor digits whole sensor lost two/xor; do
    $cc $flags_of $level -c -o "$tmp/$j.o" "$tmp/$j/${j##*/}.c" >"$tmp/$(echo $j | tr / .).said" 2>&1 &
done
$cc $strict -DTHREADS=1 -I"$tmp" -Iexamples/library -c -o "$tmp/test.o" tests/library.c >"$tmp/said" 2>&1 ||
    fault "tests/library.c: $(head -n 1 "$tmp/said")"
$cc $strict -c -o "$tmp/draw.o" "$examples/digits.c" >"$tmp/said" 2>&1 || fault "digits.c: $(head -n 1 "$tmp/said")"
wait
cat "$tmp"/*.said >&2
if $cc -o "$tmp/library" "$tmp/test.o" "$tmp/draw.o" "$tmp/xor.o" "$tmp/digits.o" >"$tmp/said" 2>&1; then pass
else fault "two libraries in one program: $(head -n 1 "$tmp/said")"; fi

# ---- the programs of the same jobs ------------------------------------------------------------------------------------------
(cd "$tmp" && ./library data)
program() {
    name=$1 arrays=$2
    { cat "$examples/$name.yaml"
      printf '\ndata:\n  train:\n    format: npy\n    order: sequential\n    arrays: {%s}\n' "$arrays"
    } >"$tmp/$name.yaml"
    generate "$tmp/$name.program" "$tmp/$name.yaml" >"$tmp/said" && compile "$tmp/$name.program" >"$tmp/said" ||
        fault "program $name: $(head -n 1 "$tmp/said")"
    run_program $name $steps
}
run_program() { (cd "$tmp" && "$1.program/job" --steps $2 --quiet --hash --no-checkpoint); }
want=$(program xor "bits: bits.npy, label: differ.npy"; program digits "points: points.npy, label: label.npy")
got=$("$tmp/library" turn $steps)
sums=$want                      # refuse() has a variable of that name
if [ "$got" = "$want" ] && [ -n "$want" ]; then pass; else fault "two jobs in turn: $got, and their programs $want"; fi
expect "calls that are refused" "$tmp/library" refuse
expect "a stage that fails" sh -c '$1 -o "$2/losing" "$2/test.o" "$2/draw.o" "$2/xor.o" "$2/lost.o" && "$2/losing" lost' \
    - "$cc" "$tmp"
# over NAME NAME STEPS SAMPLES FILE...: what each saves, the other loads
over() {
    one=$1 two=$2
    shift 2
    $cc $strict -DJOB=$one -DOTHER=$two -include "$tmp/$one/$one.h" -include "$tmp/$two/$two.h" -o "$tmp/over" \
        tests/library_any.c "$tmp/$one.o" "$tmp/$two.o" && (cd "$tmp" && ./over "$@")
}
expect "what is saved, over cuts" over digits whole 5 16 points.npy label.npy

# ---- the examples ----------------------------------------------------------------------------------------------------
says() {
    what=$1 text=$2
    shift 2
    if "$@" >"$tmp/said" 2>&1 && grep -q -e "$text" "$tmp/said"; then pass; else fault "$what: $(tail -n 1 "$tmp/said")"; fi
}
says "sensor.c" "^reading 11000: " sh -c '$1 -I"$2" -o "$2/foresee" "$3/sensor.c" "$2/sensor.o" && "$2/foresee"' \
    - "$cc $strict" "$tmp" "$examples"
if command -v g++ >/dev/null; then
    says "digits.cc" "^refused: input points: 2 elements" sh -c 'g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror $1 -I"$2" \
        -o "$2/reader" "$3/digits.cc" "$2/draw.o" "$2/digits.o" && "$2/reader"' - "${SAN:+-fsanitize=address,undefined}" \
        "$tmp" "$examples"
else skip "no g++"; fi
if [ -n "${SAN:-}" ]; then skip "Python has no sanitizers"
elif command -v python3 >/dev/null && $cc -shared -o "$tmp/xor.so" "$tmp/two/xor.o" >"$tmp/said" 2>&1; then
    says "xor.py" "^$(echo "$want" | head -n 1)$" python3 "$examples/xor.py" "$tmp/xor.so" $steps
else skip "no python3"; fi

# ---- headers alone, symbols, memory -----------------------------------------------------------------------------------------
for j in xor digits; do
    expect "$j.h in C11" $cc $strict -fsyntax-only -x c "$tmp/$j/$j.h"
    if command -v g++ >/dev/null; then
        expect "$j.h in C++17" g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "$tmp/$j/$j.h"
    else skip "no g++"; fi
    [ -z "${SAN:-}" ] || continue
    other=$(nm -g --defined-only "$tmp/$j.o" | awk -v p="${j}_" 'NF == 3 && index($3, p) != 1 { print $3 }')
    if [ -z "$other" ]; then pass; else fault "$j.o shows $other"; fi
    calls=$(nm -g --defined-only "$tmp/$j.o" | grep -c " T ${j}_")
    if [ "$calls" -le 20 ] && [ "$calls" -ge 15 ]; then pass; else fault "$j.o has $calls calls"; fi
    case $j in xor) threads=sched ;; *) threads='pthread_[a-z_]*|sched_yield|sigfillset|longjmp' ;; esac
    from=$(nm -u "$tmp/$j.o" | awk -v t="^(mem(cpy|set|cmp|move)|aligned_alloc|free|_.*|$threads)\$" '$2 !~ t { print $2 }')
    if [ -z "$from" ]; then pass; else fault "$j.o wants $from"; fi
    state=$(size -A "$tmp/$j.o" | awk '$1 ~ /^\.(data|bss|tdata|tbss)$/ { n += $2 } END { print n + 0 }')
    if [ "$state" = 0 ]; then pass; else fault "$j.o has $state bytes of state of its own"; fi
done
{ nm -g --defined-only "$tmp/xor.o" | sed -n 's/.* T xor_/NAME_/p'; echo NAME_open_on; } | sort >"$tmp/calls"   # over MPI
grep -o '^.Fn NAME_[a-z_]* ["v]' docs/man/dpgen-library.3 | sed 's/^.Fn //; s/ .*//' | sort >"$tmp/pages"
expect "dpgen-library(3) has every call" cmp "$tmp/calls" "$tmp/pages"
grep -o 'NAME_[a-z][a-z_]*`' docs/library.md | tr -d '`' | sort -u >"$tmp/pages"
expect "docs/library.md has every call" cmp "$tmp/calls" "$tmp/pages"
# A model whose names are those of kernels, of the library and of its tables
sed 's/name: hidden/name: least/; s/name: scores/name: digest_add/; s/as: loss/as: setting/; s/loss: loss/loss: setting/
    s/bits/input/; s/op: Tanh/op: Tanh, name: job_refuse/' "$examples/xor.yaml" >"$tmp/names.yaml"
expect "names of kernels" ./dpgen "$tmp/names.yaml" --library --prefix names --estimate -o "$tmp/names"
expect "names of kernels compile" $cc $strict -fsyntax-only "$tmp/names/names.c"
expect "the proof of a library" ./dpgen-verify "$tmp/xor"
cp -R "$tmp/xor" "$tmp/other"
sed 's/chunk0_forward(st, 0, 0)/chunk0_forward(st, 1, 0)/; s/gather(st)/update(st)/; s/^    action(st, 1,/    action(st, 2,/' \
    "$tmp/xor/xor.c" >"$tmp/other/xor.c"
cp -R "$tmp/digits" "$tmp/second"
sed 's/\(linear_backward_w(st.*A(d_scores), \)S(xb/\1S(fb/' "$tmp/digits/digits.c" >"$tmp/second/digits.c"
refuse "digits.c is of another second stage" 1 "digits.c does not hold stage1.c" ./dpgen-verify --edited "$tmp/second"
refuse "xor.c is of another stage" 1 "xor.c does not hold stage0.c" ./dpgen-verify --edited "$tmp/other"
expect "xor.c names both licences" grep -q '"licenseInfoInFiles": \["Apache-2.0", "CC0-1.0"\]' "$tmp/xor/sbom.spdx.json"
for name in data job launch part stdint math Makefile; do
    refuse "a library called $name" 2 "cannot be called $name: .*--prefix" ./dpgen "$examples/xor.yaml" --library --estimate \
        --set model.name=$name -o "$tmp/none"
done
# Bytes come as the numbers that a program would make of them, and the header says so
expect "an input of bytes" ./dpgen "$examples/digits.yaml" --library --estimate --set model.inputs.points.dtype=u8 -o "$tmp/raw"
expect "an input of bytes, in the header" grep -q 'points .* float .*, (byte/255 - mean) / std' "$tmp/raw/digits.h"
# A seed has 64 bits there too
if command -v arm-none-eabi-gcc >/dev/null 2>&1; then
    ./dpgen "$examples/xor.yaml" --library --estimate --set train.seed=5000000000 -o "$tmp/seed" >"$tmp/said" 2>&1
    expect "a seed of 33 bits on a board" arm-none-eabi-gcc $strict -ffp-contract=off -ffreestanding -fsyntax-only \
        -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 "$tmp/seed/xor.c"
else
    skip "a seed of 33 bits on a board: no arm-none-eabi-gcc"
fi
no_board="2 devices are as many threads or processes, .* with --stages 1"
refuse "two stages on a board" 2 "$no_board" make -s -C "$tmp/digits" LINK=freestanding
refuse "the file of two stages on a board" 1 "$no_board" $cc $flags_of -ffreestanding -c -o "$tmp/none.o" "$tmp/digits/digits.c"
refuse "weights in few bits" 3 "leave out section quantize" ./dpgen examples/bytes-gpt.yaml --library --estimate --stages 1 \
    --set train.freeze=[h.*] --set quantize={} -o "$tmp/none"
refuse "a library of a GPU" 3 "kind: cpu" ./dpgen examples/gpt2-124m-cuda.yaml --library --estimate -o "$tmp/none"
refuse "no identifier" 2 identifier ./dpgen "$examples/xor.yaml" --library --prefix a-b -o "$tmp/none"
[ -n "$SLOW" ] || finish

# ---- long forms ------------------------------------------------------------------------------------------------------
cat >"$tmp/open.c" <<'END'
#include <stdio.h>
#include "xor/xor.h"
int main(void)
{
    char why[XOR_TEXT] = "";
    xor_job *j = xor_open(NULL, 0, why);
    printf("%s\n", why);
    xor_close(j);
    return !j;
}
END
case $($cc -march=native -dM -E - </dev/null) in
*__FMA__*) refuse "fused sums" 1 "compile with -ffp-contract=off" sh -c '$1 -O3 -march=native -ffp-contract=fast \
    -fno-math-errno -o "$2/open" "$2/open.c" "$2/xor/xor.c" -lm && "$2/open"' - "$cc" "$tmp" ;;
*) skip "this machine has no fused step" ;;
esac
sed 's/^int main(void)/#include <immintrin.h>\n&/; s/char /_mm_setcsr(_mm_getcsr() | 0x8040); &/' "$tmp/open.c" >"$tmp/flush.c"
case $(uname -m) in
x86_64) refuse "subnormals become zero" 1 "switch flush-to-zero off" sh -c '$1 -o "$2/flush" "$2/flush.c" "$2/xor.o" &&
    "$2/flush"' - "$cc" "$tmp" ;;
*) skip "flush-to-zero is set on x86-64 alone here" ;;
esac
san="$flags_of -O1 -g -fno-sanitize-recover=all -I$tmp/two -Iexamples/library"
library two/digits digits --stages 2
both="tests/library.c $examples/digits.c $tmp/two/xor/xor.c $tmp/two/digits/digits.c -lm"
expect "sanitizers" $cc $san -DTHREADS=2 -fsanitize=address,leak,undefined -o "$tmp/safe" $both
many=$(run_program xor 100000; run_program digits 100000)
got=$(ASAN_OPTIONS=quarantine_size_mb=0 "$tmp/safe" turn 100000 2>&1)
if [ "$got" = "$many" ] && [ -n "$many" ]; then pass; else fault "10^5 steps under sanitizers: $got, not $many"; fi
expect "refused under sanitizers" "$tmp/safe" refuse
if $cc $san -DTHREADS=2 -fsanitize=thread -o "$tmp/races" $both >"$tmp/said" 2>&1; then
    got=$("$tmp/races" turn $steps 2>&1)
    if [ "$got" = "$sums" ]; then pass; else fault "under the sanitizer of threads: $(echo "$got" | head -n 3)"; fi
    expect "refused under the sanitizer of threads" "$tmp/races" refuse
else skip "this compiler has no sanitizer of threads" 2; fi
expect "a stage that fails, under sanitizers" sh -c '$1 -DTHREADS=1 -fsanitize=address,leak,undefined -o "$2/losing" \
    tests/library.c "$3/digits.c" "$2/two/xor/xor.c" "$2/lost/lost.c" -lm && "$2/losing" lost' - "$cc $san" "$tmp" "$examples"
$cc $flags_of -O1 -o "$tmp/plain" -I"$tmp/two" -DTHREADS=2 -Iexamples/library $both || fault "both of two stages"
refuse "no thread" 1 "gives no thread for a stage" sh -c 'ulimit -v 9000 && "$1" turn 1' - "$tmp/plain"

# Every kind of call, in f32 and in bf16, and every kind of plan: a library of one file, and the program of the same job on one
# stage, on the same arrays; what the library saves, one of one stage loads
$cc -std=c11 -O1 -o "$tmp/npy" tests/npy.c || fault "tests/npy.c"
# one_of PREFIX FOLDER MODEL OPTION...: FOLDER.o
one_of() {
    prefix=$1 folder=$2 model=$3
    shift 3
    ./dpgen "$models/$model.yaml" --planner even --library --prefix "$prefix" --estimate -o "$folder" "$@" >"$tmp/said" 2>&1 &&
        $cc $flags_of -O1 -c -o "$folder.o" "$folder/$prefix.c" >"$tmp/said" 2>&1 ||
        { fault "$model $*: $(grep -m 1 error "$tmp/said")"; return 1; }
}
# any MODEL SAMPLES ARRAY... < LINES of options, one a plan
any() {
    model=$1 samples=$2 in=
    cat >"$tmp/list"
    shift 2
    rm -rf "$tmp/any.$model"
    mkdir "$tmp/any.$model"
    for array; do
        (cd "$tmp/any.$model" && "$tmp/npy" $array)
        in="$in ${array%% *}"
    done
    for type in f32 bf16; do
        case $type in f32) use_portable ;; *) use_bf16 ;; esac
        set="--set data.train.order=sequential --set train.precision.compute=$type $key"
        said=$(generate "$tmp/any.$type" "$models/$model.yaml" $set --stages 1 && compile "$tmp/any.$type") ||
            { fault "$model: $said"; continue; }
        one_of whole "$tmp/any.whole" $model $set --stages 1 || continue
        one=$(cd "$tmp/any.$model" && "$tmp/any.$type/job" --steps 4 --quiet --hash --no-checkpoint)
        while read -r plan; do
            one_of cut "$tmp/any.cut" $model $set $plan || continue
            expect "$model $plan, and one stage" $cc $strict -DJOB=cut -DOTHER=whole -include "$tmp/any.cut/cut.h" \
                -include "$tmp/any.whole/whole.h" -o "$tmp/any" tests/library_any.c "$tmp/any.cut.o" "$tmp/any.whole.o" -lm
            two=$(cd "$tmp/any.$model" && timeout 100 "$tmp/any" 4 $samples $in)
            if [ "$one" = "$two" ] && [ -n "$one" ]; then pass; else fault "$model in $type, $plan: $two, not $one"; fi
            rm -rf "$tmp/any.cut"
        done <"$tmp/list"
        rm -rf "$tmp/any.whole"
    done
}
need build/librt_bf16.a
key=
any ops 8 "tokens.npy i4 0 32 24 6" "other.npy i4 0 32 24 5" "mask.npy i4 0 2 24 5" "image.npy f4 -1 1 24 6 3" \
    "targets.npy i4 -1 32 24 6" "wanted.npy f4 -1 1 24 8" <<'END'
--stages 1
--stages 4
END
any tiny-bert 8 "tokens.npy i4 0 64 40 12" "types.npy i4 0 2 40 12" "mask.npy i4 0 2 40 12" "labels.npy i4 0 64 40 12" \
    "next.npy i4 0 2 40" <<'END'
--stages 1
--stages 2
END
any experts 8 "tokens.npy i4 0 29 40 10" "targets.npy i4 0 29 40 10" <<'END'
--stages 1
--stages 2
END
any images 16 "image.npy f4 -1 1 40 12 11 3" "labels.npy i4 0 5 40" <<'END'
--stages 1
--stages 4 --schedule gpipe
END
any language 8 "tokens.npy i4 0 29 40 10" "targets.npy i4 0 29 40 10" <<'END'
--stages 1
--stages 2 --schedule 1f1b
--stages 2 --schedule gpipe
--stages 2 --schedule zb-h1
--stages 2 --schedule zb-v
--stages 2 --schedule interleaved
--stages 4 --schedule 1f1b
--stages 4 --schedule gpipe
--stages 4 --schedule zb-h1
END
any recurrent 8 "source.npy i4 0 29 40 7" "present.npy i4 0 2 40 7" "target.npy i4 0 29 40 6" "next.npy i4 0 29 40 6" <<'END'
--stages 1
--stages 2
END
key="--set train.batch.groups=2"
any language 8 "tokens.npy i4 0 29 40 10" "targets.npy i4 0 29 40 10" <<'END'
--stages 1 --replicas 2
--stages 2 --replicas 2
--stages 1 --replicas 2 --set train.shard=optimizer
--stages 2 --replicas 2 --set train.shard=optimizer
--stages 2 --replicas 2 --set train.shard=parameters
--stages 2 --schedule chimera
END
use_portable

rm -rf "$tmp/digits"
library digits digits
$cc $flags_of -O2 -c -o "$tmp/digits.o" "$tmp/digits/digits.c" || fault "digits in one stage"
# board NAME COMPILER ISA LAYOUT STEPS EMULATOR...: what a desktop says, and figures
$cc $strict -I"$tmp" -o "$tmp/host" "$examples/board/host.c" "$examples/board/board.c" "$examples/digits.c" "$tmp/xor.o" \
    "$tmp/digits.o" || fault "the board on a desktop"
board() {
    name=$1 gcc=$2 isa=$3 layout=$4 n=$5
    shift 5
    if ! command -v $gcc >/dev/null || ! command -v $1 >/dev/null; then skip "$name: no $gcc, or no $1" 2; return; fi
    for j in xor digits; do
        rm -f "$tmp/$j"/*.[oa]
        expect "$name: $j" make -s -C "$tmp/$j" CC=$gcc LINK=freestanding ISA="$isa" WERROR=1
    done
    $gcc -std=c11 -O2 $isa -Wall -Wextra -ffreestanding -nostdlib -ffunction-sections -Wl,--gc-sections -DSTEPS=$n -I"$tmp" \
        -T "$examples/board/$layout.ld" -o "$tmp/$name.elf" "$examples/board/$layout.c" "$examples/board/board.c" \
        "$examples/board/memory.c" "$examples/digits.c" "$tmp/xor/libxor.a" "$tmp/digits/libdigits.a" -lgcc >"$tmp/said" 2>&1 ||
        { fault "$name: $(head -n 1 "$tmp/said")"; return; }
    timeout 120 "$@" -icount shift=0 -nographic -kernel "$tmp/$name.elf" >"$tmp/$name.said" 2>&1 </dev/null
    "$tmp/host" $n >"$tmp/host.said"
    grep -v instructions "$tmp/$name.said" | tr -d '\r' >"$tmp/board.said"
    if cmp -s "$tmp/board.said" "$tmp/host.said"; then pass
    else fault "$name: $(head -n 1 "$tmp/board.said"), not $(head -n 1 "$tmp/host.said")"; fi
    grep instructions "$tmp/$name.said"
    ${gcc%gcc}size "$tmp/$name.elf"
}
board cortex-m4f arm-none-eabi-gcc "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16" mps2 400 \
    qemu-system-arm -M mps2-an386 -semihosting
board cortex-m3 arm-none-eabi-gcc "-mcpu=cortex-m3 -mthumb" mps2 5 qemu-system-arm -M mps2-an385 -semihosting
riscv="-mcmodel=medany -fno-pic"
board riscv64 riscv64-unknown-elf-gcc "-march=rv64gc -mabi=lp64d $riscv" virt 400 qemu-system-riscv64 -M virt -bios none
board riscv64-soft riscv64-unknown-elf-gcc "-march=rv64imac -mabi=lp64 $riscv" virt 20 qemu-system-riscv64 -M virt -bios none
finish
