#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The schedules of sched/beats.c and of folded pipelines: weight gradients apart, several chunks a device, or both.  A tiny GPT
# with tied weights and dropout gives the bits of 1f1b: on 1 to 4 stages, whatever is recomputed or waits in the host's memory,
# with gradient groups, replicas, fused losses, in bf16, and between two processes.  The predicted step of GPT-2 on 4 stages is
# at least 14 % below that of 1f1b; in 2 GiB, where zb-h1 has no plan, that of zb* is 12 % below.  With plan.chunks: auto
# interleaved is never slower than 1f1b; zb-v is 3 % below it.
#
# SLOW=1: more schedules, and all of them with groups and in bf16.  Then each synchronous schedule, two directions too: with 1,
# 2 and 4 groups, in f32 and bf16, with fused losses and without, recomputed, offloaded, and between processes.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a

model="$models/tiny-gpt.yaml --set train.batch.global=16"
some="'[h.*.ln_*, h.*.gelu, h.1.attention, h.2.dropout, wpe]'"

# line NAME STAGES OPTION...
line() { name=$1 n=$2; shift 2; echo "$name $model --stages $n $*"; }

# plans_of LABEL OPTION...: each schedule once, on 1 to 4 stages, with some fate
plans_of() {
    label=$1
    shift
    line "$label.1f1b" 2 --schedule 1f1b "$@"
    line "$label.1" 1 --schedule 2bp --recompute full "$@"
    line "$label.2" 2 --schedule zb-h1 --recompute "$some" "$@"
    line "$label.3" 3 --schedule zb-h1 --offload "\"['*']\"" "$@"
    line "$label.4" 4 --schedule zb-h2 "$@"
    line "$label.chosen" 3 --schedule "'zb*'" "$@"
    line "$label.interleaved" 2 --schedule interleaved --recompute full "$@"
    line "$label.interleaved-zb" 3 --schedule interleaved-zb --set plan.group=4 "$@"
    line "$label.breadth-first" 2 --schedule breadth-first --set plan.chunks=3 "$@"
    [ -n "$SLOW" ] || return 0
    line "$label.split" 4 --schedule 1f1b-split "$@"
    line "$label.gis" 2 --schedule gis --set plan.chunks=3 --recompute "$some" "$@"
    line "$label.4.full" 4 --schedule zb-h1 --recompute full "$@"
}

# folded LABEL OPTION...: there and back
folded() {
    label=$1
    shift
    line "$label.zb-v" 2 --schedule zb-v --recompute full "$@"
    line "$label.v-half" 3 --schedule v-half "$@"
    line "$label.v-min" 2 --schedule v-min --offload "\"['*']\"" "$@"
    line "$label.dualpipe-v" 2 --schedule dualpipe-v --recompute "$some" "$@"
    line "$label.hanayo" 2 --schedule hanayo --set plan.waves=2 "$@"
    line "$label.row" 3 --set "\"plan.schedule={map: v, group: 3, lead: v*g-1, lag: i}\"" "$@"
}

# two GREP: those plans, for what differs by numbers only; all with SLOW=1
two() { if [ -n "$SLOW" ]; then cat; else grep -E "$1"; fi; }

use_portable
[ -n "$SLOW" ] || arguments="--steps 5"
{ plans_of plain; folded plain; line plain.1f1b-v 3 --schedule 1f1b-v; } | plans
one_hash "zb-h1"
reference=$hash
{ plans_of two --set train.batch.groups=2 | two '^two.(1f1b|interleaved-zb) '
  [ -z "$SLOW" ] || folded two --set train.batch.groups=2
  line two.v-half.replicas 2 --schedule v-half --replicas 2 --set train.batch.groups=2 --set devices.0.count=4
  line two.replicas 2 --schedule zb-h1 --replicas 2 --set train.batch.groups=2 --set devices.0.count=4; } | plans
one_hash "zb-h1, 2 groups"
if [ "$hash" != "$reference" ]; then pass; else fault "2 groups have the hash of 1"; fi
line four.1f1b 2 --schedule 1f1b --set train.batch.groups=4 >"$tmp/four"
line four.3 3 --schedule zb-h1 --set train.batch.groups=4 >>"$tmp/four"
plans <"$tmp/four"
one_hash "zb-h1, 4 groups"

use_bf16
plans_of bf16 --set train.precision.compute=bf16 | two '^bf16.([34]|1f1b) ' | plans
one_hash "zb-h1, bf16"

# ---- a loss whose one call gives both gradients
use_portable
tiny=$model model=$models/heads.yaml
{ line heads.1f1b 1 --schedule 1f1b
  line heads.2 2 --schedule zb-h1 --recompute full
  line heads.v 1 --schedule dualpipe-v
  line heads.3 3 --schedule zb-h1 --cuts 3,7; } | plans
one_hash "zb-h1, fused losses"
four="--set train.batch.global=32 --set train.batch.groups=4"
{ line heads4.1f1b 1 --schedule 1f1b $four
  line heads4.2 2 --schedule zb-h2 $four
  line heads4.v 2 --schedule zb-v --recompute full $four
  line heads4.chosen 2 --schedule "'zb*'" $four; } | plans
