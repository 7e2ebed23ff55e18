#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Arenas are at most 3 % above the bytes alive at once, or proven optimal (docs/planning.md, Memory): every model, on one to
# four devices, with recomputation, offload, several chunks a device, replicas and steps that overlap.  The order of the
# four numbers of plan.json is checked too: bytes alive <= what is proven <= without pools <= arena.
. "$(dirname "$0")/lib.sh"
need dpgen

# height NAME OPTION...
height() {
    what=$1
    shift
    ./dpgen plan "$@" --estimate --json >"$tmp/plan" 2>"$tmp/said" || { fault "$what: $(head -n 1 "$tmp/said")"; return; }
    grep -o '"[a-z]*_bytes": [0-9]*' "$tmp/plan" | tr -d '":' | awk '
        $1 == "arena_bytes" { arena = $2 }
        $1 == "bound_bytes" { bound = $2 }
        $1 == "proven_bytes" { proven = $2 }
        $1 == "unpooled_bytes" {
            if (proven < bound || arena < proven || ($2 && ($2 < proven || $2 > arena)))
                printf "device %d: %.0f alive, %.0f proven, %.0f without pools, arena %.0f; ", n, bound, proven, $2, arena
            if (arena > bound * 1.03 && arena > proven)
                printf "device %d: arena %.0f, %.1f %% above %.0f; ", n, arena, 100 * (arena - bound) / bound, bound
            n++
        }
        END { if (!n) printf "no device" }' >"$tmp/high"
    if [ -s "$tmp/high" ]; then fault "$what: $(cat "$tmp/high")"; else pass; fi
}

m=$models x=$root/examples
large="--set devices.0.memory=180GiB --set devices.0.count=4"
for name in tiny-gpt tiny-bert tiny-t5 branches ops; do
    for n in 1 2 4; do
        height "$name, $n stages" "$m/$name.yaml" --stages $n --schedule 1f1b
    done
    height "$name, gpipe" "$m/$name.yaml" --stages 4 --schedule gpipe
    height "$name, recomputed" "$m/$name.yaml" --stages 3 --schedule gpipe --recompute full
    height "$name, offloaded" "$m/$name.yaml" --stages 2 --schedule 1f1b --offload "['*']"
    height "$name, a V" "$m/$name.yaml" --stages 2 --set 'plan.map=[0, 1, 1, 0]' --schedule 1f1b
    height "$name, replicas" "$m/$name.yaml" --stages 2 --replicas 2 --set train.batch.groups=2 --schedule 1f1b
done
for name in mlp scalar; do
    height "$name" "$m/$name.yaml" --stages 2
done
for name in bert-base bert-large gpt2-124m gpt2-355m gpt2-774m t5-small t5-large bytes-gpt; do
    height "$name" "$x/$name.yaml" --stages 4 --schedule 1f1b $large
done
for name in t5-small bert-large; do
    height "$name, a V" "$x/$name.yaml" --stages 4 --set 'plan.map=[0, 1, 2, 3, 3, 2, 1, 0]' --schedule 1f1b $large
done
height "bytes-gpt, two chunks" "$x/bytes-gpt.yaml" --stages 2 --set plan.chunks=2 --schedule 1f1b $large
for n in 2 3; do
    height "bytes-gpt, 2bw, $n stages" "$x/bytes-gpt.yaml" --stages $n --schedule 2bw --set train.clip_scope=parameter $large
done
height "bytes-gpt, pipedream" "$x/bytes-gpt.yaml" --stages 2 --schedule pipedream --set train.clip_scope=parameter \
    --set train.batch.micro=8 --set train.batch.global=8 $large

# Arenas that nobody has: slots of 64 bytes are more than an int counts
expect "an arena of half a TiB" ./dpgen plan "$x/gpt2-774m.yaml" --devices devices/a100-40gb.yaml --estimate --stages 8 \
    --schedule 1f1b --recompute none --planner even --limit 16TiB --set train.batch.micro=128 \
    --set train.batch.global=2048 --json

# What a trial has met before is not made again (gen/lower/seen.c); under -d it is
met() {
    set -- "$@" --estimate --schedule 1f1b --stages 2 --recompute auto
    new=$(./dpgen plan "$@" -d a | grep -o 'step=[0-9]*' | head -n 1)
    old=$(./dpgen plan "$@" --json | grep -o '"step_ns": [0-9]*')
    if [ -n "$new" ] && [ "${new#*=}" = "${old#* }" ]; then pass; else fault "$*: $new when made anew, $old when met"; fi
}
for limit in 25 27 29 32; do
    met "$x/bytes-gpt.yaml" --limit ${limit}MiB
done
for limit in 100 107 115; do
    met "$m/tiny-t5.yaml" --limit ${limit}KiB
done

# What a reader is told
if ./dpgen plan "$m/scalar.yaml" --stages 1 --estimate | grep -q '^  packing proven optimal: '; then pass
else fault "dpgen plan does not say that an arena is proven optimal"; fi
finish
