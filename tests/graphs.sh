#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Graphs of other frameworks.  tests/graphs has small networks as PyTorch exports them (tests/ref/make_graphs.py): a job of the
# model file and the weights that import writes has to have PyTorch's loss.  What repeats is written as a block, as a
# person has it in deep.yaml.  parts.onnx is as other exporters write, and its loss is that of ONNX's own evaluator
# (tests/ref/make_onnx.py).  What cannot be trained is refused, with the export that works if there is one; damaged files are
# refused, and nothing is written.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/compare
use_portable
graphs=$root/tests/graphs

# job FILE: from a graph to $tmp/FILE.job/job, of two stages
job() {
    ./dpgen import "$graphs/$1" -o "$tmp/$1.yaml" >"$tmp/said" 2>&1 || { echo "import: $(head -n 1 "$tmp/said")"; return 1; }
    name=${1%%.*} input=$(sed -n '/^  inputs:/ { n; s/^ *\([a-z]*\):.*/\1/p; }' "$tmp/$1.yaml")
    generate "$tmp/$1.job" "$tmp/$1.yaml" --set train.batch.global=2 --set train.batch.micro=2 --set train.optimizer.lr=0 \
        --set "data.train={format: npy, arrays: {$input: $graphs/$name.image.npy, labels: $graphs/$name.labels.npy}, \
order: sequential}" --stages 2 && compile "$tmp/$1.job"
}
# like FILE LOSS: the loss of its first step
like() {
    "$tmp/$1.job/job" --weights "$tmp/$1.safetensors" --steps 1 --record --no-checkpoint --quiet >"$tmp/said" 2>&1
    is=$(sed -n 's/^loss 1 //p' "$tmp/said")
    if awk -v a="$is" -v b="$2" 'BEGIN { d = a - b; exit !(a > 0 && d < 3e-6 * b && d > -3e-6 * b) }'; then pass
    else fault "$1: loss $is, PyTorch has $2: $(tail -n 1 "$tmp/said")"; fi
}
for path in "$graphs"/[!b]*.onnx "$graphs"/[!b]*.pt2; do
    file=$(basename "$path")
    said=$(job "$file") && like "$file" "$(cat "$graphs/${file%%.*}.loss")" || fault "$file: $said"
    ./dpgen check "$tmp/$file.yaml" --parameters | grep -v '\.running_\|\.num_batches' | LC_ALL=C sort >"$tmp/names"
    expect "$file: names and shapes of PyTorch" cmp "$graphs/${file%%.*}.parameters" "$tmp/names"
done
# A detach in front of b: losses are those of the mlp, gradients those of PyTorch (f64) with it
"$tmp/mlp.detach.pt2.job/job" --weights "$tmp/mlp.detach.pt2.safetensors" --steps 1 --gradients "$tmp/grad" --no-checkpoint \
    --quiet >"$tmp/said" 2>&1
expect "no gradient through a detach" build/compare "$graphs/mlp.detach.grad.safetensors" "$tmp/grad" 1e-4
"$tmp/uneven.onnx.job/job" --weights "$tmp/uneven.onnx.safetensors" --steps 1 --gradients "$tmp/grad" --no-checkpoint \
    --quiet >"$tmp/said" 2>&1
expect "strides, edges, slopes, the largest: gradients" build/compare "$graphs/uneven.grad.safetensors" "$tmp/grad" 1e-4
expect "what a mean keeps is flat" grep -q 'op: GlobalAvgPool}' "$tmp/res.onnx.yaml"
expect "parts are one operator" test "$(grep -c -e Gelu -e Silu "$tmp/mlp.onnx.yaml")" = 2
expect "attention is one operator" grep -q 'op: Attention, heads: 2, packed: qkv, causal: true, scale: 0.4}' "$tmp/gpt.pt2.yaml"
expect "a head that is a table" grep -q 'op: Linear, tie: wte.weight, out: 11' "$tmp/gpt.pt2.yaml"
expect "statistics of BatchNorm are weights" sh -c "./dpgen check $tmp/res.onnx.yaml --parameters |
    grep -q '^bn1.running_var 4$'"
