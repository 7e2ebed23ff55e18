#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What `dpgen plan` and `dpgen explain` say beside the plan: the price of a neighbouring cut is the step of a plan that is
# given that cut, and of a result that is kept instead, the step of a plan that keeps it.  (That the bytes at the peak add
# up to the lower bound is checked by dpgen itself.)
#
. "$(dirname "$0")/lib.sh"
need dpgen

step() { ./dpgen plan "$@" --json 2>"$tmp/said" | sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p' | head -n 1; }
cuts_of() { sed -n 's/^  after \([0-9]*\), .*/\1/p' "$tmp/view" | tr '\n' ' '; }

# neighbours MODEL OPTION...: what `explain` says of each cut: the step, were it one operator earlier, or later
neighbours() {
    ./dpgen plan "$@" >"$tmp/view" 2>&1 || { fault "$*: $(tail -n 1 "$tmp/view")"; return; }
    base=$(step "$@")
    all=$(cuts_of)
    [ -n "$all" ] || fault "$*: no cuts are shown"
    i=0
    for cut in $all; do
        i=$((i + 1))
        ./dpgen explain "$@" "$(sed -n "s/^  after $cut, //p" "$tmp/view")" >"$tmp/moved" 2>&1
        for side in earlier later; do
            if [ $side = earlier ]; then to=$((cut - 1)); else to=$((cut + 1)); fi
            said=$(sed -n "s/^the step, .*$side: \([-+.0-9]* ms\|[a-z0-9 ]*\)[,;].*/\1/p" "$tmp/moved")
            list=$(echo $all | awk -v i=$i -v to=$to '{ $i = to; gsub(" ", ","); print }')
            other=$(step "$@" --cuts "$list")
            if [ -z "$other" ]; then
                case $said in *" ms" | "") fault "$*: cut $cut $side: '$said', and there is no such plan" ;; *) pass ;; esac
                continue
            fi
            want=$(awk -v a="$other" -v b="$base" 'BEGIN { printf "%+.3f ms", (a - b) / 1e6 }')
            [ "$said" = "$want" ] && pass || fault "$*: cut $cut $side: '$said', not '$want'"
        done
    done
}
neighbours $models/tiny-gpt.yaml --estimate --stages 4 --schedule 1f1b
neighbours $models/tiny-t5.yaml --estimate --stages 3 --schedule gpipe
neighbours $models/branches.yaml --estimate --stages 2 --schedule 1f1b

gpt="$models/tiny-gpt.yaml --estimate --stages 2 --schedule 1f1b --recompute"
./dpgen explain $gpt none h.0.gelu >"$tmp/view" 2>&1
expect "what is kept" grep -q "^  kept; keeping it holds" "$tmp/view"
./dpgen explain $gpt full h.0.gelu >"$tmp/view" 2>&1
expect "what is made again" grep -q "^  made again; keeping it holds" "$tmp/view"
kept=$(step $gpt full --cuts "$(./dpgen plan $gpt full | sed -n 's/^  after \([0-9]*\), .*/\1/p')" \
    --set 'plan.constraints=[{keep: h.0.gelu}]') full=$(step $gpt full)
expect "the price of keeping it" grep -q -e "were it kept, the step would change by $(awk -v a="$kept" -v b="$full" \
    'BEGIN { printf "%+.3f ms", (a - b) / 1e6 }')" "$tmp/view"
# A price of nothing has a reason: what the plan that keeps it pays, by such a plan
tight="$gpt auto --limit 360KiB"
arena() { ./dpgen plan "$@" --json 2>"$tmp/said" | sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p' | head -n 1; }
cuts=$(./dpgen plan $tight 2>/dev/null | sed -n 's/^  after \([0-9]*\), .*/\1/p') keep='plan.constraints=[{keep: h.1.ln_1}]'
./dpgen explain $tight h.1.ln_1 >"$tmp/view" 2>&1
expect "kept at no price: the same step" test "$(step $tight)" = "$(step $tight --cuts "$cuts" --set "$keep")"
more=$(($(arena $tight --cuts "$cuts" --set "$keep") - $(arena $tight)))
expect "says so, and what it takes" grep -q "would be the same; the arena of stage 0 would be $(awk -v n=$more 'BEGIN {
    printf "%.2f KiB", n / 1024 }') larger" "$tmp/view"
