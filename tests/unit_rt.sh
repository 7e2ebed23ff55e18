#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The unit tests of the runtime, one program a subject, summed up.
. "$(dirname "$0")/lib.sh"
for part in values sample team link data files ckpt job spill progress; do
    need build/unit_rt_$part
    said=$(timeout 120 build/unit_rt_$part)
    status=$?
    p=$(printf '%s\n' "$said" | sed -n 's/^unit_rt_[a-z]*: \([0-9]*\) passed, [0-9]* failed$/\1/p')
    f=$(printf '%s\n' "$said" | sed -n 's/^unit_rt_[a-z]*: [0-9]* passed, \([0-9]*\) failed$/\1/p')
    passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0}))
    [ -n "$p" ] && [ "$status" -le 1 ] || fault "unit_rt_$part ends with status $status and no sum"
done
finish
