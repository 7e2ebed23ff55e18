#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# No text of a file or of the command line becomes code.  Every textual field of a plan, a graph, a graph of another system, a
# profile, a model file and the options is given every payload below.  Then dpgen refuses it, with file, line and column where
# the file has lines.  Or it writes a folder: nothing of the payload stands there as it was, but for the copies of model file
# and profile, and its Makefile does nothing when it is only read.  $DPGEN: another binary.
. "$(dirname "$0")/lib.sh"
dpgen=${DPGEN:-./dpgen}
need dpgen
[ -n "$SLOW" ] || use_ready -O1
model=$models/mlp.yaml
mkdir "$tmp/at"

# Payloads, raw or as %XX.  Each would make the file $tmp/at/pwned, or is found by the word EVIL in what is written.
n=0 escape=$(printf '\033')
payload() {
    n=$((n + 1))
    printf "$1" >"$tmp/payload.$n"
    od -An -v -tx1 "$tmp/payload.$n" | tr -d ' \n' | sed 's/../%&/g' | tr a-f A-F >"$tmp/hex.$n"
}
hex() { read -r said <"$tmp/hex.$1" || :; }        # payload N, in $said
payload 'x$(shell touch pwned)'
payload 'x`touch pwned`$(touch pwned)'
payload "x';touch pwned;'\";touch pwned;\""
payload 'x*/int EVIL(void){return 1;}/*'
payload 'x</title><script>EVIL()</script>"onclick="EVIL()&EVIL;'
payload 'x\n$(shell touch pwned)\n'
payload 'x\\\n\n$(shell touch pwned)'
payload 'x\033]0;EVIL\007'

# What must not stand in anything that was written or said
cat >"$tmp/never" <<'LIST'
$(shell touch
*/int EVIL
<script>EVIL
"onclick="EVIL
)&EVIL;
LIST

executed() { for file; do [ ! -e "$file" ] || return 0; done; return 1; }
# judge WHAT: dpgen has ended with $got, said $tmp/said; $tmp/at/out, if it is there, is harmless
judge() {
    if LC_ALL=C grep -q "$escape" "$tmp/said"; then fault "$1: ESC on the terminal"; return; fi
    case $got in
        0 | 4) [ ! -e "$tmp/at/out" ] || (cd "$tmp/at/out" && make -n expected verify all >"$tmp/made" 2>&1) ;;
        1 | 2 | 3 | 5) [ ! -e "$tmp/at/out" ] || { fault "$1: status $got, and something was written"; return; } ;;
        *) fault "$1: status $got: $(head -n 2 "$tmp/said" | cut -c 1-300)"; return ;;
    esac
    if [ "$got" = 3 ] && [ "$lines" ] && ! grep -q ":[0-9]*:[0-9]*: error" "$tmp/said"; then
        fault "$1: refused without its place: $(head -n 1 "$tmp/said")"
    elif executed "$tmp"/at/pwned* "$tmp"/at/*/pwned* "$tmp"/at/*/*/pwned*; then fault "$1: it was executed"
    elif [ -e "$tmp/at/out" ] && grep -rlF -f "$tmp/never" --exclude=model.yaml --exclude=profile "$tmp/at/out" \
        >"$tmp/found"; then
        fault "$1: unescaped in $(sed 's|.*/||' "$tmp/found" | tr '\n' ' ')"
    else pass; fi
}
# try WHAT COMMAND...: run it in $tmp/at, where files would be made
try() {
    what=$1
    shift
    [ ! -e "$tmp/at/out" ] || rm -rf "$tmp/at/out"
    "$@" >"$tmp/said" 2>&1
    got=$?
    judge "$what"
}

# ---- a plan, a graph ---------------------------------------------------------------------------------------------------
$dpgen "$model" --estimate --stages 2 -d a >"$tmp/plan" || fault "no plan"
$dpgen "$model" --estimate --stages 2 -d f >"$tmp/graph" || fault "no graph"
# field FILE RECORD KEY PAYLOAD: $tmp/bad is FILE with the value of KEY in the first RECORD replaced; KEY name: its name
field() {
    hex "$4"
    awk -v record="$2" -v key="$3" -v value="$said" '
        !done && $1 == record {
            done = 1
            if (key == "name") { prefix = $2; if (!sub(/:.*/, ":", prefix)) prefix = ""; $2 = prefix value }
            else {
                for (i = 3; i <= NF; i++) if (index($i, key "=") == 1) { $i = key "=" value; set = 1 }
                if (!set) { tail = ""; if ($NF ~ /^@/) { tail = " " $NF; NF-- } call = ""
                    for (i = 3; i <= NF; i++) if (index($i, "call=") == 1) break
                    if (i <= NF) $i = key "=" value " " $i; else $0 = $0 " " key "=" value
                    $0 = $0 tail } }
        } 1' "$1" >"$tmp/bad"
}
lines=yes
for k in $(seq $n); do
    for at in plan.name plan.schedule plan.space plan.note plan.key chunk.name place.name buf.name pool.name routine.name; do
        field "$tmp/plan" "${at%.*}" "${at#*.}" "$k"
        if cmp -s "$tmp/plan" "$tmp/bad"; then fault "$at: nothing was changed"; fi
        try "plan, $at, payload $k" $dpgen "$model" --estimate --stages 2 --from "$tmp/bad" -o "$tmp/at/out"
    done
    for at in graph.name graph.model graph.calls tensor.name state.name state.rule op.name op.layer op.with op.row op.call; do
        field "$tmp/graph" "${at%.*}" "${at#*.}" "$k"
        if cmp -s "$tmp/graph" "$tmp/bad"; then fault "$at: nothing was changed"; fi
        try "graph, $at, payload $k" $dpgen "$model" --estimate --stages 2 --from "$tmp/bad" -o "$tmp/at/out"
    done
    # a name that is used by others as well, everywhere
    hex "$k"
    sed "s/\\bact\\b/$said/g" "$tmp/graph" >"$tmp/bad"
    try "graph, a name everywhere, payload $k" $dpgen "$model" --estimate --stages 2 --from "$tmp/bad" -o "$tmp/at/out"
