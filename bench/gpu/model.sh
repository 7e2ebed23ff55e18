#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A step on paper: what the calls of a plan take on one GPU, by bytes, launches and the rate of products.  No GPU is needed.
# kernels.model says which of its shares were measured on an H100, and where the others come from.
#
#   model.sh [-b TB/s] [-p TFLOP/s] [-g US] [-m MS] [OPTION OF dpgen...]
#       -b 3.35   bandwidth
#       -p, -g    instead of the table: what large products tend to, in bf16; time between two launches
#       -m        above so many milliseconds: status 1
#       -t TIMES  the calls beside their products and convolutions, with each tensor that a call names written and read once
#                 at the full bandwidth; above so many times that: status 1
#       -s MxNxK  nothing but the TFLOP/s of that product while the clock is high
#   A step of products draws so much power that the clock falls.  Products and attention, which the arithmetic bounds, then
#   have @warm % of the speed that each has alone; with factors of 8 bits, as far as products have those, another share.
#   Kernels that the memory bounds lose nothing, and a step of convolutions, at 420 to 470 W, keeps its clock.
#   The last line has the step and its kernels alone.
#       options: a model and what else dpgen takes; without, GPT-2 124M, batch 32, one H100, --fuse most
#
# A line of the table is a kernel: how often it starts, bytes or arithmetic of a step, the mean rate and why, and the time.
# A call without a row in kernels.model is an error, so the table leaves nothing out.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 2
bandwidth=3.35 rate= gap= most= shape= times=
while getopts b:p:g:m:s:t: option; do
    case $option in
        b) bandwidth=$OPTARG ;;
        p) rate=$OPTARG ;;
        g) gap=$OPTARG ;;
        m) most=$OPTARG ;;
        t) times=$OPTARG ;;
        s) shape=$OPTARG ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# != 0 ] || set -- examples/gpt2-124m-cuda.yaml --devices devices/h100.yaml --set train.batch.micro=32 \
    --set train.batch.global=32 --fuse most
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
./dpgen "$@" --stages 1 --estimate -o "$tmp/out" >"$tmp/said" 2>&1 || { cat "$tmp/said" >&2; exit 1; }
real=4
grep -q -e -DREAL_BF16 "$tmp/out/Makefile" && real=2
fast=$(grep -c -e -DFAST_SUMS "$tmp/out/Makefile")
awk -v bandwidth="$bandwidth" -v rate="$rate" -v gap="$gap" -v most="$most" -v times="$times" -v shape="$shape" \
    -v wide=4 -v real=$real -v fast="$fast" '
function trim(s) { gsub(/^ +| +$/, "", s); return s }
function bad(why) { print "model.sh: " why >"/dev/stderr"; failed = 1; exit 2 }

# The value of a word in a call: a number, a dimension, a parameter; an address counts 1, or 0 where there is none.
function value(word,    n) {
    if (word ~ /^-?[0-9.]+$/) return word + 0
    if (word == "real") return real
    if (word == "wide") return wide
    if (word == "eight") return fast ? 0.59 : 0.62
    if (word ~ /^(floats|pictures|ids)$/) return holds[given["input"]] == word
    if (word == "long") return given["n"] > 4096
    if (word == "held") return given["width"] % (16 / real) == 0 && given["width"] <= 8192
    if (word == "apart") return !(given["width"] % (16 / real) == 0 && given["width"] <= 8192)
    if (word == "narrow") return given["out"] % (16 / real) == 0 && given["out"] <= 1024
    if (word == "wider") return !(given["out"] % (16 / real) == 0 && given["out"] <= 1024)
    if (word == "of") return up(given["in"] / given["groups"] / 8) * 8
    if (word == "half") return given["causal"] == 1 ? 0.5 : 1
    if (word == "kept") return given["width"] > 1024 && given["width"] % (16 / real) == 0 && given["width"] * real <= 112 * 1024
    if (word == "seen") return given["batch"] * given["height"] * given["width"]
    if (word == "made") return given["batch"] * given["yheight"] * given["ywidth"]
    if (word == "taps") return given["kheight"] * given["kwidth"]
    if (word == "area") return given["rows"] * given["width"]
    if (word == "pairs") return given["batch"] * given["heads"] * given["query"] * given["key" in given ? "key" : "query"]
    if (word in given) return given[word]
    bad("no " word " in " called)
}
function sum(text,    term, word, n, m, i, j, all, one) {
    n = split(text, term, "+")
    for (i = 1; i <= n; i++) {
        m = split(trim(term[i]), word, "*")
        one = 1
        for (j = 1; j <= m; j++) one *= value(trim(word[j]))
        all += one
    }
    return all
}

