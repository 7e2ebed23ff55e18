#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Bad model files, from the outside: whatever is wrong, dpgen ends with status 3 and file:line:column, a caret, and writes
# nothing.  What exactly it says is in tests/*/*.err.  Files are tests/models/tiny-gpt.yaml with one change, and some that
# are no models at all.
. "$(dirname "$0")/lib.sh"
need dpgen
model=$models/tiny-gpt.yaml

# judge WHAT: $tmp/bad.yaml must be refused
judge() {
    timeout 10 ./dpgen "$tmp/bad.yaml" -o "$tmp/out" >"$tmp/said" 2>"$tmp/err"
    got=$?
    if [ $got != 3 ]; then fault "$1: status $got: $(head -n 1 "$tmp/err" | cut -c 1-200)"
    elif ! grep -q 'bad\.yaml:[0-9][0-9]*:[0-9][0-9]*: error: ' "$tmp/err"; then fault "$1: no place: $(head -n 1 "$tmp/err")"
    elif ! grep -q '^[ |]*\^' "$tmp/err"; then fault "$1: no caret"
    elif [ -n "$(find "$tmp" -name 'out*')" ]; then fault "$1: something was written"; rm -rf "$tmp"/out*
    elif [ -s "$tmp/said" ]; then fault "$1: something on standard output"
    elif [ "$(wc -c <"$tmp/err")" -gt 20000 ]; then fault "$1: $(wc -c <"$tmp/err") bytes of diagnostics"
    else pass; fi
}
# change WHAT SED: one edit
change() {
    sed "$2" "$model" >"$tmp/bad.yaml"
    if cmp -s "$model" "$tmp/bad.yaml"; then fault "$1: nothing changed"; else judge "$1"; fi
}

change "unknown key"            's/^  steps:/  stepz:/'
change "duplicate key"          's/^  seed: 7/  seed: 7\n  seed: 8/'
change "unknown operator"       's/op: Gelu,/op: Gelo,/'
change "unknown attribute"      's/approximate: tanh/aproximate: tanh/'
change "wrong type"             's/steps: 20/steps: many/'
change "a list for a number"    's/steps: 20/steps: [1, 2]/'
change "a fraction for a count" 's/steps: 20/steps: 20.5/'
change "below its range"        's/steps: 20/steps: 0/'
change "absurd number"          's/D: 24/D: 99999999999999999999/'
change "overflow in shapes"     's/V: 256, T: 16, D: 24/V: 256, T: 2000000000, D: 2100000000/'
change "division by zero"       's/2\*L)/2*(L-L))/'
change "unknown dim"            's/out: 3\*D/out: 3*E/'
change "shapes that differ"     's/in: \[_, r\]/in: [_, wpe]/; s/rows: T}/rows: T, as: wpe}/; s/out: 4\*D}/out: 5*D}/'
change "heads that do not divide" 's/H: 3/H: 5/'
change "missing input"          's/in: tokens, rows/in: token, rows/'
change "a value from later on"  's/op: Embedding,         name: wte, in: tokens/op: Embedding, name: wte, in: loss/'
change "no such tie"            's/tie: wte/tie: wpe/'
change "a block in itself"      's/- {op: Gelu,      approximate: tanh}/- {use: block, name: inner}/'
change "twice the same name"    's/name: ln_2/name: ln_1/'
change "not an identifier"      's/name: wte/name: "w te"/'
change "C in a name"            's/name: wte/name: "x; system(0);"/'
change "a path in a name"       's/name: wte/name: "..\/..\/etc"/'
change "a long name"            "s/name: wte/name: $(printf '%064d' 0 | tr 0 a)/"
change "no loss"                's/^  loss: loss/  loss: lass/'
change "anchor"                 's/seed: 7/seed: \&here 7/'
change "alias"                  's/seed: 7/seed: *here/'
change "tag"                    's/seed: 7/seed: !!int 7/'
change "merge key"              's/seed: 7/<<: 7/'
change "tab"                    's/^  seed/\tseed/'
change "a control character"    "s/tiny-gpt/tiny$(printf '\001')gpt/"
change "not UTF-8"              "s/name: wte/name: w$(printf '\377')te/"
change "more stages than devices" 's/stages: 1/stages: 9/'
change "no such schedule"       's/schedule: gpipe/schedule: gpype/'
change "no such kernels"        's/kernels: portable/kernels: cublas/'
change "micro-batches that do not divide" 's/global: 8, micro: 2/global: 8, micro: 3/'
change "another version"        's/^dpgen: 1/dpgen: 2/'
change "memory in no unit"      's/64MiB/64 apples/'

