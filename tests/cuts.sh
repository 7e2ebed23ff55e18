#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Any cut gives the same bits.  A tiny GPT, a model with branches, tied weights and values that skip over several stages, one
# with two heads in chunks, and one that holds every operator of the table: every cut into two stages, and cuts into three drawn
# at random, on three devices and, as chunks, on two, each under both schedules, must end with the parameters of the graph
# interpreter.  A cut that dpgen refuses is a failure: nothing constrains these models.  Backward in every third plan makes all
# again that it needs, in another third all of it comes back from the host.
#   SLOW=1: every cut, 200 into three for each model, all steps; else 12 into three, some of all, and 5 steps
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/interp
use_portable
random=${SLOW:+200}
few_steps() { [ -n "$SLOW" ] || run="$run --steps 5"; }
few_steps

# cuts_of MODEL OPERATORS COUNT: lines of `NAME OPTION...`.  The random pairs come from one generator with one seed.
cuts_of() {
    awk -v model="$1" -v n="$2" -v count="$3" '
    function line(name, cuts, stages,    s) {
        for (s = 0; s < 2; s++)
            printf "%s.%s %s --stages %s --schedule %s --cuts %s%s\n", name, word[s], model, stages, word[s], cuts,
                   way[++plans % 3]
    }
    function random(below) { seed = (seed * 69069 + 1) % 4294967296; return int(seed / 65536) % below }
    BEGIN {
        way[0] = " --recompute full"; way[1] = " --offload \"[\047*\047]\""
        word[0] = "1f1b"; word[1] = "gpipe"; seed = 20
        for (i = 0; i < n - 1; i++)
            line("at." i, i, 2)
        while (made < count && (n - 1) * (n - 2) / 2 > made) {
            a = random(n - 1); b = random(n - 1)
            if (a == b || (a, b) in seen || (b, a) in seen)
                continue
            seen[a, b] = 1
            if (a > b) { t = a; a = b; b = t }
            made++
            line("at." a "." b, a "," b, 3)
            line("map." a "." b, a "," b, "2 --map " (made % 3 ? made % 3 == 1 ? "0,1,0" : "1,1,0" : "1,0,0"))
        }
    }'
}

# few N: two in N, an odd number, so that each schedule meets each way of backward, except with SLOW=1.
few() { if [ -n "$SLOW" ]; then cat; else awk -v n="$1" 'NR % n < 2'; fi; }
# every_cut NAME N
every_cut() {
    model=$models/$1.yaml
    # forward operators, from the report of the plan with one stage
    operators=$(./dpgen plan "$model" --stages 1 | sed -n 's/^stage 0 .*, \([0-9]*\) operators, .*/\1/p')
    [ "${operators:-0}" -gt 2 ] || { fault "$1: how many operators?"; return; }
    reference=$(cd "${cwd:-.}" && "$root/build/interp" "$model" $run 2>&1 | sed -n 's/^sha256 //p')
    if [ ${#reference} = 64 ]; then pass; else fault "$1: no hash of the interpreter"; return; fi
    cuts_of "$model" "$operators" "${random:-12}" | few "$2" | plans
    one_hash "$1" "$reference"
}
every_cut tiny-gpt 25
every_cut branches 25
every_cut heads 25
write_ops_data "$tmp/ops"
few_steps
every_cut ops 41

# ---- tied terms, on paper ---------------------------------------------------------------------------------------------------
# Two micro-batches give one use of a weight the gradients 1, 1 and the other 2^24, -2^24.  Each use has a chain of its own, so
# the sums are 2 and 0 in every plan, and w = -2; added micro-batch by micro-batch they would be 1.  The loss is 1, then w*w.
word() { printf "\\$1\\$2\\$3\\$4"; }      # a float, from its bytes in octal
tied_data() {
    cwd=$tmp/tied
    mkdir -p "$cwd"
    (cd "$cwd" && for name in a b target; do "$tmp/npy" $name.npy f4 0 0 4 1 && head -c 128 $name.npy >head && {
        cat head
        case $name in
            a) for i in 1 2 3 4; do word 0 0 200 77; done ;;                                # 1 1 1 1
            b) word 0 0 200 113; word 0 0 200 313; word 0 0 0 0; word 0 0 0 0 ;;            # 2^24 -2^24 0 0
            target) word 0 0 200 277; word 0 0 200 277; word 0 0 0 0; word 0 0 0 0 ;;       # -1 -1 0 0
        esac; } >"$tmp/words" && mv "$tmp/words" $name.npy || exit 1; done)
}
# tied_losses OPTION...: of the two steps; $damage: an edit of the stages
damage=
tied_losses() {
    generate "$tmp/t" "$models/tied.yaml" "$@" >"$tmp/said" || return
    [ -z "$damage" ] || sed -i "$damage" "$tmp"/t/stage?.c
    compile "$tmp/t" >"$tmp/said" && (cd "$cwd" && timeout 60 "$tmp/t/job" --quiet --no-checkpoint --log "$tmp/t.json") \
        >"$tmp/said" 2>&1 && sed -n 's/.*"event":"step".*"loss":\([^,}]*\)[,}].*/\1/p' "$tmp/t.json" | tr '\n' ' '
    rm -f "$tmp/t.json"
}
# tied_terms WANT OPTION...
tied_terms() {
    want=$1
    shift
    losses=$(tied_losses "$@")
    if [ "$losses" = "$want " ]; then pass; else fault "tied terms, $*: losses $losses: $(head -n 1 "$tmp/said")"; fi
}
tied_data || fault "no data for tied terms"
# The schedules take turns, except with SLOW=1
for schedule in gpipe 1f1b; do
    if [ "$SLOW" ] || [ $schedule = gpipe ]; then
        tied_terms "1 4" --stages 1 --schedule $schedule
        tied_terms "1 4" --stages 3 --schedule $schedule --cuts 0,1 --recompute full
    fi
    if [ "$SLOW" ] || [ $schedule = 1f1b ]; then
        for at in 0 1 2; do tied_terms "1 4" --stages 2 --schedule $schedule --cuts $at; done
        tied_terms "1 4" --stages 2 --schedule $schedule --map 1,0,1 --cuts 0,2
    fi
