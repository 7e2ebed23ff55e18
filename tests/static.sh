#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The Makefile of the emitted folder.  LINK=static gives a program without any shared library, which computes the same bits
# as the shared one of the suites, compiled without optimisation; with MPI or oneDNN it is refused with the reason.  `make
# expected` and `make verify` agree, and verify sees a changed file, other data, other numbers, and a record of another job.
# A folder has the kernel files that define a call of its plan, so none of them may lean on another.  Other flags, and a
# header that has changed, make again what they reach and nothing else.
. "$(dirname "$0")/lib.sh"
unset MAKEFLAGS MFLAGS          # of make -j2 check-rest: what make says is counted
need dpgen build/emitted build/librt.a
model="$models/tiny-gpt.yaml --stages 2"

use_portable
echo "plain $model" | plans
one_hash "plain"
d=$tmp/static
said=$(generate "$d" $model --set data.train.files="$tmp/data/*") || fault "$said"
real=$PATH
[ -n "$SLOW" ] || use_ready
expect "make LINK=static" make_quickly "$d" LINK=static
PATH=$real
if readelf -d "$d/train" 2>/dev/null | grep -q NEEDED; then fault "a static program that needs a library"; else pass; fi
if readelf -l "$d/train" 2>/dev/null | grep -q INTERP; then fault "a static program with a loader"; else pass; fi
got=$(cd / && env -i "$d/train" $run | sed -n 's/^sha256 //p')
if [ "$got" = "$hash" ]; then pass; else fault "static: $got, not $hash"; fi

for what in plan.transport=mpi devices.0.kernels=onednn; do
    said=$(generate "$tmp/other" $model --set $what) || fault "$said"
    refuse "LINK=static with $what" 2 "LINK=static needs .*${what#*=}" make -s -C "$tmp/other" LINK=static
    if [ -e "$tmp/other/train" ]; then fault "$what: built all the same"; else pass; fi
done

# ---- what is made again ----------------------------------------------------------------------------------------------------
# made WHAT LINES MATCH ARGUMENT...: make says so many lines, and each matches
made() {
    what=$1 lines=$2 match=$3
    shift 3
    make -C "$again" --no-print-directory CFLAGS="$quick" RFLAGS="$quick" KFLAGS="$quick"' $(ISA)' "$@" >"$tmp/said" 2>&1
    if [ $? = 0 ] && [ "$(wc -l <"$tmp/said")" = "$lines" ] && [ "$(grep -c -e "$match" "$tmp/said")" = "$lines" ]; then pass
    else fault "$what: not $lines times $match: $(head -n 3 "$tmp/said" | tr '\n' ';')"; fi
}
quick='-std=c11 -O0 -ffp-contract=off $(WARN)' again=$tmp/again
small="$models/mlp.yaml --stages 2"
./dpgen $small --estimate -o "$again" >"$tmp/said" 2>&1
kernels=$(find "$again/rt/op" -name '*.c' | wc -l) others=$(ls "$again"/*.c "$again"/rt/*.c | wc -l)
made "all" $((kernels + others + 1)) '^  compile [a-z0-9_/]*\.c$\|^  link train$' ISA= -j2
made "nothing" 0 '^' ISA=
made "another link" 1 '^  link train$' ISA= LINK=static
if readelf -d "$again/train" 2>/dev/null | grep -q NEEDED; then fault "LINK=static after a shared one"; else pass; fi
made "the first link" 1 '^  link train$' ISA=
made "another ISA" $((kernels + 1)) '^  compile rt/op/\|^  link train$' ISA=-DOTHER
touch "$again/rt/op/gemm.h"
leaners=$(grep -rl --include='*.c' 'include "\(gemm\|attend\|pointwise\|tile\)\.h"' "$again/rt/op" | wc -l)
made "a header" $((leaners + 1)) '^  compile rt/op/\|^  link train$' ISA=-DOTHER
made "make -s" 0 '^' -s ISA=
made "make V=1" 1 " .*-o train " V=1 ISA= LINK=static
./dpgen $small --estimate -o "$again" >"$tmp/said" 2>&1
left=$(find "$again" -name '*.[od]' -o -name '.flags*')
if [ -z "$left" ]; then pass; else fault "a folder made anew keeps $left"; fi

# linear_gelu.c and add_norm.c are in no folder: GPUs have kernels of their own for these calls, and tests compare them.
# What a header declares comes with every file that includes it
ours=$(ls build/f32/rt/op/*.o | grep -v -e linear_gelu -e add_norm)
brought=$(grep -l '^void ' rt/op/*.h | sed 's,.*/,,; s,\.h,,' | xargs)
leaning=$(nm -A $ours | sed -n 's,.*/\([a-z_]*\)\.o:.* \([TU]\) ,\1 \2 ,p' | sort -k 2,2 | awk -v brought=" $brought " '
    $2 == "T" { home[$3] = $1 }
    $2 == "U" && home[$3] && !index(brought, " " home[$3] " ") { print $1 ".c wants " $3 "() of " home[$3] ".c" }')
if [ -z "$leaning" ]; then pass; else fault "$leaning"; fi

# ---- expected, verify: run from the folder, with the data of the model file -----------------------------------------------
mkdir "$tmp/data"
cp "$data" "$tmp/data/a"
cp README.md "$tmp/data/b"
refuse "verify without a record" 2 "make expected" make_quickly "$d" verify LINK=static
expect "make expected" make_quickly "$d" expected LINK=static
for file in a b; do
    sum=$(sha256sum <"$tmp/data/$file" | cut -d ' ' -f 1)
    expect "the sum of $file" grep -q "^data $sum  $tmp/data/$file\$" "$d/expected"
done
# the losses of the log, to the last digit
(cd "$d" && ./train --quiet --no-checkpoint --steps 3 --log "$tmp/log") || fault "a run with a log"
sed -n 's/.*"step","step":\([0-9]*\),"loss":\([^,]*\),.*/loss \1 \2/p' "$tmp/log" >"$tmp/losses"
if [ "$(grep -cxFf "$tmp/losses" "$d/expected")" = 3 ]; then pass; else fault "losses: $(cat "$tmp/losses") not in expected"; fi
expect "make verify" make_quickly "$d" verify LINK=static
cp "$d/expected" "$tmp/expected"
sed -i '$s/.$/x/' "$d/expected"
refuse "other numbers" 2 sha256 make_quickly "$d" verify LINK=static
sed '1s/model=./model=x/' "$tmp/expected" >"$d/expected"
refuse "the record of another job" 2 "another numeric key" make_quickly "$d" verify LINK=static
cp "$tmp/expected" "$d/expected"
echo more >>"$tmp/data/a"
mv "$tmp/data/b" "$tmp/data/c"
for what in a "b is gone" "c is new"; do
    refuse "other data" 2 "^verify: the data differ: $tmp/data/$what\$" make_quickly "$d" verify LINK=static
done
cp "$data" "$tmp/data/a"
mv "$tmp/data/c" "$tmp/data/b"
expect "the same data again" make_quickly "$d" verify LINK=static
echo '/* changed */' >>"$d/rt/op/update.c"
touch -r "$d/train" "$d/rt/op/update.c"
refuse "a changed file" 2 "update.c: FAILED" make_quickly "$d" verify LINK=static
finish