done
lines=
for k in $(seq $n); do          # the place of a record names a file, which errors and explain say
    hex "$k"
    sed "s/ @[^:]*:/ @$said:/" "$tmp/graph" >"$tmp/bad"
    try "graph, its places, payload $k" $dpgen "$model" --estimate --stages 2 --from "$tmp/bad" -o "$tmp/at/out"
    try "explain, a place, payload $k" $dpgen explain "$model" --estimate --stages 2 --from "$tmp/bad" act
done

# A key that is forged: of another job, though of the right form
sed 's/ key=model%3D[0-9a-f]*/ key=model%3D0123456789abcdef/' "$tmp/plan" >"$tmp/bad"
refuse "a forged key" 3 "bad:2:[0-9]*: error: the plan is of another job" $dpgen "$model" --estimate --stages 2 \
    --from "$tmp/bad" -o "$tmp/at/out"
refuse "the plan of another job" 3 "plan:2:[0-9]*: error: .*train=" $dpgen "$model" --estimate --stages 2 \
    --set train.optimizer.lr=0.25 --from "$tmp/plan" -o "$tmp/at/out"
sed 's/ key=[^ ]*//' "$tmp/plan" >"$tmp/bad"
rm -rf "$tmp/at/out"
expect "a plan without a key" $dpgen "$model" --estimate --stages 2 --from "$tmp/bad" -o "$tmp/at/out"
$dpgen "$model" --estimate --stages 2 -o "$tmp/at/own" >"$tmp/said" 2>&1
expect "has that of the job" cmp "$tmp/at/out/plan.json" "$tmp/at/own/plan.json"
rm -rf "$tmp/at/own"

# ---- graphs of other systems, profiles, packing instances --------------------------------------------------------------
printf '%s\n' 'dpgen-nodes 1' 'graph three batch=4 micro=2 optimizer=sgd' 'node a name=a forward=1 backward=2 output=100' \
    'node b forward=2 backward=4 output=200' 'edge a to=b' >"$tmp/nodes"
lines=yes
for k in $(seq $n); do
    for at in graph.name graph.optimizer node.name node.forward edge.name edge.to; do
        field "$tmp/nodes" "${at%.*}" "${at#*.}" "$k"
        try "nodes, $at, payload $k" $dpgen plan --from "$tmp/bad"
    done
done
lines=
quantities='forward_compute_time=1, backward_compute_time=2, activation_size=8.0, parameter_size=4.000'
for k in $(seq $n); do
    { printf 'node1 -- '; cat "$tmp/payload.$k"; echo " -- $quantities"; } >"$tmp/bad"
    try "another profiler's description, payload $k" $dpgen plan --from "$tmp/bad"
    { cat "$tmp/payload.$k"; echo " -- Linear -- $quantities"; } >"$tmp/bad"
    try "another profiler's id, payload $k" $dpgen plan --from "$tmp/bad"
    { echo 'id,lower,upper,size'; cat "$tmp/payload.$k"; echo ',0,1,8'; } >"$tmp/bad"
    try "an id of an instance, payload $k" $dpgen pack "$tmp/bad" -o "$tmp/packed"
done
./dpgen profile "$model" -o "$tmp/profile" >"$tmp/said" 2>&1 || fault "no profile: $(tail -n 1 "$tmp/said")"
for k in $(seq $n); do
    for word in device compiler kernels isa compute threads stages transport runtime 'op linear_forward'; do
        awk -v word="$word " -v file="$tmp/payload.$k" 'BEGIN { while ((getline line < file) > 0) { text = text sep line
            sep = "\n" } } !done && index($0, word) == 1 { done = 1; rest = ""
            if (match($0, / alone=.*/)) rest = substr($0, RSTART)
            print word text rest; next } 1' "$tmp/profile" >"$tmp/bad"
        try "profile, $word, payload $k" $dpgen "$model" --profile "$tmp/bad" --elsewhere -o "$tmp/at/out"
    done