form() { cat >"$tmp/bad.yaml"; judge "$1"; }
: | form "an empty file"
echo '[' | form "an open bracket"
echo 'just words' | form "a scalar"
head -c 4096 dpgen | form "a program"
awk 'BEGIN {printf "a: "; for (i = 0; i < 100000; i++) printf "["; print ""}' | form "deep nesting"
awk 'BEGIN {for (i = 0; i < 20000; i++) printf "%" i "s- \n", ""}' | head -c 1000000 | form "deep indentation"
{ cat "$model"; awk 'BEGIN {printf "more: "; for (i = 0; i < 1048576; i++) printf "x"; print ""}'; } | form "a 1 MiB line"
head -n 20 "$model" | form "half a file"
{ cat "$model"; echo ---; cat "$model"; } | form "two documents"

# Nothing is there to be clipped
cat >"$tmp/bare.yaml" <<'END'
dpgen: 1
model:
  inputs: {a: {shape: [B, 4], dtype: f32}, b: {shape: [B, 4], dtype: f32}}
  graph: [{op: MeanSquaredError, in: a, targets: b, as: loss}]
  loss: loss
train: {clip_norm: 1}
END
for scope in global parameter; do
    expect "no parameters, clip_scope $scope" ./dpgen plan "$tmp/bare.yaml" --estimate --set train.clip_scope=$scope
done

./dpgen "$model" -d f | sed 's/ scale=f:[^ ]*/ scale=f:0x1p+200/' >"$tmp/far.txt"
refuse "a literal that is no float" 3 "far.txt:[0-9]*:[0-9]*: error: '0x1p+200' is too large" ./dpgen "$model" --estimate \
    --from "$tmp/far.txt" -o "$tmp/out"

sed '$s/.*/data: {train: {format: npy, arrays: {a: a.npy, b: b.npy}}}/' "$tmp/bare.yaml" >"$tmp/bare-data.yaml"
refuse "a job without parameters" 3 "bare-data.yaml:5:9: error: no line of the graph has a parameter that learns" \
    ./dpgen "$tmp/bare-data.yaml" -o "$tmp/out"
[ ! -e "$tmp/bare-data.cpu.profile" ] && pass || fault "a job without parameters is measured before it is refused"

