#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# plan.mode infer.  The model file of a training job serves its checkpoint.  Results are those of the formulas, which awk has
# in double from the weights.  They have the same bits over 1, 2 and 4 stages, threads or processes, from files, from standard
# input at once and in drips, in whole micro-batches and with a rest.  Bad input.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a build/interp
use_portable
$cc -std=c11 -O1 -o "$tmp/npy" tests/npy.c || { fault "tests/npy.c"; finish; }
(cd "$tmp" && ./npy x.npy f4 -1 1 23 6 && ./npy y.npy i4 0 3 23 && tail -c +129 x.npy >x.f32) || fault "no data"
cat >"$tmp/net.yaml" <<'END'
dpgen: 1
model:
  name: net
  inputs:
    x: {shape: [B, 6], dtype: f32}
    y: {shape: [B], dtype: i32, range: [0, 3]}
  init: {weight: {normal: [0, 0.7]}}
  graph:
    - {op: Linear, name: a, in: x, out: 6}
    - {op: Relu, name: a_act}
    - {op: BatchNorm, name: n}
    - {op: Dropout, name: drop, p: 0.5}
    - {op: Linear, name: b, out: 4}
    - {op: Relu, name: b_act, as: hidden}
    - {op: Linear, name: head, out: 3, as: scores}
    - {op: SoftmaxCrossEntropy, in: scores, targets: y, as: main}
    - {op: LinearCrossEntropy, name: other, in: hidden, out: 3, targets: y, as: side}
    - {op: Add, in: [main, side], as: loss}
  loss: loss
  outputs: scores
train: {batch: {micro: 4, global: 8}, blocks: 2, steps: 3, optimizer: {type: sgd, lr: 0.1}, clip_norm: 1}
data: {train: {format: npy, arrays: {x: x.npy, y: y.npy}, order: sequential}}
devices: [{name: cpu, kind: cpu, count: 4, memory: 1MiB, threads: 1, kernels: portable}]
plan: {stages: 1, schedule: gpipe}
END
(cd "$tmp" && "$root/build/interp" net.yaml --checkpoint run --quiet) >"$tmp/said" 2>&1 ||
    fault "no checkpoint: $(tail -n 1 "$tmp/said")"
weights=$tmp/run/step-000003/stage0.safetensors

# ---- the formulas ---------------------------------------------------------------------------------------------------
head=$(od -An -tu8 -N8 "$weights" | tr -d ' ')
# numbers NAME: of a tensor of the file, a line each
numbers() {
    dd if="$weights" bs=1 skip=8 count="$head" 2>/dev/null |
        sed 's/.*"'"$1"'":{[^}]*"data_offsets":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/' | {
            read -r from end
            od -An -v -tf4 -w4 -j $((8 + head + from)) -N $((end - from)) "$weights"
        }
}
layer() { numbers "$1.weight" >"$tmp/w"; numbers "$1.bias" >"$tmp/b"; cat "$tmp/w" "$tmp/b"; }
{ layer a
  for state in running_mean running_var weight bias; do numbers n.$state >"$tmp/w"; cat "$tmp/w"; done
  layer b; layer head; od -An -v -tf4 -w4 "$tmp/x.f32"; } | awk '
    { v[NR] = $1 }
    function linear(n, m, relu,   i, j, s) {            # y[m] of x[n], weights and biases from at on
        for (j = 0; j < m; j++) {
            s = v[at + n * m + j + 1]
            for (i = 0; i < n; i++) s += x[i] * v[at + j * n + i + 1]
            y[j] = relu && s < 0 ? 0 : s
        }
        for (j = 0; j < m; j++) x[j] = y[j]
        at += n * m + m
    }
    function norm(n,   i) {                             # mean, variance, weight, bias
        for (i = 0; i < n; i++)
            x[i] = (x[i] - v[at + i + 1]) / sqrt(v[at + n + i + 1] + 1e-5) * v[at + 2 * n + i + 1] + v[at + 3 * n + i + 1]
        at += 4 * n
    }
    END {
        all = 6 * 6 + 6 + 4 * 6 + 6 * 4 + 4 + 4 * 3 + 3
        for (row = 0; row < 23; row++) {
            for (i = 0; i < 6; i++) x[i] = v[all + row * 6 + i + 1]
            at = 0
            linear(6, 6, 1); norm(6); linear(6, 4, 1); linear(4, 3, 0)
            print x[0]; print x[1]; print x[2]
        }
    }' >"$tmp/formulas"

