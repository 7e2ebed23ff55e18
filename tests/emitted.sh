#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The reader of stages against itself: one stage damaged in every way it knows, and two stages that disagree.
#   emitted.sh [path of the emitted program]
emitted=${1:-build/emitted}
root=$(cd "$(dirname "$0")/.." && pwd)
at=$root/tests/emitted rt=$root/rt/rt.h
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

"$emitted" "$rt" --self-test "$at/stage0.c" >"$tmp/said"
set -- $(tail -n 1 "$tmp/said" | tr -cd '0-9 ')
passed=${1:-0} failed=${2:-1}

# pair WHAT SED REASON: stage 1 edited; an empty reason means that both are right
pair() {
    own=${files:-stage}1
    sed "$2" "$at/$own.c" >"$tmp/$own.c"
    sed "$2" "$at/$own.h" >"$tmp/$own.h"
    "$emitted" "$rt" "$at/${files:-stage}0.c" "$tmp/$own.c" >"$tmp/said" 2>"$tmp/err"
    got=$?
    if [ -z "$3" ] && [ $got -eq 0 ] || { [ -n "$3" ] && [ $got -eq 1 ] && grep -q "$3" "$tmp/err"; }; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "emitted.sh: $1: status $got: $(head -n 1 "$tmp/err")" >&2
}

pair "as they are" '' ''
pair "another tag" 's/tag \*\/ 7/tag *\/ 6/' 'message 0 from stage 0 to 1'
pair "other bytes" '/tag \*\/ 8/s/96/92/' 'message 0 from stage 1 to 0'
pair "another order" 's/tag \*\/ 7/tag X/; s/tag \*\/ 9/tag *\/ 7/; s/tag X/tag *\/ 9/' 'message 0 from stage 0 to 1'
pair "one message less" \
    's/recv_begin(.*tag \*\/ 9.*/step_begin(st, A(h_y));/; /action(st, 6)/,$s/transfer_wait(st, 0)/step_end(st, A(h_y))/' \
    'message 0 from stage 0 to 1'
pair "a message to itself" '/tag \*\/ 8/s/peer \*\/ 0/peer *\/ 1/' 'no peer 1'
pair "a peer that is not there" '/tag \*\/ 8/s/peer \*\/ 0/peer *\/ 2/' 'no peer 2'
pair "a size of its own" 's/rows = 6, W = 4/rows = 4, W = 6/' 'rows is 4 here, 6 in'
pair "a size that is an offset" 's/rows = 6, W/lines = 6, W/; s/\[rows/[lines/; s/h_y\>/rows/' 'rows is 0 here, 6 in'
# ---- lists in pieces
files=pieces
pair "pieces as they are" '' ''
pair "a slot too far for two of its buffers, used by none" 's/fb_slot\[2\] = { 0, 64 }/fb_slot[3] = { 0, 64, 384 }/' ''
pair "one of them is used" 's/fb_slot\[2\] = { 0, 64 }/fb_slot[2] = { 0, 68 }/' 'h_x ends behind its arena in slot 1'
pair "a phase that counts on" '/period_1/,/^}/s/(st, 2,/(st, 6,/' 'action 2 expected'
pair "a phase that is shorter" '/epilogue_1/,/^}/{/wait(st, 1)/d}' 'never waited'
pair "another message in a phase" '/period_1/,/^}/s/tag \*\/ 1,/tag *\/ 2,/' 'phase 1 has other messages'
pair "under way at one cut only" '/period_0/,/^}/{/action(st, 5)/d;/wait(st, 1)/d}' 'under way at one end of a piece'
pair "not under way at the cut" '/epilogue_0/,/^}/s/send_begin.*/transfer_wait(st, 0);/' 'was not begun'
pair "a period in another order" '/period_/,/^}/s/tag \*\/ 0,/tag *\/ 3,/' 'message 1 from stage 0 to 1'
echo "emitted: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
