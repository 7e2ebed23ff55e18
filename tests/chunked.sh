#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# LinearCrossEntropy against the two lines that it stands for, Linear and SoftmaxCrossEntropy, in a tiny GPT whose head shares
# the weight of the table.  With one chunk the portable kernels must give the very bits of the two lines; with three the losses
# are theirs but for roundings.  Parameters have the same names: weights of one job start the other, and a checkpoint, which
# holds the state of a graph, is refused by the other.  Scratch is planned to the byte.  And the bits of
# tests/models/heads.yaml, which has two such heads, are those of the interpreter in bf16 too; cuts.sh has them in f32, same.sh
# with oneDNN.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a build/interp build/interp_bf16

# chunked SIZE: tiny-gpt with one line in place of two, in $tmp/SIZE.yaml
chunked() {
    sed -e '/op: Linear, name: lm_head/d' -e "s/op: SoftmaxCrossEntropy, targets: targets/op: LinearCrossEntropy, \
name: lm_head, out: V, bias: false, tie: wte, targets: targets, chunk: $1/" "$models/tiny-gpt.yaml" >"$tmp/$1.yaml"
}
two=$models/tiny-gpt.yaml
chunked 256
chunked 96
bf16="--set train.precision.compute=bf16"

# ---- against two lines -------------------------------------------------------------------------------------------------
# run_of INTERPRETER MODEL OPTION...: its hash
run_of() {
    interp=$1
    shift
    "build/$interp" --data "$data" "$@" 2>&1 | sed -n 's/^sha256 //p'
}
# losses INTERPRETER MODEL OPTION...
losses() {
    interp=$1
    shift
    "build/$interp" --data "$data" "$@" 2>/dev/null | sed -n 's/^step.*loss *\([0-9.]*\).*/\1/p'
}
# near WHAT BY: lines of $tmp/a and $tmp/b differ by this share or less, and there are 20 of them
near() {
    if paste "$tmp/a" "$tmp/b" | awk -v by="$2" '{ d = $1 - $2; if (NF != 2 || d * d > by * by * $1 * $1) bad = NR }
        END { exit NR != 20 || bad }'; then pass
    else fault "$1: losses $(head -n 2 "$tmp/a" | tr '\n' ' ') and $(head -n 2 "$tmp/b" | tr '\n' ' ')"; fi
}
for interp in interp interp_bf16; do
    case $interp in interp) type= by=1e-5 ;; *) type=$bf16 by=2e-3 ;; esac
    want=$(run_of $interp "$two" $type)
    said=$(run_of $interp "$tmp/256.yaml" $type)
    if [ ${#want} = 64 ] && [ "$said" = "$want" ]; then pass; else fault "$interp, one chunk: $said, not $want"; fi
    losses $interp "$two" $type >"$tmp/a"
    losses $interp "$tmp/96.yaml" $type >"$tmp/b"
    near "$interp, three chunks" $by
done

# ---- weights -----------------------------------------------------------------------------------------------------------
# Ten steps of one, then five more from its parameters alone: by the same job, and by one with one chunk.
use_portable
for name in two 256; do
    model=$tmp/$name.yaml
    [ $name != two ] || model=$two
    said=$(generate "$tmp/$name" "$model" --stages 2 --schedule 1f1b && compile "$tmp/$name") || fault "$name: $said"
done
run="--quiet --hash --data $data --checkpoint $tmp/ckpt"
job_hash "$tmp/two" --steps 10 >"$tmp/said"
last=$(ls -d "$tmp"/ckpt/step-* | tail -n 1)
refuse "the checkpoint of two lines" 5 "another model.*--weights" "$tmp/256/job" $run --resume
run="--quiet --hash --data $data --no-checkpoint --weights $last --steps 5"
want=$(job_hash "$tmp/two")
said=$(job_hash "$tmp/256")
if [ ${#want} = 64 ] && [ "$said" = "$want" ]; then pass; else fault "from the weights of two lines: $said, not $want"; fi
run="--no-checkpoint --quiet --hash --data $data"

# ---- `top`: the share of the two lines, with one chunk and with three, on one stage and on two -----------------------------
share() {       # MODEL OPTION...: shares of two evaluations
    sed 's/targets: targets/targets: targets, top: 3/' "$1" >"$tmp/top.yaml"
    shift
    generate "$tmp/top" "$tmp/top.yaml" "$@" --set data.eval="{files: x, every: 2, batches: 3}" && compile "$tmp/top" &&
        "$tmp/top/job" --no-checkpoint --quiet --data "$data" --eval-data "$data" --steps 4 --log "$tmp/top.jsonl" &&
        sed -n 's/.*"top":3,"accuracy":\([^,]*\),.*/\1/p' "$tmp/top.jsonl" | tr '\n' ' '
    rm -f "$tmp/top.jsonl"
}
want=$(share "$two")
for options in "256.yaml --stages 1" "96.yaml --stages 2 --schedule 1f1b --recompute full"; do
    said=$(share "$tmp/"$options)
    case $want in 0.*' '0.*' ') true ;; *) false ;; esac && [ "$said" = "$want" ] && pass ||
        fault "top, $options: $said, not $want"
done

# ---- scratch -----------------------------------------------------------------------------------------------------------
# scratch MODEL OPERATOR FORWARD BACKWARD OPTION...: bytes
scratch() {
    model=$1 operator=$2 want="$3 $4"
    shift 4
    said=$(./dpgen "$models/$model.yaml" "$@" -d g | sed -n "s/^op [FI]:$operator .*call=linear_xent_.* tmp=\([0-9]*\) .*/\1/p;
        s/^op [FI]:$operator .* tmp=\([0-9]*\) .*call=linear_xent_.*/\1/p" | tr '\n' ' ')
    if [ "$said" = "$want " ]; then pass; else fault "scratch of $operator: $said, not $want"; fi
}
# rows x chunk, up to 64 bytes; then 2 x rows floats, or rows x in of them in bf16
scratch heads head $((32 * 96 * 4 + 2 * 32 * 4)) $((32 * 96 * 4))
scratch heads other $((32 * 192 * 2 + 2 * 32 * 4)) $((32 * 192 * 2 + 32 * 12 * 4)) $bf16
scratch ops chunked $((12 * 31 * 2 + 24 + 2 * 12 * 4)) $((12 * 31 * 2 + 24 + 12 * 8 * 4)) --set model.dims.V=31 $bf16

# ---- any plan ----------------------------------------------------------------------------------------------------------
# plans_of OPTION...
plans_of() {
    echo "1.gpipe $models/heads.yaml --stages 1 --schedule gpipe $*"
    echo "2.1f1b $models/heads.yaml --stages 2 --schedule 1f1b --cuts 7 --recompute full $*"
    echo "3.gpipe $models/heads.yaml --stages 3 --schedule gpipe --cuts 3,7 --offload \"['*']\" $*"
    echo "map.1f1b $models/heads.yaml --stages 2 --schedule 1f1b --map 0,1,0 --cuts 6,7 $*"
}
use_bf16
plans_of $bf16 | plans
one_hash "bf16" "$(run_of interp_bf16 "$models/heads.yaml" $bf16)"
finish
