#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The largest micro-batch and the samples/s of exact and of DawnPiper's interval against PipeDream and vPipe.
#
#   run.sh [-o ROWS] [-m "MODEL ..."] [-s "STAGES ..."] [-g "DEVICES ..."] [-p "PLANNER ..."] [PATH=VALUE ...]
#
# plans every model of examples/ named by -m on every device file of devices/ named by -g, as many devices as -s says, with
# every planner of -p, and prints the table of all rows in the file ROWS.  Rows that are there already are not planned again:
# a long run goes on where it ended.  Rules: README.md beside this file.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."
rows=bench/results/dawnpiper.rows models="bert-large gpt2-355m gpt2-774m t5-large" stages="4 8"
devices="rtx2080ti v100-16gb v100-32gb a100-40gb"
planners="pipedream:published pipedream:memflag pipedream:strong vpipe:repo vpipe:paper interval exact"
while getopts o:m:s:g:p: option; do
    case $option in
    o) rows=$OPTARG ;;
    m) models=$OPTARG ;;
    s) stages=$OPTARG ;;
    g) devices=$OPTARG ;;
    p) planners=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
bin=$(mktemp -d) || exit 1
trap 'rm -rf "$bin"' EXIT
trap 'exit 1' HUP INT TERM
make -s build/libgen.a
${CC:-cc} -D_DEFAULT_SOURCE -I. -Igen -Igen/emit -Irt -std=c11 -O2 -o "$bin/row" bench/dawnpiper/row.c build/libgen.a -lyaml -lm
touch "$rows"

for model in $models; do
    for p in $stages; do
        for gpu in $devices; do
            for planner in $planners; do
                grep -q "^$model $p $gpu $planner " "$rows" && continue
                hint=0
                [ "$planner" != exact ] || hint=$(awk -v k="$model $p $gpu" '
                    $1 " " $2 " " $3 == k && $5 > b { b = $5 } END { print b + 0 }' "$rows")
                row=$("$bin/row" "$hint" "examples/$model.yaml" "devices/$gpu.yaml" "$p" "$planner" "$@")
                echo "$model $p $gpu $planner $row" >>"$rows"
            done
        done
    done
done
awk -f bench/dawnpiper/table.awk "$rows"
