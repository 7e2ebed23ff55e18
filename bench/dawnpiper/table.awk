# SPDX-License-Identifier: Apache-2.0
# Rows of run.sh as a table, one line a model and machine: b* of each planner, samples/s there and at its best size, and the
# ratios of exact to the others.
#   MODEL STAGES DEVICES PLANNER B RATE ANY RATE BEST RATE TRIED GIVEN-UP
{
    k = $1 " " $2 " " $3
    if (!(k in seen)) { seen[k] = 1; order[++n] = k }
    b[k, $4] = $5; at[k, $4] = $6; any[k, $4] = $7; top[k, $4] = $10; up[k, $4] = $12
}
function cell(k, p) {
    if (!((k, p) in b)) return "."
    if (b[k, p] == 0) return "-"
    return sprintf("%d%s %.1f %.1f", b[k, p], up[k, p] ? "+" : "", at[k, p], top[k, p])
}
function ratio(x, y) { return x > 0 && y > 0 ? sprintf("%.2f", x / y) : "-" }
END {
    split("pipedream:published pipedream:strong vpipe:repo vpipe:paper interval exact", p, " ")
    printf "b*, samples/s at b*, samples/s at the best size.  -: nothing fits.  .: not run.  +: sizes were given up\n"
    printf "%-10s %-2s %-10s", "model", "p", "devices"
    for (i = 1; i <= 6; i++) printf "  %-19s", p[i]
    printf "  %-28s  %s\n", "exact's b* over", "exact's best rate over"
    printf "%-24s", ""
    for (i = 1; i <= 6; i++) printf "  %-19s", ""
    printf "  %-6s %-6s %-6s %-6s    %-6s %-6s %-6s\n", "publ.", "strong", "repo", "paper", "strong", "repo", "paper"
    for (r = 1; r <= n; r++) {
        k = order[r]
        split(k, w, " ")
        printf "%-10s %-2s %-10s", w[1], w[2], w[3]
        for (i = 1; i <= 6; i++) printf "  %-19s", cell(k, p[i])
        printf "  "
        for (i = 1; i <= 4; i++) printf "%-6s ", ratio(b[k, "exact"], b[k, p[i]])
        printf "   "
        for (i = 2; i <= 4; i++) printf "%-6s ", ratio(top[k, "exact"], top[k, p[i]])
        printf "\n"
    }
}