refuse "no such file" 2 nowhere ./dpgen "$tmp/nowhere.yaml" -o "$tmp/out"
refuse "a folder" 2 directory ./dpgen "$tmp" -o "$tmp/out"
ln -s gone "$tmp/leads-nowhere"
refuse "a link that leads nowhere" 2 "No such file.*; a model is" ./dpgen check "$tmp/leads-nowhere"
# whatever a file is for: status 2, its name, the reason, a remedy
unreadable() {          # REMEDY COMMAND...: with a name behind it
    remedy=$1
    shift
    refuse "$* nowhere" 2 "cannot read $tmp/nowhere: No such file.*; .*$remedy" "$@" "$tmp/nowhere"
    refuse "$* a folder" 2 "cannot read $tmp: Is a directory; .*$remedy" "$@" "$tmp"
}
unreadable "examples/" ./dpgen check
unreadable "devices/" ./dpgen plan "$model" --devices
unreadable "docs/text.md" ./dpgen plan --from
unreadable "dpgen profile" ./dpgen plan "$model" --profile
unreadable "id,lower,upper,size" ./dpgen pack
{ printf '\357\273\277'; cat "$model"; } >"$tmp/mark.yaml"
expect "a byte order mark" ./dpgen check "$tmp/mark.yaml"
printf '\357\273\277\357\273\277dpgen: 1\n' >"$tmp/marks.yaml"
refuse "two byte order marks" 3 "marks.yaml:1:1: error: character U+FEFF" ./dpgen check "$tmp/marks.yaml"
refuse "nearly the name of a file" 2 "did you mean $model?" ./dpgen check "${model%yaml}yml"
refuse "no file" 2 "no model file" ./dpgen -o "$tmp/out"
refuse "no folder" 2 "no folder to write" ./dpgen "$model"
refuse "an unknown option" 2 colour ./dpgen "$model" --colour=red -o "$tmp/out"
refuse "nearly an option" 2 "unknown option --stges; did you mean --stages?" ./dpgen plan "$model" --stges 2
refuse "the beginning of a name" 2 "did you mean a100-40gb or a100-80gb?" ./dpgen plan "$model" --devices a100
refuse "nearly a name of devices" 2 "did you mean h100?" ./dpgen plan "$model" --devices h101
refuse "no name of devices" 2 "the names are .*cpu .*v100-16gb" ./dpgen plan "$model" --devices somewhere
refuse "neither a command nor a file" 2 "^dpgen: vfy is neither a command nor a file$" ./dpgen vfy
refuse "a set without a value" 2 VALUE ./dpgen "$model" --set train.steps -o "$tmp/out"
refuse "a set of nothing known" 3 trian ./dpgen "$model" --set trian.steps=3 -o "$tmp/out"
refuse "a cut behind the end" 3 cut ./dpgen "$model" --stages 2 --cuts 1000 -o "$tmp/out"
refuse "cuts for other stages" 3 cut ./dpgen "$model" --stages 3 --cuts 4 -o "$tmp/out"
refuse "cuts in the wrong order" 3 cut ./dpgen "$model" --stages 3 --cuts 9,4 -o "$tmp/out"
refuse "no memory" 4 . ./dpgen "$model" --limit 1KiB -o "$tmp/out"
# An option is named as it was written, and one without its value takes no other for it.
refuse "stages that are no number" 3 "^--stages: error: .*a number, auto or" ./dpgen "$model" --stages x -o "$tmp/out"
refuse "more stages than devices, by the option" 3 "^--stages: error: 9 stages" ./dpgen "$model" --stages 9 -o "$tmp/out"
refuse "an option for a value" 2 "schedule needs a value" ./dpgen "$model" --schedule -o "$tmp/out"
refuse "no value behind =" 2 "stages needs a value" ./dpgen "$model" --stages= -o "$tmp/out"
if [ "$(./dpgen plan "$model" --estimate --stages=2 --set=plan.schedule=gpipe)" = \
     "$(./dpgen plan "$model" --estimate --stages 2 --set plan.schedule=gpipe)" ]; then pass; else fault "--OPTION=VALUE"; fi
refuse "an empty value" 2 "cuts needs a value" ./dpgen "$model" --cuts "" -o "$tmp/out"
refuse "an empty file" 2 "the model file is an empty word" ./dpgen check ""
refuse "an empty folder" 2 "-o needs DIR or FILE" ./dpgen "$model" -o ""
refuse "an option for a folder" 2 "-o needs DIR or FILE" ./dpgen "$model" -o --estimate
for key in checkpoint.dir data.train.files; do
    refuse "an empty $key" 3 "^--set: error: $key: a text of 1 to 255 bytes" ./dpgen check "$model" --set "$key=''"
done
for size in 18446744073709551615 1e30 9999999TiB; do
    refuse "--limit $size" 3 "$size is more than can be counted" ./dpgen plan "$model" --limit "$size"
done
refuse "--limit below zero" 3 "'-1' is below zero" ./dpgen plan "$model" --limit -1
refuse "--limit e9" 3 "'e9' is no number with a known unit" ./dpgen plan "$model" --limit e9
refuse "--limit 1e" 3 "'1e' is no number with a known unit" ./dpgen plan "$model" --limit 1e
refuse "a folder for plan" 2 "no use for -o" ./dpgen plan "$model" -o "$tmp/out"
refuse "a planner for compare" 2 "no use for --planner" ./dpgen compare "$model" --planner even
refuse "chunks of 1f1b*" 3 "one chunk a device" ./dpgen plan "$model" --stages 2 --schedule '1f1b*' --set plan.chunks=2
refuse "a map of 1f1b*" 3 "one chunk a device" ./dpgen plan "$model" --stages 2 --schedule '1f1b*' --set 'plan.map=[0, 1, 0]'
refuse "MadPipe with 2bw" 3 "its lists are for one map" ./dpgen plan "$model" --stages 2 --schedule 2bw --planner madpipe
sed '/^devices:/,/^$/d' "$model" >"$tmp/bare.yaml"
expect "a link without a section of devices" ./dpgen plan "$tmp/bare.yaml" --stages 2 --estimate --link 1GB/s
refuse "a link of other devices" 3 "'gpu-gpu' is no link" ./dpgen plan "$tmp/bare.yaml" --stages 2 --set links.gpu-gpu=1GB/s
refuse "a link of no rate" 3 "less than one a second" ./dpgen plan "$model" --stages 2 --link 0GB/s
refuse "times beyond count" 3 "than can be counted" ./dpgen plan "$model" --estimate --set devices.0.call=3600s \
    --set train.batch.global=8192 --set train.batch.micro=1
