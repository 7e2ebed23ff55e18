# SPDX-License-Identifier: Apache-2.0
#
# man.awk: docs/model.md as the manual page dpgen-model(5), so that one text serves both.
#
#   awk -v version=0.2.0 -f tools/man.awk docs/model.md > dpgen-model.5
#
# It knows the Markdown that the page uses: headings, paragraphs, indented code, tables.  The first column of a table is the
# key, the last one its meaning, and those between stand in parentheses, each behind the title of its column.

function plain(text,    out, i, c, code) {
    while (match(text, /\[[^]]*\]\([^)]*\)/)) {
        c = substr(text, RSTART + 1, RLENGTH - 2)
        sub(/\]\(.*/, "", c)
        text = substr(text, 1, RSTART - 1) c substr(text, RSTART + RLENGTH)
    }
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "`") { code = !code; out = out (code ? "\\fB" : "\\fR") }
        else if (c == "\\") out = out "\\e"
        else if (c == "-" && code) out = out "\\-"
        else out = out c
    }
    if (out ~ /^[.']/) out = "\\&" out
    return out
}
function quoted(text) { gsub(/"/, "\\(dq", text); return "\"" text "\"" }
function leave(   n) {
    if (mode == "code") print ".Ed"
    if (mode == "table") print ".El"
    gap = mode != ""
    mode = ""
}
function row(line,    n, cell, i, note) {
    gsub(/^\| *| *\| *$/, "", line)
    n = split(line, cell, / *\| */)
    if (mode != "table") {
        leave()
        mode = "table"
        columns = n
        for (i = 1; i <= n; i++) title[i] = cell[i]
        print ".Bl -tag -width Ds"
        return
    }
    if (cell[1] ~ /^-+$/) return
    for (i = 2; i < columns; i++)
        if (cell[i] != "") note = note (note == "" ? "" : "; ") (title[i] == "default" ? "default " : "") plain(cell[i])
    print ".It " quoted(plain(cell[1]) (note == "" ? "" : " \\ (" note ")"))
    print cell[columns] == "" ? "\\&" : plain(cell[columns])
}

BEGIN {
    print ".Dd $Mdocdate$\n.Dt DPGEN-MODEL 5\n.Os dpgen " version
    print ".Sh NAME\n.Nm dpgen-model\n.Nd the model file of dpgen\n.Sh DESCRIPTION"
}
/^# / { next }
/^## / { leave(); gap = 0; print ".Sh " toupper(plain(substr($0, 4))); text = 0; next }
/^### / { leave(); gap = 0; print ".Ss " plain(substr($0, 5)); text = 0; next }
/^\|/ { row($0); next }
/^    / {
    if (mode != "code") { leave(); mode = "code"; print ".Bd -literal -offset indent" }
    while (blank-- > 0) print ""
    line = substr($0, 5)
    gsub(/\\/, "\\e", line)
    print (line ~ /^[.']/ ? "\\&" : "") line
    blank = 0
    next
}
/^$/ { if (mode == "code") blank = 1; else if (mode == "") gap = text; else leave(); text = 0; next }
{
    if (mode != "") leave()
    if (gap) print ".Pp"
    gap = blank = 0
    text = 1
    print plain($0)
}
END { leave(); print ".Sh SEE ALSO\n.Xr dpgen 1" }
