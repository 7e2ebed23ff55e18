# SPDX-License-Identifier: Apache-2.0
#
# normal.awk: canonical decompositions and combining classes, from the Unicode Character Database, as rows of
# rt/tokens/normal.def; with -v COMPAT=1 what characters stand for (compatibility), as rows of rt/tokens/compat.def.
#
#   cd /usr/share/unicode && awk -v VERSION=15.0.0 -f tools/normal.awk DerivedNormalizationProps.txt DerivedAge.txt \
#       UnicodeData.txt
#
# Characters that came after Unicode 9 are left as they are, as the library `tokenizers` leaves them.
#
# D(whole, first, second): whole is these two, and these two are whole again.  X: they are not.  second 0: there is one.
# K(first, last, class): the combining class of a run.  C(c, parts): what c stands for.  S(first, last, c): a run that stands
# for the run that begins with c.
function hex(text,    i, n) {
    for (i = 1; i <= length(text); i++) n = n * 16 + index("0123456789ABCDEF", substr(text, i, 1)) - 1
    return n
}
function put(row) {
    if (length(row) > 126) sub(/, 0x20,/, ",\n    0x20,", row)
    if (length(line) + length(row) > 126) { sub(/ $/, "", line); print line; line = "" }
    line = line row " "
}
function end_run() { if (class && !COMPAT) put(sprintf("K(%#x, %#x, %d)", from, last, class)); class = 0 }
function end_alike() {
    if (alike > 1) rows[++count] = sprintf("S(%#x, %#x, %#x)", start, start + alike - 1, as)
    if (alike == 1) rows[++count] = sprintf("C(%#x, %#x)", start, as)
    alike = 0
}
# A character that stands for the parts from the second one on: the first says how.
function stands(at, parts, n,    i, row) {
    if (n == 2 && alike && at == start + alike && hex(parts[2]) == as + alike) { alike++; return }
    end_alike()
    if (n == 2) { start = at; as = hex(parts[2]); alike = 1; return }
    for (i = 2; i <= n; i++) row = row sprintf(", %#x", hex(parts[i]))
    rows[++count] = sprintf("C(%#x%s)", at, row)
}
BEGIN {
    print "/* SPDX-License" "-Identifier: Apache-2.0\n *"
    print " * " (COMPAT ? "compat.def: what characters stand for" : "normal.def: decompositions and classes of characters") \
          ", made by tools/normal.awk from the data files of Unicode " VERSION "."
    print " * Those are copyright Unicode, Inc., under the Unicode licence, which allows their use; these rows are facts from" \
          " them. */"
}
{ sub(/#.*/, ""); split($0, field, / *; */) }
FILENAME ~ /DerivedNorm/ && field[2] ~ /^Full_Composition_Exclusion/ {
    n = split(field[1], ends, /\.\./)
    sub(/ .*/, "", ends[n])
    for (i = hex(ends[1]); i <= hex(ends[n]); i++) excluded[i] = 1
}
FILENAME ~ /DerivedAge/ && field[2] + 0 > 9 {
    n = split(field[1], ends, /\.\./)
    sub(/ .*/, "", ends[n])
    for (i = hex(ends[1]); i <= hex(ends[n]); i++) later[i] = 1
}
FILENAME ~ /UnicodeData/ {
    at = hex(field[1])
    if (at in later) next
    if (field[4] + 0 != class || at != last + 1) { end_run(); from = at }
    class = field[4] + 0
    last = at
    n = split(field[6], parts, / /)
    if (COMPAT && field[6] ~ /</) stands(at, parts, n)
    if (!COMPAT && field[6] != "" && field[6] !~ /</) {
        rows[++count] = sprintf("%s(%#x, %#x, %#x)", at in excluded ? "X" : "D", at, hex(parts[1]), n > 1 ? hex(parts[2]) : 0)
    }
}
END {
    end_run()
    end_alike()
    for (i = 1; i <= count; i++) put(rows[i])
    sub(/ $/, "", line)
    print line
}