names="weight: scale, bias: shift, running_mean: m, running_var: v, num_batches_tracked: n"
sed "s/op: BatchNorm, name: bn1,/op: BatchNorm, names: {$names},/" "$tmp/res.onnx.yaml" >"$tmp/named.yaml"
said=$(generate "$tmp/named.job" "$tmp/named.yaml" --stages 1)
if [ -z "$said" ] && grep -q '"shift"' "$tmp/named.job/stage0.c"; then pass; else fault "a BatchNorm of other names: $said"; fi
expect "a bias that is an Add" grep -q 'op: ConvTranspose, names: {weight: net.d.w, bias: net.d.b}' "$tmp/parts.onnx.yaml"
expect "a name that is none here" grep -q 'rename: {"net.0.weight": "0.weight"' "$tmp/words.onnx.yaml"

key_of() { ./dpgen plan "$1" --estimate --json | sed -n 's/.*"numeric_key": "\(.*\)".*/\1/p'; }
expect "branch.depth.pt2" ./dpgen import "$graphs/branch.depth.pt2" -o "$tmp/branch.depth.pt2.yaml"
for name in deep dense vit branch.depth; do
    want=$(key_of "$graphs/$name.yaml") is=$(key_of "$tmp/$name.pt2.yaml")
    if [ -n "$want" ] && [ "$want" = "$is" ]; then pass; else fault "$name.pt2: another numeric key than $name.yaml"; fi
done
expect "dense.pt2: a chain" grep -q 'use: layer, name: layers, repeat: 4}' "$tmp/dense.pt2.yaml"
expect "vit.pt2: nothing is moved" test "$(grep -c -e Transpose -e Reshape "$tmp/vit.pt2.yaml")" = 1
expect "deep.pt2: layers" grep -q 'use: layer, name: layers, repeat: 3, args: {out: 8}' "$tmp/deep.pt2.yaml"

for file in branch.onnx branch.pt2; do
    expect "$file" ./dpgen import "$graphs/$file" -o "$tmp/$file.yaml"
    expect "$file: whole samples" grep -q 'Dropout, p: 0.2, shared: \[1, 2, 3\]' "$tmp/$file.yaml"
done

# ---- what is refused ------------------------------------------------------------------------------------------------------
no() { what=$1 status=$2 text=$3; shift 3; refuse "$what" "$status" "$text" ./dpgen import "$@" -o "$tmp/no.yaml"; }
no "BatchNorm folded into a Conv" 3 "onnx::Conv.* is made of several: .*torch.onnx.export(.*TrainingMode.TRAINING, do_const" \
    "$graphs/bad.folded.onnx"
no "an axis without a size" 3 "axis 2 of input .image. has no fixed size (.high.); export it without dynamic_axes" \
    "$graphs/bad.dynamic.onnx"
expect "its sizes said" ./dpgen import "$graphs/bad.dynamic.onnx" --shape image=1,3,6,4 -o "$tmp/dynamic.yaml"
expect "a label a pixel" grep -q 'labels: {shape: \[B, 6, 4\], dtype: i32, range: \[0, 2\]}' "$tmp/dynamic.yaml"
expect "as they were said" grep -q 'image: *{shape: \[B, 6, 4, 3\]' "$tmp/dynamic.yaml"
no "too few sizes" 2 "input 'image' has 4 sizes" "$graphs/bad.dynamic.onnx" --shape image=1,3
no "another size" 3 "axis 1 of input .image. is 3 in the file" "$graphs/bad.dynamic.onnx" --shape image=1,4,8,8
no "sizes of nothing" 2 "shape picture=2,3: no input has that name; there is image" "$graphs/mlp.onnx" --shape picture=2,3
no "sizes of a .pt2" 2 "shape is for .onnx" "$graphs/mlp.pt2" --shape x=2,3
no "attention in parts" 3 "node .*MatMul.*: it multiplies two activations: .*dpgen import DIR" "$graphs/bad.attention.onnx"
no "attention of ONNX" 3 "Expand): it repeats numbers of the file.*mask of an attention.*whole in a .pt2 of torch.export" \
    "$graphs/bad.gpt.onnx"
