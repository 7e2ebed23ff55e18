#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Graphs of other systems: the whole line runs on them; `objective bottleneck` reaches the optima of the reference table; what
# is wrong with a file is said with its place.  PLANNER=DIR: graphs and reference.csv, instead of tests/data/planner.
. "$(dirname "$0")/lib.sh"
need dpgen
graphs=${PLANNER:-$root/tests/data/planner}

# ---- published optima: model, k, with and without transfers at 1e9 B/s; prefixes ------------------------------------
bottleneck() {  # MODEL K RATE
    ./dpgen plan --from "$graphs/$1.txt" --stages "$2" --link "$3" --objective bottleneck --limit 1TiB 2>&1 |
        sed -n 's/.*bottleneck \([0-9.]*\) ms.*the least there is, over all \([0-9]*\) .*/\1 \2/p'
}
while IFS=, read -r model k _ _ _ _ _ _ with without prefixes _; do
    [ "$model" != model ] || continue
    for case in "$with 1GB/s" "$without 1000000TB/s"; do
        want=$(echo "${case% *}" | awk '{ printf "%.6f", $1 * 1000 }')
        got=$(bottleneck "$model" "$k" "${case#* }")
        if [ "$got" = "$want $prefixes" ]; then pass
        else fault "$model, $k stages, ${case#* }: bottleneck and prefixes '$got', not '$want $prefixes'"; fi
    done
done <"$graphs/reference.csv"

# as data, too: of a plan, and of a table, whose rows then share the cuts
for verb in plan compare; do
    ./dpgen $verb --from "$graphs/vgg16.txt" --stages 4 --link 1GB/s --objective bottleneck --limit 1TiB --json \
        >"$tmp/said" 2>&1
    got=$(grep -o '"bottleneck[a-z_]*": [a-z0-9]*' "$tmp/said" | sed 's/.*: //' | tr '\n' ' ')
    if [ "$got" = "411041792 411041792 true " ]; then pass; else fault "$verb --json: bottleneck '$got'"; fi
done
# ... and the plan says whose cuts they are
./dpgen plan --from "$graphs/vgg16.txt" --stages 4 --link 1GB/s --objective bottleneck --limit 1TiB -d a >"$tmp/plan.txt" 2>&1
expect "the stages of the bottleneck" grep -q "space=the%20stages%20of%20the%20bottleneck%2C" "$tmp/plan.txt"
expect "compare" ./dpgen compare --from "$graphs/gnmt.txt" --stages 4 --limit 64GiB
./dpgen plan "$models/mlp.yaml" --estimate -d a >"$tmp/plan.txt" 2>&1
refuse "a plan is not compared" 2 "plans of their own" ./dpgen compare "$models/mlp.yaml" --from "$tmp/plan.txt"

# ---- the whole line --------------------------------------------------------------------------------------------------
for model in vgg16 gnmt; do
    for how in "--schedule gpipe" "--schedule 1f1b --recompute full" "--schedule 1f1b --recompute auto --limit 24GiB" \
               "--set train.optimizer.type=adamw" "--objective bottleneck" "--set plan.chunks=2 --schedule gpipe"; do
        expect "$model $how" ./dpgen plan --from "$graphs/$model.txt" --stages 4 --limit 64GiB $how
    done
    ./dpgen plan --from "$graphs/$model.txt" -d f --limit 1TiB >"$tmp/graph.txt" 2>&1
    ./dpgen plan --from "$tmp/graph.txt" -d f --limit 1TiB >"$tmp/again.txt" 2>&1
    expect "$model: print and read" cmp "$tmp/graph.txt" "$tmp/again.txt"
    ./dpgen plan --from "$graphs/$model.txt" --stages 3 --limit 64GiB >"$tmp/one" 2>&1
    ./dpgen plan --from "$tmp/graph.txt" --stages 3 --limit 64GiB >"$tmp/two" 2>&1
    expect "$model: the same plan from its text" cmp "$tmp/one" "$tmp/two"
done
refuse "no plan fits" 4 "no plan fits" ./dpgen plan --from "$graphs/vgg16.txt" --stages 2 --limit 1GiB
refuse "nothing to generate" 3 "not generated" ./dpgen "$models/tiny-gpt.yaml" --from "$graphs/gnmt.txt" --limit 64GiB \
    --set train.batch.micro=1 -o "$tmp/out"
refuse "another micro-batch" 3 "of 1 sample" ./dpgen plan --from "$graphs/gnmt.txt" --set train.batch.micro=2
refuse "bottleneck of a model" 3 "for graphs of other systems" ./dpgen plan "$models/tiny-gpt.yaml" --objective bottleneck
refuse "more stages than nodes" 3 "the graph has" ./dpgen plan --from "$graphs/vgg16.txt" --stages 64 --objective bottleneck