done

# ---- a model file: quoted in YAML, so that the payload is the value ----------------------------------------------------
yaml_text() {           # in double quotes
    printf '"%s"' "$(sed 's/\\/\\\\/g; s/"/\\"/g' "$1" | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }' |
        sed "s/$(printf '\033')/\\\\e/g; s/$(printf '\007')/\\\\a/g")"
}
change() {              # WHAT FIRST SECOND: the text FIRST in the model becomes SECOND with @ being the payload
    awk -v from="$2" -v to="$3" -v file="$tmp/value" 'BEGIN { getline value < file }
        !done && (i = index($0, from)) {
            done = 1; j = index(to, "@")
            $0 = substr($0, 1, i - 1) substr(to, 1, j - 1) value substr(to, j + 1) substr($0, i + length(from))
        } 1' "$model" >"$tmp/bad.yaml"
    if cmp -s "$model" "$tmp/bad.yaml"; then fault "$1: nothing was changed"; fi
    try "$1" $dpgen "$tmp/bad.yaml" --estimate -o "$tmp/at/out"
}
lines=yes
for k in $(seq $n); do
    yaml_text "$tmp/payload.$k" >"$tmp/value"
    change "model, its name, payload $k" 'name: mlp' 'name: @'
    change "model, a device, payload $k" '{name: cpu' '{name: @'
    change "model, an operator, payload $k" 'name: act' 'name: @'
    change "model, kernels, payload $k" 'kernels: portable' 'kernels: @'
    change "model, a schedule, payload $k" 'schedule: 1f1b' 'schedule: @'
    change "model, the files, payload $k" 'train: {format: npy' 'train: {format: @'
done

# ---- files of published models: in double quotes ------------------------------------------------------------------------
sed -n 's/^config //p' tests/hf/llama >"$tmp/llama.json"
for k in $(seq $n); do
    yaml_text "$tmp/payload.$k" >"$tmp/value"
    value=$(cat "$tmp/value")
    lines=yes
    printf '{"model_type": %s}\n' "$value" >"$tmp/bad"
    try "config.json, its type, payload $k" $dpgen import "$tmp/bad" -o "$tmp/at/out"
    sed "s|\"silu\"|$(printf %s "$value" | sed 's/[\\&|]/\\&/g')|" "$tmp/llama.json" >"$tmp/bad"
    if cmp -s "$tmp/bad" "$tmp/llama.json"; then fault "config.json: nothing was changed"; fi
    try "config.json, a word, payload $k" $dpgen import "$tmp/bad" -o "$tmp/at/out"
    lines=
    printf '{"model": {"type": "BPE", "vocab": {}, "merges": []}, "normalizer": {"type": %s}}\n' "$value" >"$tmp/bad"
    try "tokenizer.json, payload $k" $dpgen tokens --tokenizer "$tmp/bad" LICENSE -o "$tmp/at/out"
done

# ---- the command line, and names of files ------------------------------------------------------------------------------
lines=
for k in 1 5 6 8; do
    text=$(cat "$tmp/payload.$k"; echo .) && text=${text%.}
    for option in --stages --schedule --recompute --offload --limit --cuts --map --planner --prefix --objective \
        --link --fuse -d; do
        try "$option, payload $k" $dpgen "$model" --estimate -o "$tmp/at/out" "$option" "$text"
    done
    for option in -D --set; do
        try "$option, payload $k with =" $dpgen "$model" --estimate -o "$tmp/at/out" "$option" "a=$text"
    done
    try "a verb, payload $k" $dpgen "$text"
    try "explain, payload $k" $dpgen explain "$model" --estimate "$text"
    try "planners, payload $k" $dpgen compare "$model" --estimate --quick --planners "$text"
    name=$(printf '%s' "$text" | tr / _)
    (cd "$tmp/at" && cp "$model" "$name.yaml" && cp "$model" "$name") || fault "no file of payload $k"
    sed 's/steps: .*/stepz: 1/' "$model" >"$tmp/at/$name.bad"
    root_dpgen=$root/dpgen
    [ "$dpgen" = ./dpgen ] || root_dpgen=$dpgen
    here() { (cd "$tmp/at" && "$root_dpgen" "$@"); }
    try "a model's file, payload $k" here "$name.yaml" --estimate -o out
    try "a wrong model's file, payload $k" here "$name.bad" --estimate -o out
    try "the file of a check, payload $k" here check "$name"
    try "a plan that fits nowhere, payload $k" here plan "$name.yaml" --estimate --limit 1KiB
    try "a folder, payload $k" here "$name.yaml" --estimate -o "$name.d"
    find "$tmp/at" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
done
finish