refuse "nothing to compare" 4 "exact has no plan" ./dpgen compare "$model" --estimate --stages 2 --limit 10KiB --quick
expect "a map that is a permutation" ./dpgen plan "$model" --estimate --stages 2 --set 'plan.map=[1, 0]'
expect "a plan nowhere" sh -c './dpgen plan "$1" --estimate >/dev/full 2>/dev/null; [ $? = 1 ]' - "$model"
refuse "a profile in place of a folder" 1 "no plain file" ./dpgen profile "$model" -o "$tmp"
refuse "JSON of check" 2 "no use for --json" ./dpgen check "$model" --json
refuse "JSON of a folder" 2 "no use for --json" ./dpgen "$model" --json -o "$tmp/out"
refuse "nearly a command" 2 "pln is neither a command nor a file; did you mean dpgen plan?" ./dpgen pln "$model"
refuse "nearly pack" 2 "did you mean dpgen pack?" ./dpgen pak x.csv
refuse "twice a planner" 2 "exact,even,exact: exact is there twice" ./dpgen compare "$model" --planners exact,even,exact
refuse "nearly a planner" 2 "did you mean 'exact'?" ./dpgen compare "$model" --planners exakt
for verb in "" check plan explain compare schedules profile pack; do
    ./dpgen $verb --help >"$tmp/said" 2>&1
    expect "dpgen $verb --help" test $? = 0 -a -n "$(grep "^ *dpgen ${verb:-pack} " "$tmp/said")"
done
sed '/^devices:/,$d' "$model" >"$tmp/plain.yaml"
echo 'devices: {order: free}' | cat "$tmp/plain.yaml" - >"$tmp/order.yaml"
refuse "an order of no devices" 3 'order.yaml:[0-9]*:18: error: devices.order: there is no list' ./dpgen plan "$tmp/order.yaml"
grep -q "list: \[...\] beside it" "$tmp/said" && pass || fault "an order of no devices: no remedy"
refuse "an order of no devices, as an option" 3 "no list of devices" ./dpgen plan "$tmp/plain.yaml" --device-order free

# Unknown names: the caret stands under each of them, whoever wrote it.
refuse "a name in --recompute" 3 '^--recompute: error: .*wrong_1' ./dpgen plan "$model" --recompute '[wrong_1, wte]'
refuse "a position in --cuts" 3 '^--cuts: error: plan.cuts: 99 ' ./dpgen plan "$model" --stages 2 --cuts 99
{
    grep -v '^plan:' "$model"
    echo "plan:"
    echo "  constraints:"
    echo "    - {cut_after: wrong_1}"
    echo "    - {no_cut: [wte, wrong_2]}"
    echo "    - {same_stage: [wrong_3, wte]}"
    echo "    - {keep: wrong_4}"
    echo "  recompute: [wrong_5]"
} >"$tmp/bad.yaml"
./dpgen plan "$tmp/bad.yaml" >"$tmp/said" 2>&1
for wrong in 1 2 3 4 5; do
    column=$(awk -v name="wrong_$wrong" '$0 ~ name {print FNR ":" index($0, name)}' "$tmp/bad.yaml")
    if grep -q "bad.yaml:$column: error: .*wrong_$wrong" "$tmp/said"; then pass; else fault "no place of wrong_$wrong"; fi
done

# No plan: why, and what would do.  A remedy was planned whole, with the constraints.
one_limit='plan.constraints=[{max_memory: 1KiB}]'
refuse "a constraint of memory" 4 "max_memory in plan.constraints" ./dpgen plan "$model" --set "$one_limit"
refuse "a constraint without its remedy" 4 \
    "fits:.* plan.constraints without max_memory" ./dpgen plan "$model" --set "$one_limit"
