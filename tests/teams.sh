#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What a plan says of stages of several devices, and what it takes them to cost.  Expected values are formulas of docs/width.md
# and docs/planner.md, worked out here from sizes: bytes that a device sends, times of a divided call, links inside a host and
# between hosts.  Jobs with oneDNN have one hash for each number of devices, and those of images one for all.
. "$(dirname "$0")/lib.sh"
need dpgen dpgen-verify build/emitted build/librt.a build/librt_bf16.a

# is WHAT WANT GOT
is() { if [ -n "$2" ] && [ "$2" = "$3" ]; then pass; else fault "$1: $3, not $2"; fi; }

# ---- bytes -------------------------------------------------------------------------------------------------------
# tiny-gpt, 2 samples of 16 tokens, D 32: a sum has n = 1024 floats, and a layer four of them, two of each way.  The result of
# the table is one, and the gradient of what the head reads; a loss has 12 bytes a row
sed 's/D: 24, H: 3/D: 32, H: 4/; s/count: 4/count: 16/' "$models/tiny-gpt.yaml" >"$tmp/gpt.yaml"
gpt="$tmp/gpt.yaml --set train.blocks=8 --schedule 1f1b --planner even"
# sent T OPTION...: by a device of each stage, in a step
sent() {
    ./dpgen plan $gpt --set plan.tensor="$@" --json 2>"$tmp/said" |
        sed -n 's/.*"team_sent_bytes": \([0-9]*\).*/\1/p' | xargs
}
# bytes T SUMS LOSSES MICRO ELEMENTS PARAMETERS: of a micro-batch, then norms of divided parameters, each with 2 KiB a level
bytes() {
    awk -v t=$1 -v sums=$2 -v losses=$3 -v micro=$4 -v elements=$5 -v n=$6 'BEGIN {
        levels = log(t) / log(2); levels = int(levels + 0.5)
        print micro * (sums * 4 * 1024 + losses * 12 * 32) * levels + 4 * elements / t * (t - 1) / t + n * 2048 * levels }'
}
# of a layer: packed q, k, v with its bias; the weight behind attention; the first product with its bias; the weight behind it
table=$((256 * 32)) layer=$((96 * 32 + 96 + 32 * 32 + 128 * 32 + 128 + 32 * 128))
for t in 2 4; do
    is "a stage, $t devices" "$(bytes $t 14 1 4 $((3 * layer + table)) 19)" "$(sent $t --stages 1)"
    is "two stages, $t devices" "$(bytes $t 5 0 4 $((layer + table)) 7) $(bytes $t 9 1 4 $((2 * layer)) 12)" \
        "$(sent $t --stages 2 --cuts 12)"
done
# the norm behind the last layer reads its sum, so all forward sums are made again, and what the loss tells
is "sums that are made again" "$(bytes 2 $((14 + 7)) 2 4 $((3 * layer + table)) 19)" "$(sent 2 --stages 1 --recompute full)"
is "check tells them" "$(((14 * 4 * 1024 + 12 * 32) * 2)) bytes a micro-batch" \
    "$(./dpgen check $gpt --set plan.tensor=4 | tr -d , | sed -n 's/^  sends for sums *//p')"
is "and norms" "$(bytes 4 0 0 0 $((3 * layer + table)) 19) bytes a step" "$(./dpgen check $gpt --set plan.tensor=4 | tr -d , |
    sed -n 's/^  sends for norms *//p')"

# Divided rows: a sum or a gather is (T-1)/T of a [32, 32] tensor.  Forward, a layer has two of each, and what the head reads is
# gathered; backward as many, and the gradient of the positions' result is gathered.  The result of the table is still a sum,
# and each of 7 norms has one of its two gradients
for t in 2 4 8; do
    for type in "f32 4" "bf16 2"; do
        set -- $type
        norms=$(bytes $t 0 0 0 $((3 * layer + table)) 19)
        want=$(awk -v t=$t -v real=$2 -v norms=$norms 'BEGIN { levels = int(log(t) / log(2) + 0.5); sums = 13; gathers = 14
            rows = (sums * 4 + gathers * real) * 1024 * (t - 1) / t
            print norms + 4 * (rows + (real * 1024 + 12 * 32 + 7 * 8 * 32) * levels) }')
        heads=
        [ $t -lt 8 ] || heads="-D H=8"
        is "divided rows, $t devices, $1" "$want" \
            "$(sent $t --stages 1 --set plan.positions=divided --set train.precision.compute=$1 $heads)"
    done
done

# A norm of each of 16 heads sums 208 rows in 8 blocks of 26, and a part of 13 rows has 2 of them: it is whole beside attention.
# Both remedies help
everywhere() {
    ./dpgen plan --estimate --stages 1 --planner even --set plan.tensor=2 --set train.blocks=8 --set plan.positions="$@"
}
qwen="$root/examples/qwen3-0.6b.yaml -D"
refuse "a whole norm, then heads" 3 "model.layers.0.self_attn.q_norm is whole: its sum over 208 rows has other blocks than the \
13 that are cut, and each device has a part of model.layers.0.rotary" everywhere everywhere $qwen T=13
expect "divided rows" everywhere divided $qwen T=13
expect "rows that the blocks divide" everywhere everywhere $qwen T=16
sed '/[qk]_norm/d; s/softcap: cap}/&\n        - {op: RMSNorm, name: behind, width: W}/' "$models/language.yaml" \
    >"$tmp/behind.yaml"
