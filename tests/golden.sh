#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The state after every pass, against a text that a person has read: tests/PASS/MODEL.out is what `dpgen -d LETTER` prints for
# tests/models/MODEL.yaml.  A plan read back and printed again is the same text.  `tests/golden.sh --update` rewrites and shows
# the difference; read it before committing.
cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0
got=$(mktemp) && trap 'rm -f "$got"' EXIT
trap 'exit 1' HUP INT TERM

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

# A folder made from the text of the graph, or of the whole plan, is the folder made from the model.
work=$(mktemp -d) && trap 'rm -rf "$got" "$work"' EXIT
for model in mlp branches; do
    yaml=tests/models/$model.yaml
    ./dpgen "$yaml" --estimate -o "$work/$model" >"$got" 2>&1
    ./dpgen "$yaml" -d f >"$work/graph"
    ./dpgen "$yaml" -d a >"$work/plan"
    for from in graph plan; do
        rm -rf "$work/again"
        ./dpgen "$yaml" --from "$work/$from" -o "$work/again" >"$got" 2>&1
        if diff -r "$work/$model" "$work/again" >&2; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "golden: $model made --from its $from differs" >&2
        fi
    done
    if ./dpgen "$yaml" --from "$work/plan" -d a 2>&1 | cmp -s - "$work/plan"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "golden: $model: its plan is another text once it is read and printed" >&2
    fi
done
# The reference of a folder has nothing joined, and is read back as it is.
for model in mlp branches; do
    yaml=tests/models/$model.yaml
    ./dpgen "$yaml" --estimate --fuse none -d f | sed '/^graph/s/ model=.*//; s/ @.*//' >"$work/apart"
    ./dpgen "$yaml" --from "$work/$model/model.graph" -o "$work/from" >"$got" 2>&1
    if sed '/^#/d' "$work/$model/model.graph" | diff - "$work/apart" >&2 &&
        sed '/^# of another/d' "$work/from/model.graph" | cmp - "$work/$model/model.graph" >&2; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "golden: model.graph of $model is not the graph with nothing joined" >&2
    fi
done
# An address on top of a parameter's.
./dpgen tests/models/mlp.yaml -d a | sed 's/^\(buf 0:act_r .*offset=\)[0-9]*/\1128/' >"$work/plan"
if ./dpgen tests/models/mlp.yaml --from "$work/plan" -o "$work/wrong" >"$got" 2>&1 || [ -e "$work/wrong" ] ||
    ! grep -q 'not a plan that could run' "$got"; then
    failed=$((failed + 1))
    echo "golden: a plan with two owners of one byte was accepted" >&2
else
    passed=$((passed + 1))
fi
[ $((passed + failed)) -ge 11 ] || { echo "golden: fewer than one text a pass" >&2; failed=$((failed + 1)); }
echo "golden: $passed passed, $failed failed"
[ "$failed" = 0 ]
