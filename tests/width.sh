#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Stages of several devices: one hash over devices of a stage, stages, schedules, recomputation and transports, that of one
# device with the same blocks.  A GPT with packed heads, dropout and a tied head; a Llama with shared heads.  Checkpoints,
# gradients and exported weights have no trace of the layout.  What is not offered is refused, with what would do.
#
# SLOW=1: each number of devices with each number of stages and each schedule that it may have; 300 layouts of width.awk, with
# copies of stages that are not all as many.
. "$(dirname "$0")/lib.sh"
need dpgen dpgen-verify build/emitted build/librt.a build/librt_bf16.a

# 251 words: the last block of a vocabulary is shorter
sed 's/V: 256/V: 251/; s/D: 24, H: 3/D: 32, H: 4/; s/count: 4/count: 16/' "$models/tiny-gpt.yaml" >"$tmp/gpt.yaml"
gpt="$tmp/gpt.yaml --set train.blocks=8" llama="$models/tiny-llama.yaml --set train.blocks=4"
arguments="--steps 4"
# team NAME DEVICES STAGES OPTION...: a line for `plans`
team() { name=$1 t=$2 n=$3; shift 3; echo "$name.$t.$n --set plan.tensor=$t --stages $n $*"; }

use_portable
keep="gpt.1.1 gpt.2.2 gpt.4.1 some.1.1 shard.2.1 free.1.2 parts.2.1"
{ team gpt 1 1 $gpt; team gpt 2 1 $gpt --recompute full; team gpt 2 2 $gpt --schedule 1f1b; team gpt 4 1 $gpt
  team gpt 4 2 $gpt --schedule zb-h1 --fuse none
  for t in ${SLOW:+1 2 4}; do for n in 1 2 3; do for schedule in gpipe 1f1b 2bp zb-h1 breadth-first zb-v; do
      team "gpt.$schedule" $t $n $gpt --schedule $schedule --set train.batch.micro=1
  done; done; done; } | if [ -n "$SLOW" ]; then sed 's/^\(gpt\.[124]\..*\)$/\1 --set train.batch.micro=1/'; else cat; fi | plans
one_hash "gpt"
whole=$hash
{ team llama 1 1 $llama; team llama 2 1 $llama; team llama 4 2 $llama --schedule 1f1b; } | plans
one_hash "llama"
[ "$hash" != "$whole" ] && pass || fault "two models have one hash"

# ---- replicas; schedules that share devices; copies to the host; steps that overlap ------------------------------------------
some="$gpt --set train.batch.groups=2 --set train.batch.micro=1"
{ team some 1 1 $some; team some 2 2 $some --schedule chimera; team some 2 1 $some --replicas 2 --offload "\"['*']\""
  team some 4 2 $some --replicas 2 --schedule interleaved
  team shard 2 1 $some --replicas 2 --set train.shard=parameters; } | plans
one_hash "replicas and two ways"
some="$some --set train.clip_norm=0"
{ team free 1 2 $some --replicas 2; team free 2 2 $some --replicas 2 --schedule zb-v
  team parts 2 1 $some --replicas 2 --set train.shard=parameters; } | plans
one_hash "replicas without clipping"
# moments OPTION...: bytes of those of a weight that is divided, of one replica or of another
moments() {
    ./dpgen plan $some --stages 1 --replicas 2 "$@" --estimate -d m 2>&1 |
        sed -n 's/^buf [0-9]*:h.1.mlp.c_fc.weight.[mv] .* bytes=\([0-9]*\).*/\1/p' | sort -u
}
if [ "$(moments)" = 16384 ] && [ "$(moments --set plan.tensor=2 --set train.shard=optimizer)" = 4096 ]; then pass
else fault "a moment on one of 2 devices in one of 2 replicas: $(moments --set plan.tensor=2 --set train.shard=optimizer)"; fi
sed 's/, tie: wte}/}/' "$tmp/gpt.yaml" >"$tmp/untied.yaml"
late="$tmp/untied.yaml --set train.blocks=8 --set train.batch.micro=1"
{ team late 1 2 $late --schedule 2bw; team late 4 2 $late --schedule 2bw; } | plans
one_hash "steps that overlap"

