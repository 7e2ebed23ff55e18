#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Parameter counts of the examples against the published ones.
#   GPT-2 124M   llm.c's README;  the others: their checkpoints on Hugging Face, BERT with both heads of its pre-training;
#   VGG-16 and the ResNets: torchvision;  those for GPUs have 47 rows of 768 more, and 6 of 768 with a bias each
passed=0 failed=0
while read -r model want; do
    got=$(./dpgen check "examples/$model.yaml" | awk '$1 == "parameters" && NF == 2 { gsub(",", "", $2); print $2 }')
    if [ "$got" = "$want" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "totals: $model has $got parameters, not $want" >&2
    fi
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
vgg16 138357544
resnet18 11689512
resnet50 25557032
EOT
echo "totals: $passed passed, $failed failed"
[ "$failed" = 0 ]
