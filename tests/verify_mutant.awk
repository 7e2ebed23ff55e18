# SPDX-License-Identifier: Apache-2.0
#
# One fault in a stage's source: awk -f verify_mutant.awk -v kind=KIND -v at=N stage0.c
# changes the Nth place where a fault of that kind fits, from 1 on, in routines of the step, and prints the file.  Status 3:
# there are not so many places.  Without kind: how many there are of each.  A statement ends with ';', on whichever line.
#
#   shift    an operand lies 64 bytes further     slot   another slot, of a pool or in a routine's arguments
#   swap     two operands of a call change places  peer   a message for another stage
#   skip     a call is left out                    wait   a transfer is not waited for
#   double   a call is made twice                  micro  another micro-batch is loaded
#   order    a call and the next one change places acc    a gradient is begun where it is added to, or the other way round
#   shrink   a message is shorter                  tag    a message has another tag
#   number   a literal of a call is one more
#   edit     in the Nth call of `call`, what `from` matches becomes `to`; all of it: the call is left out
#   twice    the Nth call of `call` is made twice
#   early    the Nth call of `call` moves in front of the last one of `past` before it
function out(text) { printf "%s", text }
function fits(s,    name) {
    name = s
    sub(/^[ \t\n]*/, "", name)
    while (name ~ /^\/\*/) {
        name = substr(name, index(name, "*/") + 2)
        sub(/^[ \t\n]*/, "", name)
    }
    sub(/\(.*/, "", name)
    kernel = s ~ /A\(|S\(/ &&
        name ~ /_(forward|backward|backward_[xw]|scatter_x|update|partial|total|add|fold|gather|seed|report)$/
    if (kind == "edit" || kind == "early" || kind == "twice") return name == call && (kind != "edit" || s ~ from)
    if (kind == "shift") return kernel
    if (kind == "swap") return kernel && gsub(/[AS]\([^()]*(\[[^]]*\])?\)/, "&", s) > 1
    if (kind == "skip" || kind == "double") return kernel
    if (kind == "order") return name != "action" && name != "(void)st;"
    if (kind == "wait") return name == "transfer_wait"
    if (kind == "micro") return name == "data_load"
    if (kind == "peer" || kind == "tag") return name == "send_begin" || name == "recv_begin"
    if (kind == "shrink") return name == "send_begin" || name == "recv_begin"
    if (kind == "acc") return s ~ /\/\* acc \*\/ [01]/
    if (kind == "slot") return s ~ /_slot\[[0-9]+\]/ || (!kernel && s ~ /\/\* [fglx][a-z] \*\/ [0-9]/)
    if (kind == "number") return kernel && s ~ /\/\* (rows|in|out|n|width|batch|heads|index|count|seq) \*\/ [0-9]/
    return 0
}
function more(s, pattern,    head, number) {            # the number behind the pattern becomes one more, or 0 one
    match(s, pattern)
    head = substr(s, 1, RSTART + RLENGTH - 1)
    s = substr(s, RSTART + RLENGTH)
    match(s, /^[0-9]+/)
    number = substr(s, 1, RLENGTH)
    return head (number + 1) substr(s, RLENGTH + 1)
}
function changed(s,    a, b, head) {
    if (kind == "shift") {
        match(s, /[AS]\([^()]*\)/)
        return substr(s, 1, RSTART + RLENGTH - 2) " + 64" substr(s, RSTART + RLENGTH - 1)
    }
    if (kind == "swap") {
        match(s, /[AS]\([^()]*\)/)
        a = substr(s, RSTART, RLENGTH)
        head = substr(s, 1, RSTART - 1)
        s = substr(s, RSTART + RLENGTH)
        match(s, /[AS]\([^()]*\)/)
        b = substr(s, RSTART, RLENGTH)
        return head b substr(s, 1, RSTART - 1) a substr(s, RSTART + RLENGTH)
    }
    if (kind == "skip" || kind == "wait" || (kind == "edit" && from == ".")) return ""
    if (kind == "edit") { sub(from, to, s); return s }
    if (kind == "double" || kind == "twice") return s s
    if (kind == "micro") return more(s, "/\\* mb \\*/ ")
    if (kind == "peer") return more(s, "/\\* peer \\*/ ")
    if (kind == "tag") return more(s, "/\\* tag \\*/ ")
    if (kind == "shrink") { sub(/\/\* bytes \*\/ [^)]*/, "/* bytes */ 64", s); return s }
    if (kind == "acc") {
        sub(s ~ /acc \*\/ 0/ ? "acc \\*/ 0" : "acc \\*/ 1", s ~ /acc \*\/ 0/ ? "acc */ 1" : "acc */ 0", s)
        return s
    }
    if (kind == "slot") return s ~ /_slot\[[0-9]+\]/ ? more(s, "_slot\\[") : more(s, "/\\* [fglx][a-z] \\*/ ")
    if (kind == "number") return more(s, "/\\* (rows|in|out|n|width|batch|heads|index|count|seq) \\*/ ")
    return s
}
{ text = text $0 "\n" }
END {
    while (match(text, /[;{}]/)) {
        s = substr(text, 1, RSTART); text = substr(text, RSTART + 1)
        # a comment, or a text in quotes, may hold ; or { }
        while ((gsub(/\/\*/, "&", s) > gsub(/\*\//, "&", s) || gsub(/"/, "&", s) % 2) && match(text, /[;{}]/)) {
            s = s substr(text, 1, RSTART); text = substr(text, RSTART + 1)
        }
        list[++n] = s
    }
    kinds = split("shift swap skip wait micro peer shrink acc slot tag number double order", all, " ")
    for (i = 1; i <= n; i++) {
        if (list[i] ~ /\{$/) routine = list[i]
        inside = routine ~ /\(Stage \*st/ && routine !~ /_(evaluate|eval|open)\(/
        for (k = 1; k <= kinds && at == "" && inside && list[i] ~ /;$/; k++) {
            kind = all[k]
            there[kind] += fits(list[i]) && (kind != "order" || fits(list[i + 1]))
        }
        takes = at != "" && inside && !done && list[i] ~ /;$/ && fits(list[i])
        if (takes && (kind != "order" || fits(list[i + 1])) && ++seen == at) {
            done = 1
            if (kind == "order") { s = list[i]; list[i] = list[i + 1]; list[i + 1] = s }
            else if (kind == "early") {
                for (j = i - 1; j > 1 && index(list[j], past "(") == 0; j--) continue
                early[j] = list[i]
                list[i] = ""
            }
            else list[i] = changed(list[i])
        }
    }
    for (k = 1; k <= kinds && at == ""; k++) print all[k], there[all[k]] + 0
    if (at == "") exit
    for (i = 1; i <= n; i++) out(early[i] list[i])
    out(text)
    exit done ? 0 : 3
}