refuse "heads, then a whole norm" 3 "model.layers.0.behind is whole: .* 120 rows .* 20 that are cut, and each device has a \
part of model.layers.0.attention" everywhere everywhere "$tmp/behind.yaml"
# 30 columns are uneven parts in 8 blocks, which an operator of elements does not know
refuse "uneven elements" 3 "embed_tokens: n of softcap is 30, no multiple of 8" everywhere divided \
    "$models/language.yaml" -D V=30

# of 26 rows, which the blocks do not divide: the mean of the devices
is "rows that are not even" "$(awk -v norms=$(bytes 4 0 0 0 $((3 * layer + table)) 19) 'BEGIN {
    print norms + 4 * ((13 + 14) * 4 * 26 * 32 * 3 / 4 + (4 * 26 * 32 + 12 * 26 + 7 * 8 * 32) * 2) }')" \
    "$(sent 4 --stages 1 --set plan.positions=divided -D T=13)"

# Nothing stands between a table and what is cut: each device sends the words that it has, to whom they belong
sed '/PositionEmbedding/d' "$tmp/gpt.yaml" >"$tmp/words.yaml"
for t in 2 4; do
    is "words, $t devices" $(($(gpt="$tmp/words.yaml ${gpt#* }" sent $t --stages 1) - 4 * 4 * 1024 * (t / 2) +
        4 * 4 * 1024 * (t - 1) / t / t)) \
        "$(gpt="$tmp/words.yaml ${gpt#* }" sent $t --stages 1 --set plan.positions=divided |
            awk -v t=$t '{ print $1 - 4 * ((13 + 14) * 4 * 1024 * (t - 1) / t + (7 * 8 * 32 - 13 * 4 * 1024) * t / 2) }')"
done

expect "a mean that is no whole number" ./dpgen plan "$tmp/words.yaml" --estimate -D T=13 -D D=10 -D H=5 --set train.blocks=8 \
    --set train.batch.micro=1 --set plan.tensor=8 --set plan.positions=divided --set train.precision.compute=bf16

# Rows everywhere: a layer sends heads for rows, a row of q, k, v and one of what comes of them, each way; the gradients of its
# weights are sums.  What the head reads is gathered, its gradient and that of the positions' result cut or gathered; the table
# and the loss are as before
linear=$((3 * (layer + 2 * 32)))          # two more biases
for t in 2 4; do
    for type in "f32 4" "bf16 2"; do
        set -- $type
        norms=$(bytes $t 0 0 0 $table 1)
        is "rows everywhere, $t devices, $1" "$(awk -v t=$t -v real=$2 -v norms=$norms -v linear=$linear 'BEGIN {
            levels = int(log(t) / log(2) + 0.5)
            rows = 3 * 2 * 4 * real * 1024 * (t - 1) / t / t + (2 * real + 4) * 1024 * (t - 1) / t
            print norms + 4 * (rows + levels * (real * 1024 + 12 * 32 + 7 * 8 * 32 + 4 * linear)) }')" \
            "$(sent $t --stages 1 --set plan.positions=everywhere --set train.precision.compute=$1)"
    done
done

# Whole experts: of two layers the rows of all experts are gathered, 64 and 32 of 12 numbers, and the gradients of their shares
# taken; a part of each expert of the first layer has three sums in place of that, and the second layer is whole
sed 's/F: 9/F: 16/; s/T: 10/T: 16/; s/E: 5/E: 8/; s/out: 3,/out: E,/; s/experts: 3,/experts: E,/; s/count: 4/count: 16/' \
    "$models/experts.yaml" >"$tmp/experts.yaml"
experts="$tmp/experts.yaml --set train.blocks=8 --planner even"
for t in 2 4 8; do
    for type in "f32 4" "bf16 2"; do
        set -- $type
        want=$(awk -v t=$t -v real=$2 'BEGIN { levels = int(log(t) / log(2) + 0.5); rows = 64 + 32; again = 8 * 12 * 12 + 8 * 12
            norms = 4 * again / t * (t - 1) / t + 2 * 2048 * levels
            print norms + 4 * (2 * rows * 12 * real * (t - 1) / t + rows * real * levels - 3 * 64 * 12 * 4 * levels) }')
        part=$(gpt=$experts sent $t --set train.precision.compute=$1)
        is "whole experts, $t devices, $1" $((part + want)) \
            "$(gpt=$experts sent $t --set train.precision.compute=$1 --set plan.experts=devices)"
        # Where rows are divided, three of the four send a device the rows of its tokens; the head reads those of all
        want=$(awk -v t=$t -v real=$2 'BEGIN { levels = int(log(t) / log(2) + 0.5); again = 8 * 12 * 12 + 8 * 12
            norms = 4 * again / t * (t - 1) / t + 2 * 2048 * levels
            rows = (64 + 64 + 32) / t / t * (t - 1) + 32 * (t - 1) / t
            print norms + 4 * (rows * 12 * real + (64 + 32) * real * levels - 3 * 64 * 12 * 4 * levels) }')
        part=$(gpt=$experts sent $t --set train.precision.compute=$1 --set plan.positions=divided)
        is "and divided rows, $t devices, $1" $((part + want)) "$(gpt=$experts sent $t --set train.precision.compute=$1 \
            --set plan.experts=devices --set plan.positions=divided)"
    done
