#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Published weights in and out.  tests/hf/FAMILY has the config.json of a tiny model of transformers, the names and shapes of the
# tensors that it saves, and its loss (tests/ref/make_hf.py).  The model file that import writes has to read the file, give that
# loss within 3e-6, and write the file again with the same bytes.  tests/hf/published has configurations of published models: what
# import writes for them has the numeric key, and the totals, of the example of that name.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a
for tool in safe npy; do
    $cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/$tool" tests/$tool.c || { fault "tests/$tool.c"; finish; }
done
use_portable
hf=$root/tests/hf cwd=$tmp/data
mkdir "$cwd"
(cd "$cwd" && for array in tokens.npy:61:2:11 targets.npy:61:2:11 long.npy:61:2:12 types.npy:2:2:12 mask.npy:2:2:12 \
    labels.npy:61:2:12 next.npy:2:2 kinds.npy:5:2; do
    echo $array | { IFS=: read -r file high dims && "$tmp/npy" $file i4 0 "$high" $(echo $dims | tr : ' '); }
done; "$tmp/npy" image.npy f4 -1 1 2 8 8 3)

# job FAMILY: from its config.json to a job of two stages in $tmp/FAMILY
job() {
    arrays="tokens: tokens.npy, targets: targets.npy" dims="-D T=11"
    case $1 in
        vit) arrays="image: image.npy, labels: kinds.npy" dims= ;;
        bert) arrays="tokens: long.npy, types: types.npy, mask: mask.npy, labels: labels.npy, next: next.npy" dims= ;;
        t5*) arrays="ids: long.npy, mask: mask.npy, decoder_ids: tokens.npy, labels: targets.npy" dims="-D S=12 -D T=11" ;;
    esac
    ./dpgen import "$hf/$1" -o "$tmp/$1.yaml" >"$tmp/said" 2>&1 || { echo "import: $(head -n 1 "$tmp/said")"; return 1; }
    generate "$tmp/$1" "$tmp/$1.yaml" $dims --set train.precision.compute=f32 --set train.batch.global=2 \
        --set train.batch.micro=2 --set train.optimizer.lr=0 --set devices.0.kernels=portable \
        --set "data.train={format: npy, arrays: {$arrays}, order: sequential}" --stages 2 --schedule 1f1b --recompute none &&
        compile "$tmp/$1"
}
# start FAMILY ARGUMENT...: a run of one step, which changes nothing
run() { d=$tmp/$1; shift; (cd "$cwd" && timeout 60 "$d/job" --no-checkpoint --quiet "$@"); }

for family in $(ls "$hf"); do
    [ -e "$hf/$family/loss" ] || continue
    mkdir "$tmp/$family.in"
    "$tmp/safe" "$hf/$family/tensors" "$tmp/$family.in/model.safetensors" || fault "$family: tests/safe"
    said=$(job "$family") || { fault "$family: $said"; continue; }
    run "$family" --weights "$tmp/$family.in" --steps 1 --record --export "$tmp/$family.out" >"$tmp/said" 2>&1
    is=$(sed -n 's/^loss 1 //p' "$tmp/said") want=$(cat "$hf/$family/loss")
    if awk -v a="$is" -v b="$want" 'BEGIN { d = a - b; exit !(a > 0 && d < 3e-6 * b && d > -3e-6 * b) }'; then pass
    else fault "$family: loss $is, transformers say $want: $(tail -n 1 "$tmp/said")"; fi
    expect "$family: its file, written again" cmp "$tmp/$family.in/model.safetensors" "$tmp/$family.out/model.safetensors"
done

for config in "$hf"/published/*.json; do
    name=$(basename "$config" .json)
    expect "import $name" ./dpgen import "$config" -o "$tmp/$name.yaml"
    for file in "$tmp/$name.yaml" "examples/$name.yaml"; do
        ./dpgen plan "$file" -D L=2 --stages 1 --limit 1TiB --estimate --json | grep '"numeric_key"'
        ./dpgen check "$file" | tail -n +2
    done >"$tmp/both"
    lines=$(($(wc -l <"$tmp/both") / 2))
    if [ "$lines" -gt 5 ] && [ "$(head -n $lines "$tmp/both")" = "$(tail -n $lines "$tmp/both")" ]; then pass
    else fault "$name: import writes another model than examples/$name.yaml"; fi
done
finish