refuse "a wrong name" 2 "did you mean 'h.0.gelu'" ./dpgen explain $gpt none h.0.gelo
refuse "no name" 2 "explain needs a name" ./dpgen explain $gpt none
refuse "a wrong block" 2 "did you mean 'h.2'" ./dpgen explain $gpt none h.22
refuse "no neighbours" 2 "not adjacent; after h.0.gelu comes h.0.mlp.c_proj" ./dpgen explain $gpt none h.0.gelu h.1.gelu

# ---- everything that has a name --------------------------------------------------------------------------------------
says() {        # LINE NAME...: explain says this line of what is called so
    line=$1
    shift
    ./dpgen explain $gpt none "$@" >"$tmp/view" 2>&1
    grep -q -e "$line" "$tmp/view" && pass || fault "explain $*: no line '$line': $(head -n 3 "$tmp/view")"
}
# f32 [96, 24] is 9 KiB; AdamW has two moments
says "^at the peak of stage 0 parameters 9.00 KiB, gradients 9.00 KiB, moments 18.00 KiB" h.0.mlp.c_fc.weight
says "^h.0.mlp.c_fc.weight  parameter" h.0.mlp.c_fc.weight.m
says "^sent    stage 0 to 1, .* after each update" wte.weight            # tied to the head, on the other stage
says "^read    by lm_head (stage 1)" wte.weight
says "^place   stage 0, which loads it" tokens
says "^place   stage 1, which loads it" targets
says "^result h.0.ln_1.mean: f32 \[2, 16\], 128 bytes" h.0.ln_1.mean
says "^made    by the backward of h.0.mlp.c_proj (stage 0)" d.h.0.gelu
says "^place   it stays on its stage" d.h.0.gelu
says "^h.0.dropout is one call with h.0.add" h.0.dropout
says "^h.0.add is one call with h.0.dropout" h.0.add
says "^no cut between h.0.dropout and h.0.add: they are one call" h.0.dropout h.0.add
./dpgen plan $gpt none >"$tmp/plan" 2>&1
sed -n '/^stage 1/,/^  policy/p' "$tmp/plan" >"$tmp/stage"
./dpgen explain $gpt none 1 >"$tmp/view" 2>&1
expect "a stage" sh -c 'head -n "$(wc -l <"$1")" "$2" | cmp - "$1"' - "$tmp/stage" "$tmp/view"

# The note of a proof is that of plan.json, and so is its absence
for planner in exact even; do
    ./dpgen plan $gpt auto --planner $planner 2>"$tmp/said" | sed -n 's/^  note *//p' >"$tmp/want"
    ./dpgen plan $gpt auto --planner $planner --json 2>"$tmp/said" | sed -n 's/^ "note": "\(.*\)",$/\1/p' >"$tmp/note"
    [ -s "$tmp/want" ] || echo >"$tmp/want"
    expect "the note of $planner" cmp "$tmp/want" "$tmp/note"
done
expect "a proof has a note" test "$(./dpgen plan $gpt auto --json 2>&1 | grep -c '^ "note": "no plan of this space')" = 1

# joined: who is no operator any more is named beside the one that does its work, on its stage, in plan.json and report.html
names() { sed -n "s/^ *\"$1\": [[{]\(.*\)[]}],\$/\1/p" "$tmp/$2" | tr -d ' "' | tr ',' '\n'; }
for fuse in auto none; do
    ./dpgen $gpt none --fuse $fuse -o "$tmp/$fuse" >"$tmp/said" 2>&1 || fault "fuse $fuse: $(tail -n 1 "$tmp/said")"
done
names operators none/plan.json | sort >"$tmp/apart"
{ names operators auto/plan.json; names joined auto/plan.json | sed 's/:.*//'; } | sort >"$tmp/together"
expect "every operator is named" cmp "$tmp/apart" "$tmp/together"
expect "none are joined" [ "$(names joined none/plan.json | tr -d '\n')" = "" ]
pairs="h.0.dropout:h.0.add h.1.dropout:h.1.add h.2.dropout:h.2.add "
expect "with whom" [ "$(names joined auto/plan.json | tr '\n' ' ')" = "$pairs" ]
awk '/"operators"/ { mine = $0 } /"joined"/ { for (h = 0; h < 3; h++)
    bad += (index(mine, "\"h." h ".add\"") > 0) != (index($0, "\"h." h ".dropout\"") > 0) } END { exit bad }' \
    "$tmp/auto/plan.json" && pass || fault "plan.json: joined with an operator of another stage"
for pair in $pairs; do
    expect "$pair in the report" grep -q "<code>${pair%:*}</code> in <code>${pair#*:}</code>" "$tmp/auto/report.html"
