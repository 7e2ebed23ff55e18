#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every file that git tracks names its licence, or REUSE.toml does for it; LICENSES/ has the text of each licence that is
# named, and no other; the runtime's files agree with LICENSE.  `reuse lint` is asked where it is installed.
. "$(dirname "$0")/lib.sh"
if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    skip "no git: which files there are"
    finish
fi

# Patterns of the tables that name a licence: PATTERN ID a line, in order; the last that fits counts
awk '
    /^\[\[annotations\]\]/ { flush(); next }
    /^path/ { inside = 1 }
    inside { text = text $0; if ($0 !~ /\[/ || $0 ~ /\]/) inside = 0; if (text ~ /\[/ && text !~ /\]/) inside = 1 }
    /^SPDX-License-Identifier/ { gsub(/^[^"]*"|"$/, ""); id = $0 }
    function flush(   n, part, i) {
        n = split(text, part, "\"")
        for (i = 2; id != "" && i <= n; i += 2) print part[i], id
        text = id = ""
    }
    END { flush() }' REUSE.toml >"$tmp/patterns"

# FILE ID a line: its own tag in the first three lines, or that of the last pattern; ** crosses folders and * does not
git ls-files | grep -v '^LICENSE' >"$tmp/files"
awk '
    FNR == NR {
        gsub(/\./, "\\.", $1); gsub(/\*\*/, "\001", $1); gsub(/\*/, "[^/]*", $1); gsub(/\001/, ".*", $1)
        form[n++] = "^" $1 "$"
        of[n - 1] = $2
        next
    }
    {
        id = ""
        for (i = 0; i < n; i++) if ($0 ~ form[i]) id = of[i]
        for (i = 0; i < 3 && (getline line < $0) > 0; i++)
            if (match(line, /SPDX-Licen[s]e-Identifier: [A-Za-z0-9.-]+/))
                { id = substr(line, RSTART, RLENGTH); sub(/.*: /, "", id); break }
        close($0)
        print $0, id
    }' "$tmp/patterns" "$tmp/files" >"$tmp/licences"
while read -r file id; do
    [ -n "$id" ] || fault "$file names no licence, and REUSE.toml has no pattern for it"
done <"$tmp/licences"
awk 'NF == 2 { print $2 }' "$tmp/licences" | sort >"$tmp/ids"
passed=$(wc -l <"$tmp/ids")
sort -u "$tmp/ids" >"$tmp/named"
ls LICENSES | sed 's/\.txt$//' | sort >"$tmp/texts"
expect "LICENSES/ has what is named: $(diff "$tmp/named" "$tmp/texts" | tr '\n' ' ')" cmp "$tmp/named" "$tmp/texts"
expect "LICENSE is the text of Apache-2.0" cmp LICENSE LICENSES/Apache-2.0.txt
expect "the runtime is Apache-2.0" test -z "$(grep -L 'Licen[s]e-Identifier: Apache-2.0' $(git ls-files rt))"
expect "templates name none" test -z "$(grep -l 'SPDX-License-Identifier' templates/*)"
if command -v reuse >/dev/null 2>&1; then expect "reuse lint" reuse lint --quiet
else skip "no reuse: its own judgement"; fi
finish
