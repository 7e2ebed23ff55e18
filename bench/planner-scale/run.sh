#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The table of scale.c, and its picture: seconds over operators, one line a number of devices, both axes logarithmic.
cd "$(dirname "$0")/../.." || exit 2
out=bench/results/planner-scale
if [ "$1" != --plot ]; then
    make -s build/libgen.a || exit 2
    cc -D_POSIX_C_SOURCE=200809L -I. -Igen -Itests -std=c11 -O2 -o build/scale bench/planner-scale/scale.c \
        build/libgen.a -lyaml -lm -ldl || exit 2
    { echo "# $(git rev-parse --short HEAD)"; echo "# graph operators devices limit seconds gap"; build/scale; } >"$out.txt"
fi
awk '
function x(n) { return 60 + 520 * log(n / 100) / log(100) }
function y(s) { return 340 - 300 * log(s / 0.001) / log(10000) }
BEGIN {
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 680 400\" font-family=\"sans-serif\" font-size=\"12\">"
    print "<text x=\"60\" y=\"20\">planner seconds over operators: layered graphs, no limit (solid) and 60 % (dashed)</text>"
    for (n = 100; n <= 10000; n *= 10)
        printf "<path d=\"M%d 40V340\" stroke=\"#ddd\"/><text x=\"%d\" y=\"356\">%d</text>\n", x(n), x(n) - 10, n
    for (s = 0.001; s < 11; s *= 10)
        printf "<path d=\"M60 %dH580\" stroke=\"#ddd\"/><text x=\"20\" y=\"%d\">%g s</text>\n", y(s), y(s) + 4, s
    split("#1f77b4 #ff7f0e #2ca02c #d62728 #9467bd #8c564b", color, " ")
    split("2 4 8 16 32 64", count, " ")
    for (i in count) shade[count[i]] = color[i]
}
$1 == "layered" {
    at = x($2) " " y($5 < 0.001 ? 0.001 : $5)
    line[$3, $4] = line[$3, $4] (line[$3, $4] ? "\nL" : "M") at
    end[$3, $4] = y($5)
}
END {
    for (k in line) {
        split(k, part, SUBSEP)
        printf "<path d=\"%s\" fill=\"none\" stroke=\"%s\"%s/>\n", line[k], shade[part[1]],
               part[2] == "-" ? "" : " stroke-dasharray=\"4 3\""
        if (part[2] == "-")
            printf "<text x=\"590\" y=\"%d\" fill=\"%s\">%d devices</text>\n", end[k] + 4, shade[part[1]], part[1]
    }
    print "</svg>"
}' "$out.txt" >"$out.svg"