if ./dpgen plan "$model" --set "$one_limit" 2>&1 | grep -q -e --limit; then fault "--limit does not help"; else pass; fi
many='devices.0.count=99'
refuse "more stages than operators" 4 "the model has .* operators, so it has at most .* stages; 99 are" \
    ./dpgen plan "$model" --set $many --stages 99
most=$(sed -n 's/.*at most \([0-9]*\) stages.*/\1/p' "$tmp/said")
expect "as many stages as it says" ./dpgen plan "$model" --set $many --stages "$most"
refuse "one more" 4 "tried and fits: --stages $most" ./dpgen plan "$model" --set $many --stages $((most + 1))
refuse "no cut anywhere" 4 'without {no_cut: \*}' ./dpgen plan "$model" --stages 2 --set 'plan.constraints=[{no_cut: "*"}]'
refuse "a cut that is forbidden" 3 "but {no_cut: w\*} forbids it" ./dpgen plan "$model" --stages 2 \
    --set 'plan.constraints=[{same_stage: [h.0.attn.c_attn, h.0.add]}, {no_cut: "h.*"}, {no_cut: "w*"}, {cut_after: wte}]'
refuse "a cut between two of one stage" 3 "but {same_stage: \[fc1, ...\]} forbids it" ./dpgen plan "$models/mlp.yaml" \
    --estimate --set 'plan.cuts=[]' --set 'plan.constraints=[{no_cut: head}, {same_stage: [fc1, fc2]}, {cut_after: act}]'
refuse "a cut in one stage" 4 'without {cut_after: wte}; --stages 2' \
    ./dpgen plan "$model" --stages 1 --set 'plan.constraints=[{cut_after: wte}]'
reserved="--set devices.0.reserve=1MiB --stages 1"
refuse "no memory beside a reserve" 4 "fits: --limit" ./dpgen plan "$model" $reserved --set devices.0.memory=1025KiB
limit=$(sed -n 's/.*--limit \([0-9A-Za-z]*\).*/\1/p' "$tmp/said")
expect "--limit $limit" ./dpgen plan "$model" $reserved --limit "$limit"

# With copies to the host it is the smallest too: what the planner expects of them is on the safe side, by more than half
for n in 1 ${SLOW:+2}; do
    away="--estimate --stages $n --schedule gpipe --offload ['*']"
    refuse "too little with offload, $n stages" 4 "(.*, backward): .* too much" ./dpgen plan "$model" $away --limit 20KiB
    limit=$(sed -n 's/.*--limit \([0-9]*\)KiB.*/\1/p' "$tmp/said")
    expect "offload, --limit ${limit}KiB" ./dpgen plan "$model" $away --limit "${limit}KiB"
    for part in ${SLOW:+98} 85; do
        refuse "offload, less than $limit" 4 "tried and fits" ./dpgen plan "$model" $away --limit "$((limit * part / 100))KiB"
    done
done
# Plans that are tried, hundreds where devices have several chunks, leave nothing behind
if [ -n "$SAN" ]; then skip "sanitizers ask for terabytes of addresses"
else
    refuse "no memory with chunks, in 512 MiB" 4 "no plan fits" sh -c 'ulimit -v 524288 && "$@"' - \
        ./dpgen plan "$model" --estimate --stages 2 --schedule 1f1b --set plan.chunks=2 --limit 200KiB -D L=1
fi

refuse "a limit without devices" 4 "2 devices of 16.00 KiB" ./dpgen plan "$tmp/plain.yaml" --stages 2 --limit 16KiB
limit=$(sed -n 's/.*--limit \([0-9A-Za-z]*\).*/\1/p' "$tmp/said")
expect "without devices, --limit $limit" ./dpgen plan "$tmp/plain.yaml" --stages 2 --limit "$limit"

mkdir "$tmp/real" && ln -s real "$tmp/link"
refuse "a link for a folder" 2 "symbolic link" ./dpgen "$model" -o "$tmp/link"
if [ -n "$(find "$tmp" -name 'out*')" ]; then fault "something was written"; else pass; fi
finish
