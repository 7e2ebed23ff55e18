#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Plain English: how long the sentences of README.md, NEWS and the other pages at the top, docs/*.md and bench/README.md are.
#
#   words.sh                the tree: for each file its sentences, the median and the 90th percentile of their words
#   words.sh FILE ...       these files only;  -v: the sentences themselves, longest first
#
# A file fails above 18 words in the median or 32 in the 90th percentile.  It fails with a forbidden construction: of which, of
# whom, whose, beside that, a sentence that opens with What, or with So and its verb.  It fails if it names a path, a link or an
# option that does not exist.  NEWS fails with a bullet above 30 words.
#
# Counted is prose: no code blocks, tables or headings.  A code span is one word, a link counts its text.  A sentence ends
# with . ! or ? before a blank, or with its paragraph or bullet; not with an abbreviation, an initial or an ellipsis.  A
# semicolon ends nothing.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 2
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

cat >"$tmp/prose.awk" <<'AWK'
# Prints each sentence as: words, tab, line, tab, text.  A line of a table is printed with 0 words, for its words only.
function plain(text) {
    gsub(/`[^`]*`/, "code", text)
    while (match(text, /\[[^]]*\]\([^)]*\)/)) {
        link = substr(text, RSTART, RLENGTH)
        sub(/\]\([^)]*\)$/, "", link)
        text = substr(text, 1, RSTART - 1) substr(link, 2) substr(text, RSTART + RLENGTH)
    }
    gsub(/[*][*]?/, "", text)
    return text
}
function sentence(text,    words, part, n, i) {
    n = split(text, part, /[ \t]+/)
    for (i = 1; i <= n; i++) if (part[i] ~ /[A-Za-z0-9]/) words++
    if (words) print words "\t" begin "\t" text
}
function flush(    part, n, i, text, word) {
    n = split(plain(block), part, /[ \t\n]+/)
    text = ""
    for (i = 1; i <= n; i++) {
        word = part[i]
        text = text (text == "" ? "" : " ") word
        if (word !~ /[.!?][])"'_]*$/ || word ~ /\.\.[])"']*$/) continue
        if (word ~ /^[("']*([A-Z]|e\.g|i\.e|etc|cf|vs|al|Fig|No)\.[)]*$/ && i < n) continue
        sentence(text)
        text = ""
    }
    if (text != "") sentence(text)
    block = ""
}
FNR == 1 { fence = 0; code = 0; blank = 1; block = "" }
/^ *```/ { flush(); fence = !fence; next }
fence { next }
/^[ \t]*$/ { flush(); blank = 1; next }
/^    / && blank { code = 1 }                      # a block that is indented, behind an empty line
!/^    / { code = 0 }
code { next }
{ blank = 0 }
/^ *\|/ { flush(); begin = FNR; print 0 "\t" FNR "\t" plain($0); next }
/^#/ { flush(); next }
news && !/^ / && !/^- / { flush(); next }                   # its headings: versions, Added, Fixed
/^ *([-*]|[0-9]+\.) / { flush(); sub(/^ *([-*]|[0-9]+\.) +/, "") }
{
    if (block == "") begin = FNR
    sub(/^ +/, "")
    block = block (block == "" ? "" : "\n") $0
}
END { flush() }
AWK

prose() { case $1 in *NEWS) is_news=1 ;; *) is_news=0 ;; esac; awk -v news=$is_news -f "$tmp/prose.awk" "$1"; }

figures() {     # sentences on standard input: their number, median, 90th percentile
    awk -F'\t' '$1 > 0 { print $1 }' | sort -n | awk '
        { n[NR] = $1 }
        function at(share,    i) { i = int(share * NR); return n[i < share * NR || !i ? i + 1 : i] }
        END { if (NR) print NR, at(0.5), at(0.9); else print 0, 0, 0 }'
}

passed=0 failed=0
fault() { echo "$1"; failed=$((failed + 1)); }
pass() { passed=$((passed + 1)); }

lengths() {     # FILE
    prose "$1" >"$tmp/one"
    cat "$tmp/one" >>"$tmp/all"
    # shellcheck disable=SC2046
    set -- "$1" $(figures <"$tmp/one")
    printf '%-24s %5d sentences, median %2d, 90th percentile %2d\n' "$1" "$2" "$3" "$4"
    if [ "$3" -le 18 ] && [ "$4" -le 32 ]; then pass; else fault "$1: at most 18 and 32 words"; fi
}

constructions() {       # FILE
    prose "$1" | awk -F'\t' -v file="$1" '
        { text = tolower($3) }
        text ~ /of (which|whom)([^a-z]|$)|(^|[^a-z])whose([^a-z]|$)|beside that/ ||
        ($1 && $3 ~ /^(What([^a-z]|$)|So (is|are|has|have|does|do) )/) {
            print file ":" $2 ": " $3
            n++
        }
        END { exit n > 0 }' && pass || fault "$1: the sentences above are not plain"
}

