# SPDX-License-Identifier: Apache-2.0
#
# options.awk: docs/man/dpgen.1 with its commands and options, which are those of gen/options.def.
#
#   awk -f tools/options.awk gen/schedules.def gen/options.def docs/man/dpgen.1 > dpgen.1
#
# Its lines @SYNOPSIS@, @COMMANDS@ and @OPTIONS@ are replaced.

function escaped(text) { gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); return (text ~ /^[.']/ ? "\\&" : "") text }
function sentence(text) {
    if (text ~ /^[a-z]+[ ,]/) text = toupper(substr(text, 1, 1)) substr(text, 2)
    gsub(/\. /, ".\n", text)
    return escaped(text) "."
}
# The commands of a row, where it is not for all that read a model
function of(bits) {
    if (bits ~ /MODELS|PLANS|^GENERATE$/) return ""
    gsub(/ *\| */, ", ", bits)
    sub(/GENERATE/, "MODEL.yaml", bits)
    return "For " tolower(bits) ": "
}
function form(text,    word, n, i) {
    n = split(text, word, " ")
    for (i = 1; i <= n; i++)
        if (word[i] ~ /^\[/) print ".Op Ar " substr(word[i], 2, length(word[i]) - 2)
        else if (word[i] ~ /^-/) print ".Fl " escaped(substr(word[i], 2)) " Ar " word[++i]
        else if (word[i + 1] == "|") { print ".Ar " word[i] " | " word[i + 2]; i += 2 }
        else print ".Ar " word[i]
}
# VERB(...) and OPTION(...): their strings in part[2], part[4], ..., and the bits between two of them
function row(text,    part, n, i, about) {
    n = split(text, part, "\"")
    for (i = 6; i < n; i += 2) about = about part[i]
    if (text ~ /^VERB/) {
        gsub(/[ ,]/, "", part[3])
        synopsis[verbs] = part[4]; called[verbs] = part[2]; own[verbs] = part[3] == "NEW"; does[verbs++] = about
        return
    }
    match(part[5], /[A-Z~&| ]+/)
    bits = substr(part[5], RSTART, RLENGTH)
    gsub(/^ +| +$/, "", bits)
    if (part[2] == "--schedule") for (i = 0; i < names; i++) about = about (i ? ", " : " ") name[i]
    option[options] = "Fl " escaped(substr(part[2], 2)) (part[4] == "" ? "" : " Ar " escaped(part[4]))
    means[options++] = of(bits) about
}

BEGIN { verbs = options = names = 0 }
/^SCHEDULE\("/ && FILENAME ~ /schedules.def$/ { split($0, cell, "\""); name[names++] = cell[2] }
FILENAME ~ /\.def$/ {
    if (/^(VERB|OPTION)\(/) text = ""
    text = text $0
    if (/\)$/ && text ~ /^(VERB|OPTION)\(/) { row(text); text = "" }
    next
}
/^@SYNOPSIS@$/ {
    for (i = 0; i < verbs; i++) {
        print ".Nm"
        if (called[i] != "") print ".Cm " called[i]
        form(synopsis[i])
        if (!own[i]) print ".Op Ar option ..."
    }
    next
}
/^@COMMANDS@$/ { for (i = 0; i < verbs; i++) if (called[i] != "") print ".It Cm " called[i] "\n" sentence(does[i]); next }
/^@OPTIONS@$/ { for (i = 0; i < options; i++) print ".It " option[i] "\n" sentence(means[i]); next }
{ print }