# ---- three nodes in our own form, by hand: a (F 1, B 2) feeds b (2, 4) and c (3, 6), b feeds c ----------------------
# One stage, 2 micro-batches: 2 * 18 ms, and 500 ns each for begin and end of a step.  Saved: a 400, b 800, c its output.
printf '%s\n' 'dpgen-nodes 1' 'graph three batch=4 micro=2' 'node a forward=1 backward=2.0 output=100 saved=400 params=40' \
    'node 2nd name=b forward=2 backward=4 output=200 saved=800' 'edge 2nd to=c' 'edge a to=2nd' \
    'node c forward=3 backward=6 output=8 saved=output' 'edge a to=c' >"$tmp/three.txt"
expect "own form" ./dpgen plan --from "$tmp/three.txt" --json
grep -q '"step_ns": 36001000,' "$tmp/said" && pass || fault "own form: $(grep -o '"step_ns": [0-9]*' "$tmp/said"), not 36001000"
./dpgen plan --from "$tmp/three.txt" -d f >"$tmp/graph.txt"
line() { if grep -q -e "$1" "$tmp/graph.txt"; then pass; else fault "own form: no line '$1'"; fi; }
line '^op F:b row=Opaque ns=2000000 call=opaque_forward y=w:b saved=w:b.saved x0=r:a '
line '^op I:c .*ns=6000000 call=opaque_backward dx0=w:d.a.t1 dx1=w:d.b y=r:c '
line '^op I:b#2 row=GradAdd .*call=grad_add y=w:d.a a=r:d.a.t1 b=r:d.a.t2 n=i:25 '
line '^op I:a .*call=opaque_backward dy=r:d.a saved=r:a.saved weight=R:a.weight dweight=A:a.weight.grad.0 acc=acc '
line '^tensor b.saved .* bytes=800 '
line '^graph three compute=f32 batch=4 micro=2 .*timed=1'
# a quarter of a's backward can be delayed
sed '/^node a/s/$/ weight=0.25/' "$tmp/three.txt" >"$tmp/apart.txt"
./dpgen plan --from "$tmp/apart.txt" -d f >"$tmp/graph.txt"
line '^op I:a row=Opaque fwd=F:a ns=1500000 call=opaque_backward dy=r:d.a saved=r:a.saved weight=R:a.weight @'
line '^op W:a row=Opaque fwd=F:a ns=500000 call=opaque_weight dy=r:d.a saved=r:a.saved dweight=A:a.weight.grad.0 acc=acc @'
./dpgen plan --from "$tmp/graph.txt" -d f >"$tmp/again.txt" 2>&1
expect "weights apart: print and read" cmp "$tmp/graph.txt" "$tmp/again.txt"

# ---- times by kind of device: 9 ms on slow, 4 on fast but for c, 6 ---------------------------------------------------
# Of two slow ones and a fast one, fast takes two nodes, so the longest of any stages is 9 ms.  In the order that is given slow
# takes a, and nothing is shorter than 9 ms either; with fast first c is left for slow.
{
    printf '%s\n' 'dpgen-nodes 1' 'graph kinds batch=4 micro=16'
    for node in a b c; do echo "node $node forward=4 output=1000 params=1000"; done
    printf '%s\n' 'edge a to=b' 'edge b to=c' 'time c on=fast forward=6 backward=0'
    for node in a b c; do echo "time $node on=slow forward=9"; done
} >"$tmp/kinds.txt"
printf 'devices: {order: free, list: [{name: slow, count: 2, memory: 1GiB}, {name: fast, memory: 1GiB}]}\n' >"$tmp/kinds.yaml"
kinds() { ./dpgen plan --from "$tmp/kinds.txt" --devices "$tmp/kinds.yaml" --stages auto "$@"; }
for how in "--objective bottleneck" "--mode infer --objective bottleneck" \
           "--mode infer --objective bottleneck --device-order given"; do
    if kinds $how --json 2>&1 | grep -q '"bottleneck_ns": 9000000, "bottleneck_bound_ns": 9000000,'; then pass
    else fault "kinds: $how is not 9 ms"; fi
done
sed 's/count: 2, //' "$tmp/kinds.yaml" >"$tmp/one.yaml"
if ./dpgen plan --from "$tmp/kinds.txt" --devices "$tmp/one.yaml" --stages 2 --mode infer 2>&1 | tee "$tmp/said" |
    grep -q "(fast), .* operators"; then pass; else fault "kinds: the search takes times of kinds"; fi
if grep -q "a micro-batch each 9.000 ms" "$tmp/said"; then pass; else fault "kinds: not 9 ms a micro-batch"; fi
kinds -d f >"$tmp/all.txt" 2>&1
sed '/^dpgen-plan/,$d' "$tmp/all.txt" >"$tmp/graph.txt"
line '^graph kinds .*timed=1 kinds=fast,slow'
line '^op F:a row=Opaque ns=4000000 on=4000000,9000000 call='
line '^op F:c row=Opaque ns=4000000 on=6000000,9000000 call='
./dpgen plan --from "$tmp/graph.txt" --devices "$tmp/kinds.yaml" --stages auto -d f 2>&1 |
    sed '/^dpgen-plan/,$d' >"$tmp/again.txt"
