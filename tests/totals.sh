#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Parameter counts of the examples against the published ones.
#   GPT-2 124M   llm.c's README;  BERT-base with both heads, T5-small: their checkpoints on Hugging Face
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
EOT
echo "totals: $passed passed, $failed failed"
[ "$failed" = 0 ]