# ---- the vocabulary ------------------------------------------------------------------------------------------------------
# A head within its loss, in chunks that end within a block; evaluations count hits; a part of the table, of its moments and of
# the scores is 1/T of each.
sed '/name: lm_head/d; s/op: SoftmaxCrossEntropy, targets/op: LinearCrossEntropy, name: lm_head, out: V, tie: wte, '\
'bias: false, chunk: 32, top: 3, targets/' "$tmp/gpt.yaml" >"$tmp/head.yaml"
{ for plan in "1 1" "2 2" "4 1"; do team head $plan "$tmp/head.yaml" --set train.blocks=4; done; } | plans
one_hash "LinearCrossEntropy"
# 130 words in 16 blocks of 9: the last device has none
{ for plan in "1 1" "16 1"; do
      team none $plan "$tmp/head.yaml" --set train.blocks=16 -D V=130
  done; } | plans
one_hash "a device without words"
sed 's/op: SoftmaxCrossEntropy,/& smoothing: 0.1,/' "$tmp/untied.yaml" >"$tmp/smooth.yaml"
for model in untied smooth; do
    for plan in "1 1" "16 1"; do team $model $plan "$tmp/$model.yaml" --set train.blocks=16 -D V=130; done | plans
    one_hash "a device without words, $model"
done
# bytes DEVICES WORDS: of the buffers of the table, its states and the scores; a device has 64 of 251 words or of 256
bytes() {
    ./dpgen plan $gpt -D V=$2 --set plan.tensor=$1 --stages 1 --estimate -d m 2>&1 |
        sed -n 's/^buf 0:\(wte.weight[^ ]*\|lm_head\) .* bytes=\([0-9]*\).*/\1 \2/p' | sort
}
bytes 1 256 | awk '{ print $1, $2 / 4 }' >"$tmp/quarters"
for words in 251 256; do
    if [ "$(wc -l <"$tmp/quarters")" -ge 5 ] && [ "$(bytes 4 $words)" = "$(cat "$tmp/quarters")" ]; then pass
    else fault "bytes of $words words on 4 devices: $(bytes 4 $words | tr '\n' ' ')"; fi
done

# ---- Dropout between two divided products: a device draws as its elements of the whole do ------------------------------------
awk '/op: Gelu/ { print; sub(/[^ ].*/, ""); print $0 "- {op: Dropout, name: mlp.drop, p: 0.3}"; next } 1' "$tmp/gpt.yaml" \
    >"$tmp/draws.yaml"
{ for plan in "1 1" "2 2" "8 1"; do team draws $plan "$tmp/draws.yaml" --set train.blocks=8; done; } | plans
one_hash "Dropout in an MLP"
refuse "explain it" 0 '^team    divided: 2048 elements among 2 devices$' ./dpgen explain "$tmp/draws.yaml" \
    --set train.blocks=8 --set plan.tensor=2 --stages 1 --estimate h.1.mlp.drop