one_hash "zb-h1, fused losses, 4 groups"
model=$tiny

# ---- numbers that a row does not allow
refuse "a group that is too small" 3 "set plan.group to 4" \
    ./dpgen plan $model --estimate --stages 3 --schedule interleaved --set plan.group=2
refuse "a last group that is too small" 3 "set plan.group to 4" \
    ./dpgen plan $model --estimate --stages 3 --schedule interleaved
refuse "fewer micro-batches than devices" 3 "as many micro-batches as devices, 4" \
    ./dpgen plan $model --estimate --stages 4 --schedule gis --set train.batch.global=6
refuse "a map" 3 "it deals chunks out in turn" ./dpgen plan $model --estimate --stages 2 --map 0,1,1,0 --schedule breadth-first
refuse "too few micro-batches for zb-v" 3 "4 devices take at least 7 micro-batches, and a replica has 4" \
    ./dpgen plan $model --estimate --stages 4 --schedule zb-v --set train.batch.global=8
refuse "too few micro-batches for dualpipe-v" 3 "take at most 2 stages" \
    ./dpgen plan $model --estimate --stages 3 --schedule dualpipe-v --set train.batch.global=8
refuse "a map of one's own" 3 "delete plan.map" ./dpgen plan $model --estimate --stages 2 --map 0,1,0,1 --schedule v-half
refuse "three chunks" 3 "it takes 2 chunks a device" \
    ./dpgen plan $model --estimate --stages 2 --schedule v-min --set plan.chunks=3
refuse "waves by chunks" 3 "say plan.waves" ./dpgen plan $model --estimate --stages 2 --schedule hanayo --set plan.chunks=4
refuse "waves of a row without" 3 "plan.waves is of schedule hanayo" \
    ./dpgen plan $model --estimate --stages 2 --schedule zb-v --set plan.waves=2
refuse "groups of a row without" 3 "plan.group is of interleaved schedules" \
    ./dpgen plan $model --estimate --stages 2 --schedule 1f1b --set plan.group=2

# ---- a row of the model file
row() {         # WHAT TEXT ROW: refused at the row, and the text
    refuse "a row: $1" 3 "$2" ./dpgen plan $model --estimate --stages 2 --set "plan.schedule=$3"
    [ "$(grep -c '^--set: error: ' "$tmp/said")" = 1 ] && grep -q ' | *^' "$tmp/said" && pass || fault "a row: $1: no place"
}
row "a circle" "3I0 waits for 3F0, which stands behind 3I0; make its lead, p-1-i, larger by" '{map: v, lead: p-1-i, lag: i}'
row "a group" "is 9; take 8" '{lead: p-1-i, group: m+1}'
row "a negative lead" "its lead, p-9, is negative on device 0" '{lead: p-9}'
row "a negative lag" "its lag, -i, is negative on device 1" '{lead: p, lag: -i}'
row "an unknown name" "unknown name 'j'" '{lead: p-1-j}'
row "half a bracket" "')' is expected" '{lead: 2*(p-1-i}'
row "half a beat" "is not an integer" '{lead: p/4}'
row "no lead" "a row has a lead" '{map: v}'
row "an unknown map" "plan.schedule.map: 'x' is not known" '{map: x, lead: p}'
row "an unknown key" "unknown key 'lags' in plan.schedule" '{lead: p, lags: 2}'
row "a name alone" "which gives none" row-v

refuse "chunks in a word" 3 "a number or auto is expected" \
    ./dpgen plan $model --estimate --stages 2 --schedule interleaved --set plan.chunks=many
refuse "cuts for any chunks" 3 "plan.cuts are of one number of chunks" \
    ./dpgen plan $model --estimate --stages 2 --schedule interleaved --set plan.chunks=auto --cuts 5

# ---- two processes
if over_mpi 2 2; then
    { line mpi.2 2 --schedule zb-h1 --set plan.transport=mpi
      line mpi.2.v 2 --schedule zb-v --set plan.transport=mpi
      line mpi.2.away 2 --schedule zb-h1 --offload "\"['*']\"" --set plan.transport=mpi; } | plans
    one_hash "zb-h1, mpi" "$reference"
fi

