#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Random questions for the planner, a line each: a model and its options, without a limit.
#
#   bench/questions.sh [-n QUESTIONS] [-s SEED]
#
# A question draws a model and its layers, a device file, stages, a schedule, micro-batches, --offload, and now and then two
# replicas.  The same seed draws the same questions.
export LC_ALL=C
n=100 seed=1
while getopts n:s: option; do
    case $option in
        n) n=$OPTARG ;; s) seed=$OPTARG ;;
        *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
    esac
done
awk -v n="$n" -v seed="$seed" '
    function any(list,  at, k) { k = split(list, at, " "); return at[1 + int(k * rand())] }
    BEGIN { srand(seed)
            for (i = 0; i < n; i++) {
                stages = 2 + int(4 * rand())
                image = rand() < 0.35
                layers = any("3 4 6 8")
                model = any("bert-base gpt2-124m gpt2-355m t5-small t5-large opt-125m tinyllama")
                if (image) model = any("resnet18 vgg16 unet mobilenetv2 squeezenet efficientnet-b0 inception-v3")
                micro = any("1 2 4")
                schedule = any("1f1b 1f1b 1f1b gpipe auto zb-h1 zb-h2 zb* 1f1b* 1f1b-split interleaved zb-v v-half hanayo")
                replicas = rand() < 0.12 ? 2 : 1
                printf "examples/%s.yaml", model
                if (model ~ /^(bert|gpt2|t5)/) printf " -D L=%d", layers
                printf " --devices devices/%s.yaml --stages %d", any("v100-16gb rtx2080ti a100-40gb h100"), stages
                printf " --schedule %s --offload %s --recompute auto", schedule, any("none auto")
                if (replicas > 1) printf " --replicas 2 --set train.batch.groups=2"
                printf " --set train.batch.micro=%d --set train.batch.global=%d\n", micro,
                    micro * stages * replicas * any("2 4") } }'
