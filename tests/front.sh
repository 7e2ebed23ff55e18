#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Model files with mistakes in what build and shape read: each X.yaml must end with status 3 and say exactly X.err.
#
#   front.sh                DPGEN: the program, ./dpgen at the root if not set
#
# Those that are refused after a million operators take seconds: SLOW=1.
#
# An .err is written by hand, or read by a person before it is kept: `DPGEN check X.yaml` in the folder of X.
set -u
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
dpgen=${DPGEN:-$root/dpgen}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0

for want in "$root"/tests/build/*.err "$root"/tests/shape/*.err; do
    cd "$(dirname "$want")" || exit 1
    yaml=$(basename "$want" .err).yaml
    case ${SLOW:-}$yaml in too_many*) continue ;; esac
    "$dpgen" check "$yaml" >"$tmp/out" 2>"$tmp/err"
    status=$?
    if [ "$status" -ne 3 ]; then
        echo "front.sh: $yaml: status $status, 3 expected" >&2
    elif ! diff "$want" "$tmp/err" >"$tmp/diff"; then
        echo "front.sh: $yaml: $(sed -n 2p "$tmp/diff")" >&2
        cat "$tmp/diff" >&2
    elif [ -s "$tmp/out" ]; then
        echo "front.sh: $yaml: something on standard output" >&2
    else
        passed=$((passed + 1))
        continue
    fi
    failed=$((failed + 1))
done
for yaml in "$root"/tests/build/*.yaml "$root"/tests/shape/*.yaml; do
    [ -f "${yaml%.yaml}.err" ] && continue
    echo "front.sh: $yaml has no .err" >&2
    failed=$((failed + 1))
done
echo "front: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
