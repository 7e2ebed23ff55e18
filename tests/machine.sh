#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A folder on a machine that cannot run it as planned: status 6 and one line with the cause and the remedy.  The CPU is one
# that qemu has: kernels compiled for Haswell on an older one, and for AVX-512 on Haswell; on Haswell the former give the bits
# of the suites.  A single file of kernels that is compiled with fused multiply-add is found; with SLOW=1, all of them are.
# On 32-bit x86 the bits are those of 64.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a
model="$models/tiny-gpt.yaml --stages 2 --set train.batch.global=4"
steps="$run --steps 1"            # of two micro-batches: an emulated step takes 50 times as long
arguments="--steps 1"

use_portable
echo "plain $model" | plans
one_hash "plain"
d=$tmp/job
said=$(generate "$d" $model) || { fault "$said"; finish; }
kernels='-std=c11 -O1 -fexpensive-optimizations -ffp-contract=off -fno-math-errno -fno-trapping-math $(WARN)'

# built ISA [FLAG]: the kernels are compiled again, for ISA
built() { rm -f "$d"/train "$d"/rt/op/*.o; make_quickly "$d" KFLAGS="$1 $kernels $2"; }
# one_file FILE FLAG...: that one alone is compiled again, with other flags
one_file() {
    file=$1
    shift
    (cd "$d" && rm train && $cc $flags "$@" -c -o "rt/op/$file.o" "rt/op/$file.c") || fault "$file.c"
    expect "$file.c by itself" make_quickly "$d" KFLAGS="-march=haswell $kernels "
}
here() { [ "$(uname -m)" = x86_64 ] && grep -qw fma /proc/cpuinfo 2>/dev/null && grep -qw avx2 /proc/cpuinfo; }
older_cpu() {
    haswell='qemu-x86_64-static -cpu Haswell'
    if [ "$(uname -m)" != x86_64 ] || ! command -v qemu-x86_64-static >/dev/null; then
        skip "there is no qemu-x86_64-static, or this is no x86-64" 4
        haswell=
        here || { skip "this machine is no Haswell" 7; return; }
    fi
    expect "kernels for Haswell" built -march=haswell
    got=$($haswell "$d/train" $steps 2>"$tmp/err" | sed -n 's/^sha256 //p')
    if [ "$got" = "$hash" ]; then pass; else fault "on Haswell: $got, not $hash: $(tail -n 1 "$tmp/err")"; fi
    if [ "$haswell" ]; then
        refuse "on Sandy Bridge" 6 "lacks instructions.*: MOVBE, LZCNT, BMI, BMI2, FMA, F16C, AVX2; run make" \
            qemu-x86_64-static -cpu SandyBridge "$d/train" $steps
        expect "help on Sandy Bridge" qemu-x86_64-static -cpu SandyBridge "$d/train" --help
    fi
    one_file norm -O2 -march=haswell -ffp-contract=fast
    refuse "one file is fused" 6 "rt/op/norm.c was compiled with fused .*compile the kernels with -ffp-contract=off" \
        ${haswell:-env} "$d/train" $steps
    if [ -n "$SLOW" ]; then
        expect "kernels fused" built -march=haswell -ffp-contract=fast
        refuse "kernels are fused" 6 "was compiled with fused" ${haswell:-env} "$d/train" $steps
        expect "kernels for Haswell, again" built -march=haswell
    fi
    [ "$haswell" ] || return
    one_file start -O1 -march=skylake-avx512
    refuse "AVX-512 on Haswell" 6 ": AVX512F, AVX512DQ, AVX512CD, AVX512BW, AVX512VL; run make" \
        $haswell "$d/train" $steps
}
if [ -n "$SAN" ]; then skip "kernels under sanitizers are compiled with flags of their own" 8; else older_cpu; fi

# ---- kernels for a newer CPU than the one that dpgen runs on: it says so, and how to get others --------------------------
# A CPU is its flags in /proc/cpuinfo.  notes FLAGS ISA WORDS: no WORDS, nothing is said
v3="sse2 cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 abm avx avx2 bmi1 bmi2 f16c fma movbe"
v4="$v3 avx512bw avx512cd avx512dq avx512f avx512vl"
notes() {
    echo "flags		: $1" >"$tmp/cpuinfo"
    unshare -m sh -c 'mount --bind "$1" /proc/cpuinfo && shift && exec ./dpgen "$@"' note "$tmp/cpuinfo" \
        "$models/tiny-gpt.yaml" --estimate --set devices.0.kernels=onednn --set "devices.0.isa=$2" -o "$tmp/noted" \
        >"$tmp/out" 2>"$tmp/err" || fault "isa $2: $(cat "$tmp/err")"
    said=$(sed -n 's/^dpgen: kernels are .*isa \([^ ]*\), .* has \([^:]*\): .*=\([^ ]*\) makes .*/\1 \2 \3/p' "$tmp/err")
    if [ "$said" = "$3" ]; then pass; else fault "isa $2 on a CPU with $1: '$said', not '$3'"; fi
}
if [ "$(uname -m)" = x86_64 ] && unshare -m mount --bind /dev/null /proc/cpuinfo 2>"$tmp/err"; then
    notes "$v3" x86-64-v4 "x86-64-v4 x86-64-v3 x86-64-v3"
    notes "$v3" x86-64-v3 ''
    notes "$v4" x86-64-v2 ''
    notes "$v4" x86-64-v4+bf16 "x86-64-v4+bf16 x86-64-v4 x86-64-v4"
    notes "$v4 avx512_bf16" x86-64-v4+bf16 ''
    notes "$v4 avx512_bf16" x86-64-v4+amx "x86-64-v4+amx x86-64-v4 x86-64-v4"
    notes "$v4 avx512_bf16 amx_tile amx_int8 amx_bf16" x86-64-v4+amx ''