# Arguments apart by commas outside parentheses; comments are labels, and are left out.
function arguments(text, to,    i, c, depth, n) {
    gsub(/\/\*[^*]*\*\//, "", text)
    split("", to)
    n = 1
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "(") depth++
        if (c == ")" && depth-- == 0) break
        if (c == "," && !depth) n++
        else to[n] = to[n] c
    }
    return n
}
# What an argument says: a number, or a product of numbers and dims.  Others, as a float and what a routine was given, count 0.
function literal(text,    word, n, i, all) {
    n = split(text, word, "*")
    all = 1
    for (i = 1; i <= n; i++) {
        if (word[i] in dim) all *= dim[word[i]]
        else if (word[i] ~ /^-?[0-9]+L?$/) all *= word[i] + 0
        else if (n == 1) return 0
        else bad("no " word[i] " in " called)
    }
    return all
}
function count(name, text,    arg, n, i, word, key) {
    n = arguments(text, arg)
    if (n - 1 != parameters[name]) bad(name ": " n - 1 " arguments")
    split("", given)
    called = name
    for (i = 2; i <= n; i++) {
        word = trim(arg[i])
        if (pointer[name, i - 1]) given[parameter[name, i - 1]] = word != "0"
        else given[parameter[name, i - 1]] = literal(word)
    }
    for (i = 1; i <= rows; i++) if (of[i] == name) charge(i)
    if (!(name in known)) bad(name " has no row in bench/gpu/kernels.model")
}
function least(a, b) { return a < b ? a : b }

# Microseconds of a product: the best tile, and K in the best number of pieces, whose sums are written and read in f32.
function product(m, n, k,    t, pieces, tiles, fill, us, best) {
    for (t = 64; t <= 256; t *= 2)
        for (pieces = 1; pieces == 1 || pieces <= 16 && k / pieces >= 1024; pieces++) {
            tiles = up(m / 128) * up(n / t)
            fill = m * n / (tiles * 128 * t) * tiles * pieces / up(tiles * pieces / number["processors"]) / number["processors"]
            fill *= number["tile " t] / 100 * k / (k + number["depth"] * pieces)
            us = 2 * m * n * k / (rate * fill) / 1e6
            if (pieces > 1) us += 2 * pieces * wide * m * n / bandwidth / 1e6
            best = best == "" ? us : least(best, us)
        }
    return best
}
function up(x) { return x == int(x) ? x : int(x) + 1 }

function charge(i,    n, text, part, share, bytes, before) {
    text = amount[i]
    kinds[i] = text ~ /^flop / ? "flop" : text ~ /^us / ? "us" : text ~ /^product / ? "product" : "bytes"
    sub(/^(flop|us|product) /, "", text)
    calls[i]++
    before = us[i]
    split(launches[i], part, "/")
    launched[i] = launches[i] ~ /\// ? part[1] * int((calls[i] + part[2] - 1) / part[2]) : launched[i] + sum(launches[i])
    split(bandwidth > 4 ? share2[i] : share1[i], part, "/")
    share = part[2] != "" && given["width"] > 64 ? part[2] : part[1]
    if (kinds[i] == "product") {
        split(text, part, /[:,;]/)
        n = sum(part[1])
        bytes = part[5] == "" ? 0 : sum(part[5])
        if (n) us[i] += n * bigger(product(sum(part[2]), sum(part[3]), sum(part[4])) * 100 / share, bytes / bandwidth / 1e6)
        n *= 2 * sum(part[2]) * sum(part[3]) * sum(part[4])
    } else {
        n = sum(text)
        us[i] += kinds[i] == "us" ? n : n / (kinds[i] == "flop" ? share : bandwidth * share / 100) / 1e6
    }
    alone += us[i] - before
    amounts[i] += n
}
# Products and attention at the clock of a whole step, which falls less where products have factors of 8 bits.
function warm(    i, all, eight, keeps) {
    for (i = 1; i <= rows; i++) {
        if (kinds[i] == "product") all += amounts[i]
        if (kinds[i] == "product" && of[i] ~ /_fp8_/) eight += amounts[i]
    }
    keeps = number["warm"] + (all ? (number["warm of 8 bits"] - number["warm"]) * eight / all : 0)
    for (i = 1; i <= rows; i++)
        if (kinds[i] ~ /flop|product/ && of[i] !~ /^conv_/) us[i] *= 100 / keeps
}
function bigger(a, b) { return a > b ? a : b }
function amount_of(i) {
    if (kinds[i] == "us") return "-"
    return kinds[i] != "bytes" ? sprintf("%.3f TFLOP", amounts[i] / 1e12) : sprintf("%.1f MB", amounts[i] / 1e6)
}
function rate_of(i,    n) {
    if (kinds[i] == "us" || !us[i]) return "-"
    n = amounts[i] / us[i] / 1e6
    return kinds[i] == "bytes" ? sprintf("%.0f %%", 100 * n / bandwidth) : sprintf("%.0f T/s", n)
}
function run(routine,    i) {
    for (i = 1; i <= lines[routine]; i++)
        if (callee[routine, i] in lines) run(callee[routine, i])
        else if (callee[routine, i] in parameters) count(callee[routine, i], text_of[routine, i])
}

