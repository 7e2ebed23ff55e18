#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Images: the pipelines of AmoebaNet-D that GPipe and torchgpipe published, and MadPipe's four networks at 1000 x 1000.
#
#   images.sh gpipe | madpipe [-m "MODEL ..."] [-s "STAGES ..."] [-l "GIB ..."]
#
# prints a table of plans from device files (--estimate); nothing runs on a GPU.
#
#   gpipe    schedule gpipe, 128 micro-batches of 1, f32, RMSprop without momentum, everything recomputed, devices of 24 GB; the
#            cut into runs of equal time.  Bytes of all devices: `model` is what lives for ever, parameters, gradients, moments;
#            `rest` is the arenas less that; `largest` is one arena.  torchgpipe: benchmarks of its docs, GiB, a P40 a stage;
#            what it says of 12 bytes a parameter is `model` here
#   madpipe  16 micro-batches of 8, V100s whose memory is -l, everything kept; the step in ms of MadPipe's planner, by 1f1b, for
#            its map has several chunks on one device; of the best straight pipeline of layers and of exact, by 1f1b*, with as
#            many micro-batches in flight as fit; -: nothing fits
# MODELS of madpipe: a file of examples/, or resnet101, which is resnet50.yaml with 23 blocks in its third part
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."
kind=${1:-}
[ $# = 0 ] || shift
models="resnet50 resnet101 inception-v3 densenet121" stages="2 4 8" limits="8 16 32"
while getopts m:s:l: option; do
    case $option in
    m) models=$OPTARG ;;
    s) stages=$OPTARG ;;
    l) limits=$OPTARG ;;
    *) exit 2 ;;
    esac
done
bin=$(mktemp -d) || exit 1
trap 'rm -rf "$bin"' EXIT
trap 'exit 1' HUP INT TERM

# planned STATUSES COMMAND...: its output is in $bin/json; a status beside those ends the script
planned() {
    ok=$1 status=0
    shift
    "$@" >"$bin/json" 2>"$bin/said" || status=$?
    case " $ok " in *" $status "*) ;; *) cat "$bin/said" >&2; exit 1 ;; esac
}

gpipe() {       # LAYERS FILTERS STAGES: model, rest and largest in GiB
    planned "0 4" ./dpgen plan examples/amoebanet-d.yaml -D L="$1" -D F="$2" --devices devices/v100-32gb.yaml \
        --set devices.0.count="$3" --limit 24000MiB --stages "$3" --schedule gpipe --recompute full --planner even --estimate \
        --set train.optimizer.type=rmsprop --set train.optimizer.momentum=0 --json
    [ "$status" = 0 ] || { printf "%-26s" "does not fit"; return; }
    sed -n 's/.*"arena_bytes": \([0-9]*\).*"state_bytes": \([0-9]*\).*/\1 \2/p' "$bin/json" | awk '
        { model += $2; rest += $1 - $2; if ($1 > most) most = $1 }
        END { g = 1024 * 1024 * 1024; printf "%8.2f %8.2f %8.2f", model / g, rest / g, most / g }'
}

steps() {       # MODEL STAGES GIB SCHEDULE PLANNERS: lines of planner and step, of those that fit
    file=$1 blocks=
    case $1 in resnet101) file=resnet50 blocks="-D N3=23" ;; esac
    # shellcheck disable=SC2086
    planned "0 4" ./dpgen compare "examples/$file.yaml" -D S=1000 $blocks --devices devices/v100-16gb.yaml --limit "$3GiB" \
        --set train.batch.micro=8 --set train.batch.global=128 --stages "$2" --schedule "$4" --recompute none --estimate \
        --quick --planners "$5" --json
    sed -n 's/.*"planner": "\([^"]*\)", "fits": true, "step_ns": \([0-9]*\).*/\1 \2/p' "$bin/json"
}

madpipe() {     # MODEL STAGES GIB: the step of each planner
    { steps "$@" 1f1b madpipe; steps "$@" '1f1b*' pipedream:strong,exact; } | awk '
        { step[$1] = $2 / 1e6 }
        END {
            split("madpipe pipedream:strong exact", p, " ")
            for (i = 1; i <= 3; i++) printf " %10s", p[i] in step ? sprintf("%.1f", step[p[i]]) : "-"
            if (p[2] in step && (!(p[3] in step) || step[p[3]] > step[p[2]])) printf "   exact is worse"
        }'
}

case $kind in
gpipe)
    echo "   L   F  stages      parameters     model     rest  largest    torchgpipe: model, activations"
    while read -r layers filters count stages model rest; do
        values=$(gpipe "$layers" "$filters" "$stages")
        printf "%4s %3s %7s %15s  %s    %s %s\n" "$layers" "$filters" "$stages" "$count" "$values" "$model" "$rest"
    done <<'END'
18 416 319,024,120 1 3.57 0.91
18 544 542,734,840 2 6.07 3.39
36 544 1,055,832,376 4 11.80 6.91
72 512 1,844,858,344 8 20.62 10.83
END
    ;;
madpipe)
    echo "model         p  GiB     madpipe     layers      exact"
    for model in $models; do
        for p in $stages; do
            for gib in $limits; do
                row=$(madpipe "$model" "$p" "$gib")
                printf "%-12s %2s %4s %s\n" "$model" "$p" "$gib" "$row"
            done
        done
    done ;;
*)
    echo "usage: images.sh gpipe | madpipe [-m MODELS] [-s STAGES] [-l GIB]" >&2
    exit 2 ;;
esac
