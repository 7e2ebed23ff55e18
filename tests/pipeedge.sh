#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The published cases of PipeEdge (Hu et al., Pipeline Parallelism for Inference on Heterogeneous Edge Computing, 2022):
# ViT-base and ViT-large on fleets of 1 to 16 boards, of one or both of its two kinds.  dpgen reads the three files itself.
# Its dynamic program is here anew, from the paper: the least longest stage or message over layers, boards used, last board
# and memory.  Under its costs the bottleneck of dpgen is never above that, and the stages fit by its formula of memory.  Up
# to four boards all orders and cuts are tried.  SLOW=1: every fleet, and links of different rates.
. "$(dirname "$0")/lib.sh"
need dpgen
from=tests/data/pipeedge
small=Minnowboard-E3845 large=RCC-VE-C2000

# cases MODEL DIR: batch 8, f32: `layer SECONDS SECONDS BYTES_OUT BYTES_OF_WEIGHTS` a line, a time for each board, behind
# `board LIMIT RATE` of each
cases() {
    awk -v model="google/vit-$1-patch16-224:" -v boards="$small: $large:" '
        function list(to,   part, k, n) {               # the numbers of a list in brackets, over lines
            n = split(text, part, /[][, ]+/)
            for (k = 1; k <= n; k++) if (part[k] ~ /^[0-9]/) to[++count] = part[k]
        }
        BEGIN { split(boards, name, " ") }
        FNR == 1 { file++ }
        /^[A-Za-z]/ { at = $1; board = at == name[1] ? 1 : at == name[2] ? 2 : 0 }
        /^    google/ { inner = $1 }
        { here = file == 1 ? at == model : board && inner == model }
        file == 2 && board && /bw_Mbps/ { rate[board] = $2 }
        file == 2 && board && /mem_MB/ { limit[board] = $2 }
        /\[/ { text = ""; open = $1 }
        { text = text " " $0 }
        /\]/ && here {
            sub(/^[^\[]*/, "", text)
            count = 0
            if (open == "mem_MB:") list(weights)
            else if (open == "parameters_out:") list(out)
            else if (open == "time_s:" && board == 1) list(first)
            else if (open == "time_s:") list(second)
            n = count
        }
        END {
            for (k = 1; k <= 2; k++) printf "board %.0f %.0f\n", limit[k] * 1048576, rate[k] * 1048576 / 8
            for (i = 1; i <= n; i++)
                printf "layer %.17g %.17g %.0f %.3f\n", first[i], second[i], out[i] * 32, weights[i] * 1048576
        }' "$2/models.yml" "$2/device_types.yml"
}
# Its cost of a stage i+1 .. j on a board behind another, and its memory with two buffers each way
cat >"$tmp/costs.awk" <<'END'
$1 == "board" { k++; limit[k] = $2; rate[k] = $3 }
$1 == "layer" {
    n++
    for (k = 1; k <= 2; k++) sum[k, n] = sum[k, n - 1] + $(k + 1)
    bytes[n] = $4
    weight[n] = weight[n - 1] + $5
}
function fits(k, i, j) {
    return limit[k] > weight[j] - weight[i] + (i > 0) * 2 * bytes[i] + 2 * bytes[j] + bytes[i] + bytes[j]
}
function stage(before, k, i, j,   t, sent) {
    t = sum[k, j] - sum[k, i]
    if (before) sent = bytes[i] / (rate[before] < rate[k] ? rate[before] : rate[k])
    return sent > t ? sent : t
}
END
# For fleets of up to `most` boards: `FIRST SECOND LEAST`, of boards of the first kind, of the second, in ns
programme() {
    awk -f "$tmp/costs.awk" -v most="$1" -f - "$tmp/case" <<'END'
END {
    for (a = 0; a <= most; a++)
        for (b = a == 0; a + b <= most; b++)
            for (k = 1; k <= 2; k++) {
                p = a - (k == 1); q = b - (k == 2)
                if (p < 0 || q < 0) continue
                for (before = 0; before <= 2; before++) {
                    if ((p + q == 0) != (before == 0)) continue
                    for (i = 0; i < n; i++) {
                        if (p + q == 0 ? i > 0 : !((p, q, before, i) in best)) continue
                        cost = p + q == 0 ? 0 : best[p, q, before, i]
                        for (j = i + 1; j <= n; j++) {
                            c = stage(before, k, i, j)
                            if (c < cost) c = cost
                            if (((a, b, k, j) in best) && best[a, b, k, j] <= c) { if (c > cost) break; continue }
                            if (fits(k, i, j)) best[a, b, k, j] = c
                        }
                    }
                }
            }
    for (a = 0; a <= most; a++)                 # a fleet need not use all of its boards
        for (b = 0; a + b <= most; b++) {
            least = 1e60
            for (k = 1; k <= 2; k++) if (((a, b, k, n) in best) && best[a, b, k, n] < least) least = best[a, b, k, n]
            if (a > 0 && all[a - 1, b] < least) least = all[a - 1, b]
            if (b > 0 && all[a, b - 1] < least) least = all[a, b - 1]
            all[a, b] = a + b ? least : 1e60
            if (a + b) print a, b, least < 1e60 ? sprintf("%.3f", least * 1e9) : "none"
        }
}
END
}
# The least of all orders and cuts of a fleet
every_cut() {
    awk -f "$tmp/costs.awk" -v first="$1" -v second="$2" -f - "$tmp/case" <<'END'
function try(a, b, before, i, cost,   k, j, c) {
    for (k = 1; k <= 2; k++) {
        if (k == 1 ? !a : !b) continue
        for (j = i + 1; j <= n; j++) {
            c = stage(before, k, i, j)
            if (c < cost) c = cost
            if (sum[k, j] - sum[k, i] >= least) break
            if (c >= least || !fits(k, i, j)) continue
            if (j == n) least = c
            else if (a + b > 1) try(a - (k == 1), b - (k == 2), k, j, c)
        }
    }
}
END { least = 1e60; try(first, second, 0, 0, 0); printf "%.3f\n", least * 1e9 }
END
}
hosts() { seq -s ', ' "$1"; }
# ours DIR MODEL FIRST SECOND: the bottleneck in ns, and `KIND LAYERS` of each stage in $tmp/stages
ours() {
    printf '%s: [%s]\n%s: [%s]\n' "$small" "$(hosts "$3")" "$large" "$(hosts "$4")" >"$1/devices.yml"
    ./dpgen plan --from "$1/models.yml:google/vit-$2-patch16-224" --mode infer --objective bottleneck --json --set \
        train.batch.global=16 >"$tmp/plan" 2>"$tmp/said"
    awk '/"device": "M/ { kind = 1 } /"device": "R/ { kind = 2 }
        /"operators":/ { print kind, gsub(/"layer/, "") }' "$tmp/plan" >"$tmp/stages"
    sed -n 's/.*"bottleneck_ns": \([0-9]*\),.*/\1/p' "$tmp/plan"
}
# judge DIR MODEL FIRST SECOND THEIRS
none=0
judge() {
    what="ViT-$2, $3 small and $4 large boards"
    mine=$(ours "$1" "$2" "$3" "$4")
    # it has no plan where one board is too small; dpgen has no room there either
    if [ "$5" = none ]; then
        none=$((none + 1))
        if grep -q "no plan fits" "$tmp/said"; then pass; else fault "$what: too small, and planned"; fi
        return
    fi
    fit=$(awk -f "$tmp/costs.awk" -f - "$tmp/case" "$tmp/stages" <<'END'
NF == 2 {
    until = from + $2
    used[$1]++
    bad += !fits($1, from, until)
    cost = stage(before, $1, from, until)
    most = cost > most ? cost : most
    from = until
    before = $1
}
END { printf "%d %d %.0f %d %d\n", from == n, bad, most * 1e9, used[1], used[2] }
END
    )
    # times were rounded to ns, layer by layer
    if echo "$mine $5 $fit $3 $4" |
        awk '{ exit !(NF == 9 && $1 <= $2 + 96 && $3 == 1 && $4 == 0 && $5 <= $2 + 96 && $6 <= $8 && $7 <= $9) }'
    then pass; else fault "$what: $mine ns, theirs $5; stages: $fit"; fi
    [ $(($3 + $4)) -le 4 ] && { [ $(($3 + $4)) -le "$every" ] || [ -n "${SLOW:-}" ]; } || return
    all=$(every_cut "$3" "$4")
    echo "$mine $all $5" | awk '{ exit !($1 <= $2 + 96 && $1 >= $2 - 96 && $2 == $3) }' && pass ||
        fault "$what: $mine ns, all cuts $all, theirs $5"
}
# fleets DIR MODEL MOST FLEET...: all of up to so many boards, or these
fleets() {
    dir=$1 model=$2 most=$3
    shift 3
    cases "$model" "$dir" >"$tmp/case"
    programme "$most" >"$tmp/theirs"
    while read -r a b theirs; do
        [ $# -eq 0 ] || case " $* " in *" $a+$b "*) ;; *) continue ;; esac
        judge "$dir" "$model" "$a" "$b" "$theirs"
    done <"$tmp/theirs"
}
mkdir -p "$tmp/published" "$tmp/other"
cp "$from/models.yml" "$from/device_types.yml" "$tmp/published"
cp "$from/models.yml" "$tmp/other"
# 31.25 and 62.5 Mbps, 4096 and 8192 kB/s: messages bound many cuts, and those between two large boards are shorter
sed "/^$small/,/mem_MB/s/bw_Mbps: .*/bw_Mbps: 31.25/; /^$large/,/mem_MB/s/bw_Mbps: .*/bw_Mbps: 62.5/" \
    "$from/device_types.yml" >"$tmp/other/device_types.yml"
every=3
if [ -n "${SLOW:-}" ]; then
    for model in base large; do
        fleets "$tmp/published" $model 16
        fleets "$tmp/other" $model 16
    done
else
    fleets "$tmp/published" base 8 1+0 0+1 1+1 2+1 2+2 3+1 4+4 8+0
    fleets "$tmp/published" large 3 1+0 0+1 1+1 1+2
    fleets "$tmp/other" base 6 2+1 1+2 2+2 3+3
fi
expect "one board is too small for one model" test $none = "$([ -n "${SLOW:-}" ] && echo 2 || echo 1)"

# Two types whose names are one once they are legal, a profile of another batch in front, and a model that is called 1
mkdir "$tmp/names"
cat >"$tmp/names/device_types.yml" <<'END'
a-b: {bw_Mbps: 8, mem_MB: 10, model_profiles: {"1": [{batch_size: 1, dtype: torch.float32, time_s: [1, 2]}]}}
a_b: {bw_Mbps: 8, mem_MB: 10, model_profiles: {"1": [{batch_size: 2, dtype: torch.float32, time_s: [9, 9]},
                                                     {batch_size: 1, dtype: torch.float32, time_s: [2, 1]}]}}
END
echo '"1": {layers: 2, mem_MB: [1, 2], parameters_in: 3, parameters_out: [1, 1]}' >"$tmp/names/models.yml"
echo '{a-b: [x], a_b: [y]}' >"$tmp/names/devices.yml"
./dpgen plan --from "$tmp/names/models.yml" --mode infer --objective bottleneck >"$tmp/plan" 2>&1
what=$(sed -n 's/^stage [01]  .*(\(.*\)).*/\1/p; s/.*bottleneck \([0-9.]*\) ms.*/\1/p; s/^\(model_1\):.*/\1/p' "$tmp/plan" |
    paste -s -d' ')
expect "names of types and models" test "$what" = "model_1 a_b a_b_2 1000.000000"

# ---- mistakes --------------------------------------------------------------------------------------------------------
bad=$tmp/bad
mkdir -p "$bad"
wrong() {       # WHAT FILE SED PLACE TEXT [SUFFIX]
    cp "$from/models.yml" "$from/device_types.yml" "$bad"
    printf '%s: [a, b]\n%s: [c]\n' "$small" "$large" >"$bad/devices.yml"
    sed -i "$3" "$bad/$2"
    refuse "$1" 3 "$2:$4: error: .*$5" ./dpgen plan --from "$bad/models.yml${6-:google/vit-base-patch16-224}" --mode infer
}
wrong "which model" models.yml "" 1:1 "which of these models" ""
wrong "no such model" models.yml "" 1:1 "no model is called" ":google/vit-bse-patch16-224"
wrong "a layer too few" models.yml 's/layers: 48/layers: 47/' 8:11 "48 numbers, and the model 47 layers"
wrong "no number" models.yml 's/18.927615999999986/many/' 8:32 "not a finite number"
wrong "an unknown type" devices.yml 's/^RCC.*:/RCX:/' 2:1 "no type 'RCX'"
wrong "no host" devices.yml 's/\[.*/[]/' 1:1 "no type has a host"
wrong "no list of hosts" devices.yml 's/\[c\]/c/' 2:15 "are no list"
wrong "no profile" devices.yml '$a DummyDeviceType: [d]' 3:1 "no profile of google"
wrong "another batch" device_types.yml '0,/batch_size: 8/s//batch_size: 4/' '[0-9]*:5' "no profile of .* with batch_size 4"
wrong "an unknown type of numbers" device_types.yml 's/torch.float32/torch.complex64/' '[0-9]*:14' "no type whose size is known"
wrong "no rate" device_types.yml 's/bw_Mbps: 1000/bw_Mbps: 0/' '[0-9]*:12' "sends nothing"
rm "$bad/devices.yml"
refuse "no hosts at all" 2 "devices.yml: No such file.*lies beside" \
    ./dpgen plan --from "$bad/models.yml:google/vit-base-patch16-224"
finish
