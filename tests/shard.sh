#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# train.shard: optimizer, gradients, parameters.  The bits are those of one replica that shares nothing: those of parameters,
# norms and gradients, in f32 and in bf16, with ties, momentum and batch statistics.  A checkpoint knows nothing of the parts:
# it has the same bytes, and goes on under any width, sharded or not, and between processes.  Moments of a device are 1/r of
# all, in the plan and in what the plan says of itself, and so is what stays of a gradient; a sum is there in backward alone.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a
use_portable

cpus 8 >"$tmp/eight"
base="--devices $tmp/eight --set train.batch.global=16 --set train.batch.groups=8 --set train.steps=4 --schedule 1f1b"
shard="--set train.shard=optimizer" less="--set train.shard=gradients"
least="--set train.shard=parameters"

# same WHAT OPTION...: one replica that shares nothing, against several that do: `replicas,stages,what they share`
same() {
    what=$1
    shift
    model=$1
    shift
    want=$(facts one "$model" $base "$@" --stages 1)
    case $want in *one:*) fault "$what: $want"; return ;; esac
    for plan in $plans; do
        stages=${plan#*,}
        got=$(facts many "$model" $base "$@" --set train.shard=${plan##*,} --replicas ${plan%%,*} --stages ${stages%,*})
        if [ "$got" = "$want" ]; then pass; else fault "$what, $plan: $got, not $want"; fi
    done
}
gpt=$models/tiny-gpt.yaml
plans="1,1,parameters 2,1,optimizer 4,2,parameters 8,1,gradients" same "AdamW" "$gpt"
plans="8,1,gradients 4,1,optimizer" same "no norm" "$gpt" --set train.clip_norm=0
plans="4,2,parameters" same "a norm each" "$gpt" --set train.clip_scope=parameter
plans="4,1,optimizer" same "SGD" "$gpt" --set "train.optimizer={type: sgd, lr: 0.1, momentum: 0.9}"
plans="8,1,gradients" same "Nesterov" "$gpt" --set "train.optimizer={type: sgd, lr: 0.1, momentum: 0.9, nesterov: true}"
plans="2,1,parameters" same "RMSprop, centred" "$gpt" --set \
    "train.optimizer={type: rmsprop, lr: 0.001, momentum: 0.9, centered: true}"
plans="4,2,optimizer" same "RMSprop" "$gpt" --set "train.optimizer={type: rmsprop, lr: 0.001, momentum: 0.9}"
# A stage of a Gelu alone has no parameter, nothing to reduce and nothing to clip; attention, dropout and sum likewise
for cuts in 8,9 ${SLOW:+2,3 4,6}; do
    want=$(facts one "$gpt" $base --stages 1) got=$(facts many "$gpt" $base $shard --replicas 2 --stages 3 --cuts $cuts)
    if [ "$got" = "$want" ]; then pass; else fault "a stage without parameters, cuts $cuts: $got, not $want"; fi
    [ $cuts = 8,9 ] || continue
    expect "that stage has none" sh -c '! grep -q "  parameter" "$1/stage1.h" && grep -q gelu_forward "$1/stage1.c"' sh \
        "$tmp/many"
done
# What a chunk has added up leaves before the next one begins backward; ties on two stages, of which a part comes home
plans="2,2,gradients 2,2,parameters" same "breadth-first" "$gpt" --set train.batch.groups=2 --schedule breadth-first \
    --set plan.chunks=2 --set plan.buckets=4
use_bf16
plans="2,2,parameters 8,1,gradients" same "bf16" "$gpt" --set train.precision.compute=bf16
evals=yes   # each micro-batch of an evaluation has rooms of its own
plans="2,2,parameters" same "bf16, interleaved" "$gpt" --set train.precision.compute=bf16 --schedule interleaved \
    --set plan.chunks=2 --set 'data.eval={format: bytes, files: "*", tokens: tokens, next: targets, every: 2, batches: 2}'
evals=
use_portable

# A room is filled twice in a row, and one of two devices is a whole exchange in front of the other
expect "rooms and interleaved-zb" ./dpgen plan $models/images.yaml --replicas 2 --stages 2 --set train.batch.groups=2 \
    --set train.shard=parameters --schedule interleaved-zb --estimate

# Checkpoints: bytes, and each goes on as the other.
saves() {
    name=$1
    shift
    said=$(generate "$tmp/$name" "$gpt" $base "$@" && compile "$tmp/$name" &&
        $start "$tmp/$name/job" --quiet --steps 2 --data "$data" --checkpoint "$tmp/$name.saved" 2>&1) || fault "$name: $said"
    saved "$name"
}
saved() { (cd "$tmp/$1.saved/step-000002" && cat stage*.safetensors | sha256sum); }
goes_on() {
    rm -rf "$tmp/from"
    cp -r "$tmp/$2.saved" "$tmp/from"
    "$tmp/$1/job" --quiet --hash --resume --data "$data" --checkpoint "$tmp/from" 2>&1 | sed -n 's/^sha256 //p'
}
want=$(saves plain --stages 1)
[ "$(saves r2 $shard --stages 1 --replicas 2)" = "$want" ] && pass || fault "checkpoint of 2 replicas"
[ "$(saves r8 $least --stages 1 --replicas 8)" = "$want" ] && pass || fault "checkpoint of 8 replicas with parts of parameters"
want=$(goes_on plain plain)
for pair in "plain r8" "r8 plain" "r2 r8"; do
    [ -n "$want" ] && [ "$(goes_on $pair)" = "$want" ] && pass || fault "$pair do not go on alike"
done

# Two processes write into one file, over MPI; what another width has written goes on there.
if over_mpi 2 2; then
    [ "$(saves ranks $least --stages 1 --replicas 2 --set plan.transport=mpi)" = "$(saved plain)" ] && pass ||
        fault "checkpoint of two processes"
    rm -rf "$tmp/from"
    cp -r "$tmp/r8.saved" "$tmp/from"
    got=$($start "$tmp/ranks/job" --quiet --hash --resume --data "$data" --checkpoint "$tmp/from" 2>&1 | sed -n 's/^sha256 //p')
    [ "$got" = "$want" ] && pass || fault "two processes go on otherwise: $got, not $want"
    if turn_mpi "$tmp/ranks"; then
        rm -rf "$tmp/from"
        cp -r "$tmp/r8.saved" "$tmp/from"
        got=$($start "$tmp/ranks/job" --quiet --hash --resume --data "$data" --checkpoint "$tmp/from" 2>&1 |
            sed -n 's/^sha256 //p')
        [ "$got" = "$want" ] && pass || fault "two processes, $other_mpi, go on otherwise: $got, not $want"
    fi
    use_portable
fi

# Moments: those of one replica, divided, but for whole blocks of short ones; and refusals.
moments() {
    ./dpgen plan "$gpt" $base --estimate --stages 1 "$@" -d m 2>&1 |
        awk '/^buf 0:[^ ]*\.[mv] / { name = $2; sub(/.* bytes=/, ""); own[name] = $1 }
            END { for (name in own) n += own[name]; print n }'
}
all=$(moments)
for r in 2 4 8; do
    own=$(moments $shard --replicas $r)
    [ "$own" -le $((all / r + all / 100)) ] && [ "$own" -ge $((all / r - all / 100)) ] && pass ||
        fault "$r replicas: moments of $own of $all"
done
# What stays of a gradient is as large as a moment.  The sum of it is there from the first backward on: what is alive then has
# place for it, and before that has it not.
life() { ./dpgen plan "$gpt" $base --estimate --stages 1 --replicas 8 --schedule gpipe --recompute none "$@" -d m 2>&1; }
parts=$(life $less | awk '/^buf 0:[^ ]*grad[^ ]*_part / { sub(/.* bytes=/, ""); n += $1 } END { print n }')
twice=$(life $less | awk '/^buf 0:[^ ]*\.m / { sub(/.* bytes=/, ""); n += $1 } END { print n }')
uses=$(life $less | awk '/^buf 0:wte[^ ]*\.m / { sub(/.* bytes=/, ""); print $1 }')
[ "$parts" = $((twice + uses)) ] && pass || fault "parts of gradients have $parts bytes, moments $twice, of a tie $uses"
# Breadth-first needs most at the end of forward: the arena is smaller by all sums, to the byte.
deep="--stages 2 --replicas 2 --set train.batch.groups=2 --schedule breadth-first --set plan.chunks=2 --recompute none"
deep() { ./dpgen plan "$gpt" $base --estimate $deep "$@" -d m 2>&1; }
arena() { sed -n 's/^device 0 .* arena=\([0-9]*\).*/\1/p' | tail -n 1; }
sums=$(deep $less | awk '/^buf 0:[^ ]*\.grad\.[0-9]* / { sub(/.* bytes=/, ""); n += int(($1 + 63) / 64) * 64 }
    /^dpgen-plan/ { n = 0 } END { print n }')
[ "$sums" -gt 0 ] && [ $(($(deep $shard | arena) - $(deep $less | arena))) = "$sums" ] && pass ||
    fault "breadth-first: arenas of $(deep $shard | arena) and $(deep $less | arena), sums of $sums"
# ... and a plan is found under the limit that it needs
said=$(./dpgen plan "$gpt" $base --estimate $deep $less --limit "$(deep $less | arena)" 2>&1) && pass ||
    fault "its own limit: $said"
# Parameters, on paper: 4 n / r of each all the time; a room of 4 n in f32, of 2 n in bf16.  Breadth-first fills it
# twice, interleaved no more than twice for each group of micro-batches, and one chunk a device once.
bytes() { sed -n "s/^buf 0:$1 .* bytes=\([0-9]*\) .*/\1/p" "$tmp/deep" | tail -n 1; }
fills() { grep -c "^action $1 kind=room .*state=$2 " "$tmp/deep"; }
deep $least >"$tmp/deep"
n=$((24 * 72))
[ "$(bytes h.0.attn.c_attn.weight)" = $((4 * n / 2)) ] && [ "$(bytes h.0.attn.c_attn.weight_room)" = $((4 * n)) ] && pass ||
    fault "f32: $(bytes h.0.attn.c_attn.weight) bytes, a room of $(bytes h.0.attn.c_attn.weight_room)"
[ "$(fills 0 h.0.attn.c_attn.weight)" = 2 ] && pass || fault "$(fills 0 h.0.attn.c_attn.weight) sessions of a step"
deep $least --set train.precision.compute=bf16 --schedule interleaved --set plan.group=2 >"$tmp/deep"
[ "$(bytes h.0.attn.c_attn.weight)" = $((4 * n / 2)) ] && [ "$(bytes h.0.attn.c_attn.weight.copy_room)" = $((2 * n)) ] &&
    pass || fault "bf16: $(bytes h.0.attn.c_attn.weight) bytes, a room of $(bytes h.0.attn.c_attn.weight.copy_room)"
[ "$(fills 0 h.0.ln_1.weight)" -le 4 ] && pass || fault "interleaved: $(fills 0 h.0.ln_1.weight) sessions of 2 groups"
deep $least --schedule gpipe --set plan.chunks=1 >"$tmp/deep"
[ "$(fills 0 h.0.attn.c_attn.weight)" = 1 ] && pass || fault "one chunk: $(fills 0 h.0.attn.c_attn.weight) sessions"
[ "$(deep $least | arena)" -lt "$(deep $less | arena)" ] && pass || fault "rooms of two chunks are there at once"
refuse "two directions" 3 'train.shard' ./dpgen plan "$gpt" $base $shard --stages 2 --schedule chimera --estimate
refuse "an evaluation that replicas cannot share" 3 'set data.eval.batches to 4' ./dpgen plan "$gpt" $base $least --replicas 2 \
    --set 'data.eval={format: bytes, files: "*", tokens: tokens, next: targets, batches: 3}' --estimate --stages 1
refuse "parameters in parts on GPUs" 3 '.^* train.shard: gradients' ./dpgen "$gpt" $base $least --replicas 2 --stages 1 \
    --set 'devices=[{name: g, kind: cuda, memory: 1GiB, count: 2}]' --set plan.transport=nccl --estimate -o "$tmp/gpus"
refuse "a step ahead" 3 'train.shard' ./dpgen plan "$gpt" $base $shard --stages 2 --schedule 2bw --estimate
finish
