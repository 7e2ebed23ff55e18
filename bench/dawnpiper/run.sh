#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The largest micro-batch and the samples/s of exact and of DawnPiper's interval against PipeDream and vPipe.
#
#   run.sh [-o ROWS] [-m "MODEL ..."] [-s "STAGES ..."] [-g "DEVICES ..."] [-p "PLANNER ..."] [-t SECONDS]
#
# plans every model of examples/ named by -m on every device file of devices/ named by -g, as many devices as -s says, with
# every planner of -p, and prints the table of all rows in the file ROWS.  Rows that are there already are not planned again:
# a long run goes on where it ended.  SECONDS of the processor bound one size of exact and interval; a row that gave sizes
# up says so.  Rules: README.md beside this file.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."
rows=bench/results/dawnpiper.rows models="bert-large gpt2-355m gpt2-774m t5-large" stages="4 8"
devices="rtx2080ti v100-16gb v100-32gb a100-40gb" seconds=20
planners="pipedream:published pipedream:memflag pipedream:strong vpipe:repo vpipe:paper exact interval"
while getopts o:m:s:g:p:t: option; do
    case $option in
    o) rows=$OPTARG ;;
    m) models=$OPTARG ;;
    s) stages=$OPTARG ;;
    g) devices=$OPTARG ;;
    p) planners=$OPTARG ;;
    t) seconds=$OPTARG ;;
    *) exit 2 ;;
    esac
done
bin=$(mktemp -d) || exit 1
trap 'rm -rf "$bin"' EXIT
trap 'exit 1' HUP INT TERM
make -s build/libgen.a
${CC:-cc} -D_DEFAULT_SOURCE -I. -Igen -Igen/emit -Irt -std=c11 -O2 -o "$bin/row" bench/dawnpiper/row.c build/libgen.a -lyaml -lm
touch "$rows"

# Of the rows of other systems on the same model and machine: the largest size (column 7), the best size of the fastest (9).
start() {
    awk -v k="$1 $2 $3" '$1 " " $2 " " $3 == k && $4 !~ /^(exact|interval)/ {
        if ($7 > b) b = $7
        if ($10 > rate) { rate = $10; best = $9 }
    } END { if (b) print "-b", best, "-f", b }' "$rows"
}

for planner in $planners; do
    for model in $models; do
        for p in $stages; do
            for gpu in $devices; do
                grep -q "^$model $p $gpu $planner " "$rows" && continue
                case $planner in
                exact) how="-t $seconds $(start "$model" "$p" "$gpu")" ;;
                interval*) how="-t $seconds" ;;
                *) how= ;;
                esac
                row=$("$bin/row" $how "examples/$model.yaml" "devices/$gpu.yaml" "$p" "$planner")
                echo "$model $p $gpu $planner $row" >>"$rows"
            done
        done
    done
done
awk -f bench/dawnpiper/table.awk "$rows"
