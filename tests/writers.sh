#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every field of a Plan has its writer: the comment behind the field begins with the pass, and no other pass or room assigns
# to it.  For each pass the compiler reads a plan.h where the fields of all others are const, and then the files of that pass.
# Not judged: text/plan.c, which reads plans from files; a copy in a local variable (with.m = ...); a struct written as a
# whole, which is new or belongs to the vector that holds it.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
pass=0 fail=0
ok() { if "$@"; then pass=$((pass + 1)); else fail=$((fail + 1)); echo "not so: $*"; fi; }

cat >"$tmp/const.awk" <<'AWK'
# plan.h as the pass `who` sees it: fields of others are const.  A field without a writer goes to `lost`.
BEGIN { n = split("Action Buf Pool HostBuf Call Routine DevicePlan Plan", name, " "); while (n) judged[name[n--]] = 1 }
function qualified(text,    at) {
    at = match(text, /[A-Za-z]/)
    if (text ~ /\*/) { gsub(/\*/, "*const ", text); return text }
    return at ? substr(text, 1, at - 1) "const " substr(text, at) : text
}
function field(line,    code, note, writer, part, n, i, out) {
    code = line
    sub(/\/\*.*/, "", code)
    if (open || code !~ /;/) return line
    note = substr(line, length(code) + 1)
    writer = note
    sub(/^\/\* */, "", writer)
    sub(/(:| *\*\/).*/, "", writer)
    n = split(writer, part, /, then /)
    for (i = 1; i <= n; i++)
        if (part[i] !~ /^(passes|order|part|keep|comm|lower|mem|sim|search|text|any)$/) { print line >lost; break }
    fields++
    for (i = 1; i <= n; i++)
        if (part[i] == who || part[i] == "any" && who != "none") return line
    n = split(code, part, ";")
    for (i = 1; i < n; i++) out = out qualified(part[i]) ";"
    return out " " note
}
/^typedef struct \{/ { held = 1; kept = 0 }
held { line[++kept] = $0 }
!held { print }
held && /^\} ?[A-Za-z]*;|^typedef struct \{.*\} [A-Za-z]*;/ {
    type = $0
    sub(/.*\} */, "", type)
    sub(/;.*/, "", type)
    open = 0
    for (i = 1; i <= kept; i++) {
        now = type in judged && i > 1 && i < kept ? field(line[i]) : line[i]
        print now
        open = line[i] ~ /\/\*/ && line[i] !~ /\*\// || open && line[i] !~ /\*\//
    }
    held = 0
}
END { print fields >count }
AWK

# pass_of FILE: the pass that a file of gen/ belongs to; none: it writes no plan.
pass_of() {
    case $1 in
        lower/sim.c) echo sim ;;
        plan/keep.c) echo keep ;;
        passes.c|plan/new.c) echo passes ;;
        sched/*) echo order ;;
        plan/*) echo part ;;
        list/*) echo comm ;;
        lower/*) echo lower ;;
        mem/*) echo mem ;;
        search/*) echo search ;;
        *) echo none ;;
    esac
}

# judge GEN: prints FILE:LINE of each assignment by another than the writer, fields without one, and what does not compile.
judge() {
    (cd "$1" && ls ./*.c ./*/*.c 2>/dev/null) | sed 's|^\./||' | grep -v '^text/' | while read -r file; do
        grep -q -E 'plan|Plan|Action' "$1/$file" && echo "$(pass_of "$file") $1/$file"
    done >"$tmp/files"
    : >"$tmp/lost"
    for who in none passes order part keep comm lower mem sim search; do
        mkdir -p "$tmp/$who"
        awk -v who="$who" -v lost="$tmp/lost" -v count="$tmp/count" -f "$tmp/const.awk" "$1/plan.h" >"$tmp/$who/plan.h"
        awk -v who="$who" '$1 == who { print $2 }' "$tmp/files" >"$tmp/of"
        [ ! -s "$tmp/of" ] || xargs "${CC:-cc}" -std=c11 -D_POSIX_C_SOURCE=200809L -I. -I"$1" -Irt -fsyntax-only $plain \
            -include "$tmp/$who/plan.h" <"$tmp/of" 2>&1 | sed "s/^/$who /"
    done | grep -E ': (warning|error|fatal error): ' | grep -v 'read-only location' | sort -u >"$tmp/told"
    while read -r who at message; do
        line=${at#*:}
        text=$(sed -n "${line%%:*}p" "${at%%:*}")
        case $message in
            *'read-only member'* | *'in read-only object'* | *discards*)
                printf '%s\n' "$text" | grep -q -E "$copied" || echo "${at%:*:}: $who does not write this field: $text" ;;
            *) echo "$at $message" ;;
        esac
    done <"$tmp/told" | sort -u
    sort -u "$tmp/lost"
}
plain='-ftrack-macro-expansion=0 -fno-diagnostics-show-caret'
copied='^ *[a-z_]+(\.[a-z_]+)+( *[-+]?=|\+\+|--)|(PUSH|memset)\(&[a-z_]+\.[a-z_]'
# shellcheck disable=SC2086
if ! echo 'int x;' | ${CC:-cc} $plain -fsyntax-only -x c - 2>/dev/null; then
    echo "writers: 0 passed, 0 failed, 1 skipped (its compiler is gcc)"
    exit 0
