#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dpgen profile from the outside: a real measurement of a small model, its file beside the model, what uses it and what refuses
# it, and what is said when the benchmark cannot be built or dies.  Nothing here asks how long anything took; SLOW=1 measures
# with every kernel library and transport.  What lines mean, and prices from them: unit_prof.
. "$(dirname "$0")/lib.sh"
need dpgen
model=$tmp/mlp.yaml file=$tmp/mlp.cpu.profile
cp "$models/mlp.yaml" "$model"
real=$(command -v cc)

# The times do not matter, those of the compiler do.
mkdir "$tmp/broken"
path=$PATH
use_ready -O0

# Plain dpgen measures once and says so; the second time it takes the file.  One that is started while it measures waits, and
# takes what is measured.  What a run that was killed has left goes.
mkdir -p "$file.bench/job" && touch "$file.bench/MANIFEST" "$file.bench/job/stale.c"
./dpgen "$model" -o "$tmp/beside" >"$tmp/waited" 2>&1 & beside=$!
until [ -e "$file.bench/job/MANIFEST" ] || ! kill -0 $beside 2>/dev/null; do sleep 0.02; done
./dpgen "$model" -o "$tmp/out" >"$tmp/other" 2>&1
expect "the second of two at once" test $? = 0 -a -n "$(grep 'another dpgen measures in .*bench: waiting' "$tmp/other")"
if grep -q "measuring this machine" "$tmp/other"; then fault "it measures again"; else pass; fi
wait $beside
expect "the first of two at once" test $? = 0
expect "the same folder of both" diff -r "$tmp/beside" "$tmp/out"
cp "$tmp/waited" "$tmp/said"
if grep -q "no $file: measuring" "$tmp/said" && grep -q "wrote $file" "$tmp/said"; then pass; else fault "it did not say so"; fi
if grep -q '(measured)' "$tmp/said"; then pass; else fault "the plan is not measured"; fi
mkdir "$tmp/kept.bench" && echo mine >"$tmp/kept.bench/notes"
refuse "a folder of somebody" 2 "kept.bench exists and was not made by dpgen" ./dpgen profile "$model" -o "$tmp/kept"
expect "it stays" grep -q mine "$tmp/kept.bench/notes"
expect "the profile is in the folder" cmp "$file" "$tmp/out/profile"
expect "and in its MANIFEST" grep -q '  profile$' "$tmp/out/MANIFEST"
if [ -e "$file.bench" ] || [ -e "$file.part" ]; then fault "something was left beside the profile"; else pass; fi
cp "$file" "$tmp/first"
./dpgen "$model" -o "$tmp/again" >"$tmp/said" 2>"$tmp/err" || fault "the second time: $(head -n 1 "$tmp/err")"
if grep -q profile "$tmp/err"; then fault "the second time it says $(grep profile "$tmp/err")"; else pass; fi
expect "the same profile" cmp "$file" "$tmp/first"
expect "the same folder" diff -r "$tmp/out" "$tmp/again"

# The file: head, three sizes, every call of the graphs, sorted.
if [ "$(head -n 1 "$file")" = "dpgen-profile 2" ] && [ "$(sed -n 11p "$file")" = "batches 1 2 4" ]; then pass
else fault "head: $(head -n 11 "$file" | tr '\n' ';')"; fi
if sed 1,11d "$file" | LC_ALL=C sort -c 2>"$tmp/err"; then pass; else fault "not sorted: $(cat "$tmp/err")"; fi
for what in 'compute batch=2' 'copy-in bytes=1048576' 'copy-out bytes=65536' 'message bytes=4' 'message bytes=16777216' \
    'op linear_forward rows=1 in=4 out=4' 'op linear_forward rows=2 in=4 out=4' 'op linear_forward rows=4 in=4 out=4' \
    'op linear_backward_w dbias=0 rows=2 in=4 out=3' 'op xent_forward rows=4'; do
    n=$(grep -c "^$what .*alone=[0-9]* alone_iqr=[0-9]* busy=[0-9]* busy_iqr=[0-9]*\$" "$file")
    if [ "$n" = 1 ]; then pass; else fault "$n lines of '$what'"; fi
done

# What uses it.
says() { what=$1 want=$2; shift 2; expect "$what" "$@"; grep -q "$want" "$tmp/said" || fault "$what: no $want"; }
sed 's/^threads 1$/threads 500/' "$file" >"$tmp/wide.profile"
says "more threads than cores" 'stages: 2, threads: 1000, cores of this machine: [0-9]*; steps take .*; hosts: {cores: ' \
    ./dpgen "$model" --set devices.0.threads=500 --profile "$tmp/wide.profile" -o "$tmp/wide"
