#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Networks of torchvision against the examples: what dpgen import writes for a network, exported by torch.export, has the
# model of the numeric key that the example has.  A graph has no loss, so smoothing of the example's is left out.
#
#   PYTHON=venv/bin/python3 tests/ref/torchvision.sh [NAME:EXAMPLE ...]
cd "$(dirname "$0")/../.." || exit 2
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0
[ $# != 0 ] || set -- resnet18:resnet18 resnet50:resnet50 vgg16:vgg16 vgg16_bn:vgg16-bn squeezenet1_1:squeezenet \
    mobilenet_v2:mobilenetv2 densenet121:densenet121 efficientnet_b0:efficientnet-b0 convnext_tiny:convnext-tiny \
    vit_b_16:vit-b16
model_of() {
    ./dpgen plan "$1" --estimate --stages 1 --limit 1TiB --set train.batch.micro=8 --set train.batch.global=256 --json |
        sed -n 's/.*"numeric_key": "model=\([0-9a-f]*\).*/\1/p'
}
for pair in "$@"; do
    name=${pair%%:*} example=${pair#*:}
    "${PYTHON:-python3}" - "$name" "$tmp/$name.pt2" <<END || exit 1
import sys
import torch
import torchvision
model = getattr(torchvision.models, sys.argv[1])(weights=None).train()
torch.export.save(torch.export.export(model, (torch.zeros(8, 3, 224, 224),)), sys.argv[2])
END
    ./dpgen import "$tmp/$name.pt2" -o "$tmp/$name.yaml" >"$tmp/said" 2>&1 || cat "$tmp/said" >&2
    sed 's/, smoothing: [0-9.]*//' "examples/$example.yaml" >"$tmp/example.yaml"
    is=$(model_of "$tmp/$name.yaml") want=$(model_of "$tmp/example.yaml")
    rm -f "$tmp/$name".*
    if [ -n "$is" ] && [ "$is" = "$want" ]; then passed=$((passed + 1))
    else failed=$((failed + 1)); echo "torchvision: $name has another model than examples/$example.yaml" >&2; fi
done
echo "torchvision: $passed passed, $failed failed"
[ "$failed" = 0 ]
