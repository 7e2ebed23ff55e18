#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The recipes of docs/extending.md whose count is promised: a schedule is one row; a planner, one file and one row; a move of
# the search, one function and one row; a kernel library, its folder and one row.  A copy of gen/ has all four from
# here-documents.  Only what reads a table is compiled again.
#   schedule    as many micro-batches in flight as its lead says, and the bits of 1f1b
#   planner     the cut that its file makes
#   move        bench/ablate.sh would meet it: the search asks it, by its name, where nothing fits
#   library     a proved folder with its kernel and its word in the key; other kernels are portable; what it changes is seen
. "$(dirname "$0")/lib.sh"
need dpgen build/libgen.a build/librt.a build/emitted

tar cf - --exclude='*.o' gen rt | tar xf - -C "$tmp"
for i in templates devices verify LICENSE build; do ln -s "$root/$i" "$tmp/$i"; done
cd "$tmp" || exit 2

cat >gen/schedules.def.new <<'END'
SCHEDULE("deeper", schedule_beats, "1f1b with one more micro-batch in flight on each device", .one_chunk = true,
         .lead = "p-i", .group = "m", .form = "3*(m+p-1)", .adjoins = true)
END
cat >gen/planners.def.new <<'END'
PLANNER("first", plan_front, "the first place of each cut", "a test")
END
cat >gen/rivals/first.c <<'END'
#include "planner.h"

bool plan_front(const Question *q, Answer *a)
{
    a->last = alloc(sizeof *a->last * (size_t)q->chunks);
    for (int i = 0, c = 0; c < q->chunks && i < q->n; i++)
        if (c + 1 == q->chunks ? i == q->n - 1 : q->cut[i] != CUT_NEVER)
            a->last[c++] = i;
    return true;
}
END
cat >gen/targets.def.new <<'END'
LIBRARY("plainc", .folder = "rt/op/plainc/", .anywhere = true, .isa = "native", .link = "", .sum_order = 2,
        .speed = {[F32] = {170000, 25000, 20000}, [BF16] = {150000, 20000, 20000}}, .blocks = {256, 16, 16})
END
mkdir rt/op/plainc
# Its forward is not that of Relu, so a job shows by its hash which one it has
cat >rt/op/plainc/unary.c <<'END'
#define relu_forward relu_other
#include "../unary.c"
#undef relu_forward

void relu_forward(Stage *st, real *y, const real *x, long n)
{
    (void)st;
    for (long i = 0; i < n; i++)
        put(y, i, get(x, i) < 0 ? 0.0f : get(x, i) * 2);
}
END
cat >gen/search/remedies.def.new <<'END'
REMEDY("shout", is_exact, shout, is_needed, false)
END
cat >>gen/search/remedy.c <<'END'

void shout(Candidate *k)
{
    fprintf(stderr, "shouted after %d\n", k->next);
}
END
# insert TABLE PATTERN: its new rows, in front of the first row that begins so
insert() {
    awk -v pattern="$2" -v rows="$1.new" 'index($0, pattern) == 1 && !done {
            while ((getline row <rows) > 0) print row
            done = 1
        } 1' "$1" >"$1.all" && mv "$1.all" "$1"
}
insert gen/schedules.def 'SCHEDULE("2bp"'
insert gen/planners.def 'PLANNER("even"'
insert gen/targets.def 'OWN("cuda"'
insert gen/search/remedies.def 'REMEDY("hurry"'

build() {
    build/embed $(awk '{ print $3 }' build/embedded.sums) rt/op/plainc/unary.c >embedded.c || return
    for source in $(grep -l -E 'include "(schedules|planners|targets|remedies).def"' gen/*/*.c) gen/search/remedy.c \
        gen/rivals/first.c embedded.c; do
        echo "$source"
    done | xargs -P 2 -n 1 sh -c '${CC:-cc} -std=c11 -O0 -Wall -Wextra -Werror -D_POSIX_C_SOURCE=200809L -I. -Igen -Irt -c \
        -o "$(basename "$0" .c).new.o" "$0"' || return
    $cc -std=c11 -D_GNU_SOURCE -I. -Irt -Irt/op -O1 -ffp-contract=off -c -o plainc.obj rt/op/plainc/unary.c || return
    $cc -o dpgen ./*.new.o "$root/gen/main.o" build/libgen.a -lyaml -lm -ldl
}
if build >build.log 2>&1; then pass
else fault "the four are not built: $(grep -m 1 -e error -e undefined build.log)"; finish; fi

# hash_of NAME OPTION...: of the parameters of that job
hash_of() {
    name=$1
    shift
    said=$(generate "$tmp/$name" "$@" && compile "$tmp/$name" "$cc" && "$tmp/$name/job" $run 2>&1) ||
        { fault "$name: $(echo "$said" | tail -n 1)"; return; }
    echo "$said" | sed -n 's/^sha256 //p'
}
use_portable
gpt="$models/tiny-gpt.yaml --set train.batch.global=16"

expect "a schedule" ./dpgen plan $gpt --estimate --stages 4 --schedule deeper --json
./dpgen schedules $gpt --estimate --stages 4 >said 2>&1
grep -q '^deeper .*fits' said && pass || fault "a schedule: $(tail -n 1 said)"
./dpgen schedules $gpt --estimate --stages 4 --csv deeper >lists 2>said || fault "a schedule: $(tail -n 1 said)"
# Lead p-i: device 3 has one more forward in front of its first backward
[ "$(tail -n 1 lists | tr -s , | cut -d, -f2-4)" = 3F0,3F1,3B0 ] && pass || fault "a schedule: $(tail -n 1 lists)"
one=$(hash_of one $gpt --stages 2 --schedule 1f1b) other=$(hash_of deeper $gpt --stages 2 --schedule deeper)
[ -n "$one" ] && [ "$one" = "$other" ] && pass || fault "a schedule: $other, not $one"

expect "a planner" ./dpgen plan $gpt --estimate --stages 3 --planner first
[ "$(grep -A 2 '^cuts ' said | grep -c 'after [01], ')" = 2 ] && pass || fault "a planner: $(grep -A 2 '^cuts ' said)"
./dpgen compare $gpt --estimate --stages 2 --quick >said 2>&1
grep -q '^first ' said && pass || fault "a planner: compare does not list it"

./dpgen plan $gpt --estimate --stages 2 --limit 100KiB >said 2>&1
grep -q '^shouted' said && pass || fault "a move: nobody asked it"

grep -q 'Relu' "$models/mlp.yaml" && pass || fault "no Relu"
(cd "$tmp" && $cc -std=c11 -O1 -o npy "$root/tests/npy.c" && ./npy x.npy f4 -1 1 8 4 && ./npy labels.npy i4 0 3 8)
sed 's/kernels: portable/kernels: plainc/' "$models/mlp.yaml" >plainc.yaml
run="--no-checkpoint --quiet --hash"
one=$(hash_of portable "$models/mlp.yaml")
with="$tmp/plainc.obj $with"
other=$(hash_of plainc plainc.yaml)
[ -n "$one" ] && [ -n "$other" ] && [ "$one" != "$other" ] && pass || fault "a library: its kernel is not in the job"
grep -q 'kernels=plainc' plainc/launch.c && [ -e plainc/rt/op/plainc/unary.c ] && [ -e plainc/rt/op/start.c ] && pass ||
    fault "a library: $(ls plainc/rt/op)"
finish
