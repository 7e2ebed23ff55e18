#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The published cases of PipeEdge (Hu et al., Pipeline Parallelism for Inference on Heterogeneous Edge Computing, 2022):
# ViT-base and ViT-large on 1 to 16 boards of either of its two kinds.  Its dynamic program is here anew, from the paper:
# the least longest stage or message over layers, boards used and memory.  Under its costs the bottleneck of dpgen is never
# above that, and the stages fit by its formula of memory.  Up to four boards all cuts are tried.  SLOW=1: every number.
#
# A layer is a node of a graph of another system: no backward, and half of its output, for a gradient would go back.
. "$(dirname "$0")/lib.sh"
need dpgen
from=tests/data/pipeedge

# cases MODEL BOARD: batch 8, f32: `layer SECONDS BYTES_OUT BYTES_OF_WEIGHTS` a line, behind `board BYTES_IN LIMIT RATE`
cases() {
    awk -v model="$1:" -v board="$2:" '
        function list(to,   part, k, n) {               # the numbers of a list in brackets, over lines
            n = split(text, part, /[][, ]+/)
            for (k = 1; k <= n; k++) if (part[k] ~ /^[0-9]/) to[++count] = part[k]
        }
        FNR == 1 { file++ }
        /^[A-Za-z]/ { at = $1 }
        /^    google/ { inner = $1 }
        { here = file == 1 ? at == model : at == board && inner == model }
        file == 2 && at == board && /bw_Mbps/ { rate = $2 }
        file == 2 && at == board && /mem_MB/ { limit = $2 }
        file == 1 && here && /parameters_in/ { first = $2 }
        /\[/ { text = ""; open = $1 }
        { text = text " " $0 }
        /\]/ && here {
            sub(/^[^\[]*/, "", text)
            count = 0
            if (open == "mem_MB:") list(weights)
            else if (open == "parameters_out:") list(out)
            else if (open == "time_s:") list(time)
            n = count
        }
        END {
            printf "board %.0f %.0f %.0f\n", first * 32, limit * 1048576, rate * 1048576 / 8
            for (i = 1; i <= n; i++) printf "layer %.17g %.0f %.3f\n", time[i], out[i] * 32, weights[i] * 1048576
        }' "$from/models.yml" "$from/device_types.yml"
}
# Its cost of a stage i+1 .. j, its memory with two buffers each way, and the dynamic program over boards of one kind.
cat >"$tmp/costs.awk" <<'END'
$1 == "board" { bytes[0] = $2; limit = $3; rate = $4 }
$1 == "layer" { n++; sum[n] = sum[n - 1] + $2; bytes[n] = $3; weight[n] = weight[n - 1] + $4 }
function fits(i, j) { return limit > weight[j] - weight[i] + (i > 0) * 2 * bytes[i] + 2 * bytes[j] + bytes[i] + bytes[j] }
function stage(i, j,   t) {
    t = sum[j] - sum[i]
    return j < n && bytes[j] / rate > t ? bytes[j] / rate : t
}
END
programme() {
    awk -f "$tmp/costs.awk" -f - "$tmp/case" <<'END'
END {
    for (k = 1; k <= 16; k++)
        for (j = 1; j <= n; j++) {
            best[k, j] = 1e60
            for (i = k == 1 ? 0 : k - 1; i < j && (k > 1 || i == 0); i++) {
                if (!fits(i, j)) continue
                cost = k > 1 ? best[k - 1, i] : 0
                cost = stage(i, j) > cost ? stage(i, j) : cost
                if (cost < best[k, j]) best[k, j] = cost
            }
        }
    least = 1e60
    for (k = 1; k <= 16; k++) {
        least = best[k, n] < least ? best[k, n] : least
        if (least < 1e60) printf "%.3f\n", least * 1e9; else print "none"
    }
}
END
}
# The least of all cuts into up to four stages
every_cut() {
    awk -f "$tmp/costs.awk" -v most="$1" -f - "$tmp/case" <<'END'
function try(left, i, cost,   j, c) {
    if (cost >= least) return
    if (fits(i, n)) { c = stage(i, n); c = c > cost ? c : cost; if (c < least) least = c }
    for (j = i + 1; left > 1 && j < n; j++)
        if (fits(i, j)) { c = stage(i, j); try(left - 1, j, c > cost ? c : cost) }
}
END { least = 1e60; try(most, 0, 0); printf "%.3f\n", least * 1e9 }
END
}
nodes() {
    awk -v name="$1" '
        $1 == "layer" { n++; printf "node l%d forward=%.9f backward=0 output=%d saved=0 params=%d\n", n, $2 * 1000, $3 / 2, $4 }
        BEGIN { print "dpgen-nodes 1"; print "graph " name " batch=8 micro=16" }
        END { for (i = 1; i < n; i++) printf "edge l%d to=l%d\n", i, i + 1 }' "$tmp/case" >"$tmp/nodes.txt"
}
# ours BOARDS: the bottleneck in ns, and the stages in $tmp/stages
ours() {
    ./dpgen plan --from "$tmp/nodes.txt" --stages "$1" --link 131.072MB/s --objective bottleneck --limit 1TiB --json \
        >"$tmp/plan" 2>"$tmp/said" || return
    sed -n 's/.*"operators": \[\(.*\)\],.*/\1/p' "$tmp/plan" | awk -F, '{ print NF }' >"$tmp/stages"
    sed -n 's/.*"bottleneck_ns": \([0-9]*\),.*/\1/p' "$tmp/plan"
}
boards="1 2 4 16"
[ -z "${SLOW:-}" ] || boards="1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"
none=0
for model in base large; do
    for board in Minnowboard-E3845 RCC-VE-C2000; do
        cases "google/vit-$model-patch16-224" $board >"$tmp/case"
        layers=$(grep -c layer "$tmp/case")
        expect "ViT-$model has its layers" test "$layers" = "$([ $model = base ] && echo 48 || echo 96)"
        programme >"$tmp/theirs"
        nodes vit-$model
        for n in $boards; do
            theirs=$(sed -n ${n}p "$tmp/theirs") mine=$(ours "$n")
            fit=$(awk -f "$tmp/costs.awk" -f - "$tmp/case" "$tmp/stages" <<'END'
NF == 1 {
    until = from + $1
    bad += !fits(from, until)
    cost = stage(from, until)
    most = cost > most ? cost : most
    from = until
}
END { printf "%d %d %.0f\n", from == n, bad, most * 1e9 }
END
            )
            # it has no plan where one board is too small, and dpgen says so of the memory behind its bottleneck
            if [ "$theirs" = none ]; then
                none=$((none + 1))
                expect "ViT-$model, $n $board: too small" test "${fit% *}" = "1 1"
                continue
            fi
            # times were rounded to ns, layer by layer
            if echo "$mine $theirs $fit" | awk '{ exit !(NF == 5 && $1 <= $2 + 96 && $3 == 1 && $4 == 0 && $5 <= $2 + 96) }'
            then pass
            else fault "ViT-$model, $n $board: $mine ns, theirs $theirs; stages: $fit"; fi
            # of large graphs four boards have 138,000 cuts
            [ "$n" -le 4 ] && { [ $model = base ] || [ "$n" -le 3 ] || [ -n "${SLOW:-}" ]; } || continue
            all=$(every_cut "$n")
            echo "$mine $all $theirs" | awk '{ exit !($1 <= $2 + 96 && $1 >= $2 - 96 && $2 == $3) }' && pass ||
                fault "ViT-$model, $n $board: $mine ns, all cuts $all, theirs $theirs"
        done
    done
done
expect "one board is too small for one model" test $none = 1
finish
