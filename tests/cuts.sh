#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Any cut gives the same bits.  A tiny GPT, a model with branches, tied weights and values that skip over several stages, and
# one that holds every operator of the table: every cut into two stages, and cuts into three drawn at random, on three
# devices and, as chunks, on two, each under both schedules, must end with the parameters of the graph interpreter.  A cut
# that dpgen refuses is a failure: nothing constrains these models.  Backward in every third plan makes all again that it needs,
# in another third all of it comes back from the host.
#   SLOW=1: 200 cuts into three for each model; else 12
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/interp
use_portable
random=${SLOW:+200}

# cuts_of MODEL OPERATORS COUNT: lines of `NAME OPTION...`.  The random pairs come from one generator with one seed.
cuts_of() {
    awk -v model="$1" -v n="$2" -v count="$3" '
    function line(name, cuts, stages,    s) {
        for (s = 0; s < 2; s++)
            printf "%s.%s %s --stages %s --schedule %s --cuts %s%s\n", name, word[s], model, stages, word[s], cuts,
                   way[++plans % 3]
    }
    function random(below) { seed = (seed * 69069 + 1) % 4294967296; return int(seed / 65536) % below }
    BEGIN {
        way[0] = " --recompute full"; way[1] = " --offload \"[\047*\047]\""
        word[0] = "1f1b"; word[1] = "gpipe"; seed = 20
        for (i = 0; i < n - 1; i++)
            line("at." i, i, 2)
        while (made < count && (n - 1) * (n - 2) / 2 > made) {
            a = random(n - 1); b = random(n - 1)
            if (a == b || (a, b) in seen || (b, a) in seen)
                continue
            seen[a, b] = 1
            if (a > b) { t = a; a = b; b = t }
            made++
            line("at." a "." b, a "," b, 3)
            line("map." a "." b, a "," b, "2 --map " (made % 3 ? made % 3 == 1 ? "0,1,0" : "1,1,0" : "1,0,0"))
        }
    }'
}

# The schedules take turns, except with SLOW=1.
turns() { if [ -n "$SLOW" ]; then cat; else awk 'NR % 16 < 2'; fi; }
# One half of the cuts, except with SLOW=1.
half() { if [ -n "$SLOW" ]; then cat; else awk 'NR % 4 < 2'; fi; }
# every_cut NAME [FILTER]
every_cut() {
    model=$models/$1.yaml
    # forward operators, from the report of the plan with one stage
    operators=$(./dpgen plan "$model" --stages 1 | sed -n 's/^stage 0 .*, \([0-9]*\) operators, .*/\1/p')
    [ "${operators:-0}" -gt 2 ] || { fault "$1: how many operators?"; return; }
    reference=$(cd "${cwd:-.}" && "$root/build/interp" "$model" $run 2>&1 | sed -n 's/^sha256 //p')
    if [ ${#reference} = 64 ]; then pass; else fault "$1: no hash of the interpreter"; return; fi
    cuts_of "$model" "$operators" "${random:-12}" | ${2:-cat} | plans
    one_hash "$1" "$reference"
}
every_cut tiny-gpt half
every_cut branches half
write_ops_data "$tmp/ops"
every_cut ops turns
finish
