#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Families of published models: tests/hf/FAMILY has the config.json of a tiny model of transformers, its tensors, its loss and
# its gradients (tests/ref/make_hf.py).  The job of what import writes has that loss within 3e-6, and moves the published
# weights by those gradients within 1e-4, in one step of gradient descent.
#   families.sh [FAMILY...]
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/compare
for tool in safe npy; do
    $cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/$tool" tests/$tool.c || { fault "tests/$tool.c"; finish; }
done
use_portable
cwd=$tmp/data rate=1024
mkdir "$cwd"
write_hf_data "$cwd"

# job FAMILY: from its config.json to a job of two stages in $tmp/FAMILY
job() {
    ./dpgen import "$hf/$1" -o "$tmp/$1.yaml" >"$tmp/said" 2>&1 || { echo "import: $(head -n 1 "$tmp/said")"; return 1; }
    hf_data "$1"
    frozen=$(sed -n 's/^  freeze:/, freeze:/p' "$tmp/$1.yaml")
    generate "$tmp/$1" "$tmp/$1.yaml" $dims --set weights.type=f32 --set train="{precision: {compute: f32},
        batch: {global: 2, micro: 2}, steps: 1, optimizer: {type: sgd, lr: $rate}$frozen}" --set devices.0.kernels=portable \
        --set "data.train={format: npy, arrays: {$arrays}, order: sequential}" --stages 2 --schedule 1f1b --recompute none &&
        compile "$tmp/$1"
}
run() { d=$tmp/$1; shift; (cd "$cwd" && timeout 60 "$d/job" --quiet "$@"); }

[ $# -gt 0 ] || set -- $(cd "$hf" && ls -d */grads | sed 's,/grads,,')
for family; do
    mkdir "$tmp/$family.in"
    "$tmp/safe" "$hf/$family/tensors" "$tmp/$family.in/model.safetensors" || fault "$family: tests/safe"
    if [ -e "$hf/$family/config5.json" ] && [ "$family" != t5-gated ]; then        # as transformers 5.24 writes it
        expect "$family: its newer config.json" ./dpgen import "$hf/$family/config5.json" -o "$tmp/newer.yaml"
        expect "$family: as it was" ./dpgen import "$hf/$family/config.json" -o "$tmp/older.yaml"
        expect "$family: the same model" cmp "$tmp/newer.yaml" "$tmp/older.yaml"
    fi
    said=$(job "$family") || { fault "$family: $said"; continue; }
    run "$family" --weights "$tmp/$family.in" --steps 1 --record --checkpoint "$tmp/$family.run" >"$tmp/said" 2>&1
    is=$(sed -n 's/^loss 1 //p' "$tmp/said") want=$(cat "$hf/$family/loss")
    if awk -v a="$is" -v b="$want" 'BEGIN { d = a - b; exit !(a > 0 && d < 3e-6 * b && d > -3e-6 * b) }'; then pass
    else fault "$family: loss $is, transformers say $want: $(tail -n 1 "$tmp/said")"; fi
    expect "$family: its checkpoint" ./dpgen export "$tmp/$family.run" --hf "$tmp/$family.hf"
    expect "$family: gradients" build/compare --moved "$hf/$family/grads" "$tmp/$family.hf/model.safetensors" $rate 1e-4
done
finish
