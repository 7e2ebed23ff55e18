#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Parameter counts of the examples against the published ones.
#   GPT-2 124M   llm.c's README;  the others: their checkpoints on Hugging Face, BERT with both heads of its pre-training;
#   those for GPUs have 47 rows of 768 more, and 6 of 768 with a bias each.
# Of images: the names and shapes of all parameters too, by the hash of torchvision's list, for AmoebaNet-D
# torchgpipe's (sorted lines "NAME D0xD1..." of named_parameters()).  Several models fit one file, by its dims.
passed=0 failed=0
wrong() { failed=$((failed + 1)) && echo "totals: $*" >&2; }
right() { passed=$((passed + 1)); }
check_list() {  # GRAPH HASH WHAT
    got=$(sed -n 's/^state \([^ ]*\) kind=param .*shape=\([0-9x]*\) .*/\1 \2/p' "$1" |
        grep -v '\.running_mean \|\.running_var \|\.num_batches_tracked ' | LC_ALL=C sort | sha256sum | cut -c1-16)
    if [ "$got" = "$2" ]; then right; else wrong "$3: the names and shapes have the hash $got, not $2"; fi
}
graph=$(mktemp) || exit 2
trap 'rm -f "$graph"' EXIT
while read -r model want hash dims; do
    got=$(./dpgen check "examples/$model.yaml" $dims | awk '$1 == "parameters" && NF == 2 { gsub(",", "", $2); print $2 }')
    if [ "$got" = "$want" ]; then right; else wrong "$model $dims has $got parameters, not $want"; fi
    [ -n "$hash" ] || continue
    ./dpgen check "examples/$model.yaml" $dims -d s >"$graph" 2>&1
    check_list "$graph" "$hash" "$model $dims"
done <<EOT
gpt2-124m 124439808
bert-base 110106428
t5-small 60506624
gpt2-355m 354823168
gpt2-774m 774030080
bert-large 336226108
t5-large 737668096
gpt2-124m-cuda 124475904
bert-base-cuda 110111042
vgg16 138357544 32c9f6d73e86d14d
vgg16-bn 138365992 d03e146253e0537f
resnet18 11689512 a5d0cc35b2d74bb1
resnet18 21797672 d364e84913b12f08 -D N1=3 -D N2=4 -D N3=6 -D N4=3
resnet50 25557032 bf6e276c3984a9fd
resnet50 44549160 a84c93525212fcc9 -D N3=23
resnet50 60192808 1ce9e8bf70d5aa7e -D N2=8 -D N3=36
densenet121 7978856 9013a33c9c0fa4e0
densenet121 28681000 38679a3d1949f53c -D G=48 -D N0=96 -D N3=36
squeezenet 1235496 ba491685afed3179
mobilenetv2 3504872 478761fa126a8485
efficientnet-b0 5288548 6d707dfa5997fe6a
vit-b16 86567656 f6aadcbccfc84521
inception-v3 27161264 7373700f7e3420a3
amoebanet-d 81505540 ed8a42eac71dab99
amoebanet-d 1844858344 c342c6b0a1abc420 -D L=72 -D F=512
mixer-b16 59880472
EOT
echo "totals: $passed passed, $failed failed"
[ "$failed" = 0 ]