says "plan" '(measured)' ./dpgen plan "$model"
says "an estimate all the same" '(estimated)' ./dpgen plan "$model" --estimate
says "a size between" '(interpolated)' ./dpgen plan "$model" --set train.batch.micro=3 --set train.batch.global=6
mv "$file" "$tmp/x"
says "by its name" '(measured)' ./dpgen plan "$model" --profile "$tmp/x"
says "planning does not measure" '(estimated)' ./dpgen plan "$model"
[ ! -e "$file" ] || fault "dpgen plan wrote a profile"
refuse "no such file" 2 "cannot read" ./dpgen plan "$model" --profile "$tmp/none"
refuse "both" 2 "no use for --profile" ./dpgen plan "$model" --profile "$tmp/x" --estimate
refuse "check" 2 "no use for --profile" ./dpgen check "$model" --profile "$tmp/x"

# Calls that fuse joins are measured apart as well: options may keep them so.
sed 's/op: Add, name: skip/op: Dropout, name: drop, p: 0.1}\n    - {op: Add, name: skip/' "$model" >"$tmp/drop.yaml"
expect "a pair" ./dpgen profile "$tmp/drop.yaml" -o "$tmp/pair"
says "joined" '(measured)' ./dpgen plan "$tmp/drop.yaml" --profile "$tmp/pair"
says "nothing joined" '(measured)' ./dpgen plan "$tmp/drop.yaml" --profile "$tmp/pair" --fuse none --cuts 3
says "kept apart by a name" '(measured)' ./dpgen plan "$tmp/drop.yaml" --profile "$tmp/pair" --recompute '[act, drop]'

# A profile of before there were joined calls: no line with onto, another runtime.  A joined call takes no line of one apart.
grep -v ' onto=1 ' "$tmp/pair" | sed 's/^runtime .*/runtime 0123456789abcdef/' >"$tmp/old"
expect "joined calls have lines of their own" [ "$(grep -c '^op dropout_forward onto=1 batch=' "$tmp/pair")" = 3 ]
expect "beside those by themselves" [ "$(grep -c '^op dropout_forward batch=' "$tmp/old")" = 3 ]
refuse "of before" 5 "old:10: measured with runtime '0123456789abcdef', but this .*--elsewhere" \
    ./dpgen plan "$tmp/drop.yaml" --profile "$tmp/old" --fuse none --cuts 3
refuse "of before, elsewhere" 5 "no line 'op dropout_forward onto=1 batch=.*which skip needs; .*dpgen profile .*--fuse none" \
    ./dpgen plan "$tmp/drop.yaml" --profile "$tmp/old" --elsewhere
says "of before, with nothing joined" '(measured)' ./dpgen plan "$tmp/drop.yaml" --profile "$tmp/old" --elsewhere --fuse none \
    --cuts 3
sed '/^op dropout_forward/d' "$tmp/pair" >"$tmp/less"
./dpgen plan "$tmp/drop.yaml" --profile "$tmp/less" >"$tmp/said" 2>&1
if grep -q 'fuse none' "$tmp/said"; then fault "a remedy that is none: $(cat "$tmp/said")"; else pass; fi

# One beside the model that is of another machine is refused, not passed over.
sed 's/^device .*/device Intel 4004/' "$tmp/x" >"$file"
refuse "another processor" 5 "cpu.profile:2: measured with device 'Intel 4004'.*dpgen profile .*--elsewhere" \
    ./dpgen "$model" -o "$tmp/out"
says "elsewhere" '(measured)' ./dpgen plan "$model" --elsewhere
refuse "another type" 5 "cpu.profile:6: measured with compute 'f32'.*--estimate" ./dpgen plan "$model" --elsewhere \
    --set train.precision.compute=bf16

# The plain command has made such a file for another model, so it measures again, says so, and keeps the old one.
cp "$tmp/x" "$file"
says "another type, generated" "was measured with compute 'f32', and this model has 'bf16': measuring again" \
    ./dpgen "$model" --set train.precision.compute=bf16 -o "$tmp/out"
expect "the old profile" cmp "$file~" "$tmp/x"
expect "the new one" grep -q '^compute bf16$' "$file"
cp "$tmp/x" "$file"
refuse "of a name that is given" 5 "measured with compute 'f32'" ./dpgen "$model" --profile "$file" \
    --set train.precision.compute=bf16 -o "$tmp/out"
rm "$file" "$file~"

# Sums in blocks take their own time: the stages that are timed cut them so, and another number is another model.
mkdir "$tmp/spy"
cat >"$tmp/spy.c" <<'END'
#include "bench.h"
#include <stdlib.h>
void bench_open(Stage *st);
void stage0_open(Stage *st)
{
    if (st->blocks != 4)
        exit(9);
    bench_open(st);
}
#define stage0_open bench_open
END
printf '#!/bin/sh\nPATH=%s\ncase $* in *stage0.c*) exec cc -I. -include %s "$@" ;; esac\nexec cc "$@"\n' "$PATH" "$tmp/spy.c" \
    >"$tmp/spy/cc"