done

# ---- bytes that are sent -------------------------------------------------------------------------------------------
# By each device in a step of a job, counted where its messages begin, beside those of the plan: of uneven rows, their mean
use_portable
$cc -std=c11 -O1 -Wall -Wextra -Werror -D_GNU_SOURCE -I. -Irt -c -o "$tmp/sent.o" tests/sent.c || fault "tests/sent.c"
counted() {     # WHAT OPTION...
    what=$1
    shift
    said=$(more="$tmp/sent.o -Wl,--wrap=step_begin,--wrap=step_end,--wrap=link_begin"
        generate "$tmp/sent" "$@" && compile "$tmp/sent" && job_hash "$tmp/sent" --steps 2)
    [ ${#said} = 64 ] || fault "$what: $said"
    is "$what, sent" "$(sed -n 's/.*"team_sent_bytes": \([0-9]*\).*/\1/p' "$tmp/sent/plan.json" | xargs)" \
        "$(awk '$1 == "sent" && $4 == 2 { n[$2] += $5 / 2; of[$2]++ } END { for (s = 0; s in n; s++) print n[s] / of[s] }' \
            "$tmp/sent.out" | xargs)"
}
counted "four devices" $gpt --set plan.tensor=4 --stages 1
counted "divided rows" $gpt --set plan.tensor=4 --stages 2 --set plan.positions=divided -D T=13
counted "rows everywhere" $gpt --set plan.tensor=2 --stages 1 --set plan.positions=everywhere --recompute full

# of frozen norms nothing is added; of their weights alone half as much
all=$(sent 4 --stages 1 --set plan.positions=divided) norms=$((4 * 7 * 8 * 32 * 2))
is "frozen norms" $((all - norms)) "$(sent 4 --stages 1 --set plan.positions=divided --set "train.freeze=['*ln_*']")"
is "frozen weights" $((all - norms / 2)) \
    "$(sent 4 --stages 1 --set plan.positions=divided --set "train.freeze=['*ln_*.weight']")"

# ---- what is kept of a layer ---------------------------------------------------------------------------------------
# Korthikanti et al. 2022, table 2, in bf16: 34 bytes an element of [rows, D] of a micro-batch and layer, of which 10 are on
# each device, unless rows are divided.  Of these we have no masks of Dropout, 2, and make the norms' results again, 4.  Besides
# there are the statistics of the softmax, 4 a row and head, and of the norms, 16 a row, unless made again; no scores.
kept() {
    ./dpgen plan $gpt --set train.precision.compute=bf16 --stages 1 --estimate -d m "$@" 2>"$tmp/said" |
        sed -n 's/^buf 0:h[.]1[.].* birth=F death=B .* bytes=\([0-9]*\) .*/\1/p' | awk '{ n += $1 } END { print n }'
}
for t in 2 4; do
    is "a layer, whole rows, $t devices" $((1024 * (10 - 2 - 4 + 24 / t) + 4 * 4 * 32 / t)) \
        "$(kept --set plan.tensor=$t --recompute "['h.*.ln_*']")"
    is "a layer, divided rows, $t devices" $((((34 - 2 - 4) * 1024 + (16 + 4 * 4) * 32) / t)) \
        "$(kept --set plan.tensor=$t --set plan.positions=divided --recompute "['h.*.gather']")"
done

# ---- times -------------------------------------------------------------------------------------------------------
# 1024 rows, 256 wide, 1024 in between; a sum is 2^18 floats: 1 MiB, in 32 pieces
cat >"$tmp/wide.yaml" <<'END'
dpgen: 1
model:
  dims: {V: 64, T: 512, D: 256, F: 1024}
  inputs:
    tokens:  {shape: [B, T], dtype: i32, range: [0, V]}
    targets: {shape: [B, T], dtype: i32, range: [0, V]}
  graph:
    - {op: Embedding, name: wte, in: tokens, rows: V, out: D}
    - {op: Linear, name: fc, out: F, bias: false}
    - {op: Gelu, name: gelu}
    - {op: Linear, name: proj, out: D, bias: false}
    - {op: Linear, name: head, out: V, bias: false}
    - {op: SoftmaxCrossEntropy, targets: targets, as: loss}
  loss: loss
train: {batch: {micro: 2, global: 4}, blocks: 8}
devices:
  - {name: p, kind: cpu, count: 8, memory: 1GiB, flops: 1TFLOP/s, vector: 1TFLOP/s, bandwidth: 1000000GB/s, call: 1us}
links: {p-p: {rate: 10GB/s, latency: 1us}, host-host: {rate: 1GB/s, latency: 10us}}
plan: {stages: 1}
END
# time OPERATOR WORD OPTION...: forward, or input gradient, in ms
time_of() {
    op=$1 word=$2
    shift 2
    ./dpgen explain "$tmp/${of:-wide}.yaml" --estimate "$@" $op 2>"$tmp/said" | sed -n "s/^time .*$word \([0-9.]*\) ms.*/\1/p"
}
# ms FORMULA
ms() { awk "BEGIN { product = 2 * 1024 * 256 * 1024 / 1e6; mib = 1048576; printf \"%.3f\n\", ($1) / 1e6 }"; }
# a product of T devices takes 1/T, in ns at 1 flop a ps, and a call 1 us; a level a MiB and 32 latencies
near='(mib / 10 + 32e3)' far='(mib + 320e3)'
is "fc, alone" "$(ms 'product * 1e3 + 1e3')" "$(time_of fc forward)"
for t in 2 4 8; do
    levels=$(awk "BEGIN { print int(log($t) / log(2) + 0.5) }")
    is "fc, $t devices" "$(ms "product * 1e3 / $t + 1e3")" "$(time_of fc forward --set plan.tensor=$t)"
    is "proj, $t devices" "$(ms "product * 1e3 / $t + 1e3 + $levels * $near")" "$(time_of proj forward --set plan.tensor=$t)"
    is "the gradient of fc's x" "$(ms "product * 1e3 / $t + 1e3 + $levels * $near")" \
        "$(time_of fc 'input gradient' --set plan.tensor=$t)"
done
# 8 devices: on two hosts 4 are near, on four 2, and a farther one is between hosts
is "within a host" "$(ms "product * 1e3 / 4 + 1e3 + 2 * $near")" \
    "$(time_of proj forward --set plan.tensor=4 --set hosts.count=2)"
is "two hosts" "$(ms "product * 1e3 / 8 + 1e3 + 2 * $near + $far")" \
    "$(time_of proj forward --set plan.tensor=8 --set hosts.count=2)"
is "four hosts" "$(ms "product * 1e3 / 8 + 1e3 + $near + 2 * $far")" \
    "$(time_of proj forward --set plan.tensor=8 --set hosts.count=4)"
sed 's/host-host/p.1-p.3: {rate: 5GB\/s, latency: 2us}, &/' "$tmp/wide.yaml" >"$tmp/pair.yaml"
is "a pair by its names" "$(ms "product * 1e3 / 4 + 1e3 + $near + mib / 5 + 64e3")" \
    "$(of=pair time_of proj forward --set plan.tensor=4)"
is "one way at a time" "$(ms "product * 1e3 / 2 + 1e3 + 2 * mib / 5 + 32e3")" \
    "$(time_of proj forward --set plan.tensor=2 --set 'links.p-p={rate: 5GB/s, latency: 1us, duplex: half}')"
refuse "links between hosts want a rate" 3 "links.host-host has no 'rate'" \
    ./dpgen check "$tmp/wide.yaml" --set 'links.host-host={latency: 2us}'
# threads that take turns: a sum is no work, and who waits leaves the core
is "turns" "$(ms "2 * (product * 1e3 / 4 + 1e3) + 2 * $near")" \
    "$(time_of proj forward --set plan.tensor=4 --set hosts.cores=2)"

# of a profile of four devices: the call on two lies on the line from alone to busy; a piece is a message of its bytes, at the
# rate of the slowest larger one
if [ -n "${SLOW:-}" ]; then
    measured="$tmp/gpt.yaml --set train.blocks=4 --set train.batch.micro=2 --profile $tmp/profile --stages 1"
    ./dpgen profile $(echo "$measured" | sed 's/--profile [^ ]*//') --set plan.tensor=auto -o "$tmp/profile" >"$tmp/said" 2>&1
    got=$(./dpgen explain $measured --set plan.tensor=2 h.1.mlp.c_proj 2>"$tmp/said" |
        sed -n 's/^time *forward \([0-9.]*\) ms.*/\1/p')
    if awk -v got="$got" '{ for (i = 2; i <= NF; i++) { split($i, kv, "="); v[kv[1]] = kv[2] } }
        $2 == "linear_rows_forward" && /rows=32 in=64 out=32 / { call = v["alone"] + (v["busy"] - v["alone"]) / 3 }
        $1 == "message" { at[v["bytes"]] = v["alone"] }
        END { for (n in at) if (n + 0 >= 4096 && (at[n] - at[4]) * 4096 / n > piece) piece = (at[n] - at[4]) * 4096 / n
              want = (call + at[4] + piece) / 1e6; exit !(call && got > want - 0.0011 && got < want + 0.0011) }' "$tmp/profile"
    then pass; else fault "a sum of 4 KiB, measured: $got"; fi
    measured="$measured --set plan.tensor=auto"
    refuse "auto, measured" 0 'note .*tensor [124]; others: ' ./dpgen plan $measured
    refuse "a size between" 0 interpolated ./dpgen plan $measured --set train.batch.micro=3 --set train.batch.global=12
fi

# ---- GPUs --------------------------------------------------------------------------------------------------------
# a sum goes whole: its bytes and one latency a level, then a launch and half a microsecond, and 3 MiB of memory
gpu="--set devices.0.kind=cuda --set devices.0.arch=sm_90"
is "a GPU" "$(ms 'product * 1e3 / 4 + 1e3 + 2 * (mib / 10 + 1e3 + 1e3 + 500 + 3 * mib / 1e6)')" \
    "$(time_of proj forward $gpu --set plan.tensor=4)"
refuse "no folder" 3 "train.blocks: 8, plan.tensor: 4, and a GPU adds up one block of each sum: it can be planned for" \
    ./dpgen "$tmp/wide.yaml" $gpu --set plan.tensor=4 --estimate -o "$tmp/folder"
refuse "nor a paced one" 3 "plan.tensor: 4, and 'p.0' is paced, which adds over no devices" \
    ./dpgen "$tmp/wide.yaml" --pace --set plan.tensor=4 --estimate -o "$tmp/folder"
[ ! -e "$tmp/folder" ] && pass || fault "a folder is there"

# ---- a library ---------------------------------------------------------------------------------------------------
# oneDNN adds up one block of each sum: one hash for each number of devices, and losses and norms near those of portable
# kernels.  251 words: the last device has fewer of them
sed 's/V: 256/V: 251/' "$tmp/gpt.yaml" >"$tmp/words.yaml"
small="$tmp/words.yaml --set train.batch.groups=2 --set train.batch.micro=1" arguments="--steps 4"
# team NAME DEVICES STAGES OPTION...: a line for `plans`
team() { name=$1 t=$2 n=$3; shift 3; echo "$name.$t.$n --set train.blocks=$t --set plan.tensor=$t --stages $n $*"; }
# layouts TYPE OPTION...: of 2 and of 4 devices
layouts() {
    type=$1 hashes=
    shift
    for t in 2 4; do
        { team $type $t 1 "$@"; team $type $t 2 "$@" --schedule zb-h1 --recompute full
          team "$type.rows" $t 1 "$@" --set plan.positions=divided
          team "$type.copies" $t 1 "$@" --replicas 2 --set train.shard=optimizer; } | plans
        one_hash "oneDNN, $type, $t devices"
        hashes="$hashes $hash"
    done
    [ "$(echo $hashes | tr ' ' '\n' | sort -u | wc -l)" = 2 ] && pass || fault "oneDNN, $type: one hash for 2 and 4 devices"
}
# near TYPE DIGITS OPTION...: losses and norms of four steps of 4 devices, beside those of one with portable kernels
near() {
    for kernels in portable onednn; do
        if [ $kernels = onednn ]; then use_onednn $1; elif [ $1 = f32 ]; then use_portable; else use_bf16; fi
        t=$([ $kernels = onednn ] && echo 4 || echo 1)
        said=$(generate "$tmp/$kernels" $small --set train.precision.compute=$1 --set train.blocks=4 --set plan.tensor=$t \
            --stages 1 --set devices.0.kernels=$kernels && compile "$tmp/$kernels" && rm -f "$tmp/$kernels.jsonl" &&
            job_hash "$tmp/$kernels" --steps 4 --log "$tmp/$kernels.jsonl")
        [ ${#said} = 64 ] || fault "$kernels, $1: $said"
        sed -n 's/.*"event":"step".*"loss":\([^,]*\),"norm":\([^,]*\),.*/\1 \2/p' "$tmp/$kernels.jsonl" >"$tmp/$kernels.steps"
    done
    if paste "$tmp/portable.steps" "$tmp/onednn.steps" | awk -v most=$2 '
            function far(a, b) { return a - b > most * b || b - a > most * b }
            NF != 4 || far($1, $3) || far($2, $4) { exit 1 } END { exit NR != 4 }'; then pass
    else fault "oneDNN, $1: not the losses and norms of portable kernels: $(paste "$tmp"/*.steps | head -n 1)"; fi
}
library="--set devices.0.kernels=onednn"
if ! have_onednn; then
    skip "there is no dnnl.h" 22
else
    use_onednn f32 && layouts f32 $small $library
    expect "a folder" ./dpgen $small $library --set train.blocks=2 --set plan.tensor=2 --stages 2 --estimate -o "$tmp/proved"
    expect "is proved" ./dpgen-verify "$tmp/proved"
    near f32 1e-5
    if [ -n "$SLOW" ] && have_onednn_bf16; then
        use_onednn bf16 && layouts bf16 $small $library --set train.precision.compute=bf16
        near bf16 1e-2
    else
        skip "SLOW=1 and AVX-512 have oneDNN in bf16" 10
    fi
fi
for way in "4 2" "4 auto"; do
    refuse "one block a device, $way" 3 "blocks: 4, plan.tensor: ${way#* }, and kernels: onednn add up one block of each sum" \
        ./dpgen $small $library --set train.blocks=4 --set plan.tensor=${way#* } --estimate -o "$tmp/no"
done
refuse "rows of a product" 3 'plan.positions: everywhere, and kernels: onednn add up a product of some rows in another order' \
    ./dpgen $small $library --set train.blocks=2 --set plan.tensor=2 --set plan.positions=everywhere --estimate -o "$tmp/no"
[ ! -e "$tmp/no" ] && pass || fault "a folder is there"

# ---- channels ----------------------------------------------------------------------------------------------------
# Pictures and models of tests/ref, in widths that the blocks divide: a residual network, depthwise convolutions,
# squeeze-excite.  One hash over devices of a stage, stages, schedules, replicas, recomputation, calls joined or not
use_portable
sed 's/out: 3,/out: 16,/; s/out: 12,/out: 32,/' tests/ref/resnet.yaml >"$tmp/resnet.yaml"
sed 's/6, out: 8/8, out: 16/; s/out: 6,/out: 8,/; s/in: 8, out: 10/in: 16, out: 24/; s/in: 10}/in: 24}/' \
    tests/ref/mobilenet.yaml >"$tmp/mobilenet.yaml"
sed 's/in\/4/in\/2/; s/args: {in: 8}}/args: {in: 8, add: false}}/' tests/ref/efficientnet.yaml >"$tmp/efficientnet.yaml"
cpus 16 >"$tmp/sixteen"
at_home=$run cwd=$root/tests/ref run="--no-checkpoint --quiet --hash" arguments="--steps 3"
pictures() {
    set -- "$1" "$tmp/$1.yaml --devices $tmp/sixteen --set train.batch.groups=2 --set train.batch.micro=1
        --set train.batch.global=4"
    team() { name=$1 t=$2 n=$3; shift 3; echo "$name.$t.$n --set train.blocks=4 --set plan.tensor=$t --stages $n" $*; }
    { team $1 1 1 $2; team $1 2 1 $2 --recompute full; team $1 2 2 $2 --schedule zb-h1
      team $1 4 1 $2 --set plan.positions=everywhere
      team $1 4 2 $2 --schedule 1f1b --replicas 2 --set train.shard=optimizer
      team $1.apart 2 1 $2 --fuse none; } | plans
    one_hash "$1"
}
for model in resnet mobilenet efficientnet; do pictures $model; done
use_bf16
few="$tmp/mobilenet.yaml --devices $tmp/sixteen --set train.precision.compute=bf16"
{ team bf16 1 1 $few; team bf16 2 1 $few --recompute full; team bf16 4 2 $few; } | plans
one_hash "channels in bf16"
use_portable
# one group is added in blocks of its channels, and several are not: each of two devices would have one of two groups
sed 's/name: conv2,/& groups: 2,/' "$tmp/resnet.yaml" >"$tmp/groups.yaml"
few="$tmp/groups.yaml --devices $tmp/sixteen"
{ team groups 1 1 $few; team groups 2 1 $few; } | plans
one_hash "two groups on two devices"
pictures_in() { ./dpgen explain "$tmp/$1.yaml" --devices "$tmp/sixteen" --set train.blocks=4 --set plan.tensor=2 --stages 1 \
    --estimate "$2"; }
refuse "channels of the result" 0 '^team    divided: 16 channels of the result among 2 devices; the gradient of x is a sum' \
    pictures_in resnet layer1.1.conv1
refuse "squeeze" 0 '^team    divided: 16 channels of x among 2 devices; the result is a sum over them, 32 bytes' \
    pictures_in efficientnet features.1.block.2.fc1
refuse "excite" 0 '^team    divided: 16 channels of the result among 2' pictures_in efficientnet features.1.block.2.fc2
refuse "two Convs of three" 0 '^team    whole on each of 2 devices: layer1.1.conv1 would be divided along two axes' \
    pictures_in resnet layer1.1.conv3
cwd= run=$at_home

# ---- who is where ------------------------------------------------------------------------------------------------
two="$gpt --stages 2 --set plan.tensor=2 --set hosts.count=8"
./dpgen plan $two >"$tmp/plan" 2>&1
expect "devices of a stage" grep -q '^stage 1  .* (cpu.2, cpu.3), ' "$tmp/plan"
expect "as a grid" grep -q '^      1  cpu.2      cpu.3      host 1  [0-9]' "$tmp/plan"
expect "the memory is of each" grep -q 'arena .* on each device, slack' "$tmp/plan"
./dpgen plan $two --json >"$tmp/json" 2>&1
expect "in plan.json" grep -q '"tensor": 2, "devices": 2' "$tmp/json"
expect "stage by stage" grep -q '"device": "cpu.2", "team": \["cpu.2", "cpu.3"\], "team_sent_bytes": [1-9]' "$tmp/json"
./dpgen $two --estimate -o "$tmp/folder" >"$tmp/wrote" 2>&1
expect "where it is written" grep -q "^wrote $tmp/folder, 2 stages of 2 devices: make -C" "$tmp/wrote"
expect "on the page" grep -q '2 stages of 2 devices, ' "$tmp/folder/report.html"
expect "and what it sends" grep -q 'cpu.2, cpu.3.*KiB</td></tr>' "$tmp/folder/report.html"
expect "schedules" sh -c './dpgen schedules $1 | grep -q "^1f1b .* fits, 2 devices a stage$"' sh "$two"
expect "compare" sh -c './dpgen compare ${1%--planner*} ${1#*even} --quick --planners even |
    grep -q "on 2 stages of 2 devices"' sh "$two"
refuse "explain" 0 'forward .* swaps 4.00 KiB with its team' ./dpgen explain $two h.1.mlp.c_proj
one=$(./dpgen plan $gpt --stages 2 --json 2>&1; ./dpgen plan $gpt --stages 2 2>&1; ./dpgen check $gpt 2>&1)
case $one in *team_* | *'"tensor"'* | *'shard 0'* | *'each device'*) fault "a stage of one device is a team" ;; *) pass ;; esac

# ---- auto --------------------------------------------------------------------------------------------------------
# of every number that a stage may have, named: the step of the best
# best OPTION...: STEP TENSOR of the least
best() {
    for t in 1 2 4 8; do
        ./dpgen plan "$tmp/wide.yaml" --estimate --json "$@" --set plan.tensor=$t 2>"$tmp/said" |
            sed -n "s/.*\"step_ns\": \([0-9]*\).*/\1 $t/p"
    done | tee "$tmp/named" | sort -n | head -n 1
}
# auto OPTION...: the same, and what it says of others holds: `not below` is not above their step, a step is theirs
auto() {
    want=$(best "$@")
    ./dpgen plan "$tmp/wide.yaml" --estimate --json "$@" --set plan.tensor=auto >"$tmp/auto" 2>&1
    got=$(sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p; s/.*"note": "tensor \([0-9]*\);.*/\1/p' "$tmp/auto")
    is "auto $*" "$want" "$(echo $got)"
    chosen=${want#* }
    while read -r step t; do
        said=$(sed -n "s/.*\"note\": .*[:,] $t \([a-z 0-9.]*\)[,; \"].*/\1/p" "$tmp/auto" | sed 's/ ms.*//')
        ok=$(echo "$said" | awk -v most=$((step + 1000)) '/not below/ { $1 = $3 } { print $1 * 1e6 <= most }')
        if [ "$t" = "$chosen" ] || [ "$ok" = 1 ]; then pass; else fault "auto $*: $t: $said, and $step ns by name"; fi
    done <"$tmp/named"
}
winners=
for links in '{rate: 1GB/s, latency: 1us}' '{rate: 100GB/s, latency: 10ns}' '{rate: 1000GB/s, latency: 1ns}'; do
    for more in "--stages 1" "--stages auto --set train.batch.global=16"; do
        auto --schedule 1f1b --set "links={p-p: $links}" $more
        winners="$winners $chosen"
    done
done
auto --schedule 1f1b --stages auto --replicas auto --set train.batch.groups=4 --set train.batch.global=8 \
    --set 'links={p-p: {rate: 100GB/s, latency: 10ns}}'
for links in '{rate: 1GB/s, latency: 1us}' '{rate: 100GB/s, latency: 10ns}'; do
    auto --schedule auto --stages auto --set train.batch.global=16 --set "links={p-p: $links}"
done
auto --schedule 1f1b --stages 1 --set hosts.count=2 --set 'links={p-p: {rate: 1000GB/s, latency: 1ns}, host-host: 1MB/s}'
winners="$winners $chosen"
case $winners in *" 1"*" 8"*" 4") pass ;; *) fault "one number wins with any links:$winners" ;; esac
# rows whole or divided: where bytes count, divided; where messages do, whole; where memory is short, what fits
# form KEY ONE OTHER GRAPH OPTION...: the step of each of both, then that of auto and its note
form() {
    key=$1 both="$2 $3" graph=$4
    shift 4
    for way in $both auto; do
        ./dpgen plan $graph --stages 1 --set plan.tensor=4 --estimate --json --set plan.$key=$way "$@" 2>"$tmp/said" |
            sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p; s/.*"note": "\(tensor 4[^;]*\);.*/\1/p'
    done | xargs
}
rows="positions whole divided" ways="experts divided devices"
is "few bytes" "yes tensor 4 with positions divided" "$(form $rows "$gpt" --set 'links={cpu-cpu: {rate: 1GB/s, latency: 1ns}}' |
    awk '{ print $2 < $1 && $3 == $2 ? "yes" : "no", $4, $5, $6, $7, $8 }')"
is "few messages" "yes tensor 4" "$(form $rows "$gpt" --set 'links={cpu-cpu: {rate: 1GB/s, latency: 10us}}' |
    awk '{ print $1 < $2 && $3 == $1 ? "yes" : "no", $4, $5, $6, $7, $8 }' | xargs)"
is "little memory" "yes tensor 4 with positions divided" "$(form $rows "$gpt" --limit 300KiB |
    awk '{ print NF == 7 && $1 == $2 ? "yes" : "no", $3, $4, $5, $6, $7 }')"
