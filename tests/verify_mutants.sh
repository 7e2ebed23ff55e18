#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# One random fault in one stage of a folder (verify_mutant.awk), and what dpgen-verify says of it.  A mutant that it proves has
# the bits of the folder that dpgen wrote, from arenas full of 0xFF: some of those are compiled and run.  Most are refused, and
# each with a status of docs/verify.md.  A second program, verify_twin.c, says the same of each.
#
#   tests/verify_mutants.sh [COUNT [SEED]]    130 mutants; 10000 with SLOW=1, which go on where the last such run stopped
#   ONLY=FOLDER                             of that folder alone
. "$(dirname "$0")/lib.sh"
need dpgen dpgen-verify build/emitted build/librt.a build/verify_twin.o
use_portable
went=$root/build/verify_mutants.next
[ -z "$SLOW" ] || count=10000 from=$(cat "$went" 2>/dev/null)
count=${1:-${count:-130}} from=${2:-${from:-1}}
kinds="shift swap skip wait micro peer shrink acc slot tag number double order"
ran=100                         # of a hundred mutants that are proved, so many are run
asked=4                         # the twin is asked about every fourth
[ "$count" -lt 1000 ] || { ran=35 asked=1; }

# twin DIR SOURCE...: compiles the sources, links them with build/verify_twin.o and what DIR has of others, and runs that: a sum
# of all that the step leaves, or why it is refused.  Transports, formats and answers of kernels are not there, nor asked for.
twin() {
    to=$1
    shift
    for source in "$@"; do
        ${quick:-$cc} -w -I. -Irt -Irt/op -c -o "$to/$(basename "$source" .c).o" "$source" || return
    done
    $cc -no-pie -Wl,--unresolved-symbols=ignore-all -z noexecstack -o "$to/job" "$to"/*.o build/verify_twin.o && "$to/job"
}

# ---- folders: all kinds of lines that a stage may have
sed 's/, tie: wte//' "$models/tiny-gpt.yaml" >"$tmp/untied.yaml"
sed 's/D: 24, H: 3/D: 32, H: 4/; s/count: 4/count: 8/' "$models/tiny-gpt.yaml" >"$tmp/wide.yaml"
mkdir "$tmp/places"
base() {        # NAME MODEL OPTION...
    name=$1
    shift
    [ "${ONLY:-$name}" = "$name" ] || return 0
    said=$(generate "$tmp/$name" "$@" --set train.batch.global=8 --set train.steps=3 && compile "$tmp/$name" &&
        job_hash "$tmp/$name" --fill 0xFF)
    if [ ${#said} = 64 ]; then pass; else fault "$name: $said"; finish; fi
    echo "$said" >"$tmp/$name.hash"
    mkdir "$tmp/$name.twin"
    twin "$tmp/$name.twin" "$tmp/$name"/*.c >"$tmp/$name.sum" 2>&1 && pass ||
        fault "$name: its twin: $(head -n 1 "$tmp/$name.sum")"
    for stage in $(stages "$tmp/$name"); do
        awk -f tests/verify_mutant.awk "$stage" >"$tmp/places/$name.$(basename "$stage" .c)"
    done
}
base 1f1b "$models/tiny-gpt.yaml" --stages 2 --schedule 1f1b
base again "$models/tiny-gpt.yaml" --stages 2 --schedule gpipe --recompute full
base shard "$models/tiny-gpt.yaml" --stages 2 --schedule 1f1b --replicas 2 --set train.batch.groups=4 \
    --set train.shard=optimizer
base away "$models/tiny-gpt.yaml" --stages 1 --schedule gpipe --offload "['*']"
base zb-v "$models/tiny-gpt.yaml" --stages 2 --schedule zb-v --set plan.chunks=2
base team "$tmp/wide.yaml" --stages 2 --schedule 1f1b --set train.blocks=4 --set plan.tensor=2
base rows "$tmp/wide.yaml" --stages 2 --schedule 1f1b --set train.blocks=4 --set plan.tensor=2 --set plan.positions=divided
base 2bw "$tmp/untied.yaml" --stages 2 --schedule 2bw --set train.clip_scope=parameter
base pipedream "$tmp/untied.yaml" --stages 3 --schedule pipedream --set train.clip_scope=parameter

# one SEED DIR: a line `FAULT VERDICT`; of the stages that have a place for that fault, one; of its places, one
one() {
    seed=$1 d=$2 what=$(echo $kinds | cut -d ' ' -f $(($1 % 13 + 1)))
    set -- $(awk -v s="$seed" -v what="$what" '$1 == what && $2 { list[n++] = FILENAME " " $2 }
        END { srand(s); split(list[int(rand() * n)], w, " "); print w[1], int(rand() * w[2]) + 1, int(rand() * 100) }' \
        "$tmp"/places/*)
    of=${1##*/} place=$2 drawn=$3
    name=${of%.*} stage=${of##*.} which="$what $place in $stage of ${of%.*}, seed $seed"
    rm -rf "$d"
    mkdir "$d"
    ln -s "$tmp/$name"/*.c "$tmp/$name"/*.h "$tmp/$name"/model.graph "$tmp/$name"/rt "$d"
    rm "$d/$stage.c"
    awk -f tests/verify_mutant.awk -v kind="$what" -v at="$place" "$tmp/$name/$stage.c" >"$d/$stage.c" ||
        { echo "$what wrong: $which: no such place"; return; }
    ./dpgen-verify --edited "$d" >"$d.said" 2>&1
    status=$?
    same=refused
    rm -rf "$d.twin"
    mkdir "$d.twin"
    if [ $((seed % asked)) -gt 0 ]; then
        [ $status -gt 0 ] || same=proved
    else
        ln -s "$tmp/$name.twin"/*.o "$d.twin"
        rm "$d.twin/$stage.o"
        twin "$d.twin" "$d/$stage.c" >"$d.sum" 2>&1 && cmp -s "$d.sum" "$tmp/$name.sum" && same=proved
    fi
    # a slot behind its table: C gives it no meaning, and a compiler some bytes
    ! grep -q -e 'a slot that the table has not' -e ': slot [0-9]* of [a-z]*_slot: there are' "$d.said" || same=refused
    case $status.$same in
        [13].refused) echo "$what refused"; return ;;
        0.proved) ;;
        [013].*) echo "$what wrong: $which: status $status, and its twin: $same: $(head -n 1 "$d.sum")"; return ;;
        *) echo "$what wrong: $which: status $?: $(head -n 1 "$d.said")"; return ;;
    esac
    [ "$drawn" -lt "$ran" ] || { echo "$what proved"; return; }
    said=$(compile "$d" && job_hash "$d" --fill 0xFF)
    if [ "$said" = "$(cat "$tmp/$name.hash")" ]; then echo "$what proved run"
    else echo "$what wrong: $which: proved, and has other bits: $said"; fi
}

for worker in $(seq "$cores"); do
    next=$((from + worker - 1)) end=$((from + count))
    while [ $next -lt $end ]; do
        one $next "$tmp/mutant.$worker"
        next=$((next + cores))
    done >"$tmp/result.$worker" &
done
wait
cat "$tmp"/result.[0-9]* >"$tmp/all"
grep ' wrong: ' "$tmp/all" | head -n 5 | while read -r line; do echo "$suite: ${line#*: }" >&2; done
failed=$((failed + $(grep -c ' wrong: ' "$tmp/all")))
passed=$((passed + $(grep -c -v ' wrong: ' "$tmp/all")))
tried=$(grep -c -v ' none$' "$tmp/all") proved=$(grep -c ' proved' "$tmp/all") run=$(grep -c ' run$' "$tmp/all")
[ $((100 * proved)) -le $((30 * tried)) ] && pass || fault "$proved of $tried mutants are proved"
[ "$run" -gt 0 ] && pass || fault "none was run"
for kind in $kinds; do
    n=$(grep -c "^$kind [^n]" "$tmp/all") refused=$(grep -c "^$kind refused" "$tmp/all")
    [ "$refused" -gt 0 ] && [ "$n" -ge $((count / 25)) ] && pass || fault "$kind: $n, $refused refused"
done
echo "$tried mutants from seed $from on: $proved proved, $run of these run"
[ "$count" -lt 1000 ] || awk '{ n[$1]++; proved[$1] += / proved/; run[$1] += / run$/ }
    END { for (k in n) printf "  %-7s %5d tried %5d proved %4d run\n", k, n[k], proved[k], run[k] }' "$tmp/all" | sort
[ -z "$SLOW" ] || [ "$failed" -gt 0 ] || echo $((from + count)) >"$went"
finish