else
    skip "no other /proc/cpuinfo here, or this is no x86-64" 7
fi

# ---- cores ---------------------------------------------------------------------------------------------------------------
# told WORDS CORES [OPTION]: a job of two stages says so on these cores, and goes on; no WORDS: it says nothing
told() {
    words=$1
    shift
    timeout 60 taskset -c "$1" "$tmp/two" --no-checkpoint --data "$data" --steps 1 $2 2>"$tmp/err" >"$tmp/out" ||
        fault "cores $*: $(cat "$tmp/err")"
    if [ "$(sed 's/^train: //' "$tmp/err")" = "$words" ]; then pass; else fault "$*: '$(cat "$tmp/err")', not '$words'"; fi
}
expect "a job of two stages" compile "$d"
cp "$d/job" "$tmp/two"
crowd="stages that share a machine: 2, threads: 2, cores: 1; steps take longer than predicted"
if taskset -c 0 true 2>/dev/null && taskset -c 0,1 true 2>/dev/null; then
    told "$crowd" 0
    told '' 0,1
    told '' 0 --quiet
else
    skip "there is no taskset, or only one core" 3
fi

# ---- 32 bits: the key of dropout has 64 ----------------------------------------------------------------------------------
# Headers of the kernel are the same for both, but not every system has them where 32 bits look for them.
bits32="$cc -m32 -msse2 -mfpmath=sse -idirafter /usr/include/$($cc -print-multiarch 2>/dev/null)"
printf '#include <errno.h>\nint main(void) { return errno; }\n' >"$tmp/small.c"
if $bits32 -o "$tmp/small" "$tmp/small.c" 2>"$tmp/said" && "$tmp/small"; then
    find "$d" -name '*.o' -exec rm {} +
    expect "make for 32 bits" make_quickly "$d" CC="$bits32" KFLAGS="$(echo "$kernels" | sed "s/-O1 -f[a-z-]*/-O0/")" train
    got=$("$d/train" $steps | sed -n 's/^sha256 //p')
    if [ "$got" = "$hash" ]; then pass; else fault "32 bits: $got, not $hash"; fi
else
    skip "$cc -m32 makes no programs here: $(head -n 1 "$tmp/said")" 2
fi
finish
