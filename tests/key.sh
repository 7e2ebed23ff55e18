#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The numeric key: another one wherever the bits may differ, the same one wherever they may not.
cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
model=tests/models/tiny-gpt.yaml
key() { ./dpgen plan "$@" --json | grep '"numeric_key"'; }
check() {       # WHAT same|other KEY
    if { [ "$3" = "$base" ] && [ "$2" = same ]; } || { [ -n "$3" ] && [ "$3" != "$base" ] && [ "$2" = other ]; }; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "key: $1 must have the $2 key" >&2
    fi
}
base=$(key $model)
check 'more stages' same "$(key $model --stages 3)"
check 'another schedule' same "$(key $model --schedule gpipe)"
check 'recomputation' same "$(key $model --recompute full)"
check 'mpi' same "$(key $model --set plan.transport=mpi)"
check 'one block' same "$(key $model --set train.blocks=1)"
check 'nothing fused' same "$(key $model --fuse none)"
check 'a limit' same "$(key $model --limit 100MiB)"
sed 's/^/ /; s/^ //; 1s/^/# a comment\n/' $model >"$tmp/comment.yaml"
check 'a comment' same "$(key "$tmp/comment.yaml")"
for set in train.seed=77 train.optimizer.lr=0.123 train.steps=12345 train.clip_norm=0.25 train.batch.micro=1 \
    train.precision.compute=bf16 train.blocks=2 devices.0.kernels=onednn data.train.order=sequential 'train.freeze=[wpe.*]' \
    'train.optimizer.groups=[{match: h.0.*, lr: x0.5}]'; do
    check "$set" other "$(key $model --set "$set")"
done
# Where sums are in one block, pieces cut none of them.
sed 's/\(name: mlp.c_fc.*\)}/\1, pieces: 2}/' $model >"$tmp/pieces.yaml"
check 'pieces of a product' same "$(key "$tmp/pieces.yaml")"
cut=$(key "$tmp/pieces.yaml" --set train.blocks=2)
if [ -n "$cut" ] && [ "$cut" != "$(key $model --set train.blocks=2)" ]; then passed=$((passed + 1))
else failed=$((failed + 1)); echo "key: pieces have no part in it where sums are cut" >&2; fi
if [ "$cut" = "$(key "$tmp/pieces.yaml" --set train.blocks=2 --fuse none)" ]; then passed=$((passed + 1))
else failed=$((failed + 1)); echo "key: pieces count by calls that fuse joins" >&2; fi

# Names of lines and inputs change no bits, but where one is dropped at random: the place of its draws follows from it.
while read -r want change; do
    sed "$change" $model >"$tmp/other.yaml"
    cmp -s $model "$tmp/other.yaml" && echo "key: nothing fits $change in $model" >&2
    check "$change" "$want" "$(key "$tmp/other.yaml")"
done <<'EOT'
other s/causal: true/causal: false/
other s/in: \[_, \$in\]/in: [$in, _]/
other s/heads: H/heads: 1/
other s/name: mlp.c_fc/name: mlp.up/
other s/op: Dropout,/op: Dropout, name: drop,/
same s/op: Gelu,/op: Gelu, name: bend,/
same s/op: Attention,/op: Attention, name: look,/
same s/as: r}/as: rest}/; s/\[_, r\]/[_, rest]/
same s/tokens:  {/words:  {/; s/in: tokens/in: words/; s/tokens: tokens/tokens: words/
other s/op: Attention,/op: Attention, dropout: 0.1,/
EOT
sed 's/op: Attention,/op: Attention, dropout: 0.1,/' $model >"$tmp/drop.yaml"
drops=$(key "$tmp/drop.yaml")
sed -i 's/op: Attention,/op: Attention, name: look,/' "$tmp/drop.yaml"
if [ -n "$drops" ] && [ "$(key "$tmp/drop.yaml")" != "$drops" ]; then passed=$((passed + 1))
else failed=$((failed + 1)); echo "key: the name of attention that drops scores has no part in it" >&2; fi

# Kernels say which version of their sums they have, each library by itself.
gpu=$(key $model --devices devices/h100.yaml --estimate --stages 1)
case "$gpu $base" in
    *" kernels=cuda order=7 workspace=33554432 arch=sm_90"*" kernels=portable order=2\""*) passed=$((passed + 1)) ;;
    *) check 'orders of sums' other '' ;;
esac
base=$gpu
check 'multiprocessors that products leave free' other "$(key $model --devices devices/h100.yaml --estimate --stages 1 \
    --set devices.0.spare=8)"
base=$(key $model)

sed 's/optimizer: .*/optimizer: {type: sgd, momentum: 0.5}/' $model >"$tmp/sgd.yaml"
plain=$(key "$tmp/sgd.yaml")
ahead=$(key "$tmp/sgd.yaml" --set train.optimizer.nesterov=true)
check 'nesterov' other "$ahead"
rms() { key "$tmp/sgd.yaml" --set train.optimizer="{type: rmsprop, alpha: $1}"; }
centred=$(rms '0.9, centered: true')
if [ "$ahead" != "$plain" ] && [ "$(rms 0.9)" != "$(rms 0.8)" ] && [ "$(rms 0.9)" != "$centred" ]; then
    passed=$((passed + 1))
else failed=$((failed + 1)); echo "key: nesterov, alpha or centered has no part in it" >&2; fi

bytes() { sed "s/mean: .*}/$1}/" tests/build/mean_count.yaml >"$tmp/bytes.yaml"; key "$tmp/bytes.yaml"; }
if [ "$(bytes 'mean: 0.5')" != "$(bytes 'mean: 0.25')" ] && [ "$(bytes 'std: 0.5')" != "$(bytes 'mean: 0.5')" ]; then
    passed=$((passed + 1))
else failed=$((failed + 1)); echo "key: mean and std have no part in it" >&2; fi

# A graph as text: what fuse has joined in it counts as it was written, until somebody changes it.
./dpgen plan $model -d f >"$tmp/graph.txt"
check 'a graph from a file' same "$(key $model --from "$tmp/graph.txt")"
sed '/ with=h.0.dropout /s/drop=f:[^ ]*/drop=f:0x1p-1/' "$tmp/graph.txt" >"$tmp/other.txt"
cmp -s "$tmp/graph.txt" "$tmp/other.txt" && echo "key: no operator is joined in $model" >&2
check 'a changed graph from a file' other "$(key $model --from "$tmp/other.txt")"
# Cuts are a part of it where steps overlap, and not how they were found: here a search goes on from another planner's plan.
base=$(key tests/models/scalar.yaml --estimate --schedule pipedream --stages 2)
check 'the same cuts by hand' same "$(key tests/models/scalar.yaml --estimate --schedule pipedream --stages 2 \
    --cuts "$(expr "$base" : '.* cuts \([0-9,]*\)"')")"
echo "key: $passed passed, $failed failed"
[ "$failed" = 0 ]
