#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What `dpgen plan` and `dpgen explain` say beside the plan: the price of a neighbouring cut is the step of a plan that is
# given that cut, and of a result that is kept instead, the step of a plan that keeps it.  (That the bytes at the peak add
# up to the lower bound is checked by dpgen itself.)
. "$(dirname "$0")/lib.sh"
need dpgen

step() { ./dpgen plan "$@" --json 2>"$tmp/said" | sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p' | head -n 1; }
cuts_of() { sed -n 's/^  after \([0-9]*\), .*/\1/p' "$tmp/view" | tr '\n' ' '; }

# neighbours MODEL OPTION...: every line `after N, NAME: earlier X, later Y`
neighbours() {
    ./dpgen plan "$@" >"$tmp/view" 2>&1 || { fault "$*: $(tail -n 1 "$tmp/view")"; return; }
    base=$(step "$@")
    all=$(cuts_of)
    [ -n "$all" ] || fault "$*: no cuts are shown"
    i=0
    for cut in $all; do
        i=$((i + 1))
        for side in earlier later; do
            if [ $side = earlier ]; then to=$((cut - 1)); else to=$((cut + 1)); fi
            said=$(sed -n "s/^  after $cut, .*$side \([-+.0-9]* ms\|[a-z0-9 ]*\).*/\1/p" "$tmp/view")
            list=$(echo $all | awk -v i=$i -v to=$to '{ $i = to; gsub(" ", ","); print }')
            other=$(step "$@" --cuts "$list")
            if [ -z "$other" ]; then
                case $said in *" ms") fault "$*: cut $cut $side: '$said', and there is no such plan" ;; *) pass ;; esac
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
refuse "a wrong name" 2 "did you mean 'h.0.gelu'" ./dpgen explain $gpt none h.0.gelo
refuse "no name" 2 "explain what?" ./dpgen explain $gpt none
finish
