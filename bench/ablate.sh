#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What each move of the search earns: the cases of bench/corpus and random questions under limits, planned with one move off.
#
#   bench/ablate.sh [-n QUESTIONS] [-s SEED] [-o LINES] [MOVE...]
#
# A copy of the source is built with another gen/moves.h: the environment names moves that are off, and each one that is met
# is written.  A question is planned with all moves.  Then it is planned once more for each move that it met.  A line of LINES:
# move, step with it and without it in ns, seconds likewise, the question; a step of 0 is no plan.  The table: move, questions
# that met it, those whose step it makes shorter and by how much at most, those that have a plan by it, and those whose step it
# makes longer.  Processor seconds are of all its questions, with it and without it.
cd "$(dirname "$0")/.." || exit 2
export LC_ALL=C
n=100 seed=1 out=
while getopts n:s:o: option; do
    case $option in
        n) n=$OPTARG ;; s) seed=$OPTARG ;; o) out=$OPTARG ;;
        *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$tmp/source" "$tmp/untied"
tar cf - --exclude='*.o' Makefile gen rt verify tools templates devices LICENSE | tar xf - -C "$tmp/source"
cat >"$tmp/source/gen/moves.h" <<'MOVES'
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline bool move_is_on(const char *name)
{
    const char *off = getenv("DPGEN_OFF");
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    fprintf(stderr, "move %s\n", name);
    return !off || !strstr(off, word);
}
MOVES
make -s -C "$tmp/source" -j2 dpgen || exit 2
for file in examples/*.yaml; do sed 's/, tie: [a-z_.]*//' "$file" >"$tmp/untied/${file#*/}"; done
set -f

# plan OFF QUESTION: step in ns, 0 for none, and processor seconds; the moves that it met stand in $tmp/met
plan() {
    (ulimit -t 120
     DPGEN_OFF=" $1 " exec /usr/bin/time -q -o "$tmp/cost" -f '%U %S' "$tmp/source/dpgen" plan $2 --estimate --json) \
        </dev/null >"$tmp/plan" 2>"$tmp/said"
    sed -n 's/^move //p' "$tmp/said" | sort -u >"$tmp/met"
    awk '/"step_ns"/ && step == "" { match($0, /"step_ns": [0-9]+/); step = substr($0, RSTART + 11, RLENGTH - 11) }
        FILENAME ~ /cost$/ && NF == 2 { seconds = $1 + $2 }
        END { print (step == "" ? 0 : step), seconds + 0 }' "$tmp/cost" "$tmp/plan"
}

# limited QUESTION SHARE: with a limit, between the least that is promised and what it takes without one
limited() {
    most=$("$tmp/source/dpgen" plan $1 --estimate --json 2>/dev/null </dev/null |
        sed -n 's/.*"arena_bytes": *\([0-9]*\).*/\1/p' | sort -n | tail -n 1)
    least=$("$tmp/source/dpgen" plan $1 --estimate --limit 1064MiB 2>&1 </dev/null |
        sed -n 's/.*fits: --limit \([0-9]*\)\([KMG]\)iB.*/\1 \2/p' |
        awk '{ printf "%d", $1 * ($2 == "K" ? 1 / 1024 : $2 == "G" ? 1024 : 1) + 0.999 }')
    [ -n "$most" ] && [ -n "$least" ] &&
        awk -v q="$1" -v least="$least" -v most="$most" -v share="$2" 'BEGIN {
            most = most / 1048576 + 1056
            printf "%s --limit %dMiB\n", q, (most > least ? least + share * share * (most - least) + 1 : least) }'
}

sed -e '/^#/d' -e '/^$/d' -e :again -e '/\\$/N; s/\\\n/ /; t again' bench/corpus/cases | sed 's/^[^ ]* *//' |
    sed "s|^untied/|$tmp/untied/|" >"$tmp/questions"
bench/questions.sh -n "$n" -s "$seed" >"$tmp/drawn"
i=0
while read -r question; do
    i=$((i + 1))
    limited "$question" "0.$((i * 37 % 100))"
done <"$tmp/drawn" >>"$tmp/questions"
while read -r question; do
    with=$(plan "" "$question")
    name=$(echo "$question" | sed "s|$tmp/||")
    cp "$tmp/met" "$tmp/moves"
    while read -r move; do
        case " $* " in "  " | *" $move "*) ;; *) continue ;; esac
        without=$(plan "$move" "$question")
        echo "$move ${with% *} ${without% *} ${with#* } ${without#* } $name"
    done <"$tmp/moves"
done <"$tmp/questions" >"${out:-$tmp/lines}"
awk '{ met[$1]++; was[$1] += $4; is[$1] += $5
       if ($2 == $3) next
       gain = $3 == 0 ? "a plan" : $2 == 0 ? "-" : ($3 - $2) / $2 * 100
       if ($2 != 0 && ($3 == 0 || $3 > $2)) {
           earns[$1]++
           if (gain == "a plan") plans[$1]++
           else if (gain > most[$1]) most[$1] = gain
       }
       else costs[$1]++ }
    END { printf "%-14s %5s %6s %8s %6s %6s %9s %9s\n", "move", "met", "earns", "most", "plans", "costs", "s with", "s without"
          for (m in met) printf "%-14s %5d %6d %7.2f%% %6d %6d %9.1f %9.1f\n", m, met[m], earns[m], most[m], plans[m], costs[m],
              was[m], is[m] }' "${out:-$tmp/lines}" | sort
