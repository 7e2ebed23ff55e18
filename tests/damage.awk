# SPDX-License-Identifier: Apache-2.0
#
# damage.awk: a plan as text, with one or two changes that still can be read.
#
#     awk -v seed=N -f damage.awk PLAN > PLAN'
#
# A number becomes its neighbour, 0, or what another line of the kind has under the same key.  A name becomes such a name.  A
# line is taken out, doubled, or changes places with one of the next twelve.  Numbers are drawn as Park and Miller do (Random
# Number Generators: Good Ones Are Hard to Find, 1988), so that every awk makes the same file of one seed.

function draw(n) { seed = seed * 16807 % 2147483647; return int(seed / 7) % n }

BEGIN { seed = (seed * 2654435 + 12345) % 2147483646 + 1; for (i = 0; i < 5; i++) draw(2) }
/^(chunk|place|fate|device|order|pool|buf|host|routine|call|action|eval) / { body[bodies++] = NR }
{ line[NR] = $0 }

# The line that changes: kinds are equally likely, for a plan has many actions and few chunks.
function pick(   i, k, kind, kinds, word) {
    kinds = 0
    for (i = 0; i < bodies; i++) {
        split(line[body[i]], word, " ")
        if (!(word[1] in seen))
            seen[word[1]] = kinds++
    }
    kind = draw(kinds)
    for (i = draw(bodies); ; i = (i + 1) % bodies) {
        split(line[body[i]], word, " ")
        if (seen[word[1]] == kind)
            return body[i]
    }
}

# What some other line of the kind has under the key; else the value itself.
function another(at, kind, key, value,   i, k, n, word, tried) {
    for (tried = 0; tried < 40; tried++) {
        i = body[draw(bodies)]
        n = split(line[i], word, " ")
        if (word[1] != kind)
            continue
        for (k = 2; k <= n; k++)
            if (index(word[k], key "=") == 1 && substr(word[k], length(key) + 2) != value)
                return substr(word[k], length(key) + 2)
    }
    return value
}

# One element of a list: a number of slots, or a buffer of a call.
function element(at, kind, key, value,   n, part, i, out) {
    n = split(value, part, ",")
    i = 1 + draw(n)
    if (part[i] ~ /^-?[0-9]+$/)
        part[i] = draw(2) ? part[i] + 1 : (part[i] > 0 ? part[i] - 1 : 0)
    else
        part[i] = part[1 + draw(n)]
    out = part[1]
    for (i = 2; i <= n; i++)
        out = out "," part[i]
    return out
}

function change_word(at,   n, word, k, eq, key, value, i, out) {
    n = split(line[at], word, " ")
    k = 2 + draw(n - 1)
    eq = index(word[k], "=")
    if (!eq) {          # the device of an action, or the name of what the line is about
        if (word[k] ~ /^[0-9]+$/)
            word[k] = draw(2) ? word[k] + 1 : 0
    } else if (!draw(6)) {
        word[k] = ""            # as where the key has its usual value
    } else {
        key = substr(word[k], 1, eq - 1)
        value = substr(word[k], eq + 1)
        if (value ~ /,/)
            value = element(at, word[1], key, value)
        else if (value ~ /^-?[0-9]+$/ && draw(2))
            value = draw(3) ? value + 1 - 2 * draw(2) : (draw(2) ? 0 : value * 2)
        else
            value = another(at, word[1], key, value)
        word[k] = key "=" value
    }
    out = word[1]
    for (i = 2; i <= n; i++)
        if (word[i] != "")
            out = out " " word[i]
    line[at] = out
}

function change(   at, how, to, held) {
    at = pick()
    how = draw(10)
    if (how < 6) {
        change_word(at)
    } else if (how == 6) {
        line[at] = ""
    } else if (how == 7) {
        line[at] = line[at] "\n" line[at]
    } else {
        to = at + (how == 8 ? 1 : 1 + draw(12))
        if (to > NR)
            return
        held = line[at]
        line[at] = line[to]
        line[to] = held
    }
}

END {
    for (i = draw(4) ? 1 : 2; i > 0; i--)
        change()
    for (i = 1; i <= NR; i++)
        if (line[i] != "")
            print line[i]
}
