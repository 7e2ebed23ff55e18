#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Generation is a pure function, and nothing is half written.  The same job generated again, in another
# folder, under another locale, time zone, umask, home, stack and load of the address space: the same bytes.  Generated
# again into its own folder it replaces what dpgen wrote and leaves what a user put there; a folder that dpgen did not make,
# and anything else in the way, is refused untouched.
. "$(dirname "$0")/lib.sh"
need dpgen
dpgen=$root/dpgen

locale=$(locale -a 2>/dev/null | grep -v -e '^C' -e POSIX | head -n 1)
[ -n "$locale" ] || skip "no locale but C is installed"
# What could tell dates, hosts and chance apart is not even linked.
if nm -u dpgen | grep -w -e gethostname -e uname -e time -e gettimeofday -e localtime -e setlocale -e rand -e random \
    -e getrandom >"$tmp/said"; then fault "dpgen calls$(head -n 1 "$tmp/said")"; else pass; fi

# ---- the same bytes -------------------------------------------------------------------------------------------------------
# The model file lies beside the caller, so that its name is the same wherever that is.
mkdir -p "$tmp/here" "$tmp/a longer name/there"
alike() {
    what=$1
    shift
    cp "$models"/*.yaml examples/*.yaml "$tmp/here"
    cp "$models"/*.yaml examples/*.yaml "$tmp/a longer name/there"
    rm -rf "$tmp/here/out" "$tmp/a longer name/there/put"
    (cd "$tmp/here" && umask 022 && LC_ALL=C TZ=UTC HOME=/ "$dpgen" "$@" --estimate -o out) >"$tmp/first" 2>&1 ||
        { fault "$what: $(tail -n 1 "$tmp/first")"; return; }
    (cd "$tmp/a longer name/there" && umask 077 && ulimit -s 4096 &&
        env -i PATH="$PATH" LC_ALL="${locale:-tr_TR.UTF-8}" LANG=de_DE TZ=Asia/Kathmandu HOME="$tmp" USER=nobody \
        SOURCE_DATE_EPOCH=1 MALLOC_PERTURB_=165 "$dpgen" "$@" --estimate -o put) >"$tmp/second" 2>&1 ||
        { fault "$what, elsewhere: $(tail -n 1 "$tmp/second")"; return; }
    if diff -r "$tmp/here/out" "$tmp/a longer name/there/put" >"$tmp/said" 2>&1; then pass
    else fault "$what: differs: $(head -n 1 "$tmp/said")"; fi
    sed 's/\<put\>/out/g' "$tmp/second" | diff - "$tmp/first" >"$tmp/said" ||
        fault "$what: other words: $(sed -n 2p "$tmp/said")"
    [ "$(cd "$tmp/here/out" && sha256sum --quiet -c MANIFEST 2>&1 | head -n 1)" ] && fault "$what: MANIFEST"
    if grep -r -l -F "$tmp" "$tmp/here/out" >"$tmp/said"; then fault "$what: a path in $(head -n 1 "$tmp/said")"
    else pass; fi
}
alike "GPT" tiny-gpt.yaml --stages 3 --schedule 1f1b --recompute full
alike "branches" branches.yaml --stages 4 --schedule gpipe
alike "T5, anything goes" tiny-t5.yaml --set plan.stages=auto --schedule auto --recompute auto
alike "GPT-2" gpt2-124m.yaml --stages 1
alike "no address space to draw from" tiny-bert.yaml --stages 2
if command -v setarch >/dev/null && setarch -R true 2>/dev/null; then
    (cd "$tmp/here" && rm -rf out out2 && "$dpgen" tiny-gpt.yaml --estimate -o out &&
        setarch -R "$dpgen" tiny-gpt.yaml --estimate -o out2) >/dev/null
    expect "without address space randomisation" diff -r "$tmp/here/out" "$tmp/here/out2"
else
    skip "there is no setarch -R here"
fi

# ---- again into the same folder ---------------------------------------------------------------------------------------------
cd "$tmp/here" || exit 2
rm -rf out out2
"$dpgen" tiny-gpt.yaml --estimate --stages 3 -o out >/dev/null
echo mine >out/notes.txt
mkdir -p out/checkpoints && echo kept >out/checkpoints/step
echo mine >out/rt/notes.txt
expect "again" "$dpgen" tiny-gpt.yaml --estimate --stages 2 -o out
"$dpgen" tiny-gpt.yaml --estimate --stages 2 -o fresh >/dev/null
rm -f out/notes.txt.was
expect "a user's file" grep -q mine out/notes.txt
expect "a user's folder" grep -q kept out/checkpoints/step
expect "a user's file below ours" grep -q mine out/rt/notes.txt
rm -rf out/notes.txt out/rt/notes.txt out/checkpoints
expect "nothing of the other plan stays" diff -r fresh out
snapshot() { ls -lAR --time-style=full-iso . | grep -v ^total; cat mine/* 2>/dev/null; }
mkdir mine && echo precious >mine/stage0.c
snapshot >"$tmp/before"
refuse "a folder of somebody else" 2 mine "$dpgen" tiny-gpt.yaml --estimate -o mine
refuse "a file in the way" 2 tiny-gpt.yaml "$dpgen" tiny-gpt.yaml --estimate -o tiny-gpt.yaml
refuse "no such parent" 1 nowhere "$dpgen" tiny-gpt.yaml --estimate -o nowhere/out
refuse "a model that is wrong" 3 error "$dpgen" tiny-gpt.yaml --set train.steps=many -o new
refuse "a plan that does not fit" 4 . "$dpgen" tiny-gpt.yaml --limit 64KiB -o new
snapshot >"$tmp/after"
if diff "$tmp/before" "$tmp/after" >"$tmp/said"; then pass; else fault "something was written: $(sed -n 2p "$tmp/said")"; fi
if [ "$(id -u)" != 0 ]; then
    mkdir sealed && chmod 555 sealed
    refuse "a parent that may not be written" 1 sealed "$dpgen" tiny-gpt.yaml --estimate -o sealed/out
    chmod 755 sealed
fi

# A full disk, or a file that may not grow: status 1, and no folder.
(ulimit -f 8; trap '' XFSZ; "$dpgen" tiny-gpt.yaml --estimate -o full) >"$tmp/said" 2>&1
got=$?
if [ $got = 1 ] && [ ! -e full ]; then pass; else fault "a disk that is full: status $got: $(tail -n 1 "$tmp/said")"; fi
if ls -d ./*part* >"$tmp/said" 2>/dev/null; then fault "left behind: $(head -n 1 "$tmp/said")"; else pass; fi
cd "$root" || exit 2
finish
