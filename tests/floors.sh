#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Calls go down only.  tests/floors lists the rooms of gen/, the highest floor first; a room is a folder, or a file beside
# them.  A room may use symbols of lower floors and its own, of no other room on its floor.  docs/architecture.md shows the
# same list.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
pass=0 fail=0
ok() { if "$@"; then pass=$((pass + 1)); else fail=$((fail + 1)); echo "not so: $*"; fi; }

# judge FLOORS SYMBOLS: lines `room OBJECT T|U SYMBOL`; prints each call that goes up or sideways, and rooms without a floor.
judge() {
    awk '
    FNR == NR { for (i = 1; i <= NF; i++) floor[$i] = FNR; next }
    !($1 in floor) { if (!told[$1]++) print "no floor: " $1; next }
    $3 == "U" { from[n++] = $0; next }
    { home[$4] = $1 }
    END {
        for (i = 0; i < n; i++) {
            split(from[i], w, " ")
            to = home[w[4]]
            if (to != "" && to != w[1] && floor[w[1]] >= floor[to])
                print w[2] " uses " w[4] " of " to ", which is not below " w[1]
        }
    }' "$1" "$2"
}

# One nm for all of them: each has the tables of a linker to load
nm -A $(for object in gen/*.o gen/*/*.o; do [ ! -f "${object%.o}.c" ] || echo "$object"; done) |
    awk '$(NF-1) ~ /^[TDRBCU]$/ {
        object = room = $1
        sub(/:.*/, "", object)
        sub(/^gen\//, "", room)
        sub(/[.\/].*/, "", room)
        print room, object, $(NF-1), $NF
    }' >"$tmp/symbols"

judge tests/floors "$tmp/symbols" | tee "$tmp/up"
ok test ! -s "$tmp/up"
ok test "$(wc -l <"$tmp/symbols")" -gt 1000
ok test "$(wc -l <tests/floors)" -le 15
if [ -f docs/architecture.md ]; then            # the picture is the list
    sed 's/^ *//' docs/architecture.md | grep -Fx -f tests/floors >"$tmp/picture"
    ok cmp -s "$tmp/picture" tests/floors
fi

# The judge sees what it is for: a call up, a call sideways, a room without a floor.
printf 'high\nleft right\nlow\n' >"$tmp/three"
seen() { printf '%s\n' "$1" "$2" >"$tmp/two"; judge "$tmp/three" "$tmp/two" | grep -q "$3"; }
ok seen 'high a.o T f' 'low b.o U f' 'b.o uses f of high'
ok seen 'left a.o T f' 'right b.o U f' 'b.o uses f of left'
ok seen 'cellar a.o T f' 'low b.o U f' 'no floor: cellar'
quiet() { ! seen "$@"; }
ok quiet 'low a.o T f' 'high b.o U f' uses
echo "floors: $pass passed, $fail failed"
[ "$fail" = 0 ]
