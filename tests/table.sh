#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Schedules as tables.  Each one that dpgen schedules --csv writes is read back as the same plan: the folder is the same but for
# the name.  Cells stand where unit times put them.  A job of a table has the bits of 1f1b.  Whatever is wrong with a table is
# named at its cell, with status 3, and nothing is written.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a

model="$models/tiny-gpt.yaml"
plain() { sed -e "s/\"schedule\": \"$2\"/NAME/; s/schedule $2,/NAME/; s/\([^_]\)$2, /\1NAME /" -e 's/"bound_over": "[^"]*"//' \
    -e 's/[0-9a-f]\{64\}//' "$1"; }

# ---- round trip: every schedule that has a table
trips=0
for name in $(./dpgen --schedule '?' | sed '1d; s/ .*//' | grep -vx stream); do         # it has no backward
    options="--estimate --stages 2 --planner even"
    ./dpgen schedules $model --stages 2 --csv "$name" >"$tmp/table.csv" 2>"$tmp/said"
    case $? in 0) ;; 2) continue ;; *) fault "$name: $(cat "$tmp/said")"; continue ;; esac
    trips=$((trips + 1))
    rm -rf "$tmp/a" "$tmp/b"
    ./dpgen $model $options --schedule "$name" -o "$tmp/a" >"$tmp/said" 2>&1 || fault "$name: $(cat "$tmp/said")"
    ./dpgen $model $options --schedule auto --order "$tmp/table.csv" -o "$tmp/b" >"$tmp/said" 2>&1 ||
        fault "$name, read back: $(cat "$tmp/said")"
    expect "$name: times" cmp "$tmp/a/trace.json" "$tmp/b/trace.json"
    for file in stage0.c stage0.h stage1.c stage1.h launch.c plan.json; do
        plain "$tmp/a/$file" "$name" >"$tmp/of.a"
        plain "$tmp/b/$file" table >"$tmp/of.b"
        expect "$name: $file: $(diff "$tmp/of.a" "$tmp/of.b" | sed -n 2p)" cmp "$tmp/of.a" "$tmp/of.b"
    done
done
expect "at least fifteen of them: $trips" test $trips -ge 15
./dpgen schedules $model --stages 2 --csv zb-h1 -o "$tmp/table.csv" >"$tmp/said" 2>&1
cat >"$tmp/want" <<'TABLE'
0F0,0F1,,0I0,0W0,0F2,0I1,0W1,0F3,0I2,0W2,0I3,0W3
,1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1F3,1I3,1W2,1W3
TABLE
expect "zb-h1: 3m+p-1 columns" cmp "$tmp/want" "$tmp/table.csv"
sed 's/^  *//' >"$tmp/pairs.csv" <<'TABLE'
0F0, 0F1,,(0F2;0B0)OVERLAP_F_B,,0F3,0I1,0W1,0B2,,0B3
,1F0,1B0,,1F1,1B1,,1F2,1B2,,1F3,1B3,

TABLE
use_portable
{ echo "1f1b $model --stages 2 --schedule 1f1b"
  echo "pairs $model --stages 2 --schedule auto --order $tmp/pairs.csv"
  echo "table $model --stages auto --schedule table --order $tmp/table.csv"; } | plans
one_hash "jobs of tables"