refuse "nothing else fits" 4 'tried and fits: .*--set plan.positions=divided' ./dpgen plan $gpt --stages 1 --estimate \
    --set plan.tensor=4 --limit 300KiB
# A device may have min(top, experts) rows of a token: of 32 tokens 64 with 2 experts or more, 32 with one; 12 numbers each
for t in 2 4 8; do
    is "rows that may come, $t devices" $((32 * (t < 8 ? 2 : 1) * 12 * 4)) "$(./dpgen plan $experts --stages 1 --estimate -d m \
        --set plan.tensor=$t --set plan.experts=devices 2>"$tmp/said" | sed -n 's/^buf 0:dispatch .* bytes=\([0-9]*\).*/\1/p')"
done
# where bytes count, whole experts are faster; where messages do, parts of each
is "few bytes, experts" "yes tensor 4 with whole experts" "$(form $ways "$experts" \
    --set 'links={cpu-cpu: {rate: 100MB/s, latency: 1ns}}' |
    awk '{ print $2 < $1 && $3 == $2 ? "yes" : "no", $4, $5, $6, $7, $8 }' | xargs)"
is "few messages, experts" "yes tensor 4" "$(form $ways "$experts" --set 'links={cpu-cpu: {rate: 1GB/s, latency: 10us}}' |
    awk '{ print $1 < $2 && $3 == $1 ? "yes" : "no", $4, $5, $6, $7, $8 }' | xargs)"
