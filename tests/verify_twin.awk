# SPDX-License-Identifier: Apache-2.0
#
# Stubs of all calls of a stage, for tests/verify_twin.c:
#   cat verify/calls.def verify/elements.def | awk -f verify_twin.awk - rt/rt.h
# A stub has the prototype of rt.h; the C compiler computes the extents of calls.def from its arguments.
FNR == 1 { file++ }
file == 1 && /^(CALL|LANES|SUM|COPY|JOINED|OTHER|TEAM)\(/ { row = "" ; on = 1 }
file == 1 && on {
    row = row " " $0
    if ($0 ~ /"\)$/) { keep(row); on = 0 }
}
file == 1 && /^ELEMENT\(/ {
    split($0, part, "\"")
    name = $2; sub(/,/, "", name)
    keep("LANES(" name "_forward, \"w y:r n, r x:r n, n n" part[4] "\")")
    keep("LANES(" name "_backward, \"w dx:r n, r dy:r n, r " part[2] ":r n, n n" part[4] "\")")
}
function keep(s,    kind, name) {
    gsub(/" +"/, "", s)
    kind = s; sub(/^ */, "", kind); sub(/\(.*/, "", kind)
    name = s; sub(/^[^(]*\(/, "", name); sub(/,.*/, "", name)
    sub(/^[^"]*"/, "", s); sub(/".*/, "", s)
    kinds[name] = kind
    params[name] = s
}
file == 2 && /^void [a-z_0-9]+\(Stage \*st/ { line = "" ; in_call = 1 }
file == 2 && in_call {
    line = line " " $0
    if (/\);/) { in_call = 0; stub(line) }
}
function stub(s,    name, n, list, k, mode, word, type, extent, w, optional, lane, args, given) {
    sub(/\);.*/, ")", s)
    name = s; sub(/^ *void /, "", name); sub(/\(.*/, "", name)
    if (!(name in kinds) || kinds[name] == "OTHER") return
    print s "\n{"
    printf "    Call to_do = begin(st, \"%s\", %s);\n", name, kinds[name]
    n = split(params[name], list, /, /)
    args = s; sub(/^[^(]*\(Stage \*st,? */, "", args); sub(/\)$/, "", args)
    split(args, given, /, */)
    for (k = 1; k <= n; k++) {
        mode = substr(list[k], 1, 1)
        word = substr(list[k], 3)
        optional = mode ~ /[A-Z]/ || (word ~ /^d/ && mode ~ /[wa]/)
        mode = tolower(mode)
        if (word ~ /:/) {
            type = substr(word, index(word, ":") + 1, 1)
            extent = word; sub(/^[^ ]* /, "", extent)
            word = given[k]; sub(/.*[ *]/, "", word)
            w = type == "r" ? "(long)sizeof(real)" : type == "f" || type == "i" ? "4" : type == "d" ? "8" : "1"
            lane = kinds[name] == "LANES" ? extent == "n" : kinds[name] ~ /SUM|COPY/
            gsub(/real/, "(long)sizeof(real)", extent)
            gsub(/drops/, "(drop != 0)", extent)
            gsub(/devices/, "team()", extent)
            printf "    operand(&to_do, '%s', %s, %s, (long)(%s), %d, %d);\n", mode, word, w, extent, optional, lane
        } else if (mode ~ /[ilkqg]/) printf "    literal(&to_do, (int64_t)%s);\n", word
        else if (mode == "f") printf "    real_literal(&to_do, %s);\n", word
        else if (mode == "s") printf "    literal(&to_do, drop != 0 ? (int64_t)%s : 0);\n", word
        else if (mode == "m") printf "    literal(&to_do, (int64_t)%s);\n", word
        else if (mode == "c") printf "    to_do.acc = %s != 0;\n", word
        else if (mode ~ /[vxyz]/) printf "    values(&to_do, '%s', %s, %s);\n", mode, word, mode ~ /[xz]/ ? "count" : "0"
    }
    print "    run(&to_do);\n}"
}
