#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What dpgen does with folders that are there, and small things of its command line: nothing that a person has written is lost
# without a word, what a killed run left is taken away, and what cannot be written is a failure.
. "$(dirname "$0")/lib.sh"
need dpgen
model=$models/mlp.yaml
out=$tmp/out
make_folder() { ./dpgen "$model" --estimate -o "$out" >"$tmp/told" 2>&1 || fault "no folder: $(tail -n 1 "$tmp/told")"; }

# ---- changed by hand -----------------------------------------------------------------------------------------------------
make_folder
cp "$out/stage0.c" "$tmp/stage0"
make_folder
if grep -q changed "$tmp/told"; then fault "nothing was changed: $(cat "$tmp/told")"; else pass; fi
echo '/* mine */' >>"$out/stage0.c" && echo mine >"$out/notes" && echo '/* mine */' >>"$out/rt/data.c"
cp "$out/stage0.c" "$tmp/mine"
make_folder
expect "it says so" grep -q "$out/stage0.c was changed by hand: what it was is now stage0.c.edited" "$tmp/told"
expect "the new file" cmp "$out/stage0.c" "$tmp/stage0"
expect "what was written by hand" cmp "$out/stage0.c.edited" "$tmp/mine"
expect "in a folder, too" grep -q mine "$out/rt/data.c.edited"
expect "what dpgen did not make" grep -q mine "$out/notes"
echo '/* again */' >>"$out/stage0.c"
make_folder
expect "the second time" grep -q again "$out/stage0.c.edited2"
expect "the first is still there" cmp "$out/stage0.c.edited" "$tmp/mine"
expect "MANIFEST" sh -c 'cd "$1" && sha256sum --quiet -c MANIFEST' - "$out"

# ---- data that is not here, and may be where the job runs -------------------------------------------------------------------
sed '/^data:/,$d' "$model" >"$tmp/data.yaml"
arrays() { ./dpgen "$tmp/data.yaml" --set "data.train={format: npy, arrays: {x: $1, labels: $2}}" --estimate -o "$tmp/data"; }
arrays "$tmp/none.npy" "$model" >"$tmp/told" 2>&1
expect "a file that is not here" grep -q "warning: no file matches '$tmp/none.npy' here" "$tmp/told"
arrays "$model" "$tmp/da?a.yaml" >"$tmp/told" 2>&1
if grep -q warning "$tmp/told"; then fault "it is here: $(cat "$tmp/told")"; else pass; fi

# ---- a run that was killed -------------------------------------------------------------------------------------------------
dead=$(sh -c 'echo $$')
mkdir -p "$out.part-$dead/rt" "$out.part-$$" "$out.part-x" && echo x >"$out.part-$dead/rt/x.c"
make_folder
if [ -e "$out.part-$dead" ]; then fault "the folder of a process that is gone stays"; else pass; fi
expect "that of a process that runs stays" test -d "$out.part-$$"
expect "and what is named otherwise" test -d "$out.part-x"
mkdir "$out.part-$dead" && echo x >"$out.part-$dead/MANIFEST" && echo mine >"$out.part-$dead/checkpoint"
make_folder
expect "one that may hold files of a person is told" grep -q "out.part-$dead is left of a run that was killed" "$tmp/told"
expect "and stays" grep -q mine "$out.part-$dead/checkpoint"

# ---- the command line ------------------------------------------------------------------------------------------------------
for word in -h --help help; do
    ./dpgen $word >"$tmp/said" 2>&1
    expect "dpgen $word" test $? = 0 -a -n "$(grep 'dpgen pack FILE.csv' "$tmp/said")"
done
if [ -w /dev/full ]; then
    for word in --help --version '-d ?' '--planner ?' '--schedule ?'; do
        ./dpgen $word >/dev/full 2>"$tmp/said"
        expect "dpgen $word nowhere" test $? = 1
    done
else skip "no device that is full" 5; fi
expect "a model from a pipe" sh -c './dpgen check - <"$1"' - "$model"
./dpgen - --estimate -o "$tmp/pipe" <"$model" >"$tmp/said" 2>&1
expect "its folder" cmp "$tmp/pipe/model.yaml" "$model"
expect "is the same" cmp "$tmp/pipe/stage1.c" "$out/stage1.c"
refuse "nothing is measured beside it" 2 "--profile), or --estimate" sh -c './dpgen - -o "$2" <"$1"' - "$model" "$tmp/pipe2"
refuse "a mistake in it" 3 "^/dev/stdin:1:1: error" sh -c 'echo "x: 1" | ./dpgen check -'
refuse "more bytes than can be counted" 3 "99999999TiB is more than can be counted" \
    ./dpgen check "$model" --set devices.0.memory=99999999TiB
printf 'x: 1\n' >"$tmp/$(printf 'a\033[31m\nb').yaml"
./dpgen check "$tmp/$(printf 'a\033[31m\nb').yaml" >"$tmp/said" 2>&1
expect "a file's name on the terminal" test -n "$(grep 'a?\[31m?b.yaml:1:1: error' "$tmp/said")"
./dpgen explain "$model" --estimate --set devices.0.count=3 --stages 3 --cuts 0,1 1 >"$tmp/view" 2>&1
expect "no comma before the first" grep -q '^  at peak messages ' "$tmp/view"
finish