refuse "a plan of one way" 3 'is a plan of one plan.experts, and auto leaves it open' sh -c './dpgen plan $1 --set \
    plan.tensor=2 --set plan.experts=devices --stages 1 --estimate -d a >"$2" 2>/dev/null; ./dpgen $1 --set plan.tensor=2 \
    --set plan.experts=auto --stages 1 --estimate --from "$2" -o "$2.out"' sh "$experts" "$tmp/one"
# ---- large models ------------------------------------------------------------------------------------------------
large="examples/llama-3.2-1b.yaml -D D=8192 -D H=64 -D W=128 -D F=28672 -D L=80 -D FACTOR=8 -D TIE=0 -D T=8192
    --devices h100 --set devices.0.count=64 --set hosts.count=8 --set train.blocks=8
    --set plan.tensor=8 --stages 8 --schedule 1f1b --estimate"
(ulimit -t 10 && ulimit -v 2000000 && ./dpgen plan $large --set 'links.host-host={rate: 50GB/s, latency: 15us}') \
    >"$tmp/plan" 2>&1
expect "70 billion parameters on 64 devices: 10 s, 2 GB" grep -q '^      7  gpu.56 .*gpu.63 *host 7 ' "$tmp/plan"
expect "a team does not leave its host" sh -c '[ $(grep -c "host [0-7]  [0-9.]* GiB$" "$1") = 8 ]' sh "$tmp/plan"
(ulimit -t 10 && ulimit -v 2000000 &&
    ./dpgen plan $large --set plan.positions=auto --set 'links.host-host={rate: 50GB/s, latency: 15us}') >"$tmp/plan" 2>&1
