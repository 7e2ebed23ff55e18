#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The rules of CONVENTIONS.md that a machine can check: one check a file, offenders as file:line: reason.
#
#   lint.sh                 the whole tree, and the rules themselves
#   lint.sh ROOT            a tree
#   lint.sh --self-test     one offence of every kind, each must be found
#
# budgets   a file of code up to 650 lines, a function up to 80, a line up to 128 columns; ops.def, the prototypes of
#           rt.h and the definitions that repeat them, one row a line, may be wider, and so may tests/hf and tables in Markdown
#           and goldens, which are what a program prints
# text      no tabs in C, no blanks at the end of a line, no dates, a licence line in front, except of templates: what
#           comes of them belongs to whoever generates it
# calls     what would break a promise of docs/bits.md and docs/memory.md: allocation and output in kernels, libm in kernels,
#           clocks, environment and locale in the generator, allocation in its passes, whose memory lives until exit
# marks     templates are legal C: a mark is @NAME@ inside a comment or a string, and gen/emit knows each name; in a
#           Makefile, $@ and the @ in front of a recipe are make's
# numbers   budgets of the rooms that search: in gen/budgets.h, at most 55, each with its reason; sizes and formats are
#           named here
# headers   a file of gen/ opens with its name; an include guard is the name of its file in capitals, or ends with it; folders
#           of -I in rt/ have no name twice
# tables    gen/ compares no word of schedules.def, planners.def or targets.def: what differs is a column there
# names     words that docs/glossary.md forbids are no identifiers of gen/ and rt/; those that it gives one file name no field
#           and no type elsewhere
# words     nothing unfinished, no path of one machine
# suites    tests/run runs each suite of tests/
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

cat >"$tmp/rules.awk" <<'AWK'
function bad(line, reason) { print path ":" line ": " reason; found = 1 }

# The line without strings and comments; `open` remembers a comment that goes on.
function code(line,    out, i, c, two, quote) {
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        two = substr(line, i, 2)
        if (open) {
            if (two == "*/") { open = 0; i++ }
        } else if (quote != "") {
            if (c == "\\") i++
            else if (c == quote) quote = ""
        } else if (two == "/*") { open = 1; i++ }
        else if (two == "//") break
        else if (c == "\"" || c == "'") quote = c
        else out = out c
    }
    return out
}

# Calls in text of one of the names in list.
function forbidden(text, list, why,    name, n, i) {
    n = split(list, name, " ")
    for (i = 1; i <= n; i++)
        if (text ~ ("(^|[^A-Za-z0-9_])" name[i] "[ ]*\\("))
            bad(FNR, name[i] "() " why)
}

# Words of a line of code that the glossary forbids: identifiers, and fields and types.  `held` has a letter for each open
# brace: s of a struct, f of anything else.
function names(text,    rest, word, name) {
    rest = text
    while (match(rest, /[A-Za-z_][A-Za-z_0-9]*|[{}()]/)) {
        word = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        if (word == "{") held = held (before ~ /^(struct|union)$/ || earlier ~ /^(struct|union)$/ ? "s" : "f")
        else if (word == "}") held = substr(held, 1, length(held) - 1)
        else if (word == "(") parens++
        else if (word == ")") parens--
        else if (tolower(substr(word, 1, 1)) substr(word, 2) in banned) bad(FNR, word ": docs/glossary.md has another word")
        else if (word in only && only[word] != path && held ~ /s$/ && !parens && rest ~ /^ *(\[[^]]*\] *)*[;,]/)
            bad(FNR, "field " word ": docs/glossary.md gives it " only[word])
        earlier = before
        before = word
    }
    if (match(text, /(struct|enum|union|class) +[A-Z][A-Za-z]+|(typedef .*[ *]|\} *)[A-Z][A-Za-z]+(\[[^]]*\])?;/)) {
        name = substr(text, RSTART, RLENGTH)
        sub(/.*[ *}]/, "", name)
        sub(/[^A-Za-z].*/, "", name)
        if (tolower(name) in only && only[tolower(name)] != path)
            bad(FNR, "type " tolower(name) ": docs/glossary.md gives it " only[tolower(name)])
    }
}