# ---- what is wrong: wrong WHAT PLACE TEXT ROW...
wrong() {
    what=$1 place=$2 text=$3
    shift 3
    printf '%s\n' "$@" >"$tmp/bad.csv"
    rm -rf "$tmp/out"
    refuse "$what" 3 "bad.csv:$place: error: $text" \
        ./dpgen $model --estimate --schedule auto --stages auto --order "$tmp/bad.csv" -o "$tmp/out"
    [ ! -e "$tmp/out" ] && pass || fault "$what: something is written"
}
wrong "an empty file" 1:1 "the table is empty" ""
wrong "a row too few" 1:1 "no row has stage 1, and there is a stage 2" 0F0,2F0,2B0,0B0
wrong "a row without cells" 2:1 "a row without a cell" 0F0,0B0 ,, 1F0,1B0
wrong "a cell twice" 1:9 "0F1: 0F1 is in line 1, column 5 already" 0F0,0F1,0F1,0B0,0B1
wrong "B and I of one" 1:9 "0I0: 0B0 is in line 1, column 5 already" 0F0,0B0,0I0
wrong "a cell that is missing" 1:1 "stage 0 has no 0W1, and the table has 2 micro" 0F0,0F1,0I0,0W0,0I1
wrong "a B that is missing" 1:1 "stage 0 has no 0B1, and the table has 2 micro" 0F0,0F1,0B0
wrong "a mark of UTF-8 is no part of a cell" 1:1 "stage 0 has no 0B1" "$(printf '\357\273\277')0F0,0F1,0B0"
wrong "no cell" 1:5 "'0X0' is no cell" 0F0,0X0
wrong "a number too large" 1:5 "a number of more than 6 digits" 0F0,1234567F0
wrong "a stage on two devices" 2:5 "stage 0 is on two devices: row 1 has it from line 1, column 1 on" 0F0,0B0 1F0,0F1
wrong "W before I" 1:5 "0W0 has no 0I0 before it" 0F0,0W0,0I0
wrong "B before F" 1:1 "0B0 has no 0F0 before it" 0B0,0F0
wrong "W descending" 1:21 "0W0 stands behind micro-batch 1" 0F0,0F1,0I0,0I1,0W1,0W0
wrong "a circle" '[12]:[0-9]*' "the lists wait in a circle: 0B0 waits for 1B0, which stands behind 1F1" \
    0F0,0B0,0F1,0B1 1F0,1F1,1B0,1B1
wrong "a circle of one device" 1:1 "the lists wait in a circle: 1F0 waits for 0F0, which stands behind 1F0 in line 1" \
    1F0,0F0,1B0,0B0

order() { what=$1 status=$2 text=$3; shift 3; refuse "$what" "$status" "$text" ./dpgen plan $model --estimate "$@"; }
order "other micro-batches" 3 "has 4 micro-batches, and a replica has 8" --order "$tmp/table.csv" --schedule auto \
    --stages auto --set train.batch.global=16
order "other stages" 3 "the table of plan.order has 2 devices" --order "$tmp/table.csv" --schedule auto --stages 3
order "a schedule beside it" 3 "is a schedule of its own, and plan.schedule is zb-h1" --order "$tmp/table.csv" --schedule zb-h1
order "a map beside it" 3 "the table of plan.order says where" --order "$tmp/table.csv" --schedule auto --stages auto --map 0,1
order "no table" 3 "plan.order names none" --schedule table
order "no file" 2 "cannot read $tmp/none.csv" --order "$tmp/none.csv" --schedule auto
refuse "a table of 2bw" 2 "its steps overlap" ./dpgen schedules $model --stages 2 --csv 2bw
refuse "a table of 1f1b*" 2 "follow from the times" ./dpgen schedules $model --stages 2 --csv '1f1b*'
refuse "a table of chimera" 2 "on two devices" ./dpgen schedules $model --stages 2 --csv chimera
refuse "a table of zbv" 2 "did you mean 'zb-v'?" ./dpgen schedules $model --stages 2 --csv zbv
refuse "a table of too few micro-batches" 3 "4 devices take at least 7" ./dpgen schedules $model --stages 4 --csv zb-v
refuse "a table of any stages" 3 "one number of stages" ./dpgen schedules $model --stages auto --csv zb-v
refuse "two forms" 2 "two forms of one output" ./dpgen schedules $model --stages 2 --csv zb-v --json
refuse "a table of plan" 2 "no use for --csv" ./dpgen plan $model --csv zb-v

# ---- a million cells: read and judged, and refused only for their number
awk 'BEGIN { for (d = 0; d < 2; d++) { for (m = 0; m < 250000; m++) printf "%s%dF%d", m ? "," : "", d, m
                                       for (m = 0; m < 250000; m++) printf ",%dB%d", d, m
                                       print "" } }' >"$tmp/many.csv"
refuse "a million cells within a second of CPU time" 3 "has 250000 micro-batches" sh -c 'ulimit -t 1; exec "$@"' - \
    ./dpgen plan $model --estimate --schedule auto --stages auto --order "$tmp/many.csv"
finish
