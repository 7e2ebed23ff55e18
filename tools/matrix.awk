# SPDX-License-Identifier: Apache-2.0
#
# matrix.awk: which kernels an operator has, as a table in Markdown.  docs/operators.md has it, and tests/words.sh compares.
#
#     awk -f tools/matrix.awk gen/ops.def rt/op/*.c rt/op/onednn/*.c rt/op/cuda/*.c rt/op/cuda/*.cu
#
# ops.def has the calls of an operator, forward and backward.  A file has a call where a line begins with its definition, or
# with that of open_CALL.  In rt/op/cuda a file X.c that includes product.h calls cublasLt; where X_graph.c stands beside it,
# cuDNN in bf16; X_own.cu is ours.  Operators with equal cells share a row.
function calls(text,    found) {
    found = ""
    while (match(text, /[a-z_0-9]+\(/)) {
        found = found " " substr(text, RSTART, RLENGTH - 1)
        text = substr(text, RSTART + RLENGTH)
    }
    return found
}
function row(text,    part, n, i) {
    sub(/^OP\(/, "", text)
    name = text
    sub(/,.*/, "", name)
    gsub(/"[ \t]+"/, "", text)     # neighbours are one string
    fp8 = text ~ /,[ ]*fp8,/
    n = split(text, part, "\"")
    if (n < 22) return
    operator[++operators] = name
    type[name] = fp8 ? "fp8" : "f32 bf16"
    forward[name] = calls(part[12])
    backward[name] = calls(part[16] " " part[20])
}
FNR == 1 { table = FILENAME ~ /\.def$/; file[FILENAME] = 1; where = FILENAME; sub(/\/[^\/]*$/, "", where) }
table && /^OP\(/ { text = ""; open = 1 }
table && open { text = text $0; if (/\)$/) { open = 0; row(text) } }
!table && /^#include "product.h"/ { products[FILENAME] = 1 }
!table && /^#include ".*\.h"/ {
    split($0, part, "\"")
    sub(/\.h$/, "", part[2])
    uses[FILENAME] = uses[FILENAME] " " part[2]
}
!table && match($0, /^(extern "C" )?void [a-z_0-9]+\(/) {
    word = substr($0, RSTART, RLENGTH - 1)
    sub(/.* /, "", word)
    sub(/^open_/, "", word)
    if (!((where, word) in of)) of[where, word] = FILENAME
}

# The types in which a column has a call
function portable(call) { return ("rt/op", call) in of ? "f32 bf16" : "" }
function onednn(call,    part, n, i) {
    if (("rt/op/onednn", call) in of) return "f32 bf16"
    n = split(uses[of["rt/op", call]], part, " ")
    for (i = 1; i <= n; i++)        # steps.c has no calls, but products for recur.c; oneDNN has those in f32
        if (("rt/op/onednn/" part[i] ".c") in file && ("rt/op/" part[i] ".c") in file && !(("rt/op/" part[i] ".c") in kernels))
            return "f32"
    return ""
}
function beside(call, end,    path) {
    path = of["rt/op/cuda", call]
    return sub(/\.c$/, end, path) && path in file
}
function own(call) {
    if (of["rt/op/cuda", call] ~ /\.cu$/ || beside(call, "_own.cu")) return "f32 bf16"
    return ""
}
function cublaslt(call) { return of["rt/op/cuda", call] in products ? "f32 tf32 bf16" : "" }
function cudnn(call) { return beside(call, "_graph.c") ? "bf16" : "" }
function has(column, call) {
    return column == 1 ? portable(call) : column == 2 ? onednn(call) : column == 3 ? own(call) : \
           column == 4 ? cublaslt(call) : cudnn(call)
}
# In which types some of the calls are there, between blanks
function some(column, list,    part, n, i, found) {
    n = split(list, part, " ")
    found = " "
    for (i = 1; i <= n; i++) found = found has(column, part[i]) " "
    return found
}
function cell(column, name,    f, b, kind, n, i, text) {
    f = some(column, forward[name])
    b = some(column, backward[name])
    n = split("f32 tf32 bf16", kind, " ")
    text = ""
    for (i = 1; i <= n; i++) {
        there = (index(f, " " kind[i] " ") > 0) + 2 * (index(b, " " kind[i] " ") > 0)
        if (!there) continue
        text = text (text == "" ? "" : ", ") kind[i]
        if (there == 1 && backward[name] != "") text = text " forward"
        if (there == 2 && forward[name] != "") text = text " backward"
    }
    return type[name] == "fp8" && text != "" ? "fp8" : text
}
END {
    for (i = 1; i <= operators; i++) {
        n = split(forward[operator[i]] backward[operator[i]], part, " ")
        for (j = 1; j <= n; j++) kernels[of["rt/op", part[j]]] = 1
    }
    for (i = 1; i <= operators; i++) {
        name = operator[i]
        if (forward[name] backward[name] == "") continue
        line = ""
        for (column = 1; column <= 5; column++) line = line " " cell(column, name) " |"
        gsub(/  /, " ", line)
        if (!(line in names)) order[++lines] = line
        names[line] = names[line] (names[line] == "" ? "" : ", ") name
    }
    print "| operators | portable | onednn | cuda: own | cuda: cublasLt | cuda: cuDNN |"
    print "|---|---|---|---|---|---|"
    for (i = 1; i <= lines; i++) {
        line = order[i]
        print "| " names[line] " |" line
    }
}