# The file before has ended, at line `last`.
function finish() {
    if (owned && last < 4 && !licensed) bad(1, "no SPDX-License-Identifier in the first three lines")
    if (budgets > 55) bad(last, budgets " budgets, 55 allowed")
    if (is_code && last > 650) bad(last, "file of " last " lines, 650 allowed")
    if (found) failed++; else passed++
}

BEGIN {
    while ((getline line <glossary) > 0)
        if (split(line, part, / *\| */) > 3 && part[2] ~ /^`[a-z]+`$/) {
            gsub(/`/, "", line)
            split(line, part, / *\| */)
            if (part[4] == "") banned[part[2]]
            else only[part[2]] = part[3]
        }
}
FNR == 1 {
    if (path != "") finish()
    path = FILENAME
    begin = open = licensed = numbers = budgets = found = parens = 0
    held = ""
    is_c = path ~ /\.(c|h|cu|def)$/
    is_code = is_c || path ~ /\.(sh|py|awk)$/ || path ~ /(^|\/)Makefile/ || path ~ /\.mk$/ || path ~ /^tests\/run$/
    owned = is_code && path !~ /^templates\//
    wide = path == "gen/ops.def" || path ~ /^tests\/hf\/[^.\/]*$/ || path ~ /^tests\/[^\/]+\/.*\.(out|err)$/
    kernel = path ~ /^rt\/op\//
    gen = path ~ /^gen\//
    pass = gen && path !~ /^gen\/base\//
    name = path
    sub(/.*\//, "", name)
    guard = toupper(name)
    gsub(/[^A-Z0-9]/, "_", guard)
    titled = !is_c || !gen
    searches = path ~ /^gen\/(downset|exact|fates|list|mem|pack|plan|profiled|replay|rivals|search|tune)\//
    sizes = " PARTS LEAST_COPY MEMORY PAGE DEAR COPIES BATCH REQUESTS MOST_SLACK MOST_COLUMNS "
    clock = "time localtime localtime_r gmtime gmtime_r ctime strftime mktime rand srand random getenv setlocale"
    clock = clock " gethostname getcwd getpid system popen strtod strtof strtold atof strtok"
    if (path == "gen/base/folder.c") sub(/ getpid/, "", clock)     # in the name of a folder that is gone at the end
    heap = "malloc calloc realloc free strdup"
    print_ = "printf fprintf sprintf puts putchar fputs fwrite"
    libm = "exp expf exp2 expm1 log logf log2 log1p tanh tanhf sinh cosh erf erff pow powf sin cos sinf cosf"
}

/SPDX-License-Identifier/ && FNR <= 3 { licensed = 1 }
owned && FNR == 4 && !licensed { bad(1, "no SPDX-License-Identifier in the first three lines") }

!titled && FNR < 5 && /^ \* [^ ]/ {
    titled = 1
    if (index($0, " * " name ": ") != 1) bad(FNR, "the header opens with the name of the file: " name ": ...")
}
FNR == 1 && path ~ /^rt\/(op\/|sample\/)?[^\/]+\.[ch]$/ {        # folders of -I
    if (name in folder) bad(1, name " of " folder[name] " too: which one #include means is not said")
    folder[name] = path
}
path ~ /^(gen|rt|tests)\/.*\.h$/ && /^#ifndef [A-Z0-9_]+_H$/ && $2 !~ ("(^|_)" guard "$") {
    bad(FNR, "include guard " $2 ", " guard " expected")
}
length($0) > 128 && !wide && !(path ~ /\.md$/ && /^\|/) &&
    !(path ~ /^rt\/(rt\.h$|op\/)/ && /^void [a-z0-9_]+\(Stage \*st/) { bad(FNR, length($0) " columns, 128 allowed") }
is_c && /\t/ { bad(FNR, "tab") }
/[ \t]$/ { bad(FNR, "blank at the end of the line") }
{ words = $0; named = gsub(/XXXXXX/, "", words) }       # names that mkstemp() completes
path ~ /^tests\/[a-z0-9_]*\.sh$/ && $0 == "finish" {
    for (named = 0; (getline row < "tests/run") > 0;)
        named = named || index(row " ", " " path " ")
    close("tests/run")
    if (!named) bad(FNR, "a suite that tests/run does not run")
}
words ~ /TO[D]O|FIX[M]E|X[X]X|HA[C]K|(^|[^A-Za-z])sto[p]gap/ { bad(FNR, "unfinished: do it, or delete the word") }
/\/(hom[e]|roo[t]|wor[k]|User[s])\// { bad(FNR, "path of one machine") }
/\/tm[p]\// && !/TMPDIR/ && !named { bad(FNR, "path of one machine: use TMPDIR or mktemp") }
/(19|20)[0-9][0-9]-[01][0-9]-[0-3][0-9]/ && !(path == "NEWS" && /^[0-9]+[.][0-9]+[.][0-9]+ [(][0-9-]+[)]$/) {
    bad(FNR, "date")
}

is_c {
    text = code($0)
    if (kernel && path !~ /onednn|\/cuda\/[a-z_]*\.c$/) {       # those open handles before the first step, where they may
        forbidden(text, heap, "in a kernel: the arena is all there is")
        forbidden(text, print_, "in a kernel")
    }
    if (kernel) forbidden(text, libm, "in a kernel: not the same bits everywhere, use fmath.h")
    if (gen) forbidden(text, clock, "in the generator: its output depends on the model alone")
    if (gen && $0 ~ /strn?cmp\([^"]*(kind|kernels|transport|planner|schedule)[^"]*, "/ )
        bad(FNR, "a word of a table is compared: ask a column of its row")
    if (pass) forbidden(text, heap, "in a pass: use alloc(), memory lives until exit")
    if (gen || path ~ /^rt\//) names(text)
}
# A number above 15 by a name, in a room that searches, is a budget: it stands in gen/budgets.h with its reason.
searches && $0 ~ /(^|[^a-z])enum( [A-Za-z]+)? ?\{/ { numbers = 1 }
searches && (numbers || /^ *static const int64_t [A-Z_]+ = /) {
    rest = text
    while (match(rest, /[A-Z][A-Z_0-9]* = [0-9]+( << [0-9]+)?/)) {
        split(substr(rest, RSTART, RLENGTH), part, / = /)
        value = part[2] ~ /<</ ? 2 ^ substr(part[2], index(part[2], "<< ") + 3) : part[2] + 0
        if (value > 15 && index(sizes, " " part[1] " ") == 0)
            bad(FNR, part[1] " is a budget: gen/budgets.h")
        rest = substr(rest, RSTART + RLENGTH)
    }
    if (text ~ /\}/) numbers = 0
}
path == "gen/budgets.h" && text ~ /^ +[A-Z_]+ = |^#define [A-Z_]+ +[^ ]/ {
    budgets += gsub(/[A-Z_]+ = /, "", text) + (text ~ /^#define/)
    if ($0 !~ /\/\*/) bad(FNR, "a budget without its reason")
}
is_c && /^\{/ { begin = FNR }
is_c && /^\}/ {
    if (begin && FNR - begin + 1 > 80) bad(begin, "function of " FNR - begin + 1 " lines, 80 allowed")
    begin = 0
}
path ~ /^templates\// && path !~ /\.css$/ {       # styles have @rules of their own and are copied as they are
    rest = $0
    if (path ~ /Makefile$/ || path ~ /\.mk$/) {
        sub(/^\t@/, "", rest)
        gsub(/\$@/, "", rest)
    }
    while (match(rest, /@[A-Za-z_]*@?/)) {
        mark = substr(rest, RSTART, RLENGTH)
        if (mark !~ /^@[A-Za-z_]+@$/) bad(FNR, "half a mark: " mark)
        else if (index(known, substr(mark, 2, length(mark) - 2)) == 0) bad(FNR, "gen/emit does not know " mark)
        rest = substr(rest, RSTART + RLENGTH)
    }
}
{ last = FNR }
END {
    if (path != "") finish()
    print passed + 0, failed + 0 >counts
}
AWK

# Text files below the current folder; what git ignores, and data, are not read.
files() {
    if git rev-parse --is-inside-work-tree >"$tmp/git" 2>&1; then
        git ls-files --cached --others --exclude-standard | while IFS= read -r file; do [ ! -f "$file" ] || echo "$file"; done
    else
        find . -type f ! -path './.git/*' ! -path './out/*' | sed 's|^\./||'
    fi | grep -v -e '^tests/fuzz_targets/corpus/' -e '^tests/ref/tokens/' -e '^tests/ref/chat/' -e '^tests/graphs/' |
        grep -v -E '\.(npy|safetensors|bin|idx|png|o|profile|golden|csv|gz)$|^LICENSE|^tests/data/|^out/|^\.issues' | sort -u
}

lint() {
    known=
    [ ! -d gen/emit ] || known=$(cat gen/emit/*.c | grep -o '"[A-Za-z_@]*"' | tr -d '"@' | tr '\n' ' ')
    awk -v counts="$tmp/counts" -v known="$known" -v glossary="$here/../docs/glossary.md" -f "$tmp/rules.awk" $(files)
    read -r passed failed <"$tmp/counts"
    echo "lint: $passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

# offence FILE REASON TEXT [FILE]: lint must give this reason; the text stands in both files.
offence() {
    rm -rf "$tmp/tree"
    for file in "$1" ${4:-}; do
        mkdir -p "$tmp/tree/$(dirname "$file")"
        printf '%b' "$3" >"$tmp/tree/$file"
    done
    (cd "$tmp/tree" && lint) >"$tmp/said"
    if grep -q -F -- "$2" "$tmp/said"; then right=$((right + 1)); return; fi
    wrong=$((wrong + 1))
    echo "lint.sh --self-test: $1: '$2' not found: $(head -n 1 "$tmp/said")" >&2
}

repeat() { awk -v n="$1" -v text="$2" 'BEGIN { while (n-- > 0) printf "%s", text }'; }

self_test() {
    right=0 wrong=0 spdx='/* SPDX-Licen''se-Identifier: Apache-2.0 */'
    GIT_CEILING_DIRECTORIES=$tmp
    export GIT_CEILING_DIRECTORIES
    offence gen/a.c "1 passed, 0 failed" "$spdx\nint x;\n"
    offence gen/a.c "a.c:1: no SPDX" "int x;\n"
    offence gen/a.c "a.c:1: no SPDX" "\n\n\n\n$spdx\n"
    offence gen/a.c "a.c:2: tab" "$spdx\n\tint x;\n"
    offence gen/a.c "a.c:2: blank at the end" "$spdx\nint x; \n"
    offence gen/a.c "a.c:2: 129 columns" "$spdx\n$(repeat 129 x)\n"
    offence gen/a.c "1 passed, 0 failed" "$spdx\n$(repeat 128 x)\n"
    offence docs/a.md "a.md:1: 129 columns" "$(repeat 129 x)\n"
    offence docs/a.md "1 passed, 0 failed" "|$(repeat 129 x)|\n"
    offence tests/keep/a.out "1 passed, 0 failed" "$(repeat 129 x)\n"
    offence tests/a.out "a.out:1: 129 columns" "$(repeat 129 x)\n"
    offence gen/a.c "a.c:3: function of 81 lines" "$spdx\nvoid f(void)\n{\n$(repeat 79 'x;\n')\n}\n"
    offence gen/a.c "1 passed, 0 failed" "$spdx\nvoid f(void)\n{\n$(repeat 78 'x;\n')\n}\n"
    offence gen/a.c "a.c:651: file of 651 lines" "$spdx\n$(repeat 650 'x;\n')"
    offence gen/a.c "1 passed, 0 failed" "$spdx\n$(repeat 649 'x;\n')"
    offence rt/rt.h "1 passed, 0 failed" "$spdx\nvoid g(Stage *st, $(repeat 128 x));\n"
    offence rt/op/a.c "1 passed, 0 failed" "$spdx\nvoid g(Stage *st, $(repeat 128 x))\n"
    offence rt/op/a.c "a.c:2: 129 columns" "$spdx\n$(repeat 129 x)\n"
    offence rt/a.c "columns" "$spdx\nvoid g(Stage *st, $(repeat 128 x))\n"
    offence rt/op/a.c "a.c:2: malloc() in a kernel" "$spdx\nx = malloc (3);\n"
    offence rt/op/cuda/a.cu "a.cu:2: malloc() in a kernel" "$spdx\nx = malloc (3);\n"
    offence rt/op/cuda/a.c "1 passed, 0 failed" "$spdx\nx = malloc (3);\n"
    offence rt/op/a.c "a.c:2: expf() in a kernel" "$spdx\nx = 1+expf(3);\n"
    offence rt/op/a.c "1 passed, 0 failed" "$spdx\nx = f_expf(3); /* exp(x) */ y = \"exp(\"; // exp(\n"
    offence rt/op/a.c "a.c:3: printf() in a kernel" "$spdx\n/* a\n exp(x) */ printf(0);\n"
    offence gen/base/a.c "a.c:2: strtod() in the generator" "$spdx\nx = strtod(s);\n"
    offence gen/emit/a.c "a.c:2: getpid() in the generator" "$spdx\nx = getpid();\n"
    offence gen/base/folder.c "1 passed, 0 failed" "$spdx\nx = getpid();\n"
    offence gen/base/folder.c "folder.c:2: getenv() in the generator" "$spdx\nx = getenv(0);\n"
    offence gen/plan/a.c "a.c:2: calloc() in a pass" "$spdx\nx = calloc(1, 2);\n"
    offence gen/base/a.c "1 passed, 0 failed" "$spdx\nx = calloc(1, 2);\n"
    offence gen/mem/a.c "a.c:2: TRIES is a budget" "$spdx\nenum { A = 3, TRIES = 16 };\n"
    offence gen/mem/a.c "a.c:3: TRIES is a budget" "$spdx\nenum {\n    TRIES = 1 << 4,    /* x */\n};\n"
    offence gen/mem/a.c "a.c:2: STEPS is a budget" "$spdx\nstatic const int64_t STEPS = 300;\n"
    offence gen/mem/a.c "1 passed, 0 failed" "$spdx\nenum { A = 15, B = sizeof x, PAGE = 4096 };\n"
    offence gen/emit/a.c "1 passed, 0 failed" "$spdx\nenum { WIDTH = 100 };\n"
    budgets="$spdx\n#define A INT64_C(3) /* x */\n$(repeat 54 '    A = 3,  /* x */\n')"
    offence gen/budgets.h "1 passed, 0 failed" "$budgets\n"
    offence gen/budgets.h "budgets.h:57: 56 budgets, 55 allowed" "$budgets\n    A = 3,  /* x */\n"
    offence gen/budgets.h "budgets.h:2: a budget without its reason" "$spdx\n    A = 3,\n"
    offence gen/a.c "a.c:3: the header opens with" "/* SPDX-Licen""se-Identifier: Apache-2.0\n *\n * b: x\n */\n"
    offence gen/a.c "1 passed, 0 failed" "/* SPDX-Licen""se-Identifier: Apache-2.0\n *\n * a.c: x\n *\n * y\n */\n"
    offence gen/a_b.h "a_b.h:2: include guard B_H, A_B_H expected" "$spdx\n#ifndef B_H\n"
    offence rt/cuda/a.h "1 passed, 0 failed" "$spdx\n#ifndef CUDA_A_H\n"
    offence rt/op/a.h "a.h:1: a.h of rt/a.h too" "$spdx\n" rt/a.h
    offence rt/op/a.h "2 passed, 0 failed" "$spdx\n" rt/cuda/a.h
    offence gen/a.c "a.c:2: a word of a table" "$spdx\nif (!strcmp(d->kind, \"cuda\"))\n"
    offence gen/a.c "a.c:2: said: docs/glossary.md" "$spdx\nint f(int said);\n"
    offence rt/a.c "a.c:2: Lack: docs/glossary.md" "$spdx\nLack x;\n"
    offence gen/a.c "1 passed, 0 failed" "$spdx\nint saids; /* said */ char *x = \"said\"; int row, part(int way);\n"
    offence gen/a.c "a.c:3: field row: docs" "$spdx\nstruct A {\n    int a, *row[3], b;\n};\n"
    offence gen/a.c "a.c:2: field place: docs" "$spdx\ntypedef struct { int (*f)(int row); union { int place; } x; } A;\n"
    offence rt/job.h "1 passed, 0 failed" "$spdx\nstruct A { int part; }; struct B { Row r; } row;\n"
    offence rt/a.cu "a.cu:2: type way: docs" "$spdx\nstruct Way { int x; };\n"
    offence gen/a.c "a.c:3: type level: docs" "$spdx\ntypedef struct {\n} Level;\n"
    offence gen/a.c "a.c:2: type order: docs" "$spdx\ntypedef Other *Order;\n"
    offence gen/graph.h "1 passed, 0 failed" "$spdx\ntypedef struct { int row; } Row;\n"
    offence verify/a.c "a.c:2: unfinished" "$spdx\n/* TO""DO */\n"
    offence verify/a.c "a.c:2: unfinished" "$spdx\n/* XX""X */\n"
    offence verify/a.c "1 passed, 0 failed" "$spdx\nchar a[] = \"/var/t""mp/a.XXXXXX\";\n"
    offence docs/a.md "a.md:1: path of one machine" "see /ho""me/me\n"
    offence docs/a.md "a.md:1: path of one machine" "at /t""mp/x\n"
    offence docs/a.md "a.md:1: date" "on 2024-""01-31\n"
    offence NEWS "NEWS:1: date" "0.1.0 on 2024-""01-31\n"
    offence NEWS "1 passed, 0 failed" "0.1.0 (2024-""01-31)\n"
    offence templates/a.c "a.c:2: gen/emit does not know @no_such@" "$spdx\n/* @no_such@ */\n"
    offence templates/a.c "a.c:2: half a mark" "$spdx\n/* @half */\n"
    offence templates/a.c "a.c:1: half a mark" "\t@x\n"
    offence templates/Makefile "1 passed, 0 failed" "a:\n\t@x $""@\n"
    offence templates/Makefile "Makefile:2: half a mark" "a:\n\t@x @half\n"
    offence tests/a.sh "a.sh:2: a suite that tests/run does not" "# SPDX-Licen""se-Identifier: Apache-2.0\nfinish\n"
    offence Makefile "Makefile:1: no SPDX" "a:\n\tx\n"
    echo "lint: $right passed, $wrong failed"
    [ "$wrong" -eq 0 ]
}

case ${1:-} in
    --self-test) self_test ;;
    "") cd "$here/.." && { lint; self_test; echo "lint: $((passed + right)) passed, $((failed + wrong)) failed"; }
        [ $((failed + wrong)) -eq 0 ] ;;
    *) cd "$1" && lint ;;
esac