# ---- what it is for
step_of() {
    ./dpgen plan examples/gpt2-124m.yaml --estimate --stages 4 --set devices.0.kernels=onednn --json --schedule "$@" |
        sed -n 's/.*"step_ns": *\([0-9]*\).*/\1/p'
}
one=$(step_of 1f1b) zb=$(step_of zb-h1)
if [ -n "$zb" ] && [ $((zb * 100)) -le $((one * 86)) ]; then pass; else fault "GPT-2: $zb ns with zb-h1, $one with 1f1b"; fi
folded=$(step_of zb-v)
if [ -n "$folded" ] && [ $((folded * 100)) -le $((one * 97)) ]; then pass
else fault "GPT-2: $folded ns with zb-v, $one with 1f1b"; fi
same="--set plan.chunks=2 --cuts 0,27,50,92,96,121,122"
folded=$(step_of zb-v $same) best=$(step_of optimal $same)
if [ -n "$best" ] && [ $((best * 100)) -le $((folded * 95)) ]; then pass
else fault "GPT-2, the cuts of zb-v: $best ns with optimal, $folded with zb-v"; fi
# All lists that a search begins with are improved, as far as its steps go: with four of twelve it was 14 % above its bound
./dpgen plan examples/gpt2-124m.yaml --estimate --stages 4 --schedule optimal --set plan.chunks=2 --json >"$tmp/two"
two=$(sed -n 's/.*"step_ns": *\([0-9]*\).*/\1/p' "$tmp/two")
bound=$(sed -n 's/.*"step_bound_ns": *\([0-9]*\).*/\1/p' "$tmp/two")
if [ -n "$two" ] && [ -n "$bound" ] && [ $((two * 100)) -le $((bound * 105)) ]; then pass
else fault "GPT-2 in two chunks: $two ns with optimal, its bound $bound"; fi
many=$(step_of interleaved --set plan.chunks=auto)
if [ -n "$many" ] && [ "$many" -le "$one" ]; then pass; else fault "GPT-2: $many ns interleaved, $one with 1f1b"; fi
tight="-D L=6 --recompute auto --limit 2GiB" least=91
[ -z "$SLOW" ] || tight="--recompute auto --limit 2GiB" least=88
one=$(step_of 1f1b $tight) chosen=$(step_of 'zb*' $tight)
if [ -n "$chosen" ] && [ $((chosen * 100)) -le $((one * least)) ]; then pass
else fault "GPT-2 in 2 GiB: $chosen ns with zb*, $one with 1f1b"; fi
[ -z "$SLOW" ] || refuse "zb-h1 in 1800 MiB" 4 "schedule 'zb\*'" \
    ./dpgen plan examples/gpt2-124m.yaml --estimate --stages 4 --schedule zb-h1 --recompute auto --limit 1800MiB
# Plans of one chunk a device and of two are no seeds of each other
[ -z "$SLOW" ] || refuse "optimal with any chunks" 0 "^predicted step" \
    ./dpgen plan examples/gpt2-774m.yaml --estimate --stages 4 --devices devices/a100-40gb.yaml --recompute auto \
    --set train.batch.micro=4 --set train.batch.global=64 --schedule optimal --set plan.chunks=auto
tiny_step() { ./dpgen plan "$models/tiny-gpt.yaml" "$@" 2>"$tmp/said" | sed -n 's/.*"step_ns": *\([0-9]*\).*/\1/p'; }
# From the least limit of 1f1b on: never lost, nor slower, with I and W in one where there is no room
for limit in 330000 350000 376499 404749; do
    tight="--set train.batch.global=16 --stages 2 --recompute auto --estimate --limit $limit --json"
    want=$(tiny_step $tight --schedule 1f1b) got=$(tiny_step $tight --schedule 1f1b-split)
    if [ -n "$want" ] && [ "${got:-$((want + 1))}" -le "$want" ]; then pass
    else fault "in $limit bytes: $got ns with 1f1b-split, $want with 1f1b"; fi
done
if [ -z "$SLOW" ] || [ "$(step_of 'zb*')" -le "$zb" ]; then pass; else fault "GPT-2: zb* is slower than zb-h1, $zb ns"; fi

# ---- each synchronous schedule has the bits of 1f1b: 1,008 jobs
# each LABEL GROUPS PRECISION TRANSPORT FATE...: of $model on two stages
each() {
    label=$1 groups=$2 compute=$3 transport=$4
    shift 4
    for one in $rows; do
        case $groups.$one in 1.chimera | 1.bitpipe | 1.dualpipe) continue ;; esac
        for fate in "$@"; do
            case $fate in none) with_fate= ;; full) with_fate="--recompute full" ;; *) with_fate="--offload \"['*']\"" ;; esac
            line "$label.$(echo "$one" | tr '*' s).$fate" 2 --schedule "'$one'" --set train.batch.groups=$groups \
                --set train.precision.compute=$compute --set plan.transport=$transport $with_fate
        done
    done
}
rows=$(awk -F'"' '/^SCHEDULE/ { name = $2; row[name] = "" } name { row[name] = row[name] $0 } /^LATER/ { name = "" }
    END { for (n in row) if (n !~ /^row/ && row[n] !~ /\.(async|given) = true/) print n }' gen/schedules.def | sort)
for case in ${SLOW:+f32:1 f32:2 f32:4 bf16:1 bf16:2 bf16:4}; do
    compute=${case%:*} groups=${case#*:} even="--planner even"
    for model in "$tiny" "$models/heads.yaml --set train.batch.global=32"; do
        if [ $compute = f32 ]; then use_portable; else use_bf16; fi
        quick=$(command -v tcc)
        each $case $groups $compute local none full away | plans
        one_hash "each schedule, $case" "$(sed -n "s/^$case.1f1b.none //p" "$tmp/result")"
        reference=$hash
        if over_mpi 2 22; then
            quick=$(command -v tcc)
            each $case $groups $compute mpi none | plans
            one_hash "each schedule, $case, mpi" "$reference"
        fi
    done
done
model=$tiny
finish
