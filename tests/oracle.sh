#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The differential hunt: random models under random plans.  What dpgen-verify has proved must have the hash that the
# interpreter of graphs (interp.c) computes, whenever messages and copies complete (oracle_link.c).  What it has not proved is
# a fault too.  Random differential testing of compilers (Yang et al., Finding and Understanding Bugs in C Compilers, 2011)
# wants a second compiler.  Here the second opinion is a proof, so each case judges both.  A case is a line of words
# (oracle.awk).  One that fails loses words as long as it fails, and is printed as a command.
#
#   tests/oracle.sh [COUNT [SEED]]     50 cases; 1000 with SLOW=1, which go on where the last such run stopped
#   tests/oracle.sh 'WORDS'            this case
. "$(dirname "$0")/lib.sh"
need dpgen dpgen-verify build/librt.a build/librt_bf16.a build/interp build/interp_bf16
went=$root/build/oracle.next words= plant=
[ -z "$SLOW" ] || count=1000 from=$(cat "$went" 2>/dev/null)
case ${1:-} in *[!0-9]*) words=$1 ;; *) count=${1:-${count:-50}} from=${2:-${from:-1}} ;; esac
linker=$cc
$cc $flags ${LDFLAGS:-} -O1 -pthread -c -o "$tmp/link.o" tests/oracle_link.c || { fault "tests/oracle_link.c"; finish; }
wrapped="-Wl,--wrap=link_begin,--wrap=link_wait,--wrap=offload_begin,--wrap=fetch_begin,--wrap=copy_wait"

# verdict DIR WORDS: none: dpgen has no plan for it; right; or what is wrong
verdict() {
    d=$1
    rm -rf "$d"
    mkdir "$d"
    awk -f tests/oracle.awk -v words="$2" >"$d/case"
    sed '/^---$/,$d' "$d/case" >"$d/m.yaml"
    sed '1,/^---$/d' "$d/case" >"$d/options"
    patience=20
    case " $2 " in *" bf16 "*) use_bf16; interpreter=build/interp_bf16 ;; *) use_portable; interpreter=build/interp ;; esac
    linker=$cc more=
    all= shared=
    while read -r option; do
        case $option in =*) shared="$shared $(quoted "${option#=}")" ;; esac
        all="$all $(quoted "${option#=}")"
    done <"$d/options"
    eval "./dpgen \"$d/m.yaml\" --planner even --estimate -o \"$d/out\" $all" >"$d/said" 2>&1
    status=$?
    ! grep -q 'has no plan that can be built' "$d/said" || status=4         # another planner has
    case $status in
        0) ;;
        2 | 3 | 4) echo "none: $(sed -n "s/.*error: //p; s/.*dpgen: //p" "$d/said" | head -n 1)"; return ;;
        *) echo "dpgen: $(grep -m 1 -e verify -e bug "$d/said")"; return ;;
    esac
    want=$(eval "$interpreter \"$d/m.yaml\" $shared --steps 3 --data \"$data\" --hash" 2>"$d/said" | sed -n 's/^sha256 //p')
    [ ${#want} = 64 ] || { echo "the interpreter: $(tail -n 1 "$d/said")"; return; }
    if [ -n "$plant" ]; then
        mv "$d/out/stage1.c" "$d/stage1.c"
        sed "$plant" "$d/stage1.c" >"$d/out/stage1.c"
    fi
    more=$wrapped with="$tmp/link.o $with"
    said=$(compile "$d/out")
    [ -z "$said" ] || { echo "$said"; return; }
    for when in early late $(echo "$2" | cksum | cut -d ' ' -f 1); do
        said=$(ORACLE=$when job_hash "$d/out" --steps 3 --fill 0xFF)
        [ "$said" = "$want" ] || { echo "$when: $(printf %.60s "$said"), not $(printf %.12s "$want")"; return; }
    done
    echo right
}
quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

# smaller WORDS: without each word that it need not have to fail
smaller() {
    rest=$1
    for word in $1; do
        less=$(echo " $rest " | awk -v w="$word" '{ i = index($0, " " w " ")
            print substr($0, 1, i) substr($0, i + length(w) + 1) }')
        case $(verdict "$tmp/small" "$less") in right | none:*) ;; *) rest=$less ;; esac
    done
    echo $rest
}

if [ -n "$words" ]; then
    said=$(verdict "$tmp/case" "$words")
    case $said in right | none:*) pass; echo "$suite: $said" ;; *) fault "$said" ;; esac
    finish
fi
# What this hunt has found; and a call in front of a wait, which is seen where messages are late
for words in 'M=4 bf16 shard' 'lin attn tensor=2 blocks=2' 'M=4 freeze groups=2 replicas=2 shard' \
    'M=4 bf16 freeze stages=2 schedule=2bw'; do
    said=$(verdict "$tmp/case" "$words")
    if [ "$said" = right ]; then pass; else fault "$words: $said"; fi
done
plant='/wait, received.*micro-batch 0/{h;d;}; /forward.*micro-batch 0/G'
said=$(verdict "$tmp/case" 'D=16 M=4 mlp stages=2 schedule=1f1b')
case $said in early:* | late:* | *"loss is not finite"*) pass ;; *) fault "a call in front of a wait: $said" ;; esac
plant=
for worker in $(seq "$cores"); do
    next=$((from + worker - 1)) end=$((from + count))
    while [ $next -lt $end ]; do
        drawn=$(awk -f tests/oracle.awk -v seed=$next)
        echo "$next $(verdict "$tmp/case.$worker" "$drawn")"
        next=$((next + cores))
    done >"$tmp/result.$worker" &
done
wait
cat "$tmp"/result.[0-9]* | sort -n >"$tmp/all"
passed=$((passed + $(grep -c ' right$' "$tmp/all")))
grep -v -e ' right$' -e '^[0-9]* none:' "$tmp/all" | head -n 3 | while read -r seed said; do
    echo "$suite: seed $seed: $said" >&2
    echo "$suite: tests/oracle.sh '$(smaller "$(awk -f tests/oracle.awk -v seed="$seed")")'" >&2
done
failed=$((failed + $(grep -v -c -e ' right$' -e '^[0-9]* none:' "$tmp/all")))
right=$(grep -c ' right$' "$tmp/all")
[ $((3 * right)) -ge "$count" ] && pass || fault "of $count cases dpgen has plans for $right"
echo "$count cases from seed $from on: $right have plans"
[ -z "${WHY:-}" ] || sed -n "s/^[0-9]* none: //p" "$tmp/all" | sort | uniq -c | sort -rn | head -n "$WHY"
[ -z "$SLOW" ] || [ "$failed" -gt 0 ] || echo $((from + count)) >"$went"
finish
