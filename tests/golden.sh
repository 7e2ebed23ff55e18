#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The state after every pass, against a text that a person has read: tests/PASS/MODEL.out is what `dpgen -d LETTER` prints for
# tests/models/MODEL.yaml.  A plan read back and printed again is the same text.  `tests/golden.sh --update` rewrites and shows
# the difference; read it before committing.
cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0
got=$(mktemp) && trap 'rm -f "$got"' EXIT

check() {       # name expected-file
    if diff -u "$2" "$got" >&2; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "golden: $1 differs" >&2
        [ "$update" ] && cp "$got" "$2"
    fi
}

[ "$1" = --update ] && update=1
./dpgen -d '?' | while read -r letter pass _; do
    for want in tests/"$pass"/*.out; do
        [ -f "$want" ] && echo "$letter $pass $want"
    done
done >"$got.list"
while read -r letter pass want; do
    model=$(basename "$want" .out)
    ./dpgen "tests/models/$model.yaml" -d "$letter" >"$got" 2>&1
    check "$pass/$model" "$want"
done <"$got.list"
rm -f "$got.list"
[ $((passed + failed)) -ge 11 ] || { echo "golden: fewer than one text a pass" >&2; failed=$((failed + 1)); }
echo "golden: $passed passed, $failed failed"
[ "$failed" = 0 ]