expect "kinds: print and read" cmp "$tmp/graph.txt" "$tmp/again.txt"
cp "$tmp/graph.txt" "$tmp/graph.yml"
expect "a graph may have any name" ./dpgen plan --from "$tmp/graph.yml" --devices "$tmp/kinds.yaml" --stages auto
refuse "a device of no kind" 3 "'cpu.0': the graph has times for fast, slow alone" ./dpgen plan --from "$tmp/kinds.txt"
for m in 1 2 3; do echo "{name: d$m, count: 30, memory: ${m}GiB}"; done | paste -sd, |
    sed 's/.*/devices: {order: free, list: [&]}/' >"$tmp/many.yaml"
refuse "too many kinds to be ordered" 3 "of too many" ./dpgen plan --from "$tmp/three.txt" --devices "$tmp/many.yaml" \
    --stages auto --objective bottleneck

# what dpgen made up to go with the graph is no line of it, and is not quoted
refuse "a schedule that needs another step" 3 "vgg16.txt: error: schedule spectrain" \
    ./dpgen plan --from "$graphs/vgg16.txt" --schedule spectrain
if grep -q '|' "$tmp/said"; then fault "a line is quoted that no file has: $(grep '|' "$tmp/said" | head -n 1)"; else pass; fi
refuse "its micro-batch is where it says" 3 "three.txt:2:1: error: .*4 samples a micro-batch, not of 2" \
    ./dpgen plan --from "$tmp/three.txt" --set train.batch.micro=2

# ---- mistakes --------------------------------------------------------------------------------------------------------
wrong() {       # WHAT PLACE TEXT LINE...: one line of three.txt more
    what=$1 place=$2 text=$3
    shift 3
    { cat "$tmp/three.txt"; printf '%s\n' "$@"; } >"$tmp/bad.txt"
    refuse "$what" 3 "bad\.txt:$place: error: .*$text" ./dpgen plan --from "$tmp/bad.txt"
}
wrong "a cycle"           3:1  "cycle: a -> 2nd -> c -> a" 'edge c to=a'
wrong "a loop"            4:1  "cycle: 2nd -> 2nd" 'edge 2nd to=2nd'
wrong "an unknown node"   9:13 "no node is called 'd'" 'edge 2nd to=d'
wrong "an unknown source" 9:6  "no node is called 'x'" 'edge x to=c'
wrong "twice a node"      9:1  "a second node a" 'node a'
wrong "twice an edge"     9:6  "there twice" 'edge a to=c'
wrong "negative time"     9:16 "forward is negative" 'node d forward=-1'
wrong "no number"         9:16 "not a finite number" 'node d forward=nan'
wrong "infinite"          9:17 "not a finite number" 'node d backward=inf'
wrong "too long"          9:17 "more than" 'node d backward=1e300'
wrong "too large"         9:15 "more than 2^42" 'node d output=1e13'
wrong "negative bytes"    9:15 "params is negative" 'node d params=-4'
wrong "all and more"      9:24 "more than all of backward" 'node d params=4 weight=1.1'
wrong "no parameters"     9:15 "has no params" 'node d weight=0.5'
wrong "an unknown key"    9:8  "node has no 'fwd'" 'node d fwd=1'
wrong "no reader"         9:1  "two ends" 'edge a'
wrong "an unknown record" 9:1  "no record begins" 'arc a to=c'
wrong "an illegal name"   9:13 "" 'node d name=a%20b'
wrong "no kind"           9:1  "of which kind" 'time a forward=1'
wrong "no name of a kind" 9:11 "is no name" 'time a on=a.b'
wrong "times of no node"  9:1  "no node is called 'z'" 'time z on=gpu'
wrong "two times"         10:1 "a second time of a on gpu" 'time a on=gpu' 'time a on=gpu forward=1'
wrong "a second graph"    9:1  "a second graph" 'graph four'
quantities() {
    printf 'forward_compute_time=%s, backward_compute_time=%s, activation_size=8.0, parameter_size=4.000' "$1" "$2"
}
profile="node1 -- Linear(1) -- $(quantities 1.0 2.0)"
profile() {     # WHAT PLACE TEXT LINE
    printf '%s\n%b\n' "$profile" "$4" >"$tmp/bad.txt"
    refuse "profile: $1" 3 "bad\.txt:$2: error: .*$3" ./dpgen plan --from "$tmp/bad.txt"
}
profile "no node"        2:2  "no node is called 'node2'" '\tnode2 -- node1'
profile "a time missing" 2:18 "no backward_compute_time" "node2 -- Relu -- forward_compute_time=1, activation_size=1"
profile "negative"       2:36 "negative" "node2 -- R -- $(quantities -1 1)"
profile "no line of it"  2:1  "neither a node nor an edge" 'hello'
profile "a cycle"        1:1  "cycle: node1 -> node1" '\tnode1 -- node1'
printf 'forward_compute_time=\nab\0%s\n' "$(seq 200)" >"$tmp/bad.txt"
refuse "profile: zeros behind the text" 3 "bad.txt:2:3: error: a zero byte" ./dpgen plan --from "$tmp/bad.txt"
echo "node1 -- Input0 -- $(quantities 0 0)" >"$tmp/bad.txt"
refuse "profile: nothing but inputs" 3 "no nodes" ./dpgen plan --from "$tmp/bad.txt"
finish