no "a recurrent layer of ONNX" 3 "recurrent layers are read from a .pt2 of torch.export" "$graphs/bad.lstm.onnx"
while read -r file text; do no "bad.$file" 3 "$text" "$graphs/bad.$file.onnx"; done <<END
power node 'power' (Pow): it takes a power, .*if it is part of a LayerNorm, .*export it.*if not, make the model without it
plus node 'plus' (Add): it adds a constant number, for which dpgen has no operator; make the model without it
grid node 'grid' (Expand): it repeats numbers of the file, as for a grid .*; make the model without it
repeat node 'repeat' (Expand): it repeats an activation, for which dpgen has no operator; make the model without it
computed node 'conv' (Conv): its bias is computed from numbers of the file, and no tensor of the file; make the model
short node 'conv' (Conv): its bias 'b' has 1 numbers, and 2 are expected; make
along node 'add' (Add): a tensor of the file with pixels is an operand beside an image
apart node 'add' (Add): an operand is repeated over axes that are no neighbours
turned node 'add' (Add): its operand 'm' is a matrix whose axes are exchanged
dilations node 'conv' (Conv): its dilations are \[1, 2\]: dpgen has one for both axes
samples input 'image' has any number of samples, and input 'state' has 2; the first axis of each input
END
mkdir "$tmp/alone"
cp "$graphs/mlp.outside.onnx" "$tmp/alone"
no "the file beside it" 2 "cannot read .*alone/mlp.outside.onnx.data" "$tmp/alone/mlp.outside.onnx"
LC_ALL=C sed 's/\x10\x11/\x10\x08/' "$graphs/mlp.onnx" >"$tmp/alone/old.onnx"
no "an old opset" 3 "opset 8; 11 to 20 are read; export it" "$tmp/alone/old.onnx"
LC_ALL=C sed 's/\x04Tanh/\x04Tann/' "$graphs/mlp.onnx" >"$tmp/alone/odd.onnx"
no "an operator" 3 "node '/Tanh' (Tann): dpgen does not read this operator; make the model without it" "$tmp/alone/odd.onnx"
head -c 1500 "$graphs/mlp.onnx" >"$tmp/alone/cut.onnx"
no "a file that is cut" 3 "no file of ONNX, or it is cut short" "$tmp/alone/cut.onnx"
cp LICENSE "$tmp/alone/text.onnx"
no "another file" 3 "no file of ONNX, or it is cut short" "$tmp/alone/text.onnx"
{ head -c 7000 "$graphs/mlp.pt2"; printf 'X'; tail -c +7002 "$graphs/mlp.pt2"; } >"$tmp/alone/turned.pt2"
no "a byte that turned" 3 "file 'mlp/.*' of the archive is damaged: its CRC-32" "$tmp/alone/turned.pt2"
head -c 9000 "$graphs/mlp.pt2" >"$tmp/alone/cut.pt2"
no "an archive that is cut" 3 "no zip archive of torch.export, or it is cut short: there is no directory" "$tmp/alone/cut.pt2"
no "no such loss" 2 "loss hinge: cross-entropy or mse is expected" "$graphs/mlp.onnx" --loss hinge
expect "nothing is written" test ! -e "$tmp/no.yaml" -a ! -e "$tmp/no.safetensors"
expect "another loss" ./dpgen import "$graphs/mlp.onnx" --loss mse -o "$tmp/mse.yaml"
expect "its targets are numbers" grep -q 'labels: {shape: \[B, 3\], dtype: f32}' "$tmp/mse.yaml"
expect "it is a model" ./dpgen check "$tmp/mse.yaml"
finish
