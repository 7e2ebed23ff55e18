# SPDX-License-Identifier: Apache-2.0
#
# Rows of verify/calls.def against the prototypes of rt/rt.h and the calls of gen/ops.def, which were written apart from them:
#   cat verify/calls.def verify/elements.def | awk -f verify_rows.awk - rt/rt.h gen/ops.def
# A row has the parameters of the prototype, by name or as ops.def calls them, and of its types: what is const is read, what
# is not is written.  An axis is one that ops.def may divide, of the call or of those that it joins, or the elements of a call
# of the update, and results have it.  Every call of ops.def has a row, and every row a prototype.  Prints what differs, then
# the number of rows.
function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
function fault(text) { print text; faults++ }
# of a parameter of a prototype: r, f, i, b, d or v for a pointer and whether it is const; l integer, s float
function kind(p,    t) {
    t = p
    sub(/[A-Za-z0-9_]+$/, "", t)
    t = trim(t)
    if (t == "const real *") return "cr"
    if (t == "real *") return "wr"
    if (t == "const float *") return "cf"
    if (t == "float *") return "wf"
    if (t == "const int32_t *") return "ci"
    if (t == "int32_t *") return "wi"
    if (t == "const double *") return "cd"
    if (t == "double *") return "wd"
    if (t == "const void *") return "cb"
    if (t == "void *") return "wb"
    if (t == "const Values *") return "cv"
    if (t == "Values *") return "wv"
    if (t == "float") return "s"
    return "l"
}
function agrees(k, mode, type) {
    mode = tolower(mode)
    if (k == "cv") return mode ~ /[vx]/
    if (k == "wv") return mode ~ /[vyz]/
    if (k == "s") return mode == "f"
    if (k == "l") return mode ~ /[ilkqgnsmch]/
    if (substr(k, 1, 1) == "c") return mode ~ /[reo]/ && type == substr(k, 2)
    return mode ~ /[waut]/ && type == substr(k, 2)
}
function keep(text,    name) {
    match(text, /\([a-z0-9_]+/)
    name = substr(text, RSTART + 1, RLENGTH - 1)
    team[name] = text ~ /^TEAM/
    if (text ~ /^JOINED/) joined[name] = substr(text, RSTART + RLENGTH)
    sub(/^[^"]*"/, "", text)
    gsub(/"[ \t]*"/, "", text)
    sub(/".*/, "", text)
    if (name in row) fault(name " has two rows")
    row[name] = text
    rows++
}
FNR == 1 { file++ }
file == 1 && /^(CALL|LANES|SUM|COPY|OTHER|JOINED|TEAM)\(/ { text = ""; open = 1 }
file == 1 && open {
    text = text $0
    if (/\)$/) {
        open = 0
        keep(text)
    }
}
file == 1 && /^ELEMENT\(/ {
    split($0, part, "\"")
    name = $2
    sub(/,/, "", name)
    keep("LANES(" name "_forward, \"w y:r n, r x:r n, n n" part[4] "\")")
    keep("LANES(" name "_backward, \"w dx:r n, r dy:r n, r " part[2] ":r n, n n" part[4] "\")")
}
file == 2 && /^void [a-z0-9_]+\(Stage \*st/ { proto = ""; open = 1 }
file == 2 && open {
    proto = proto " " trim($0)
    if (/;$/) {
        open = 0
        name = trim(proto)
        sub(/^void /, "", name)
        sub(/\(.*/, "", name)
        sub(/^[^(]*\(Stage \*st,? ?/, "", proto)
        sub(/\);.*/, "", proto)
        c[name] = proto
        has[name] = 1
    }
}
file == 3 {
    line = $0
    if (/^OP\(/) {
        split($0, part, "\"")
        axes = part[2] part[4] part[6] == "" ? "n" : part[8]
        gsub(/[^A-Za-z_*]+/, " ", axes)
    }
    while (match(line, /[a-z0-9_]+\([a-z0-9_, ]+\)/)) {
        call = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        name = call
        sub(/\(.*/, "", name)
        sub(/^[^(]*\(/, "", call)
        sub(/\)$/, "", call)
        if (name in has && !(name in words)) words[name] = call
        if (name in has) free[name] = free[name] " " axes " "
    }
}
END {
    for (name in words) if (!(name in row)) fault("ops.def calls " name ", and there is no row")
    for (name in joined)                        # a call that ops.def has not is divided as those in it
        for (text = joined[name]; !(name in words) && match(text, /[a-z0-9_]+\(/); text = substr(text, RSTART + RLENGTH))
            free[name] = free[name] free[substr(text, RSTART, RLENGTH - 1)]
    for (name in row) {
        if (!(name in has)) { fault(name " has no prototype in rt.h"); continue }
        if (name == "action") continue          # its text is no operand
        n = split(row[name], p, /, /)
        k = c[name] == "" ? 0 : split(c[name], q, /, /)
        w = name in words ? split(words[name], of, /, /) : 0
        if (n != k) { fault(name ": " n " parameters, rt.h has " k); continue }
        if (w && w != n) fault(name ": " n " parameters, ops.def has " w)
        odd = beside = ""
        axes = 0
        for (i = 1; i <= n; i++) {
            mode = substr(p[i], 1, 1)
            own = substr(p[i], 3)
            type = ""
            if (own ~ /:/) { type = substr(own, index(own, ":") + 1, 1); sub(/:.*/, "", own) }
            theirs = q[i]
            sub(/^.*[ *]/, "", theirs)
            if (own != theirs && (!w || own != of[i]))
                fault(name ": parameter " i " is " own " here, " theirs " in rt.h, " of[i] " in ops.def")
            if (mode ~ /[lq]/) axis[++axes] = own
            if (mode == "k") beside = beside "|" own
            if (mode ~ /[lqg]/ && !team[name] && !index(free[name], " " own " ")) odd = own
            if (mode == "k" && index(free[name], " " own " ")) odd = ""
            if (!agrees(kind(q[i]), mode, type)) fault(name ": " own " is '" p[i] "' here, '" q[i] "' in rt.h")
        }
        if (odd != "") fault(name ": ops.def divides nothing along " odd)
        for (k = 1; k <= axes && !team[name]; k++)
            for (i = 1; i <= n; i++)
                if (p[i] ~ /^w/ && (p[i] "*") !~ ("[ *](" axis[k] beside ")[*]"))
                    fault(name ": a sum along " axis[k] ": " p[i])
    }
    print rows " rows"
    exit faults > 0
}