# made NAME OPTION...: the program
made() {
    name=$1
    shift
    said=$(generate "$tmp/$name" "$tmp/net.yaml" --mode infer "$@" && compile "$tmp/$name")
    [ -z "$said" ] || fault "$name: $said"
}
# served WHAT NAME ARGUMENT...: results of these samples are $tmp/out, and are those of $results
served() {
    what=$1 name=$2
    shift 2
    timeout 60 $start "$tmp/$name/job" --weights "$weights" --quiet "$@" >"$tmp/out" 2>"$tmp/said" </dev/null
    status=$?
    cmp "$tmp/out" "$results" >>"$tmp/said" 2>&1 && [ $status = 0 ] && pass || fault "$what: $status $(head -n 1 "$tmp/said")"
}
results=$tmp/one.f32
made one
timeout 60 "$tmp/one/job" --weights "$weights" --in "$tmp/x.npy" >"$results" 2>"$tmp/told" ||
    fault "one: $(head -n 1 "$tmp/told")"
od -An -v -tf4 -w4 "$results" | paste - "$tmp/formulas" | awk '
    { d = $1 - $2; d = d < 0 ? -d : d; n++; bad += NF != 2 || d > 1e-5 || $2 == 0 } END { exit !(n == 69 && bad == 0) }' &&
    pass || fault "results are not those of the formulas: $(paste -s "$tmp/formulas" | cut -c1-60)"
expect "predicted and measured are told" \
    grep -q 'serve: 23 samples; [0-9.e+]* samples/s, predicted [0-9.e+]*; latency' "$tmp/told"
expect "the loss of a training job is gone" test -z "$(grep -l 'xent\|loss' "$tmp"/one/stage0.c)"
served "a checkpoint of several" one --in "$tmp/x.f32" --weights "$tmp/run"
for stages in 2 4; do
    made s$stages --stages $stages
    served "$stages stages" s$stages --in "$tmp/x.npy"
    served "$stages stages, plain numbers" s$stages --in x="$tmp/x.f32" --out scores=-
done
made wide --stages 2 --set plan.tensor=2
served "two stages of two devices" wide --in "$tmp/x.npy"
made small --stages 3 --set train.batch.global=4
served "a step of one micro-batch" small --in "$tmp/x.f32"
timeout 60 "$tmp/s2/job" --weights "$weights" --quiet --in "$tmp/x.f32" --out "$tmp/named" >"$tmp/said" 2>&1
expect "results in a file" cmp "$tmp/named" "$results"
expect "no file beside it" test ! -e "$tmp/named.part"
# Two write one file: the second ends, and the results of the first are whole
mkfifo "$tmp/feed"
timeout 60 "$tmp/s2/job" --weights "$weights" --quiet --out "$tmp/both" <"$tmp/feed" >"$tmp/said" 2>&1 &
first=$!
exec 3>"$tmp/feed"
head -c 100 "$tmp/x.f32" >&3
while [ ! -s "$tmp/both.part" ] && kill -0 $first; do sleep 0.05; done        # its first results: it has the lock
refuse "another serve of one file" 1 "both.part: cannot write results: another serve or output writes them; wait for its end" \
    timeout 60 "$tmp/s4/job" --weights "$weights" --quiet --in "$tmp/x.npy" --out "$tmp/both"
tail -c +101 "$tmp/x.f32" >&3
exec 3>&-
expect "the first one ends well" wait $first
expect "its results" cmp "$tmp/both" "$results"
{ head -c 100 "$tmp/x.f32"; sleep 0.3; tail -c +101 "$tmp/x.f32"; } |
    timeout 60 "$tmp/s4/job" --weights "$weights" --quiet >"$tmp/out" 2>"$tmp/said"
expect "standard input in drips" cmp "$tmp/out" "$results"
{ head -c 150 "$tmp/x.npy"; sleep 0.1; tail -c +151 "$tmp/x.npy"; } |
    timeout 60 "$tmp/s4/job" --weights "$weights" --quiet >"$tmp/out" 2>"$tmp/said"
expect "a NumPy file on standard input" cmp "$tmp/out" "$results"
# the result of a sample is there before the next sample is
mkfifo "$tmp/in" "$tmp/back"
timeout 60 "$tmp/s2/job" --weights "$weights" --quiet <"$tmp/in" >"$tmp/back" 2>"$tmp/said" &
exec 8>"$tmp/in" 9<"$tmp/back"
for row in 0 1 2; do
    dd if="$tmp/x.f32" bs=24 skip=$row count=1 2>/dev/null >&8
    timeout 20 dd bs=12 count=1 <&9 2>/dev/null
