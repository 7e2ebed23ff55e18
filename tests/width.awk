# SPDX-License-Identifier: Apache-2.0
#
# width.awk: layouts of stages of several devices that cover each pair of values: lines of `MODEL TYPE TRANSPORT RANKS NAME
# OPTION...`.  -v least: so many lines at least; -v ranks: most over mpi; -v wide=1: copies of stages that are not all as many.
# Greedy, of 120 draws the one with most new pairs (D. Cohen et al., The AETG System, 1997).  What dpgen refuses is left out
# here, by name.

function draw(n) { seed = (seed * 16807) % 2147483647; return seed % n }

# Copies of stages in turn, such as 1,2: of as many stages as there are.
function widths(   s, text) {
    for (s = 0; s < at[2]; s++)
        text = text (s ? "," : "") substr(at[3], 1 + s % 2 * 2, 1)
    return text
}

function devices(   s, n) {
    for (s = 0; s < at[2]; s++)
        n += at[3] ~ /,/ ? substr(at[3], 1 + s % 2 * 2, 1) : at[3]
    return at[1] * n
}

# zb-v wants 2p - 1 micro-batches of a replica, here 8; ranks over mpi and threads are bounded, and one rank is no test.
function refused() {
    return (at[4] == "zb-v" && at[2] == 4 && at[3] == 2) ||
        (at[1] == 1 && (at[10] != "whole" || at[11] == "devices")) ||
        (at[8] != "experts" && at[11] == "devices") || devices() > (at[7] == "mpi" ? ranks : 64) ||
        (at[7] == "mpi" && devices() == 1) || (at[3] ~ /,/ && (at[2] == 1 || at[4] != "1f1b" || at[6] != "none"))
}

function fresh(   i, j, n) {
    for (i = 1; i < fields; i++)
        for (j = i + 1; j <= fields; j++)
            n += !((i, at[i], j, at[j]) in seen)
    return n
}

BEGIN {
    fields = split("1 2 4 8/1 2 4/1 2" (wide ? " 1,2 2,1" : "") "/1f1b zb-h1 interleaved zb-v/none full/" \
        "none optimizer gradients parameters/local mpi/" \
        "gpt llama bert t5 experts/f32 bf16/whole divided everywhere/divided devices", list, "/")
    seed = 7
    for (i = 1; i <= fields; i++)
        size[i] = split(list[i], values, " ")
    for (lines = dry = 0; dry < 12 || lines < least;) {
        best = -1
        for (try = 0; try < 120; try++) {
            for (i = 1; i <= fields; i++) {
                split(list[i], values, " ")
                at[i] = values[1 + draw(size[i])]
            }
            if (!refused() && fresh() > best) {
                best = fresh()
                for (i = 1; i <= fields; i++)
                    take[i] = at[i]
            }
        }
        dry = best ? 0 : dry + 1
        name = ""
        for (i = 1; i <= fields; i++) {
            at[i] = take[i]
            name = name (i > 1 ? "." : "") at[i]
        }
        if ((!best && lines >= least) || made[name]++)
            continue
        for (i = 1; i < fields; i++)
            for (j = i + 1; j <= fields; j++)
                seen[i, at[i], j, at[j]] = 1
        lines++
        print at[8], at[9], at[7], devices(), name, "--set plan.tensor=" at[1], "--stages " at[2],
            at[3] ~ /,/ ? "--widths " widths() : "--replicas " at[3], "--schedule " at[4], "--recompute " at[5],
            "--set train.shard=" at[6], "--set plan.transport=" at[7],
            "--set train.precision.compute=" at[9], "--set plan.positions=" at[10],
            at[11] == "devices" ? "--set plan.experts=devices" : ""
    }
}
