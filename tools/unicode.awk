# SPDX-License-Identifier: Apache-2.0
#
# unicode.awk: classes of characters, from the Unicode Character Database, as rows of rt/tokens/letters.def.
#
#   cd /usr/share/unicode && awk -v VERSION=15.0.0 -f tools/unicode.awk PropList.txt DerivedNormalizationProps.txt \
#       DerivedAge.txt auxiliary/GraphemeBreakProperty.txt UnicodeData.txt
#
# Bits: 1 letters (L*), 2 numbers (N*), 4 White_Space, 8 characters that NFC may change or move (NFC_QC other than Yes, or a
# combining class).  Unassigned characters have none.  What tokenizers change or cut at has the version of the tables of the
# library `tokenizers`: 8, and 16 marks (M*), of Unicode 9; of Unicode 8, 32 marks without width (Mn), 64 punctuation (P*, and
# all signs of ASCII), 128 others (Cc, Cf, Co).  Grapheme_Cluster_Break: 256 Extend, ZWJ and SpacingMark, 512 Prepend,
# 1024 Control, CR and LF.
#
# L(first, last, step, to): the small letters of every step-th character of a run; that of the first one is `to`.
function hex(text,    i, n) {
    for (i = 1; i <= length(text); i++) n = n * 16 + index("0123456789ABCDEF", substr(text, i, 1)) - 1
    return n
}
function first_of(range) { sub(/\.\..*/, "", range); return hex(range) }
function last_of(range) { sub(/.*\.\./, "", range); return hex(range) }
function mark(range, bit,    i, to) {
    to = last_of(range)
    for (i = first_of(range); i <= to; i++) if (int(bits[i] / bit) % 2 == 0) bits[i] += bit
}
function put(row) {
    if (length(line) + length(row) > 126) { sub(/ $/, "", line); print line; line = "" }
    line = line row " "
}
# Of a run that begins at i: its characters are that old.
function mark_old(range, most, bit,    i, to) {
    to = last_of(range)
    for (i = first_of(range); i <= to; i++) if (i in age && age[i] <= most) bits[i] += bit
}
function end_lower() { if (count) put(sprintf("L(%#x, %#x, %d, %#x)", from, last, count > 1 ? step : 1, to)); count = 0 }
function lower(c, small) {
    if (count && c - last == (count > 1 ? step : c - last) && c - last <= 2 && small - to == c - from) step = c - last
    else { end_lower(); from = c; to = small }
    last = c
    count++
}
BEGIN {     # categories that were others in Unicode 8, and in Unicode 9
    was8["1734"] = "Mn"; was8["1885"] = was8["1886"] = "Lo"; was8["A9BD"] = was8["1CF2"] = was8["1CF3"] = "Mc"
    was8["111C9"] = was8["166D"] = "Po"
    for (code in was8) if (code !~ /^188/) was9[code] = was8[code]
}
{ sub(/#.*/, ""); gsub(/ *; */, ";"); sub(/ *$/, ""); split($0, field, /;/) }
FILENAME ~ /PropList/ && field[2] == "White_Space" { mark(field[1], 4) }
FILENAME ~ /DerivedNorm/ && field[2] == "NFC_QC" {
    for (i = first_of(field[1]); i <= last_of(field[1]); i++) moves[i] = 1
}
FILENAME ~ /DerivedAge/ && field[2] != "" { for (i = first_of(field[1]); i <= last_of(field[1]); i++) age[i] = field[2] + 0 }
FILENAME ~ /Grapheme/ && field[2] ~ /^(Extend|ZWJ|SpacingMark)$/ { mark(field[1], 256) }
FILENAME ~ /Grapheme/ && field[2] == "Prepend" { mark(field[1], 512) }
FILENAME ~ /Grapheme/ && field[2] ~ /^(Control|CR|LF)$/ { mark(field[1], 1024) }
FILENAME ~ /UnicodeData/ {
    if (field[2] ~ /First>$/) { first = field[1]; next }
    range = field[2] ~ /Last>$/ ? first ".." field[1] : field[1]
    then = field[1] in was8 ? was8[field[1]] : field[3]
    if (field[3] ~ /^L/) mark(range, 1)
    if (field[3] ~ /^N/) mark(range, 2)
    if (field[4] != "0") moves[hex(field[1])] = 1
    if ((field[1] in was9 ? was9[field[1]] : field[3]) ~ /^M/) mark_old(range, 9, 16)
    if (then == "Mn") mark_old(range, 8, 32)
    if (then ~ /^P/ || (then ~ /^S/ && hex(field[1]) < 128)) mark_old(range, 8, 64)
    if (then ~ /^C[cfo]/) mark_old(range, 8, 128)
    if (field[14] != "") { smalls[++rows] = hex(field[1]); of[rows] = hex(field[14]) }
}
END {
    for (i in moves) if (age[i] <= 9) bits[i] += 8
    print "/* SPDX-License" "-Identifier: Apache-2.0\n *"
    print " * letters.def: R(first, last, bits) and L(first, last, step, to), made by tools/unicode.awk from the data files of"
    print " * Unicode " VERSION ".  Those are copyright Unicode, Inc., under the Unicode licence, which allows their use; these"
    print " * rows are facts from them. */"
    for (i = 0; i <= 1114112; i++)
        if (bits[i] + 0 != now) {
            if (now) put(sprintf("R(%#x, %#x, %d)", start, i - 1, now))
            start = i
            now = bits[i] + 0
        }
    for (i = 1; i <= rows; i++) lower(smalls[i], of[i])
    end_lower()
    sub(/ $/, "", line)
    print line
}