done >"$tmp/out"
exec 8>&- 9<&-
head -c 36 "$results" >"$tmp/three"
expect "an answer for each sample" cmp "$tmp/out" "$tmp/three"

# ---- as a library ----------------------------------------------------------------------------------------------------
timeout 60 "$tmp/one/job" --untrained --quiet --in "$tmp/x.f32" >"$tmp/fresh"
# library NAME OPTION...: its results from start values are those of the program
library() {
    name=$1
    shift
    ./dpgen $even "$tmp/net.yaml" --mode infer --library --prefix $name --estimate "$@" -o "$tmp/$name" >"$tmp/said" 2>&1 &&
        $cc -std=c11 -Wall -Wextra -Werror -ffp-contract=off -fno-math-errno -c -o "$tmp/$name.o" "$tmp/$name/$name.c" &&
        $cc -DJOB=$name -include "$tmp/$name/$name.h" -o "$tmp/filter" tests/library_infer.c "$tmp/$name.o" -lm -lpthread ||
        fault "library $name: $(tail -n 1 "$tmp/said")"
    "$tmp/filter" scores 6 3 <"$tmp/x.f32" >"$tmp/out"
    expect "library $name" cmp "$tmp/out" "$tmp/fresh"
}
library l3 --stages 3 --set 'model.outputs=[hidden, scores]'
[ -z "${SLOW:-}" ] || { library l1 --stages 1; library l4 --stages 4; }

# ---- proof ---------------------------------------------------------------------------------------------------------------
need dpgen-verify
expect "the folder is proved" ./dpgen-verify "$tmp/s2"
# fault_in WHAT TEXT SED: in a copy of stage 1, which has the output
fault_in() {
    rm -rf "$tmp/bad"
    cp -r "$tmp/s2" "$tmp/bad"
    sed "$3" "$tmp/s2/stage1.c" >"$tmp/bad/stage1.c"
    refuse "$1" 1 "$2" ./dpgen-verify --edited "$tmp/bad"
}
fault_in "another micro-batch" "has left already" '/output_put/s/ mb,/ 0,/'
fault_in "another output" "has no output 1 of micro-batch 0" '/output_put/s/output \*\/ 0/output *\/ 1/'
fault_in "no output" "0 outputs leave the stages, and 2 that of one device" '/output_put/d'
rm -rf "$tmp/bad"
cp -r "$tmp/wide" "$tmp/bad"
sed -i 's,linear_rows_forward\(.*\)/\* tmp \*/ 0\, ,linear_forward\1,' "$tmp/bad"/stage*.c
refuse "a sum that stays on its devices" 1 "is not what one device computes" ./dpgen-verify --edited "$tmp/bad"
fault_in "another value" \
    "output 0 of micro-batch 0 is not what one device computes" '/linear_forward/s/A(b_weight), A(b_bias)/A(b_weight), 0/'

# ---- read back as text, and graphs that are not of this mode
./dpgen "$tmp/net.yaml" --mode infer --estimate --stages 2 --no-verify -o "$tmp/direct" >"$tmp/said" 2>&1
./dpgen "$tmp/net.yaml" --mode infer --estimate --stages 2 -d f >"$tmp/graph" 2>"$tmp/said"
./dpgen "$tmp/net.yaml" --mode infer --estimate --stages 2 --no-verify --from "$tmp/graph" -o "$tmp/read" >"$tmp/said" 2>&1
expect "the folder of its graph as text" diff -r "$tmp/direct" "$tmp/read"
expect "schedules of a graph" ./dpgen schedules --from "$tmp/graph" --mode infer --estimate --set train.blocks=2
refuse "a graph without backward, to train" 3 "of inference, and plan.mode of .* is train" \
    ./dpgen plan "$tmp/net.yaml" --estimate --from "$tmp/graph"
sed '/^op F:output/d' "$tmp/graph" >"$tmp/none"
refuse "a graph without an output" 3 "no output" ./dpgen plan "$tmp/net.yaml" --mode infer --estimate --from "$tmp/none"
for pass in b s g; do
    ./dpgen "$tmp/net.yaml" --estimate -d $pass >"$tmp/graph" 2>"$tmp/said"
    refuse "the graph of pass $pass" 3 "without calls\|before the pass grad\|with backward" \
        ./dpgen plan "$tmp/net.yaml" --mode infer --estimate --from "$tmp/graph"
done

# ---- several outputs, bf16 --------------------------------------------------------------------------------
made both --stages 3 --set 'model.outputs=[hidden, scores]'
timeout 60 "$tmp/both/job" --weights "$weights" --quiet --in "$tmp/x.f32" --out hidden="$tmp/h" scores="$tmp/s" \
    >"$tmp/said" 2>&1
