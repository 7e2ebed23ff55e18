#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The loop of a product's tile, in the listings of compilers: chains keep their registers.  A move of one to another register
# takes the place of a fused step on x86, and so does one of an address that rests in a register of vectors.  The loops of a
# whole tile, packed and in place, have none; so two loops of a listing must be without.  clang with the pragma of GCC kept no
# chain in a register at all.  aarch64 takes at most 1.4 instructions a fused step: a strip of packed rows takes 24 of them for
# a term, rows in place 48 for two.
. "$(dirname "$0")/lib.sh"
flags="-std=c11 -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -D_POSIX_C_SOURCE=200809L -I. -fopenmp"

# loops STEP MOVE: fused steps, instructions, moves of each innermost loop of a listing
loops() {
    awk -v step="$1" -v move="$2" '
        /^\.L[A-Z0-9_]+:/ { label = $1; sub(/:/, "", label); all = steps = moves = 0; next }
        /^\t[a-z]/ { all++; steps += $1 == step; moves += $0 ~ move }
        /^\t(j|b)[.a-z]*\t/ && $2 == label && steps { print steps, all, moves }'
}

# listing NAME COMPILER-AND-FLAGS...: $tmp/listing, or a skip
listing() {
    name=$1
    shift
    if ! "$@" -S -o "$tmp/listing" -x c /dev/null 2>"$tmp/said"; then
        skip "$name: $(head -n 1 "$tmp/said")"
    elif ! "$@" $flags -S -o "$tmp/listing" rt/op/linear.c 2>"$tmp/said"; then
        fault "$name: $(head -n 1 "$tmp/said")"
    else
        return 0
    fi
    return 1
}

wide=-mprefer-vector-width=512
for compiler in "${CC:-cc}" clang; do
    for way in "24 -march=x86-64-v4 $wide" "24 -march=x86-64-v4 -mtune=znver3 $wide" "12 -march=x86-64-v3"; do
        n=${way%% *} options=${way#* }
        # shellcheck disable=SC2086
        listing "$compiler $options" $compiler -m64 $options || continue
        got=$(loops vfmadd231ps '(vmovap[sd]\t%[xyz]mm[0-9]+, %[xyz]mm|vmov[dq]\t)' <"$tmp/listing" |
            awk -v n="$n" '$1 == n { print $3 }' | xargs)
        if [ "$(echo "$got" | tr ' ' '\n' | grep -cx 0)" -ge 2 ]; then pass; else
            fault "$compiler $options: moves in the loops of $n steps: ${got:-no loops}; two have none"
        fi
    done
done
for way in aarch64-linux-gnu-gcc "aarch64-linux-gnu-gcc -mcpu=neoverse-n1"; do
    # shellcheck disable=SC2086
    listing "aarch64" $way || continue
    got=$(loops fmla '\tmov\tv' <"$tmp/listing" | awk '$1 >= 24 && $2 <= 1.4 * $1 { print $1 }' | sort -n | xargs)
    if [ "$(echo "$got" | tr ' ' '\n' | uniq | xargs)" = "24 48" ]; then pass; else
        all=$(loops fmla '\tmov\tv' <"$tmp/listing" | xargs)
        fault "$way: loops with 1.4 instructions a fused step: ${got:-none}; all: $all"
    fi
done
finish