expect "its rows are divided" grep -q 'note .*tensor 8 with positions divided; others: 8 not below ' "$tmp/plan"
expect "a folder, proved" ./dpgen $large -o "$tmp/large"
# what GPUs join, on parts: an addition and a norm, the gradient of two readers and a BatchNorm; a norm that has an `offset`
two="--devices h100 --set devices.0.count=2 --set train.blocks=2 --set plan.tensor=2 --stages 1 --estimate"
expect "Gemma 2 with divided rows, proved" ./dpgen examples/gemma2-2b.yaml $two --set plan.positions=divided -o "$tmp/gemma2"
expect "ResNet-50 by channels, proved" ./dpgen examples/resnet50.yaml $two -o "$tmp/resnet50"

# Whole experts of Mixtral: two thirds of the step, a third of the bytes, a sixth more memory
for way in divided devices; do
    ./dpgen plan examples/mixtral-8x7b.yaml --devices h100 --set devices.0.count=64 --set hosts.count=8 --set train.blocks=8 \
        --set plan.tensor=8 --stages 8 --schedule 1f1b --set plan.positions=divided --set plan.experts=$way --estimate --json \
        --set 'links.host-host={rate: 50GB/s, latency: 15us}' 2>"$tmp/said" |
        sed -n 's/.*"\(step_ns\|team_sent_bytes\|arena_bytes\)": \([0-9]*\).*/\2/p' | head -n 3