done
if grep -q "joined to one call" "$tmp/none/report.html"; then fault "the report of --fuse none"; else pass; fi

# blocks: the bytes of all results, by the dump of the graph, whatever becomes of them
bytes_of() { awk '/^results/ { gsub(";", ","); n = split($0, part, ", "); for (i = 2; i <= n; i += 2) { split(part[i], w, " ")
    sum += w[1] * (w[2] == "KiB" ? 1024 : w[2] == "MiB" ? 1048576 : 1) } printf "%d", sum }' "$tmp/view"; }
for how in none full; do
    for block in h h.1; do
        want=$(./dpgen plan $gpt $how -d f | sed -n "s/^tensor $block\..* kind=act .* bytes=\([0-9]*\) .*/\1/p" |
            awk '{ sum += $1 } END { print sum }')
        ./dpgen explain $gpt $how $block >"$tmp/view" 2>&1
        got=$(bytes_of)
        [ $((got - want)) -gt -64 ] && [ $((got - want)) -lt 64 ] && pass || fault "$block, $how: $got bytes, not $want"
    done
done
expect "a block that is made again" grep -q "made again, " "$tmp/view"

# cuts: what crosses one is what is sent from the one side to the other, near or far; no cut: the step with that one
crossed() {
    sed -n 's/^crossed by \(.*\) (a micro-batch)$/\1/p' "$tmp/view" | tr ',' '\n' | awk '{ print $1 }' | sort -u | tr '\n' ' '
}
cuts_explained() {      # OPTION...
    ./dpgen plan "$@" -d pc >"$tmp/dump" 2>&1
    ./dpgen plan "$@" >"$tmp/view" 2>&1
    i=0
    for at in $(cuts_of); do
        one=$(awk -v n="$at" '/^place F:/ && k++ == n { print substr($2, 3) }' "$tmp/dump")
        two=$(awk -v n="$at" '/^place F:/ && k++ == n + 1 { print substr($2, 3) }' "$tmp/dump")
        want=$(awk -v i=$i '/^action/ && / kind=send / && / mb=0 / && / tensor=/ { split($2, d, ":")
            match($0, / peer=[0-9]+/); to = substr($0, RSTART + 6, RLENGTH - 6) + 0; from = $2 + 0
            match($0, / tensor=[^ ]+/); name = substr($0, RSTART + 8, RLENGTH - 8)
            if ((from <= i) != (to <= i)) print name }' "$tmp/dump" | sort -u | tr '\n' ' ')
        ./dpgen explain "$@" "$one" "$two" >"$tmp/view" 2>&1
        got=$(crossed)
        [ -n "$got" ] && [ "$got" = "$want" ] && pass || fault "$*: $one | $two crossed by '$got', and '$want' is sent"
        i=$((i + 1))
    done
}
cuts_explained $models/tiny-gpt.yaml --estimate --stages 4 --schedule 1f1b
cuts_explained $models/tiny-t5.yaml --estimate --stages 3 --schedule gpipe
./dpgen explain $gpt none h.1.gelu h.1.mlp.c_proj >"$tmp/view" 2>&1
at=$(./dpgen plan $gpt none -d p | sed -n 's/^place F:\([^ ]*\).*/\1/p' | grep -n '^h.1.gelu$' | cut -d : -f 1)
price=$(awk -v a="$(step $gpt none --cuts $((at - 1)))" -v b="$(step $gpt none)" 'BEGIN { printf "%+.3f ms", (a - b) / 1e6 }')
expect "no cut" grep -q -e "^were the cut after .* here instead, .*: $price" "$tmp/view"

# a graph without a model
printf '%s\n' 'dpgen-nodes 1' 'graph three batch=4 micro=2' 'node a forward=1 backward=2 output=100 params=40' \
    'node b forward=2 backward=4 output=200' 'node c forward=3 backward=6 output=8' 'edge a to=b' 'edge b to=c' \
    >"$tmp/three.txt"
from="--from $tmp/three.txt"
expect "an operator of a graph" sh -c "./dpgen explain $from b | grep -q '^b  opaque_forward, .*three.txt:4, operator 1 of 3'"
expect "a parameter of a graph" sh -c "./dpgen explain $from a.weight | grep -q '^read    by a (stage 0)'"
expect "a cut of a graph" sh -c "./dpgen explain $from --stages 2 --cuts 0 a b | grep -q '^crossed by a 100 bytes, d.a 100 b'"
refuse "a name that no graph has" 2 "is named 'd'" ./dpgen explain $from d
finish
