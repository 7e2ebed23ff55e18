# SPDX-License-Identifier: Apache-2.0
#
# normal.awk: canonical decompositions and combining classes, from the Unicode Character Database, as rows of
# rt/tokens/normal.def.
#
#   cd /usr/share/unicode && awk -v VERSION=15.0.0 -f tools/normal.awk DerivedNormalizationProps.txt UnicodeData.txt
#
# D(whole, first, second): whole is these two, and these two are whole again.  X: they are not.  second 0: there is one.
# K(first, last, class): the combining class of a run.
function hex(text,    i, n) {
    for (i = 1; i <= length(text); i++) n = n * 16 + index("0123456789ABCDEF", substr(text, i, 1)) - 1
    return n
}
function put(row) {
    if (length(line) + length(row) > 126) { sub(/ $/, "", line); print line; line = "" }
    line = line row " "
}
function end_run() { if (class) put(sprintf("K(%#x, %#x, %d)", from, last, class)); class = 0 }
BEGIN {
    print "/* SPDX-License" "-Identifier: Apache-2.0\n *"
    print " * normal.def: decompositions and classes of characters, made by tools/normal.awk from the data " \
          "files of Unicode " VERSION ".\n * Those are copyright Unicode, Inc., under the Unicode licence, which allows " \
          "their use; these rows are facts from them. */"
}
{ sub(/#.*/, ""); split($0, field, / *; */) }
FILENAME ~ /DerivedNorm/ && field[2] ~ /^Full_Composition_Exclusion/ {
    n = split(field[1], ends, /\.\./)
    sub(/ .*/, "", ends[n])
    for (i = hex(ends[1]); i <= hex(ends[n]); i++) excluded[i] = 1
}
FILENAME ~ /UnicodeData/ {
    at = hex(field[1])
    if (field[4] + 0 != class || at != last + 1) { end_run(); from = at }
    class = field[4] + 0
    last = at
    if (field[6] != "" && field[6] !~ /</) {
        n = split(field[6], parts, / /)
        rows[++count] = sprintf("%s(%#x, %#x, %#x)", at in excluded ? "X" : "D", at, hex(parts[1]), n > 1 ? hex(parts[2]) : 0)
    }
}
END {
    end_run()
    for (i = 1; i <= count; i++) put(rows[i])
    sub(/ $/, "", line)
    print line
}