done
tied_terms "1 4" --stages 4 --schedule 1f1b --set plan.warmup=B
tied_terms "1 4" --stages 2 --replicas 2 --schedule 1f1b --set train.batch.groups=2
# both uses in one chain: this is what the order of additions does
kind="$kind -Wno-unused"
damage='s/A(first_weight_grad_0)\(.*\), acc, /A(first_weight_grad_0)\1, 1, /
    s/(st, \/\* dweight \*\/ A(first_weight_grad_1)/(st, A(first_weight_grad_0)/
    s/tie_add(.*//'
tied_terms "1 1" --stages 1 --schedule 1f1b

# ---- three uses of a weight on one path, on paper ------------------------------------------------------------------------
# y = w w w x, with w = x = 1, and 0 is wanted.  The loss is w^6, and its gradient 6 w^5 has this norm, for there is one weight,
# however backward is split.  A rate of 1/16 makes it 5/8.  The third use names the second one.  AdamW moves it once, by its
# rate.
use_portable
damage=
"$tmp/npy" "$cwd/x.npy" f4 1 1 4 1 && "$tmp/npy" "$cwd/none.npy" f4 0 0 4 1 || fault "no data for uses on one path"
sed -e '/^ *a: /d; /op: Add/d; s/^    b: /    x: /; s/in: b/in: y/; s/in: a/in: x/; s/: zeros/: ones/' \
    -e 's/^    - .*name: second.*/&\n    - {op: Linear, name: third, out: 1, bias: false, tie: second, as: u}/' \
    -e 's/arrays: {.*}, order/arrays: {x: x.npy, target: none.npy}, order/; s/global: 2/global: 4/; s/lr: 1.0/lr: 0.0625/' \
    -e 's/^  steps/  clip_norm: 64\n&/' "$models/tied.yaml" >"$tmp/path.yaml"
# path WANT OPTION...: loss and norm of two steps
path() {
    want=$1
    shift
    said=$(generate "$tmp/t" "$tmp/path.yaml" "$@" && { [ -z "$damage" ] || sed -i "$damage" "$tmp"/t/stage?.c; } &&
        compile "$tmp/t" && cd "$cwd" && timeout 60 "$tmp/t/job" --quiet --no-checkpoint --log "$tmp/t.json" 2>&1 &&
        sed -n 's/.*"event":"step".*"loss":\([^,]*\),"norm":\([^,]*\),.*/\1 \2/p' "$tmp/t.json" |
            awk '{printf "%.6g %.6g ", $1, $2}')
    rm -f "$tmp/t.json"
    if [ "$said" = "$want " ]; then pass; else fault "uses on one path, $*: $said, not $want"; fi
}
uses="1 6 0.0596046 0.572205"
path "$uses" --stages 1 --schedule gpipe
path "$uses" --stages 2 --schedule zb-h1 --cuts 1
path "$uses" --stages 2 --schedule zb-h1 --cuts 0
path "$uses" --stages 2 --schedule dualpipe-v --cuts 0,1,2
path "$uses" --stages 1 --replicas 2 --schedule gpipe --set train.batch.groups=2
for schedule in ${SLOW:+1f1b-split 2bp zb-h2 'zb*' optimal}; do path "$uses" --stages 2 --schedule "$schedule" --cuts 1; done
for schedule in ${SLOW:+interleaved-zb gis zb-v v-half v-min}; do
    path "$uses" --stages 2 --schedule $schedule --cuts 0,1,2
done
path "1 6 0.015625 0.1875" --stages 2 --schedule zb-v --cuts 0,1,2 \
    --set "train.optimizer={type: adamw, lr: 0.5, betas: [0.5, 0.5], eps: 1e-30}"
# each use added to the one before twice: 2 + 2 (2 + 2 2)
damage='s/tie_add(.*;/& &/'
path "1 14 3.8147e-06 0.000427246" --stages 2 --schedule zb-h1 --cuts 1
finish
