#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# bits.sh: the portable kernels give the same bits whatever compiles them.  Builds them with each compiler, level of
# optimisation, instruction set and thread count at hand, runs `opcheck hash`, and compares the hashes: one for f32,
# one for bf16.
# What this machine lacks (clang, AVX-512) is skipped by name.  SLOW=1 takes every combination; otherwise f32 alone: the objects
# of build/librt.a by gcc -O2 with 1 thread, against clang -O0 for any machine (gcc, where that is not here) with 3.  A folder
# of gcc -O3 is compared by tests/reference.sh.
# SLOW=1 also runs aarch64, riscv64 and s390x, which is big endian, under an emulator.
# docs/bits.md says why the hashes must agree.  No kernel calls fmaf of libm, with the instruction or without.  No kernel starts
# threads anew: what a program started is counted.
set -u
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0 skipped=0

bad() { echo "bits: $*" >&2; failed=$((failed + 1)); }
skip() { echo "bits: skipped: $*"; skipped=$((skipped + 1)); }

# What the machine can run; an unknown machine gets what the compiler makes by itself.
targets="default"
if [ "$(uname -m)" = x86_64 ]; then
    targets="x86-64"
    flags=$(grep -m1 '^flags' /proc/cpuinfo 2>/dev/null || true)
    case "$flags" in *avx2*) targets="$targets haswell" ;; *) skip "haswell: no AVX2 here" ;; esac
    case "$flags" in *avx512vl*) targets="$targets skylake-avx512" ;; *) skip "skylake-avx512: no AVX-512 here" ;; esac
fi
compilers=
for cc in gcc clang; do
    if command -v "$cc" >"$tmp/which"; then compilers="$compilers $cc"; else skip "$cc: not installed"; fi
done
[ "$compilers" ] || compilers=cc

# wanted TYPE COMPILER LEVEL TARGET: the short selection
wanted() {
    [ "${SLOW:-0}" = 1 ] && return 0
    case "$*" in
    *" default" | "f32 clang -O0 x86-64") return 0 ;;
    "f32 gcc -O0 x86-64") [ "$compilers" = " gcc" ] && return 0 ;;
    esac
    return 1
}

# same NAME PROGRAM THREADS...: compare the hash for each number of threads
same() {
    name=$1 program=$2
    shift 2
    for threads; do
        hash=$("$program" hash "$threads" 2>"$tmp/said") || bad "$type, $name: opcheck hash ended with status $?"
        started=$(sed -n 's/ threads$//p' "$tmp/said")
        [ "${started:-0}" -le "$threads" ] || bad "$type, $name: $started threads started, for $threads"
        [ "${VERBOSE:-0}" = 1 ] && echo "$hash $type, $name, threads $threads"
        [ "$first" ] || first=$hash first_name=$name
        if [ "$hash" = "$first" ]; then
            passed=$((passed + 1))
        else
            bad "$type, $name, threads $threads: $hash, but $first_name: $first"
        fi
    done
}

# one NAME "THREADS ..." COMPILE...: compile the kernels, and compare
one() {
    name=$1 counts=$2
    shift 2
    if ! "$@" $fixed rt/op/*.c rt/fold.c rt/number.c "$tmp"/*.o -o "$tmp/run" -Wl,-y,fmaf -lm >"$tmp/log" 2>&1; then
        bad "$type, $name: does not compile"
        sed 's/^/    /' "$tmp/log" >&2
        return
    fi
    ! grep 'reference to fmaf' "$tmp/log" | grep -qv "$tmp/opcheck" || bad "$type, $name: a kernel calls fmaf of libm"
    same "$name" "$tmp/run" $counts
}

has_openmp() {
    echo 'int main(void) { return 0; }' >"$tmp/omp.c"
    "$1" -fopenmp "$tmp/omp.c" -o "$tmp/omp" 2>"$tmp/log"
}

programs="build/opcheck build/opcheck_bf16"
make -s $programs || exit 1
types=f32
[ "${SLOW:-0}" != 1 ] || types="f32 bf16"
for type in $types; do
    first=
    same "librt" ${programs%% *} 1
    programs=${programs#* }
    fixed="-std=c11 -w -ffp-contract=off -D_POSIX_C_SOURCE=200809L -I."
    [ $type = bf16 ] && fixed="$fixed -DREAL_BF16"
    set -- $compilers
    rm -f "$tmp"/*.o
    for part in tests/opcheck*.c; do        # the frame and its operands: made once, with integers and copies alone
        name=$(basename "$part" .c)
        if [ -z "${SAN:-}" ] && [ -e "build/$type/$name.o" ]; then cp "build/$type/$name.o" "$tmp"
        else "$1" $fixed -O1 -c "$part" -o "$tmp/$name.o" || { bad "$part does not compile"; break 2; }; fi
    done
    "$1" -D_POSIX_C_SOURCE=200809L -c tests/threads.c -o "$tmp/threads.o" || bad "tests/threads.c does not compile"
    for cc in $compilers; do
        counts="1 2 3"
        [ "${SLOW:-0}" = 1 ] || counts="3"
        for target in $targets; do
            case $target in default) march= ;; *) march=-march=$target ;; esac
            for level in -O0 -O1 -O2 -O3; do
                wanted $type "$cc" $level $target || continue
                case ${SLOW:-0}$level in
                    0-O[012]) if has_openmp "$cc"; then threads=$counts openmp=-fopenmp; else threads=1 openmp=; fi ;;
                    *) threads=1 openmp= ;;
                esac
                one "$cc $level $target $openmp" "$threads" "$cc" $level $march $openmp
            done
        done
    done
    # as jobs are built: widest vectors, no errno, threads
    for cc in $compilers; do
        [ "${SLOW:-0}" = 1 ] || continue
        set -- -O3 $march -fno-math-errno -fno-trapping-math
        case $target in skylake-avx512) set -- "$@" -mprefer-vector-width=512 ;; esac
        if has_openmp "$cc"; then
            one "$cc $* -fopenmp" "${SLOW:+1 2 }3" "$cc" "$@" -fopenmp
        else
            skip "$cc -fopenmp: no OpenMP library"
            one "$cc $*" 1 "$cc" "$@"
        fi
    done
    # other processors, by cross compilers; s390x has excess precision with -std=c11.  A job has a check of its own for it.
    for arch in aarch64 riscv64 s390x; do
        [ "${SLOW:-0}" = 1 ] || continue
        cross=$arch-linux-gnu-gcc more=
        [ $arch != s390x ] || more=-fexcess-precision=fast
        command -v $cross >"$tmp/which" && command -v qemu-$arch >"$tmp/which" ||
            { skip "$arch: no $cross or qemu-$arch"; continue; }
        printf '#!/bin/sh\nexec qemu-%s "$0.%s" "$@"\n' $arch $arch >"$tmp/cross"
        chmod +x "$tmp/cross"
        if $cross $fixed $more -DLIBRARY -DJOB_REQUESTS=256 -c rt/fold.c -o "$tmp/fold" 2>"$tmp/log" &&
            $cross $fixed $more -static -O1 rt/op/*.c rt/number.c tests/opcheck*.c "$tmp/fold" -o "$tmp/cross.$arch" -lm \
                2>"$tmp/log"
        then same "$arch, emulated" "$tmp/cross" 1
        else bad "$type, $arch: $(head -n 1 "$tmp/log")"; fi
    done
done
echo "bits: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
