#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# --prefix NAME makes an object with one visible symbol, NAME_main: two jobs, each with its own copy of the runtime, one in f32
# and one in bf16, link into one program that runs both, and each gives the hash that it gives alone.  Its header
# compiles, its help has its name, and it leaves no memory behind.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a
[ -n "$SLOW" ] || use_ready

gpt="$models/tiny-gpt.yaml --stages 2 --schedule 1f1b"
branches="$models/branches.yaml --stages 3 --schedule gpipe --set train.precision.compute=bf16"

echo "alone $gpt" | { use_portable; plans; } && one_hash "GPT alone"
first=$hash
echo "alone $branches" | { use_bf16; plans; } && one_hash "branches alone"
second=$hash

# object NAME OPTION...: $tmp/NAME/NAME.o, and what can be seen of it
object() {
    name=$1
    shift
    said=$(generate "$tmp/$name" "$@" --prefix "$name") || { fault "$name: $said"; return; }
    expect "make $name.o" make_quickly "$tmp/$name"
    seen=$(nm -g --defined-only "$tmp/$name/$name.o" 2>&1 | awk '{print $3}' | tr '\n' ' ')
    if [ "$seen" = "${name}_main " ]; then pass; else fault "$name.o shows $(echo "$seen" | head -c 100)"; fi
}
object a $gpt
object b $branches

cat >"$tmp/both.c" <<'END'
/* The first job, then the second, each with the arguments of the program. */
#include <stdio.h>
#include "a/a.h"
#include "b/b.h"
int main(int argc, char **argv)
{
    int first = a_main(argc, argv);
    fflush(stdout);
    int second = b_main(argc, argv);
    return first ? first : second;
}
END
if $cc -o "$tmp/both" "$tmp/both.c" "$tmp/a/a.o" "$tmp/b/b.o" -lpthread -lm >"$tmp/said" 2>&1; then pass
else fault "two jobs in one program: $(head -n 1 "$tmp/said")"; fi
got=$("$tmp/both" $run 2>"$tmp/said" | sed -n 's/^sha256 //p' | tr '\n' ' ')
if [ "$got" = "$first $second " ]; then pass; else fault "both: $got not $first $second: $(tail -n 1 "$tmp/said")"; fi
refuse "its help" 0 "^Usage: a \[OPTION\]" "$tmp/both" --help

# ---- nothing is left: the first job again and again, whose arenas have 1.3 MiB ---------------------------------------------
cat >"$tmp/again.c" <<'END'
/* Pages of the process after 20 and after 40 jobs: less than an arena apart. */
#include <stdio.h>
#include "a/a.h"
static long pages(void)
{
    long n = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld", &n) != 1)
        return -1;
    fclose(f);
    return n;
}
int main(int argc, char **argv)
{
    long early = 0;
    for (int i = 1; i <= 40; i++) {
        if (a_main(argc, argv))
            return 1;
        early = i == 20 ? pages() : early;
    }
    printf("%ld pages more\n", pages() - early);
    return pages() - early > 64;
}
END
export ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=0         # freed pages are used again, under sanitizers too
if [ -e /proc/self/statm ]; then
    $cc -o "$tmp/again" "$tmp/again.c" "$tmp/a/a.o" -lpthread -lm >"$tmp/said" 2>&1 ||
        fault "again.c: $(head -n 1 "$tmp/said")"
    expect "40 jobs, one after the other" "$tmp/again" --quiet --steps 1 --data "$data" --no-checkpoint
    expect "40 jobs with a trace" "$tmp/again" --quiet --steps 1 --data "$data" "$data" --trace /dev/null --no-checkpoint
else
    skip "there is no /proc/self/statm" 2
fi
refuse "no identifier" 2 identifier ./dpgen $gpt --prefix a-b -o "$tmp/none"
# job.h would hide that of the runtime, and job_main() is there already; make would link Makefile from Makefile.o
for name in job rt json run train stage0 launch kernels Makefile; do
    refuse "--prefix $name" 2 "called so" ./dpgen $gpt --estimate --prefix $name -o "$tmp/none"
done
# The name of a header of C is free: files of the folder are found by quotes only
object stdint $gpt
finish