done | xargs >"$tmp/mixtral"
expect "whole experts of Mixtral" awk '{ exit !(NF == 6 && $4 / $1 < 0.66 && $5 / $2 < 0.32 && $6 / $3 < 1.2) }' "$tmp/mixtral"

# Rows everywhere, of Llama 3.2 1B: what a device sends of its weights does not grow with the sequence
for length in 8192 32768; do
    for way in divided everywhere; do
        ./dpgen plan examples/llama-3.2-1b.yaml -D T=$length --devices h100 --set devices.0.count=8 --set train.blocks=8 \
            --set plan.tensor=8 --stages 1 --set train.batch.micro=1 --set train.batch.global=8 --set plan.positions=$way \
            --estimate --json 2>"$tmp/said" | sed -n 's/.*"\(step_ns\|team_sent_bytes\|arena_bytes\)": \([0-9]*\).*/\2/p' |
            head -n 3
    done
done | xargs >"$tmp/long"
expect "rows everywhere: slower, then faster" awk '{ exit !(NF == 12 && $4 > $1 && $10 / $7 < 0.75 && $11 / $8 < 0.4 &&
    $12 / $9 < 1.7) }' "$tmp/long"

# Two chunks a device: each under all of its memory, no cuts fit together; with a part of its own each, they do
[ -z "${SLOW:-}" ] || {
    (ulimit -t 60 && ./dpgen plan examples/llama-3.2-1b.yaml -D D=8192 -D H=64 -D W=128 -D F=28672 -D L=20 -D T=8192 -D TIE=0 \
        --devices h100 --set devices.0.count=16 --set hosts.count=2 --set 'links.host-host={rate: 50GB/s, latency: 15us}' \
        --stages 16 --schedule interleaved --set train.batch.micro=1 --set train.batch.global=64 --limit 60GiB --estimate) \
        >"$tmp/plan" 2>&1
    expect "interleaved, 16 devices of 60 GiB" grep -q '^predicted step' "$tmp/plan"
    # the first numbers do not fit, and replicas have messages beside backward: both took minutes
    (ulimit -t 60 && ./dpgen plan $large --stages auto --set plan.tensor=auto --set plan.replicas=auto \
        --set train.batch.groups=8 --set 'links.host-host={rate: 50GB/s, latency: 15us}') >"$tmp/plan" 2>&1
    expect "70 billion parameters, all numbers open" grep -q '^predicted step' "$tmp/plan"
}
finish