FILENAME ~ /kernels.model$/ {
    if (/^#/ || NF == 0) next
    if (/\|$/) { row = row $0; next }
    $0 = row $0
    row = ""
    split($0, part, "|")
    if (sub(/^@/, "", part[1])) { number[trim(part[1])] = part[2] + 0; next }
    of[++rows] = trim(part[1]); known[of[rows]] = 1
    kernel[rows] = trim(part[2]); amount[rows] = trim(part[3]); launches[rows] = trim(part[4])
    share1[rows] = trim(part[5]); share2[rows] = trim(part[6]); why[rows] = trim(part[7]) " [" trim(part[8]) "]"
    if (part[8] == "") bad("a row without its source: " $0)
    next
}
FILENAME ~ /launch.c$/ {        # what the files of each input hold
    if (/^static const InputInfo input/) inputs = 1
    else if (/^}/) inputs = 0
    else if (inputs) holds[inputs++ - 1] = /ByteInfo/ ? "pictures" : /JOB_F32/ ? "floats" : "ids"
    next
}
FILENAME ~ /rt.h$/ {            # what computes: the prototypes, fill_zero and data_load
    if (/^\/\* ---- kernels/) on = 1
    if (/kernels_start/) on = 0
    if (!/^void / || !(on || /fill_zero|data_load/)) next
    name = $2
    sub(/\(.*/, "", name)
    line = $0
    sub(/^[^(]*\(/, "", line)
    n = arguments(line, arg)
    parameters[name] = n - 1
    for (i = 2; i <= n; i++) {
        pointer[name, i - 1] = arg[i] ~ /\*/
        sub(/.*[ *]/, "", arg[i])
        parameter[name, i - 1] = arg[i]
    }
    next
}
FILENAME ~ /stage0.h$/ {
    if ($2 == "=" && $3 ~ /^0x/ && /\[.*\].*\*\//) tensor[$1] = $5
    if (/^\/\* Sizes: /) { on = 2; next }           # a list, in one line or several
    if (on != 2) next
    sub(/^enum \{ /, "")
    if (sub(/ \};.*/, "")) on = 0
    n = split($0, part, ",")
    for (i = 1; i <= n; i++) if (split(trim(part[i]), word, " = ") == 2) dim[word[1]] = word[2] + 0
    next
}
/^(static )?void [a-z_0-9A-Z]*\(/ { routine = $0; sub(/\(.*/, "", routine); sub(/.* /, "", routine); lines[routine] = 0; next }
/^}/ { routine = "" }
{ for (rest = $0; match(rest, /[AS]\([a-z_0-9A-Z, ]*\)/); rest = substr(rest, RSTART + RLENGTH)) {
    name = substr(rest, RSTART + 2, RLENGTH - 3); sub(/.*, /, "", name); named[name] = 1
} }
routine != "" && (row != "" || /^    [a-z_0-9A-Z]*\(/) {      # a call ends at its semicolon, and one may stand behind an action
    row = row " " trim($0)
    if (row !~ /;/) next
    line = row; row = ""
    sub(/^ action\(.*"\); */, "", line)
    name = trim(line); sub(/\(.*/, "", name)
    sub(/^[^(]*\(/, "", line)
    callee[routine, ++lines[routine]] = name
    text_of[routine, lines[routine]] = line
}
END {
    if (failed) exit 2
    if (rate == "") rate = number["most"]
    if (gap == "") gap = number["gap"]
    if (shape != "") {
        split(shape, part, "x")
        printf "%.0f\n", 2 * part[1] * part[2] * part[3] / product(part[1], part[2], part[3]) / 1e6
        exit
    }
    run("stage0_step")
    warm()
    line = "%-26s %-14s %8s %12s %8s %9s  %s\n"
    printf line, "call", "kernel", "launches", "amount", "rate", "ms", "why [beside what]"
    for (i = 1; i <= rows; i++) {
        if (!us[i] && !launched[i]) continue
        printf line, of[i], kernel[i], launched[i], amount_of(i), rate_of(i), sprintf("%.3f", us[i] / 1000), why[i]
        total += us[i] / 1000
        if (kinds[i] ~ /flop|product/) once += us[i] / 1000
        starts += launched[i]
    }
    for (name in tensor) if (name in named) once += 2 * tensor[name] / bandwidth / 1e9
    text = "calls: %.1f ms, %.2f times %.1f ms: their arithmetic, and each tensor written and read once\n"
    if (times != "") printf text, total, total / once, once
    slow = times != "" && total > times * once
    gaps = (starts * gap + number["host"]) / 1000
    total += gaps
    text = gap " us each, " number["host"] " us of the host [A]"
    printf line, "between launches", "", starts, "-", "-", sprintf("%.3f", gaps), text
    text = "step: %.1f ms at %s TB/s, large products at %s TFLOP/s: on paper; its kernels %.1f ms at the full clock\n"
    printf text, total, bandwidth, rate, alone / 1000
    if (slow) printf "model.sh: more than %s times\n", times >"/dev/stderr"
    if (slow) exit 1
    if (most != "" && total > most + 0) { printf "model.sh: more than %s ms\n", most >"/dev/stderr"; exit 1 }
}' bench/gpu/kernels.model "$tmp/out/launch.c" "$tmp/out/rt/rt.h" "$tmp/out/stage0.h" "$tmp/out/stage0.c"