expect "two outputs, the second" cmp "$tmp/s" "$results"
expect "two outputs, the first" test "$(wc -c <"$tmp/h")" = $((23 * 4 * 4))
refuse "two outputs to one file" 2 "same file as output .hidden. " "$tmp/both/job" --in "$tmp/x.f32" \
    --out hidden="$tmp/new" scores="$tmp/./new"
refuse "two outputs to one place" 2 "several outputs, and the first is .hidden" "$tmp/both/job" --in "$tmp/x.f32" --out "$tmp/s"
use_bf16
for stages in 1 3; do
    made b$stages --stages $stages --set train.precision.compute=bf16
    timeout 60 "$tmp/b$stages/job" --weights "$weights" --quiet --in "$tmp/x.npy" >"$tmp/b$stages.f32" 2>"$tmp/said" ||
        fault "bf16: $(head -n 1 "$tmp/said")"
done
expect "bf16 over 1 and 3 stages" cmp "$tmp/b1.f32" "$tmp/b3.f32"
use_portable

# ---- processes; unequal devices ------------------------------------------------------------------------------------------
if over_mpi 2 1; then
    made mpi --stages 2 --set plan.transport=mpi
    served "two processes" mpi --in "$tmp/x.f32"
    timeout 60 $start "$tmp/mpi/job" --weights "$weights" --quiet <"$tmp/x.f32" >"$tmp/out" 2>"$tmp/said"
    expect "two processes, standard input" cmp "$tmp/out" "$results"
    use_portable
fi
# step LIST OPTION...: the step of a plan on these devices, of speeds 1, 2 and 4, of which the fastest holds least
step() {
    list=
    for k in $(echo "$1" | tr , ' '); do
        case $k in 4) memory=540 ;; *) memory=1MiB ;; esac
        list="$list{name: d$k, kind: cpu, memory: $memory, flops: ${k}MFLOP/s, vector: ${k}MFLOP/s, bandwidth: 1GB/s}, "
    done
    shift
    ./dpgen plan "$tmp/net.yaml" --mode infer --estimate --stages 3 --json --set "devices=[$list]" "$@" 2>/dev/null |
        sed -n 's/.*"step_ns": \([0-9]*\),.*/\1/p'
}
free=$(step 1,2,4 --device-order free)
least=$(for order in 1,2,4 1,4,2 2,1,4 2,4,1 4,1,2 4,2,1; do step $order; done | sort -n | head -n 1)
if [ -n "$free" ] && [ "$free" = "$least" ]; then pass; else fault "free order: $free ns, the best of six orders $least"; fi
# On one core a call of the first micro-batch takes as many times as long as stages compute beside it: 1, 2 and 3.
stream() {
    ./dpgen plan "$tmp/net.yaml" --mode infer --stages 3 --cuts 1,3 --set devices.0.flops=1MFLOP/s --estimate "$@" 2>&1 |
        awk '/^  stream/ { sub(/.*after /, ""); print $1 } /^  time/ { print $3 }' | tr '\n' ' '
}
if echo "$(stream) $(stream --set hosts.cores=1)" | awk '
    { exit !(NF == 8 && $3 > 0 && $4 > 0 && ($5 - $1 - $3 - 2 * $4) ^ 2 < 1e-5 && $6 > 2.9 * $2) }'
then pass; else fault "latency on one core: $(stream) and $(stream --set hosts.cores=1)"; fi
refuse "devices that hold too little" 4 "no plan fits 2 devices" ./dpgen plan "$tmp/net.yaml" --mode infer --estimate \
    --stages 2 --limit 600

# ---- bad input -----------------------------------------------------------------------------------------------------------
job=$tmp/s2/job
head -c 100 "$tmp/x.f32" >"$tmp/cut.f32"
refuse "a file of another size" 1 "cut.f32 has 100 bytes, and a sample of input .x. has 24: 4 whole ones and 4 bytes more" \
    "$job" --weights "$weights" --in "$tmp/cut.f32"
piped() { sh -c "$1 | timeout 60 $tmp/s2/job --weights $weights --quiet >$tmp/out"; }
refuse "a NumPy file without its last row" 1 "ends behind row 22 of the 23 that its header has" \
    piped "head -c -24 $tmp/x.npy"
