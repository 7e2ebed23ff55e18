#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# SLOW=1: each line of verify/ is run by tests/verify.sh.  What no folder and no edit can reach has no business there: it is
# trusted by whoever signs, and nobody has seen it work.
. "$(dirname "$0")/lib.sh"
need dpgen
[ -n "$SLOW" ] && command -v gcov >/dev/null || { skip "SLOW=1, and gcov"; finish; }

cp -r verify "$tmp"
find "$tmp/verify" -name '*.o' -delete
# the program ends by _Exit(), which does not write what was counted
printf '#include <stdlib.h>\nvoid __gcov_dump(void);\n#define _Exit(x) (__gcov_dump(), _Exit(x))\n' >"$tmp/counted.h"
sources=$(cd "$tmp" && ls verify/*.c verify/model/*.c | grep -v alone.c)
for source in $sources; do
    $own_cc -std=c11 -D_GNU_SOURCE --coverage -include "$tmp/counted.h" -c -o "$tmp/${source%.c}.o" "$tmp/$source" || exit 1
done
objects=$(for source in $sources; do echo "$tmp/${source%.c}.o"; done)
expect "it links" $own_cc --coverage -o "$tmp/counting" $objects -lyaml -lm
expect "tests/verify.sh" env SLOW= VERIFIER="$tmp/counting" sh tests/verify.sh
for source in $sources; do
    (cd "$tmp" && gcov -o "$(dirname "$source")" "$source") >/dev/null 2>&1
    missed=$(grep '#####' "$tmp/$(basename "$source").gcov") && fault "$source: $missed" || pass
done
finish