fi

judge gen | tee "$tmp/wrong"
ok test ! -s "$tmp/wrong"
ok test "$(cat "$tmp/count")" -ge 90

# The judge sees what it is for.  seen TEXT FILE LINE: a file of one function with that line; the judge says TEXT.
mkdir -p "$tmp/gen/sched" "$tmp/gen/mem" "$tmp/gen/emit"
cat >"$tmp/gen/plan.h" <<'H'
#include "base.h"
#include <string.h>
typedef struct {
    int mb;                     /* order, then mem: which */
    Ints slots;                 /* mem */
} Action;
typedef struct {
    int devices;                /* order:
                                   how many */
    const char *key;            /* order */
    Ints chunk;                 /* order */
    VEC(Action) list;           /* order */
} Plan;
H
cp gen/base.h gen/version.h "$tmp/gen"
seen() {
    rm -f "$tmp"/gen/*/*.c
    printf '/* Plan */\nvoid f(Plan *p);\nvoid f(Plan *p) { Plan with = *p; (void)with;\n    %s\n}\n' "$3" >"$tmp/gen/$2"
    judge "$tmp/gen" >"$tmp/said"
    if [ -n "$1" ]; then grep -q -F -- "$1" "$tmp/said"; else test ! -s "$tmp/said"; fi
}
ok seen '' sched/a.c 'p->devices = 3; p->key = ""; *PUSH(&p->chunk) = 1; p->list.at[0].mb++;'
ok seen '' mem/a.c 'p->list.at[0].mb = 3; *PUSH(&p->list.at[0].slots) = 1;'
ok seen 'a.c:4: mem does not write' mem/a.c 'p->devices = 3;'
ok seen 'a.c:4: mem does not write' mem/a.c 'p->key = "";'
ok seen 'a.c:4: mem does not write' mem/a.c 'p->chunk.n = 0;'
ok seen 'a.c:4: mem does not write' mem/a.c '*PUSH(&p->chunk) = 1;'
ok seen 'a.c:4: mem does not write' mem/a.c 'Ints *to = &p->chunk; to->n = 0;'
ok seen 'a.c:4: mem does not write' mem/a.c 'memset(&p->chunk, 0, sizeof p->chunk);'
ok seen 'a.c:4: none does not write' emit/a.c 'p->list.at[0].mb = 3;'
ok seen 'a.c:4: order does not write' sched/a.c '*PUSH(&p->list.at[0].slots) = 1;'
ok seen '' emit/a.c 'with.devices = 1; *PUSH(&with.chunk) = 1; *p = with;'
ok seen 'no_such_name' emit/a.c 'no_such_name = 1;'
sed -i 's|/. order:$|/* all of it:|' "$tmp/gen/plan.h"
ok seen 'int devices;' emit/a.c ';'
echo "writers: $pass passed, $fail failed"
[ "$fail" = 0 ]
