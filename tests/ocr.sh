#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# PP-OCR's classifier and detector, as the Python package rapidocr-onnxruntime has them, imported whole: a step of training
# from their weights, with the loss and gradients of torch (tests/ref/ocr.py).  $PYTHON has that package, onnx, safetensors and
# torch; no file of it is here.
. "$(dirname "$0")/lib.sh"
need dpgen
python=${PYTHON:-python3}
models=$("$python" "$root/tests/ref/ocr.py" models 2>"$tmp/said") || {
    skip "no rapidocr_onnxruntime, onnx, safetensors and torch of \$PYTHON"
    finish
}
rate=524288         # so large that what is left of the old weights is lost in the new ones, and none of the gradient

# trained NAME FILE SHAPE
trained() {
    at=$tmp/$1 file=$models/$2
    mkdir "$at"
    if [ ! -e "$file" ]; then skip "rapidocr_onnxruntime has no $2"; return; fi
    expect "$1: data" "$python" tests/ref/ocr.py data "$file" "$at" "$3"
    expect "$1: read whole" ./dpgen import "$file" --loss mse --shape "x=$3" -o "$at/m.yaml"
    expect "$1: planned" ./dpgen "$at/m.yaml" -o "$at/out" --estimate --stages 2 \
        --set train="{batch: {global: 2, micro: 2}, steps: 1, optimizer: {type: sgd, lr: $rate}}" \
        --set "data.train={format: npy, arrays: {x: x.npy, labels: labels.npy}, order: sequential}"
    expect "$1: built" make -s -C "$at/out"
    (cd "$at" && out/train --weights m.safetensors --steps 1 --record --export new --quiet) >"$at/said" 2>&1
    expect "$1: a step" "$python" tests/ref/ocr.py step "$file" "$at" "$at/m.safetensors" "$at/new/model.safetensors" $rate \
        "$(sed -n 's/^loss 1 //p' "$at/said")"
    head -n 1 "$tmp/said" >&2
}
trained classifier ch_ppocr_mobile_v2.0_cls_infer.onnx 2,3,48,192
trained detector ch_PP-OCRv4_det_infer.onnx 2,3,64,64
finish