chmod +x "$tmp/spy/cc"
expect "sums in blocks" env PATH="$tmp/spy:$PATH" ./dpgen profile "$model" --set train.blocks=4 -o "$tmp/blocks"
refuse "a profile of one block" 5 "measured with compute 'f32, sums in 4 blocks'" ./dpgen "$model" --profile "$tmp/blocks" \
    -o "$tmp/out"

# A few calls of each kernel, and the others by these: the rows are those of a whole profile.  What is told: unit_prof.
n='[1-9][0-9]*'
told="^dpgen: $n calls are predicted by $n that were measured; $n more judge that: half are at most [0-9.]* % off"
says "a fit" "$told" ./dpgen profile "$model" --fit -o "$tmp/fit"
rows() { sed -e 1,11d -e '/^fitted /d' -e 's/ alone=.*//' "$1"; }
rows "$tmp/first" >"$tmp/rows"
if rows "$tmp/fit" | cmp -s "$tmp/rows" -; then pass; else fault "a fit has other rows"; fi
says "a plan of a fit" '(interpolated)' ./dpgen plan "$model" --profile "$tmp/fit"
sed 's/^fitted .*/fitted 0/' "$tmp/fit" >"$tmp/none"
refuse "a fit of nothing" 5 "none:12: not a number of calls: 'fitted 0'" ./dpgen plan "$model" --profile "$tmp/none"

# Benchmarks that fail: no compiler, one that finds errors, a kernel that dies, one that says nothing.
PATH=$tmp/broken:$PATH
break_with() { printf '#!/bin/sh\n%s\n' "$2" >"$tmp/broken/$1"; chmod +x "$tmp/broken/$1"; }
break_with cc 'exit 1'
refuse "no compiler" 6 "cc does not work" ./dpgen profile "$model"
break_with cc "case \$* in *-dM*)
    PATH='${PATH#*:}' exec $real \"\$@\" ;; esac; echo 'a.c:1:2: error: out of cheese' >&2; exit 1"
refuse "errors" 6 "cannot be built here.*out of cheese.*--estimate" ./dpgen profile "$model"
rm "$tmp/broken/cc"
train='d=$3/train; { echo "#!/bin/sh"; echo "echo at 1 9 op 0"; echo "$what"; } >"$d"; chmod +x "$d"'
break_with make "what='kill -SEGV \$\$'; $train"
refuse "a kernel that dies" 1 "failed at op linear_forward rows=1 in=4 out=4: it ended with signal 11" ./dpgen profile "$model"
break_with make "what='echo train: no AVX >&2; exit 6'; $train"
refuse "a machine without the instructions" 6 "no AVX" ./dpgen profile "$model"
# The level of x86-64 that the dynamic linker finds
level=$(/lib64/ld-linux-x86-64.so.2 --help 2>/dev/null | sed -n 's/^ *\(x86-64-v[0-9]\) (supported.*/\1/p' | head -n 1)
if [ -n "$level" ]; then
    for what in 'kill -ILL $$' 'echo train: no AMX >&2; exit 6'; do
        break_with make "what='$what'; $train"
        refuse "compiled for another machine: $what" 6 \
            "isa x86-64-v4+amx, this machine has $level: --set devices.0.isa=$level;" \
            ./dpgen profile "$model" --set devices.0.isa=x86-64-v4+amx
    done
else
    skip "this is no x86-64, or its dynamic linker knows no levels" 2
fi
break_with make "what=true; $train"
refuse "silence" 1 "said nothing about linear_forward" ./dpgen profile "$model"
if [ -e "$file" ] || [ -e "$file.bench" ]; then fault "a failed benchmark left something"; else pass; fi
refuse "devices elsewhere" 3 "cannot be measured: devices of kind paced" ./dpgen profile "$model" --set devices.0.kind=paced
rm "$tmp/broken/make"
mkdir "$tmp/sealed" && cp "$model" "$tmp/sealed" && chmod 555 "$tmp/sealed"
if [ -w "$tmp/sealed" ]; then skip "root may write anywhere"
else refuse "no place for it" 1 "cannot make the folder .*sealed" ./dpgen profile "$tmp/sealed/mlp.yaml"; fi
chmod 755 "$tmp/sealed"

if [ -n "$SLOW" ]; then
    PATH=$path
    for set in train.precision.compute=bf16 devices.0.kernels=onednn devices.0.threads=2 plan.transport=mpi; do
        expect "$set" ./dpgen profile "$model" --set "$set" -o "$tmp/slow"
        says "plan, $set" '(measured)' ./dpgen plan "$model" --set "$set" --profile "$tmp/slow"
    done
    # The largest is the fastest on one stage, is not among the first three, and is measured too.
    says "micro: auto" '(measured)' ./dpgen "$model" --set plan.cuts=[] --stages 1 --set train.batch.micro=auto \
        --set train.batch.global=8 -o "$tmp/auto"
    expect "the size that was chosen" grep -q '^batches 1 2 4 8$' "$file"
fi
finish
