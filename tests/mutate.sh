#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The front door under wrong files: the models of this tree with a few bytes, numbers, words or lines changed (mutate.c).
# dpgen may plan them (0), explain what is wrong (3), or what does not fit (4); it may not crash, call itself broken (70), take
# more than SECONDS_EACH of the processor, or say nothing.
#
#   tests/mutate.sh [COUNT [SEED]]    120 files, 20000 with SLOW=1
#
# DPGEN: the program, best one with -fsanitize=address,undefined, leaks ignored: a mistake ends it where it stands.
. "$(dirname "$0")/lib.sh"
need dpgen
dpgen=${DPGEN:-./dpgen} seconds=${SECONDS_EACH:-20}
$cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/mutate" tests/mutate.c || finish
kept=$root/build/mutate_failed
[ -z "$SLOW" ] || count=20000
count=${1:-${count:-120}} from=${2:-1}
# those at the size of papers are the small ones again, with larger numbers: minutes a plan where a count is mutated
large='large|355m|774m|amoebanet|densenet|inception|efficientnet|llama|qwen|gemma|phi-2|opt-|vgg'
set -- $(ls examples/*.yaml | grep -v -E "$large") tests/models/*.yaml tests/fuzz/*.yaml

# one SEED DIR MODEL OTHER: `pass`, or `fail` and, on standard error, what is wrong
one() {
    case $(($1 % 3)) in 0) verb=check ;; *) verb=plan ;; esac
    "$tmp/mutate" "$1" "$3" "$4" >"$2/m.yaml"
    (ulimit -t "$seconds"; exec timeout 600 "$dpgen" $verb "$2/m.yaml") >"$2/out" 2>"$2/err"
    status=$?
    case $status in
        0) echo pass; return ;;
        3 | 4) if [ -s "$2/err" ]; then echo pass; return; else why=silence; fi ;;
        124 | 137 | 152) why="more than $seconds s of the processor" ;;
        *) why=$(grep -m 1 -e 'ERROR' -e 'runtime error' -e 'a bug in' "$2/err" || tail -n 1 "$2/err") ;;
    esac
    mkdir -p "$kept"
    cp "$2/m.yaml" "$kept/$1.yaml"
    echo fail
    echo "$suite: status $status: $verb build/mutate_failed/$1.yaml: $why" >&2
}

for worker in $(seq "$cores"); do
    mkdir -p "$tmp/$worker"
    seed=$((from + worker - 1))
    while [ $seed -lt $((from + count)) ]; do
        a=$((seed * 7 % $# + 1)) b=$((seed * 13 % $# + 1))
        eval "one $seed $tmp/$worker \${$a} \${$b}"
        seed=$((seed + cores))
    done >"$tmp/result.$worker" &
done
wait
cat "$tmp"/result.[0-9]* >"$tmp/all"
passed=$(grep -c '^pass' "$tmp/all")
failed=$(grep -c '^fail' "$tmp/all")
finish