refuse "a NumPy file that goes on" 1 "more stands behind its 23 rows" piped "cat $tmp/x.npy $tmp/x.npy"
refuse "a header that ends early" 1 "cut short inside its header" piped "head -c 40 $tmp/x.npy"
refuse "eight bytes of a header" 1 "no npy file" piped "head -c 8 $tmp/x.npy"
refuse "samples of another size" 1 "standard input" piped "sed 's/(23, 6, )/(46, 3, )/' $tmp/x.npy"
refuse "standard input that ends early" 1 "ends inside of a sample: it has 4 of its 24 bytes, behind 4 whole ones" \
    sh -c "'$job' --weights '$weights' <'$tmp/cut.f32'"
refuse "results that are not whole have no name" 1 "ends inside" \
    sh -c "'$job' --weights '$weights' --out '$tmp/none.f32' <'$tmp/cut.f32'"
expect "nothing half written" test ! -e "$tmp/none.f32" -a ! -e "$tmp/none.f32.part"
refuse "an input that is not read" 2 "no output of this job depends on input .y" "$job" --in y="$tmp/y.npy"
refuse "a file of another type" 1 "rows of 1 integers; input .x. wants 6 floats" "$job" --weights "$weights" --in "$tmp/y.npy"
refuse "no such file" 1 "cannot open $tmp/nothing" "$job" --weights "$weights" --in "$tmp/nothing"
cp "$tmp/x.f32" "$tmp/own.f32"
ln -s own.f32 "$tmp/link.f32"
refuse "a result over its input" 2 "same file as samples $tmp/own.f32" "$job" --weights "$weights" \
    --in "$tmp/own.f32" --out "$tmp/link.f32"
refuse "a result over standard input" 2 "same file as samples /dev/stdin" sh -c '"$0" --untrained --out "$1" <"$1"' "$job" \
    "$tmp/own.f32"
expect "which stays" cmp -s "$tmp/x.f32" "$tmp/own.f32"
refuse "a result over its weights" 2 "same file as weights $weights" "$job" --weights "$weights" --in "$tmp/x.f32" \
    --out "$weights"
expect "which are whole" test -s "$weights" -a ! -e "$weights.part"
refuse "an input twice" 2 "x is given two files" "$job" --in "$tmp/x.npy" x="$tmp/x.npy"
refuse "no weights" 5 "there are no checkpoints in checkpoints" "$job" --in "$tmp/x.npy"
refuse "weights and none" 2 "exclude each other" "$job" --weights "$weights" --untrained
refuse "no such folder" 1 "cannot write results" "$job" --weights "$weights" --in "$tmp/x.npy" --out "$tmp/no/such"
model() { ./dpgen check "$tmp/net.yaml" "$@"; }
refuse "no outputs" 3 "the model has no outputs" sh -c "sed '/outputs/d' $tmp/net.yaml | ./dpgen check - --mode infer"
refuse "an output that is a loss" 3 "output loss is a loss, one number of a micro-batch" model --mode infer \
    --set model.outputs=loss
refuse "an output that is not there" 3 "scoers" model --mode infer --set model.outputs=scoers
refuse "a schedule with a backward" 3 "has no backward, and schedule 1f1b orders one" model --mode infer --schedule 1f1b
expect "the schedule of a file for training is passed over" model --mode infer --set plan.stages=2
printf '0F0,0F1,0B0,0B1\n' >"$tmp/table.csv"
for given in "schedule: interleaved, group: 2" "schedule: hanayo, waves: 2" "order: $tmp/table.csv" "offload: ['a*']" \
        "recompute: [main]" "offload: [main], constraints: [{keep: side}]"; do
    sed "s|schedule: gpipe|$given|" "$tmp/net.yaml" >"$tmp/trained.yaml"
    expect "$given: passed over" ./dpgen plan "$tmp/trained.yaml" --mode infer --estimate
done
refuse "a schedule without one" 3 "schedule stream has forwards alone, and this job trains" model --schedule stream
refuse "several replicas" 3 "plan.replicas asks for several" model --mode infer --replicas 2 --set train.batch.groups=2
refuse "rows that are divided" 3 "all rows on each device" model --mode infer --set plan.tensor=2 --set plan.positions=divided
sed 's/plan: {/plan: {mode: infer, /' "$tmp/net.yaml" >"$tmp/own.yaml"
refuse "training in a file for inference" 3 "own.yaml:.*trains nothing, and train.optimizer is of training" \
    ./dpgen check "$tmp/own.yaml"
expect "all of it is named" test "$(./dpgen check "$tmp/own.yaml" 2>&1 | grep -c 'trains nothing')" = 4
refuse "a mode that there is not" 3 "serve" model --mode serve
finish