# ---- a mistake is seen -------------------------------------------------------------------------------------------------
cp -r "$tmp/gpt.2.2" "$tmp/wrong"
sed -i 's/pieces \*\/ 3/pieces *\/ 1/' "$tmp/wrong/stage0.c"
if cmp -s "$tmp/wrong/stage0.c" "$tmp/gpt.2.2/stage0.c"; then fault "no pieces in stage0.c"; fi
said=$(compile "$tmp/wrong" && job_hash "$tmp/wrong" $arguments)
if [ ${#said} = 64 ] && [ "$said" != "$whole" ]; then pass; else fault "a wrong order of blocks goes unseen: $said"; fi

# ---- files know nothing of the layout ------------------------------------------------------------------------------------
# job DIR ARGUMENT...: its run, quietly
job() { dir=$1; shift; "$tmp/$dir/job" --quiet --data "$data" "$@" 2>&1; }
said=$(job gpt.1.1 --steps 9 --no-checkpoint --hash)
for way in "gpt.2.2 gpt.4.1 gpt.1.1" "gpt.1.1 gpt.2.2 gpt.4.1"; do
    set -- $way
    rm -rf "$tmp/ckpt"
    got=$(job $1 --steps 3 --checkpoint "$tmp/ckpt" && job $2 --steps 6 --checkpoint "$tmp/ckpt" --resume &&
        job $3 --steps 9 --checkpoint "$tmp/ckpt" --resume --hash)
    if [ ${#said} = 71 ] && [ "$got" = "$said" ]; then pass; else fault "begun by $1, ended by $3: $got, not $said"; fi
done
for dir in gpt.1.1 gpt.2.2 gpt.4.1; do
    job $dir --steps 2 --no-checkpoint --gradients "$tmp/$dir.grads" --export "$tmp/$dir.weights" \
        --log "$tmp/$dir.jsonl" >"$tmp/said"
    cmp "$tmp/gpt.1.1.grads" "$tmp/$dir.grads" &&
        cmp "$tmp/gpt.1.1.weights/model.safetensors" "$tmp/$dir.weights/model.safetensors" && pass ||
        fault "$dir: other gradients, or other weights exported: $(cat "$tmp/said")"
    sed -n 's/,"tokens_per_s".*//; /"event":"step"/p' "$tmp/$dir.jsonl" >"$tmp/$dir.steps"
    if [ "$(wc -l <"$tmp/$dir.steps")" = 2 ] && cmp -s "$tmp/gpt.1.1.steps" "$tmp/$dir.steps"; then pass
    else fault "$dir: other losses or norms: $(cat "$tmp/$dir.steps")"; fi
done
# of replicas each with a part of what a device has
said=$(job some.1.1 --steps 6 --no-checkpoint --hash)
for way in "shard.2.1 some.1.1" "some.1.1 shard.2.1" "shard.2.1 shard.2.1"; do
    set -- $way
    rm -rf "$tmp/ckpt"
    got=$(job $1 --steps 3 --checkpoint "$tmp/ckpt" && job $2 --steps 6 --checkpoint "$tmp/ckpt" --resume --hash)
    if [ ${#said} = 71 ] && [ "$got" = "$said" ]; then pass; else fault "begun by $1, ended by $2: $got, not $said"; fi
done
for dir in free.1.2 parts.2.1; do job $dir --steps 2 --no-checkpoint --gradients "$tmp/$dir.grads"; done
cmp "$tmp/free.1.2.grads" "$tmp/parts.2.1.grads" && pass || fault "gradients of parts"
first=$(job gpt.1.1 --steps 2 --no-checkpoint --weights "$tmp/gpt.1.1.weights" --hash)
for dir in gpt.2.2 gpt.4.1; do
    got=$(job $dir --steps 2 --no-checkpoint --weights "$tmp/gpt.4.1.weights" --hash)
    if [ ${#first} = 71 ] && [ "$got" = "$first" ]; then pass; else fault "$dir: from weights: $got, not $first"; fi
done

# ---- one device of a stage is frozen --------------------------------------------------------------------------------------
# Over mpi: faults.sh.  Here the second one stops in the second step, behind the checkpoint of the first: two forwards of a
# micro-batch, 4 of them, or 8 with SLOW=1.
generate "$tmp/frozen" $gpt ${SLOW:+--set train.batch.micro=1} --set plan.tensor=2 --stages 1 --set checkpoint.every=1 \
    >"$tmp/said" &&
    awk -v n=$((${SLOW:+8 +} 10)) '/^#include "stage0.h"$/ { print; print "int pause(void);"; next }
        /^    gelu_forward\(/ && !done++ {
        print "    static int n;\n    if (st->shard == 1 && ++n == " n ")\n        for (;;)\n            pause();" }
        1' "$tmp/frozen/stage0.c" >"$tmp/stopped.c" && mv "$tmp/stopped.c" "$tmp/frozen/stage0.c" &&
    compile "$tmp/frozen" >>"$tmp/said" || fault "frozen: $(cat "$tmp/said")"
rm -rf "$tmp/ckpt"
refuse "a device that is frozen" 1 'no progress for 2 s' "$tmp/frozen/job" --quiet --data "$data" --checkpoint "$tmp/ckpt" \
    --steps 9 --watchdog 2
grep -q 'stage0: action .*, \(from\|to\) stage0[.]1; silent' "$tmp/said" && pass ||
    fault "nobody waits for stage0.1: $(cat "$tmp/said")"
got=$(job gpt.1.1 --steps 9 --checkpoint "$tmp/ckpt" --resume --hash)
if [ -e "$tmp/ckpt" ] && [ "$got" = "$(job gpt.1.1 --steps 9 --no-checkpoint --hash)" ]; then pass
else fault "from the checkpoint of a job that froze: $got"; fi

# ---- bf16, processes -------------------------------------------------------------------------------------------------------
use_bf16
{ for plan in "1 1" "2 2" "4 1"; do team bf16 $plan $gpt --set train.precision.compute=bf16; done; } | plans
one_hash "gpt, bf16"
# parameters that are there in bf16 alone, rates of some, evaluations with hits: the log, but for times, and the hash
with_eval "$tmp/gpt.yaml" >"$tmp/eval.yaml"
some="$tmp/eval.yaml --set train.blocks=8 --set train.freeze=[h.0.*] --set train.precision.compute=bf16"
# evaluates DEVICES STAGES [POSITIONS]
evaluates() {
    rm -f "$tmp/jsonl"
    said=$(generate "$tmp/facts" $some --set plan.tensor=$1 --stages $2 --set plan.positions=${3:-whole} \
        --set "train.optimizer.groups=[{match: h.1.*, lr: x0.5}]" && compile "$tmp/facts" &&
        job_hash "$tmp/facts" --steps 4 --eval-data "$root/README.md" --log "$tmp/jsonl")
    echo "$said"
    steps_of "$tmp/jsonl"
}
want=$(evaluates 1 1)
[ "$(echo "$want" | grep -c '"eval".*"accuracy":0[.]')" = 2 ] && pass || fault "no evaluations: $want"
for plan in "2 2" "4 1 divided"; do
    got=$(evaluates $plan)
    if [ "$got" = "$want" ]; then pass; else fault "frozen, $plan: $(echo "$got" | head -n 1)"; fi
done
if over_mpi 4 2; then
    { team mpi 2 2 $gpt --schedule 1f1b --set plan.transport=mpi --set train.precision.compute=bf16
      team mpi 4 1 $gpt --set plan.transport=mpi --set train.precision.compute=bf16; } | plans
    one_hash "gpt, bf16, mpi" "$hash"
fi
use_portable

# ---- each pair of values -----------------------------------------------------------------------------------------------------
# Layouts of tests/width.awk, each with the hash of one device: a GPT with dropout and ties, a Llama with shared heads, BERT
# with masks, T5, a model with experts.  Rows of the GPT, 13, are no multiple of the blocks.
$cc -std=c11 -O1 -o "$tmp/npy" tests/npy.c || fault "tests/npy.c"
mkdir "$tmp/bert" "$tmp/t5" "$tmp/experts"
sed 's/F: 9/F: 16/; s/T: 10/T: 16/; s/E: 5/E: 8/; s/out: 3,/out: E,/; s/experts: 3,/experts: E,/' \
    "$models/experts.yaml" >"$tmp/experts.yaml"
(cd "$tmp/bert" && for name in tokens labels; do "$tmp/npy" $name.npy i4 0 64 24 16; done &&
    for name in types mask; do "$tmp/npy" $name.npy i4 0 2 24 16; done && "$tmp/npy" next.npy i4 0 2 24 &&
    cd "$tmp/experts" && for name in tokens targets; do "$tmp/npy" $name.npy i4 0 29 24 16; done &&
    cd "$tmp/t5" && "$tmp/npy" ids.npy i4 0 40 24 16 && "$tmp/npy" mask.npy i4 0 2 24 16 &&
    for name in decoder_ids labels; do "$tmp/npy" $name.npy i4 0 40 24 8; done) || fault "no arrays"
many=40 most=8
[ -z "${SLOW:-}" ] || many=300 most=16
awk -v least=$many -v ranks=$most -v wide="${SLOW:+1}" -f tests/width.awk >"$tmp/cover"
mpi=$(mpis | head -n 1) at_home=$run arguments="--steps 2"
[ -n "$mpi" ] || skip "there is no mpirun, or no mpicc" "$(grep -c ' mpi ' "$tmp/cover")"
# cover MODEL TYPE FILE: its layouts
cover() {
    all="$3 --set train.blocks=8 --set train.batch.global=16 --set train.batch.micro=1 --set train.batch.groups=2"
    all="$all --set devices.0.count=64"
    { echo "$1.$2 $all --stages 1 --set train.precision.compute=$2"
      awk -v model="$1" -v type="$2" -v all="$all" '$1 == model && $2 == type && $3 == "local" { $1 = $2 = $3 = $4 = ""
          sub(/^ */, ""); sub(/ /, " " all " "); print }' "$tmp/cover"; } | plans
    one_hash "$1, $2"
    one=$hash
    for n in 2 3 4 6 8 12 16; do
        awk -v model="$1" -v type="$2" -v all="$all" -v n=$n '$1 == model && $2 == type && $3 == "mpi" && $4 == n {
            $1 = $2 = $3 = $4 = ""; sub(/^ */, ""); sub(/ /, " " all " "); print }' "$tmp/cover" >"$tmp/group"
        [ -s "$tmp/group" ] && [ -n "$mpi" ] && use_mpi "$mpi" $n || continue
        plans <"$tmp/group"
        one_hash "$1, $2, $n ranks" "$one"
        if [ "$2" = f32 ]; then use_portable; else use_bf16; fi
    done
}
for type in f32 bf16; do
    if [ $type = f32 ]; then use_portable; else use_bf16; fi
    run=$at_home cwd=
    cover gpt $type "$tmp/gpt.yaml -D T=13"
    cover llama $type "$models/tiny-llama.yaml"
    run="--no-checkpoint --quiet --hash"
    cwd=$tmp/bert
    cover bert $type "$models/tiny-bert.yaml -D T=16"
    cwd=$tmp/t5
    cover t5 $type "$models/tiny-t5.yaml -D S=16"
    cwd=$tmp/experts
    cover experts $type "$tmp/experts.yaml"
done
run=$at_home cwd= arguments="--steps 4"
use_portable

# Rows alone, 13 of a micro-batch: nothing but a loss has columns or heads to divide
mkdir "$tmp/rows"
(cd "$tmp/rows" && "$tmp/npy" x.npy f4 0 3 64 4 && "$tmp/npy" labels.npy i4 0 3 64) || fault "no arrays"
sed 's/, cuts: \[2\]//; s/recompute: \[act\], //; /^  eval/d; s/count: 2/count: 4/' "$models/mlp.yaml" >"$tmp/mlp.yaml"
rows="$tmp/mlp.yaml --set train.blocks=8 --set train.batch.micro=13 --set train.batch.global=26"
run="--no-checkpoint --quiet --hash" cwd=$tmp/rows
{ team mlp 1 1 $rows; team mlp 4 1 $rows --set plan.positions=everywhere; } | plans
one_hash "an MLP, rows everywhere"
# 13 rows of a micro-batch: a norm with an offset, a residual that is a product, slopes by the number of a head; in bf16 an
# input that is narrowed
cat >"$tmp/rows.yaml" <<'END'
dpgen: 1
model:
  inputs:
    x:      {shape: [B, 13, 8], dtype: f32}
    labels: {shape: [B, 13], dtype: i32, range: [0, 6]}
  graph:
    - {op: Linear, name: fc, in: x, out: 8, as: r}
    - {op: Linear, name: q, in: r, out: 8, as: q}
    - {op: Linear, name: k, in: r, out: 8, as: k}
    - {op: Linear, name: v, in: r, out: 8, as: v}
    - {op: Attention, in: [q, k, v], heads: 4, causal: true, alibi: 1}
    - {op: Linear, name: o, out: 8}
    - {op: Mul, in: [_, r], as: p}
    - {op: RMSNorm, offset: 1, init: zeros}
    - {op: Linear, name: up, out: 16}
    - {op: Gelu}
    - {op: Linear, name: down, out: 8}
    - {op: Add, in: [_, p]}
    - {op: Linear, name: head, out: 6}
    - {op: SoftmaxCrossEntropy, targets: labels, as: loss}
  loss: loss
train: {batch: {micro: 1, global: 2}, blocks: 8, optimizer: {lr: 0.01}}
data: {train: {format: npy, arrays: {x: x.npy, labels: labels.npy}}}
devices: [{name: cpu, kind: cpu, count: 8, memory: 64MiB}]
END
mkdir "$tmp/13"
(cd "$tmp/13" && "$tmp/npy" x.npy f4 -1 1 8 13 8 && "$tmp/npy" labels.npy i4 0 6 8 13) || fault "no arrays"
run="--no-checkpoint --quiet --hash" cwd=$tmp/13
for type in f32 bf16; do
    if [ $type = f32 ]; then use_portable; else use_bf16; fi
    rows="$tmp/rows.yaml --set train.precision.compute=$type"
    { team rows 1 1 $rows; [ $type = bf16 ] || team rows 2 2 $rows --set plan.positions=divided
      team rows 4 1 $rows --set plan.positions=everywhere; } | plans
    one_hash "13 rows, $type"
done
use_portable
# An operator reads one tensor several times, and another operator all of it: the terms are added in operand order
cat >"$tmp/several" <<'END'
    - {op: RMSNorm}
    - {op: Concat, axis: -1, in: [w, _, w]}
    - {op: Linear, name: head, out: 6}
    - {op: SoftmaxCrossEntropy, targets: labels, as: one}
    - {op: Transpose, in: w, perm: [0, 2, 1]}
    - {op: Tanh}
    - {op: Transpose, perm: [0, 2, 1]}
    - {op: MeanSquaredError, in: [_, w], as: two}
    - {op: Add, in: [one, two], as: loss}
END
sed "/name: [qkv],/d; s/q, k, v/r, r, r/; s/name: o, out: 8/&, as: w/; /as: w/r $tmp/several
    /op: Mul/,/op: SoftmaxCross/d" "$tmp/rows.yaml" >"$tmp/several.yaml"
{ team several 1 1 "$tmp/several.yaml"; team several 2 2 "$tmp/several.yaml" --set plan.positions=divided
  team several 4 1 "$tmp/several.yaml" --set plan.positions=everywhere; } | plans
one_hash "several times one tensor"
run=$at_home cwd=
sed 's/as: k}/&\n    - {op: RMSNorm, name: n, width: 2, as: kn}/; s/, k, v/, kn, v/' "$tmp/rows.yaml" >"$tmp/heads.yaml"
refuse "a norm of each head" 3 'n is whole: its sum over 52 rows has other blocks than the 13 that are cut, and each device' \
    ./dpgen check "$tmp/heads.yaml" --set plan.tensor=2 --set plan.positions=everywhere

# ---- what a folder says of its proof ----------------------------------------------------------------------------------------
refuse "it is proved" 0 'proved: 2 stages of 2 devices' ./dpgen-verify "$tmp/gpt.2.2"
[ ! -e "$tmp/gpt.2.2/UNPROVED" ] && pass || fault "a stage of two devices is not proved"

# a table that a head shares which is whole; all that learns is divided, so that no norm is in blocks
sed 's/.*op: SoftmaxCrossEntropy/    - {op: Scale, factor: 0.5}\n&/' "$tmp/gpt.yaml" >"$tmp/scaled.yaml"
expect "a shared table" ./dpgen "$tmp/scaled.yaml" --set train.blocks=8 --set plan.tensor=4 --set plan.positions=everywhere \
    --stages 2 --estimate -o "$tmp/scaled"
expect "no blocks of a norm" ./dpgen $gpt --set train.batch.groups=2 --set plan.tensor=2 --replicas 2 --stages 1 \
    --set train.shard=optimizer --set "train.freeze=[w*, '*ln*', '*attn*', '*c_proj*', h.0.*, h.2.*, '*bias']" --estimate \
    -o "$tmp/scaled"
expect "slopes" ./dpgen "$tmp/rows.yaml" --set plan.tensor=4 --stages 1 --estimate -o "$tmp/slopes"
sed -i 's/SITE_attention)/0)/' "$tmp/slopes/stage0.c"
refuse "slopes of the first heads" 1 'heads of a part would count as the first ones of the whole' \
    ./dpgen-verify --edited "$tmp/slopes"

# ---- what is not offered ----------------------------------------------------------------------------------------------------
# no WHAT TEXT OPTION...: status 3
no() { what=$1 text=$2; shift 2; refuse "$what" 3 "$text" ./dpgen check $gpt --set plan.tensor="$@"; }
for way in divided everywhere; do
    no "rows of one device, $way" "plan.positions: $way: a stage of one device has all rows" 1 --set plan.positions=$way
done
no "everywhere, and any number" 'plan.positions: everywhere wants a number for plan.tensor' auto --set plan.positions=everywhere
no "rows for one device" 'has rows for more than one device, in 8 blocks' 2 --set plan.positions=divided -D T=4 \
    --set train.batch.micro=1
refuse "few rows" 3 'decoder.block.0.layer.0.SelfAttention.v is whole: one device has room for all its 4 rows, and' \
    ./dpgen check "$models/tiny-t5.yaml" -D S=16 -D T=4 --set train.batch.micro=1 --set train.blocks=8 --set plan.tensor=2 \
    --set plan.positions=everywhere
refuse "heads that the devices do not divide" 0 '^team    whole on each of 4 devices: its 2 heads are no multiple of 4' \
    ./dpgen explain $gpt -D H=2 --set plan.tensor=4 --set plan.positions=everywhere --stages 1 --estimate h.1.attention
refuse "nor in a region" 0 '^team    whole on each of 4 devices: heads of h.1.attention is 2, no multiple of 4' \
    ./dpgen explain $gpt -D H=2 --set plan.tensor=4 --stages 1 --estimate h.1.attn.c_attn
no "no power" 'plan.tensor: 3 is no power of two' 3
no "more than blocks" '\^~ 8, or train.blocks: 16' 16
no "one block" '\^ train.blocks: 2' 2 --set train.blocks=1
experts="$tmp/experts.yaml --set train.blocks=8 --set plan.experts=devices"
refuse "experts that the devices do not divide" 3 '\^~* plan.tensor: 2, or plan.experts: divided' ./dpgen check $experts \
    -D E=6 --set plan.tensor=4
refuse "which" 3 'plan.experts: devices, and plan.tensor: 4: dispatch: its 6 experts are no multiple of 4 devices' \
    ./dpgen check $experts -D E=6 --set plan.tensor=4
refuse "fewer experts than devices" 3 'dispatch: its 4 experts are no multiple of 8 devices' ./dpgen check $experts \
    -D E=4 --set plan.tensor=8 --set devices.0.count=8
refuse "no number of devices" 3 '\^~* plan.experts: divided$' ./dpgen check $experts -D E=5 --set plan.tensor=2
refuse "experts of one device" 3 'plan.experts: devices: a stage of one device has all experts' ./dpgen check $experts
sed 's/, act: silu, as: h}/, act: silu}\n    - {op: Softmax, as: h}/' "$tmp/experts.yaml" >"$tmp/soft.yaml"
refuse "what is not by elements" 3 'plan.tensor: 2: dispatch: softmax wants all of it' ./dpgen check "$tmp/soft.yaml" \
    --set train.blocks=8 --set plan.experts=devices --set plan.tensor=2
no "no experts" 'plan.experts: devices: the model has no experts' 2 --set plan.experts=devices
no "too few devices" 'list 16 devices' 8 --set devices.0.count=12
no "a free order" 'devices.order: free chooses one device' 2 --device-order free
refuse "nothing to divide" 3 'no operator can be divided; the first that might be, wte: ' \
    ./dpgen check "$models/heads.yaml" --set train.blocks=16 --set plan.tensor=2 --set model.dims.V=3 --set model.dims.D=13
refuse "a graph of other devices" 3 'is a graph with team=2, and plan.tensor' \
    sh -c './dpgen $1 --set plan.tensor=2 -d f >"$2" && ./dpgen $1 --from "$2" -o "$2.out"' sh "$gpt" "$tmp/graph"

# ---- no message without a price ----------------------------------------------------------------------------------------------
# Kernels that reach a function of the team, by the text of rt/op; the norm has a formula of its own, in gen/cost/team.c.
cat rt/op/*.[ch] | awk '/^[a-z].*[a-z_0-9]\(/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
    name { body[name] = body[name] $0 "\n" } /^}/ { name = "" }
    END { for (more = 1; more;) { more = 0
              for (f in body) if (!(f in sends)) { yes = body[f] ~ /team->(sum|sum_part|gather|take|swap|deal)\(/
                  for (s in sends) yes = yes || substr(body[f], index(body[f], "{")) ~ ("[^a-z_]" s "\\(")
                  if (yes) more = sends[f] = 1 } }
          for (f in sends) print f }' | sort >"$tmp/senders"
awk '/^OP\(/ { row = $0; sub(/^OP\(\[?/, "", row); sub(/[],].*/, "", row); phase = 0 }
    /^(OP|   ")/ { n = split($0, word, "\""); for (i = 2; i <= n; i += 2) if (word[i] ~ /^[a-z_]+\(/) {
        sub(/\(.*/, "", word[i]); print row, phase++, word[i] } }' gen/ops.def >"$tmp/calls"
awk -F'[(,"]+ *' '/^PART\(/ { split($0, q, "\""); print $4, q[2] != "", q[4] != "", q[6] != "" }' \
    gen/parts.def >"$tmp/priced"
for call in $(cat "$tmp/senders"); do
    grep " $call\$" "$tmp/calls" | while read -r row phase rest; do
        awk -v row="$row" -v column=$((phase + 2)) '$1 == row && $column { found = 1 } END { exit !found }' "$tmp/priced" ||
            echo "$call of $row"
    done
done >"$tmp/said"
if [ "$(wc -l <"$tmp/senders")" -ge 10 ] && [ "$(cat "$tmp/said")" = "norm_team of NormTeam" ]; then pass
else fault "sends, and has no price in ops.def: $(tr '\n' ';' <"$tmp/said")"; fi

# ---- who starts so many ---------------------------------------------------------------------------------------
expect "a folder for processes" ./dpgen $gpt --set plan.tensor=4 --stages 2 --set plan.transport=mpi --estimate -o "$tmp/folder"
expect "README names ranks" grep -q 'mpirun -n 8 ./train' "$tmp/folder/README"
expect "and stages" grep -q '2 stage(s) of 4 devices' "$tmp/folder/README"
expect "and the batch script ranks" grep -q 'ntasks=8$' "$tmp/folder/job.sbatch"
one=$(./dpgen check $gpt | grep '^  parameters')
[ -n "$one" ] && [ "$(./dpgen check $gpt --set plan.tensor=4 | grep '^  parameters')" = "$one" ] && pass ||
    fault "check counts parameters of one device"

# ---- why -------------------------------------------------------------------------------------------------------
# explains OPERATOR TEXT
explains() { refuse "explain $1" 0 "$2" ./dpgen explain $gpt --set plan.tensor=2 --stages 1 --estimate "$1"; }
explains h.1.attn.c_attn '^team    divided: 32 columns of the result in each of 3 pieces among 2 devices; the gradient of x is'
explains h.1.attention '^team    divided: 4 heads among 2 devices$'
explains h.1.gelu '^team    divided: [0-9]* elements among 2 devices$'
explains h.1.mlp.c_proj '^team    divided: 128 columns of the weight among 2 devices; the result is a sum over them, 4.00 KiB'
explains lm_head '^team    divided: 251 columns of the result among 2 devices; the gradient of x is a sum over them, 4.00 KiB'
explains wte '^team    divided: 251 rows among 2 devices$'
for why in "dispatch 8 experts among 2 devices; of 64 rows each may have 64" \
    "gate rows of the experts that each of 2 devices has" "combine 8 experts among 2 devices"; do
    refuse "explain ${why%% *}" 0 "^team    divided: ${why#* }" ./dpgen explain $experts --set plan.tensor=2 --stages 1 \
        --estimate "${why%% *}"
done
refuse "rows that the blocks do not divide" 0 '^team    divided: 26 rows among 2 devices, 16 at most on each$' \
    ./dpgen explain $gpt -D T=13 --set plan.tensor=2 --set plan.positions=divided --stages 1 --estimate h.1.ln_1
for why in "h.1.attn.c_attn 32 rows" "h.1.attention 4 heads" "h.1.mlp.c_proj 32 rows" "lm_head 251 columns of the result"; do
    refuse "explain ${why%% *}, everywhere" 0 "^team    divided: ${why#* } among 2 devices" ./dpgen explain $gpt \
        --set plan.tensor=2 --set plan.positions=everywhere --stages 1 --estimate "${why%% *}"
done
explains wpe '^team    whole on each of 2 devices: no product in front of it is divided$'
explains h.1.ln_1 '^team    whole on each of 2 devices: no product in front of it is divided$'
finish
