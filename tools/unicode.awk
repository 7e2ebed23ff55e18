# SPDX-License-Identifier: Apache-2.0
#
# unicode.awk: classes of characters, from the Unicode Character Database, as rows of rt/tokens/letters.def.
#
#   cd /usr/share/unicode && awk -f tools/unicode.awk PropList.txt DerivedNormalizationProps.txt UnicodeData.txt
#
# Bits: 1 letters (L*), 2 numbers (N*), 4 White_Space, 8 characters that NFC may change or move (NFC_QC other than Yes, or a
# combining class).  Unassigned characters have none.
function hex(text,    i, n) {
    for (i = 1; i <= length(text); i++) n = n * 16 + index("0123456789ABCDEF", substr(text, i, 1)) - 1
    return n
}
function mark(range, bit,    ends, i, to) {
    split(range, ends, /\.\./)
    to = hex(ends[2] != "" ? ends[2] : ends[1])
    for (i = hex(ends[1]); i <= to; i++) if (int(bits[i] / bit) % 2 == 0) bits[i] += bit
}
{ sub(/#.*/, ""); split($0, field, / *; */) }
FILENAME ~ /PropList/ && field[2] ~ /^White_Space/ { mark(field[1], 4) }
FILENAME ~ /DerivedNorm/ && field[2] == "NFC_QC" { mark(field[1], 8) }
FILENAME ~ /UnicodeData/ {
    if (field[2] ~ /First>$/) { first = field[1]; next }
    range = field[2] ~ /Last>$/ ? first ".." field[1] : field[1]
    if (field[3] ~ /^L/) mark(range, 1)
    if (field[3] ~ /^N/) mark(range, 2)
    if (field[4] != "0") mark(range, 8)
}
END {
    print "/* SPDX-License" "-Identifier: Apache-2.0\n *"
    print " * letters.def: R(first, last, bits), made by tools/unicode.awk from the data files of Unicode " \
          VERSION ".  Those are copyright"
    print " * Unicode, Inc., under the Unicode licence, which allows their use; these rows are facts from them. */"
    for (i = 0; i <= 1114112; i++)
        if (bits[i] + 0 != now) {
            if (now) line = line sprintf("R(%#x, %#x, %d) ", from, i - 1, now)
            if (length(line) > 105) { sub(/ $/, "", line); print line; line = "" }
            from = i
            now = bits[i] + 0
        }
    sub(/ $/, "", line)
    print line
}