paths() {       # FILE: paths of the tree that it names, and its links, lead somewhere
    root='(gen|rt|tests|bench|docs|examples|devices|templates|tools|verify)'
    bad=0
    for path in $(grep -oE "(^|[^A-Za-z0-9_./-])$root/[A-Za-z0-9_./*-]*" "$1" | sed 's/^[^a-z]//; s/[.-]*$//' | sort -u); do
        # shellcheck disable=SC2086
        set -- "$1" $(echo "$path" | sed 's/[A-Z][A-Z][A-Z]*/*/g')
        [ -e "$2" ] || { echo "$1: no $path"; bad=1; }
    done
    for link in $(grep -oE '\]\([^)]*\)' "$1" | sed 's/^](//; s/)$//' | grep -v '^http' | sort -u); do
        to=$1
        [ -z "${link%%#*}" ] || to=$(dirname "$1")/${link%%#*}
        [ -e "$to" ] || { echo "$1: no $link"; bad=1; continue; }
        case $link in
            *'#'*)
                sed -n 's/^##* *//p' "$to" | tr 'A-Z ' 'a-z-' | sed 's/[^a-z0-9_-]//g' | grep -qx -- "${link#*\#}" ||
                    { echo "$1: no heading $link"; bad=1; } ;;
        esac
    done
    if [ $bad = 0 ]; then pass; else fault "$1: it names what is not there"; fi
}

# Options that it names are options of dpgen, of a job, or of a script here; those of launchers are not looked for.
options() {     # FILE
    bad=0
    for option in $(grep -oE "(^|[^A-Za-z0-9_-])--[a-z][a-z-]*" "$1" | sed "s/^[^-]//" | sort -u); do
        case $option in --kill-on-bad-exit | --ntasks | --signal | --requeue | --mpi | --mca) continue ;; esac
        grep -rqF -- "\"$option" gen rt || grep -qF -- "$option" tests/*.sh bench/*/run.sh ||
            { echo "$1: no option $option"; bad=1; }
    done
    if [ $bad = 0 ]; then pass; else fault "$1: it names options that are not there"; fi
}

bullets() {     # of NEWS
    awk '
        function done() { if (words > 30) { print "NEWS:" begin ": " words " words, 30 allowed"; bad = 1 } words = 0 }
        /^- / { done(); begin = FNR; open = 1 }
        /^[^ -]/ || /^$/ { done(); open = 0 }
        open { gsub(/`[^`]*`/, "code"); for (i = 1; i <= NF; i++) if ($i ~ /[A-Za-z0-9]/) words++ }
        END { done(); exit bad }' NEWS && pass || fault "NEWS: a bullet is too long"
}

# The table of kernels is what the sources say
matrix() {
    awk -f tools/matrix.awk gen/ops.def rt/op/*.c rt/op/onednn/*.c rt/op/cuda/*.c rt/op/cuda/*.cu >"$tmp/matrix"
    sed -n '/^| operators | portable/,$p' docs/operators.md >"$tmp/printed"
    if [ "$(wc -l <"$tmp/matrix")" -gt 5 ] && diff "$tmp/matrix" "$tmp/printed" >"$tmp/said"; then pass
    else fault "docs/operators.md: the table of kernels is not that of tools/matrix.awk: $(sed -n 2p "$tmp/said")"; fi
}

# The example of README.md generates, and each line of a stage that is shown there is one of it.
readme() {
    sed -n "/^    dpgen: 1/,/^$/s/^    //p" README.md >"$tmp/net.yaml"
    if ./dpgen "$tmp/net.yaml" --estimate -o "$tmp/out" >"$tmp/said" 2>&1; then
        pass
    else
        fault "README.md: $(cat "$tmp/said")"
    fi
    sed -n "/Lines of .out/,/^[^ ]/!d; s/^    //p" README.md >"$tmp/lines"
    [ -s "$tmp/lines" ] || fault "README.md: no lines of a stage"
    while IFS= read -r line; do
        if grep -qF -- "$line" "$tmp/out/stage0.c" "$tmp/out/stage0.h"; then pass
        else fault "README.md: stage 0 has no $line"; fi
    done <"$tmp/lines"
}

# What the counter must say of small texts whose sentences are known.
expect() {      # WORDS OF EACH SENTENCE, TEXT
    printf '%b' "$2" >"$tmp/text"
    got=$(prose "$tmp/text" | awk -F'\t' '$1 { printf "%s%s", k++ ? " " : "", $1 }')
    if [ "$got" = "$1" ]; then pass; else fault "words.sh: '$got' for '$1' of: $2"; fi
}
expect "3 2" "One two three. Four five.\n"
expect "4" "A word (e.g. this).\n"
expect "5" "Raffel et al. said so.\n"
expect "3 1" "Is it so? Yes!\n"
expect "3" "# A heading\n\nOne two\nthree.\n"
expect "2 3" "- one two\n- one\n  two three\n"
expect "2 2" "One two.\n\n    code that is not read. At all.\n\nThree four.\n"
expect "2 2" "One two.\n\n\`\`\`\ncode. Not read.\n\`\`\`\nThree four.\n"
expect "2" "| a | table |\n\nOne two.\n"
expect "5" "The \`code of. it\` is [a link](to/it.md#x).\n"
expect "4" "From 0.5 to 1,000.\n"
expect "4" "One; two -- three four.\n"
expect "3 2" "1. one two three\n2. four five\n"

[ "${1:-}" != -v ] || { shift; for file; do prose "$file"; done | sort -rn | head -n 40; exit 0; }
[ $# != 0 ] || set -- README.md NEWS [CRS]*ING.md CONVENTIONS.md SECURITY.md docs/*.md bench/README.md
: >"$tmp/all"
for file; do
    lengths "$file"
    constructions "$file"
    paths "$file"
    options "$file"
done
# shellcheck disable=SC2046
printf '%-24s %5d sentences, median %2d, 90th percentile %2d\n' "in all" $(figures <"$tmp/all")
case " $* " in *' NEWS '*) bullets; readme; matrix ;; esac
echo "words: $passed passed, $failed failed"
[ "$failed" = 0 ]
