#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# --prefix NAME makes an object with one visible symbol, NAME_main: two jobs, each with its own copy of the runtime, one in f32
# and one in bf16, link into one program that runs both, and each gives the hash that it gives alone.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a

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
int a_main(int argc, char **argv), b_main(int argc, char **argv);
int main(int argc, char **argv)
{
    int first = a_main(argc, argv);
    fflush(stdout);
    int second = b_main(argc, argv);
    return first ? first : second;
}
END
if $cc -o "$tmp/both" "$tmp/both.c" "$tmp/a/a.o" "$tmp/b/b.o" -lpthread >"$tmp/said" 2>&1; then pass
else fault "two jobs in one program: $(head -n 1 "$tmp/said")"; fi
got=$("$tmp/both" $run 2>"$tmp/said" | sed -n 's/^sha256 //p' | tr '\n' ' ')
if [ "$got" = "$first $second " ]; then pass; else fault "both: $got not $first $second: $(tail -n 1 "$tmp/said")"; fi
refuse "no identifier" 2 identifier ./dpgen $gpt --prefix a-b -o "$tmp/none"
finish
