#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# --library over MPI: two jobs of two stages in one program of two ranks, with each MPI that is here.  They have the hash of a
# library of one stage; what one rank refuses, all refuse; messages of the program stay its own.  Ranks of two plans, and of
# two byte orders, are refused.
. "$(dirname "$0")/lib.sh"
need dpgen dpgen-verify
use_portable
examples=$root/examples/library
strict="-std=c11 -Wall -Wextra -Wpedantic -Werror"
library() {
    to=$1 model=$2
    shift 2
    ./dpgen "$examples/$model.yaml" --library --prefix $model --planner even --estimate "$@" -o "$to" >"$tmp/said" 2>&1 ||
        fault "$to: $(head -n 1 "$tmp/said")"
}
mkdir "$tmp/alone"
for j in xor digits; do
    library "$tmp/$j" $j --stages 2 --set plan.transport=mpi
    library "$tmp/alone/$j" $j
done
mkdir "$tmp/turned" "$tmp/other"
cp -r "$tmp/digits" "$tmp/xor" "$tmp/turned"
sed -i 's/{.one = 1}/{.one = 1 << 24}/' "$tmp/turned/digits/digits.c"
library "$tmp/other/digits" digits --stages 2 --set plan.transport=mpi --schedule zb-h1
cp -r "$tmp/xor" "$tmp/other"
$cc $strict -ffp-contract=off -I"$tmp/alone" -Iexamples/library -o "$tmp/one" tests/library.c "$examples/digits.c" \
    "$tmp/alone/xor/xor.c" "$tmp/alone/digits/digits.c" -lm || fault "one stage"
want=$("$tmp/one" turn 60)
open_input
[ -n "$(mpis)" ] || skip "there is no mpirun, or no mpicc" 4
for mpi in $(mpis); do
    case $mpi in here) mpicc=mpicc ;; *) mpicc=mpicc.$mpi ;; esac
    start_mpi $mpi 2
    for of in . other turned; do
        expect "two libraries, $mpi" $mpicc $strict -ffp-contract=off -fno-math-errno -I"$tmp/$of" -Iexamples/library \
            -o "$tmp/$of/two" tests/library_mpi.c "$examples/digits.c" "$tmp/$of/xor/xor.c" "$tmp/$of/digits/digits.c" -lm
    done
    got=$(timeout 100 $start "$tmp/two" 60 2>"$tmp/said")
    status=$?
    if [ "$got" = "$want" ] && [ $status = 0 ] && [ -n "$want" ]; then pass
    else fault "$mpi: status $status: $got, not $want: $(head -n 1 "$tmp/said")"; fi
    start_mpi $mpi 1
    for of in other turned; do
        timeout 100 $start "$tmp/two" 60 : -n 1 "$tmp/$of/two" 60 >"$tmp/said" 2>&1
        said=$(grep -c "open: .*it is a library of another plan or byte order" "$tmp/said")
        if [ "$said" -ge 1 ]; then pass; else fault "$mpi, $of: $(head -n 1 "$tmp/said")"; fi
    done
done
if command -v mpicc >/dev/null; then
    expect "the Makefile of the folder" make -s -C "$tmp/xor" WERROR=1 OPTIMISE=-O1
    other=$(nm -g --defined-only "$tmp/xor/xor.o" | awk 'NF == 3 && index($3, "xor_") != 1 { print $3 }')
    if [ -z "$other" ]; then pass; else fault "xor.o shows $other"; fi
    calls=$(nm -g --defined-only "$tmp/xor/xor.o" | grep -c " T xor_")
    if [ "$calls" -le 20 ]; then pass; else fault "xor.o has $calls calls"; fi
    from=$(nm -u "$tmp/xor/xor.o" |
        awk '$2 !~ /^(mem(cpy|set|cmp)|aligned_alloc|free|_.*|longjmp|sched_yield|MPI_.*|ompi_.*)$/ { print $2 }')
    if [ -z "$from" ]; then pass; else fault "xor.o wants $from"; fi
    ends=$(nm -u "$tmp/xor/xor.o" | grep -c 'MPI_\(Init\|Finalize\|Abort\)$')
    if [ "$ends" = 0 ]; then pass; else fault "xor.o begins or ends MPI"; fi
    expect "xor.h in C11" mpicc $strict -fsyntax-only -x c "$tmp/xor/xor.h"
    if command -v mpicxx >/dev/null; then
        expect "xor.h in C++17" mpicxx -std=c++17 -Wall -Wextra -fsyntax-only -x c++ "$tmp/xor/xor.h"
    else skip "no mpicxx"; fi
else skip "no mpicc" 7; fi
finish
