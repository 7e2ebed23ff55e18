#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The largest micro-batch and the samples/s of exact and of DawnPiper's interval against PipeDream and vPipe.
#
#   run.sh [async | offload | chunked] [--quick] [-o ROWS] [-m "MODEL ..."] [-s "STAGES ..."] [-g "DEVICES ..."]
#          [-p "PLANNER ..."] [PATH=VALUE ...]
#
# plans every model of examples/ named by -m on every device file of devices/ named by -g, as many devices as -s says, with
# every planner of -p, and prints the table of all rows in the file ROWS.  Rows that are there already are not planned again:
# a long run goes on where it ended.  Where -p has exact, it is also planned at the largest micro-batch of each rival (rows
# exact@B); --quick makes these rows and no others.  Rules, also those of the other tables: README.md beside this file.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."
models="bert-large gpt2-355m gpt2-774m t5-large" stages="4 8" devices="rtx2080ti v100-16gb v100-32gb a100-40gb"
planners="pipedream:published pipedream:memflag pipedream:strong vpipe:repo vpipe:paper interval exact"
kind=${1:-}
case $kind in
async)
    shift
    models="gpt2-355m gpt2-774m"
    title="asynchronous: schedule pipedream (weight stashing) for every row; the head has a weight of its own (untied)"
    set -- "$@" plan.schedule=pipedream train.clip_scope=parameter ;;
offload)
    shift
    models="gpt2-355m gpt2-774m"
    title="with offload: plan.offload=auto for every row, over the link to the host of the device file"
    set -- "$@" plan.offload=auto ;;
chunked)
    shift
    models="gpt2-355m gpt2-774m" stages=4 devices="rtx2080ti v100-16gb" planners="vpipe:paper interval exact"
    title="synchronous, no offload; LinearCrossEntropy in place of Linear and SoftmaxCrossEntropy" ;;
*)
    kind= title="synchronous: schedule 1f1b, no offload" ;;
esac
rows=bench/results/dawnpiper${kind:+-$kind}.rows
quick=
[ "${1:-}" != --quick ] || { quick=1; shift; }
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
${CC:-cc} -D_DEFAULT_SOURCE -I. -Igen -Irt -std=c11 -O2 -o "$bin/row" bench/dawnpiper/row.c \
    build/libgen.a -lyaml -lm -ldl
touch "$rows"

# Weights that two stages read cannot be stashed on both: every tied one is made two.
untied() {
    sed 's/, tie: [a-z_.]*//' "examples/$1.yaml" >"$bin/$1.yaml"
    ! cmp -s "examples/$1.yaml" "$bin/$1.yaml" || { echo "run.sh: examples/$1.yaml ties nothing" >&2; exit 1; }
}

# The head and its loss as one operator: one line in place of two.
chunked() {
    sed -e '/op: Linear, name: lm_head/d' -e 's/op: SoftmaxCrossEntropy,/op: LinearCrossEntropy, name: lm_head, out: V,\
       bias: false, tie: wte,/' "examples/$1.yaml" >"$bin/$1.yaml"
    grep -q LinearCrossEntropy "$bin/$1.yaml" || { echo "run.sh: examples/$1.yaml has no such head" >&2; exit 1; }
}

row() {     # HINT NAME PLANNER: a row, unless it is there
    grep -q "^$model $p $gpu $2 " "$rows" && return
    values=$("$bin/row" "$1" "$file" "devices/$gpu.yaml" "$p" "$micro" "$3" $sets)
    echo "$model $p $gpu $2 $values" >>"$rows"
}

# Sizes of rivals, each once; or the largest of all, for a hint.
sizes() { awk -v k="$model $p $gpu" '$1 " " $2 " " $3 == k && $4 !~ /^exact/ && $5 > 0 { print $5 }' "$rows" | sort -nu; }

planned() {
    for planner in $planners; do
        hint=0
        [ "$planner" != exact ] || hint=$(sizes | tail -n 1)
        [ "$quick" ] || row "${hint:-0}" "$planner" "$planner"
    done
    case " $planners " in *" exact "*) for b in $(sizes); do row "=$b" "exact@$b" exact; done ;; esac
}

sets=$*
for model in $models; do
    file=examples/$model.yaml
    case $model in gnmt-16) sed 's/N: 4}/N: 8}/' examples/gnmt-8.yaml >"$bin/$model.yaml" ;; esac
    case $kind in async) untied "$model" ;; chunked) chunked "$model" ;; esac
    [ ! -e "$bin/$model.yaml" ] || file=$bin/$model.yaml
    for p in $stages; do
        micro=$((4 * p))
        [ "$kind" != async ] || micro=1             # an update for every micro-batch
        for gpu in $devices; do planned; done
    done
done
awk -v title="$title" -f bench/dawnpiper/table.awk "$rows"
