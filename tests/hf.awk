# SPDX-License-Identifier: Apache-2.0
#
# Files of tests/hf as folders of TO: config.json, config5.json, loss, tensors as tests/safe.c reads them, and grads as
# tests/compare.c does.
#   awk -v to=TO -f tests/hf.awk tests/hf/FAMILY...

# JSON of one line, as Python indents it
function indented(text,   i, c, d, inside, depth, out) {
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1); d = substr(text, i + 1, 1)
        if (c == "\\") { out = out c d; i++; continue }
        if (c == "\"") inside = !inside
        if (!inside && c ~ /[]}]/ && out !~ /[[{]$/) out = out "\n" sprintf("%" 2 * --depth "s", "")
        if (inside || c !~ /[ ,:]/) out = out c
        else if (c == ",") out = out c "\n" sprintf("%" 2 * depth "s", "")
        else if (c == ":") out = out ": "
        if (!inside && c ~ /[[{]/ && d !~ /[]}]/) out = out "\n" sprintf("%" 2 * ++depth "s", "")
    }
    return out
}

# Names with the numbers of each {A-B}, in n[1..]
function unfold(name,   from, to, i, head, tail) {
    if (!match(name, /[{][0-9]+-[0-9]+[}]/)) { n[++count] = name; return }
    head = substr(name, 1, RSTART - 1); tail = substr(name, RSTART + RLENGTH)
    split(substr(name, RSTART + 1, RLENGTH - 2), range, "-")
    from = range[1] + 0; to = range[2] + 0
    for (i = from; i <= to; i++) unfold(head i tail)
}

function shut() { close(dir "/grads"); close(sorted) }

FNR == 1 {
    if (dir) shut()
    dir = FILENAME; sub(/.*\//, "", dir); dir = to "/" dir
    system("mkdir -p '" dir "'")
    sorted = "LC_ALL=C sort >'" dir "/tensors'"
}
/^(config|newer) / {
    file = dir ($1 == "config" ? "/config.json" : "/config5.json")
    print indented(substr($0, index($0, " ") + 1)) >file; close(file)
    next
}
/^loss / { print $2 >(dir "/loss"); close(dir "/loss"); next }
{
    count = 0
    unfold($1)
    for (i = 1; i <= count; i++) {
        if ($2 != "-") print n[i], $2, $3 | sorted
        if (NF == 5) print n[i], (i < count && $4 >= 0 ? "+" : $4 " " $5) >(dir "/grads")
    }
}
END { shut() }
