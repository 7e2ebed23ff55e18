#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The loop of a product's tile, in the listings of compilers: chains keep their registers.  A move of one to another register
# takes the place of a fused step on x86, and so does one of an address that rests in a register of vectors.  The loops of a
# whole tile, packed and in place, have none; so two loops of a listing must be without.  clang with the pragma of GCC kept no
# chain in a register at all.  aarch64 takes at most 1.4 instructions a fused step: a strip of packed rows takes 24 of them for
# a term, rows in place 48 for two.  SLOW=1: a product of 96 x 192 x 192 with its packing, counted by an emulator, takes at most
# 1.6.
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
    elif ! "$@" $flags -S -o "$tmp/listing" rt/op/gemm.c 2>"$tmp/said"; then
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

# The emulator's log has a line for each instruction.  What one more product takes is the difference of two runs.
counted() { $emulator -singlestep -d exec,nochain -D /dev/stdout "$tmp/product" "$@" | wc -l; }
emulator=qemu-aarch64
if [ -z "$SLOW" ]; then skip "SLOW=1 alone: a whole product counted"
elif ! command -v $emulator >"$tmp/said"; then skip "$emulator is missing: a whole product counted"
elif ! aarch64-linux-gnu-gcc -static -S -o "$tmp/listing" -x c /dev/null 2>"$tmp/said"; then skip "aarch64: no compiler"
else
    cat >"$tmp/product.c" <<'EOF'
#include "rt/real.h"
void linear_forward(Stage *, real *, const real *, const real *, const real *, int, long, long, long);
void linear_backward_x(Stage *, real *, const real *, const real *, int, long, long, long);
void linear_backward_w(Stage *, float *, float *, const real *, const real *, int, int, long, long, long);
int main(int argc, char **argv)
{
    static real x[96 * 192], w[192 * 192], y[96 * 192];
    Stage st = { .threads = 1, .count = 1 };
    for (int i = 1; i < argc; i++)
        switch (argv[i][0]) {
        case 'f': linear_forward(&st, y, x, w, 0, 0, 96, 192, 192); break;
        case 'x': linear_backward_x(&st, x, y, w, 0, 96, 192, 192); break;
        default: linear_backward_w(&st, w, 0, y, x, 0, 1, 96, 192, 192);
        }
    return 0;
}
EOF
    # shellcheck disable=SC2086
    if ! aarch64-linux-gnu-gcc -static $flags "$tmp/product.c" rt/op/linear.c rt/op/pointwise.c rt/op/gemm.c \
        -o "$tmp/product" 2>"$tmp/said"; then
        fault "a whole product: $(head -n 1 "$tmp/said")"
    else for kind in f x w; do
        got=$(($(counted $kind $kind) - $(counted $kind))) steps=$((96 * 192 * 192 / 4))
        if [ $got -gt $steps ] && [ $((10 * got)) -le $((16 * steps)) ]; then pass; else
            fault "a whole product, $kind: $got instructions for $steps fused steps of vectors"
        fi
    done; fi
fi
finish
