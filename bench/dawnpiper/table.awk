# SPDX-License-Identifier: Apache-2.0
# Rows of run.sh as three tables, one line a model and machine: b* of each planner and how exact's compares; samples/s; and
# exact's samples/s over each rival's at the rival's own b*, from rows exact@B.
#   MODEL STAGES DEVICES PLANNER B RATE ANY RATE BEST RATE TRIED
{
    k = $1 " " $2 " " $3
    if (!(k in seen)) { seen[k] = 1; order[++n] = k }
    b[k, $4] = $5; at[k, $4] = $6; top[k, $4] = $10
}
function size(k, p) { return !((k, p) in b) ? "." : b[k, p] == 0 ? "-" : b[k, p] }
function speed(k, p) { return !((k, p) in b) ? "." : b[k, p] == 0 ? "-" : sprintf("%.1f of %.1f", at[k, p], top[k, p]) }
function ratio(x, y) { return x > 0 && y > 0 ? sprintf("%.2f", x / y) : "" }
function own(k, p, e) {
    e = "exact@" b[k, p]
    return !((k, p) in b) || (b[k, p] > 0 && !((k, e) in b)) ? "." : b[k, p] == 0 ? "-" : \
        sprintf("%.1f/%.1f %.2f", at[k, e], at[k, p], at[k, e] / at[k, p])
}
function head(width, columns, i) {
    printf "%-10s %-2s %-10s", "model", "p", "devices"
    for (i = 1; i <= columns; i++) printf "  %-" width "s", name[i]
}
function line(k, w) { split(k, w, " "); printf "%-10s %-2s %-10s", w[1], w[2], w[3] }
END {
    split("pipedream:published pipedream:strong vpipe:repo vpipe:paper interval exact", p, " ")
    split("published strong repo paper interval exact", name, " ")
    print title
    print "b*, and exact's over the others'.  -: nothing fits.  .: not run"
    head(9, 6); print "    /publ. /strong /repo  /paper"
    for (r = 1; r <= n; r++) {
        line(k = order[r])
        for (i = 1; i <= 6; i++) printf "  %-9s", size(k, p[i])
        printf "    "
        for (i = 1; i <= 4; i++) printf "%-6s ", ratio(b[k, "exact"], b[k, p[i]])
        printf "\n"
    }
    print "\nsamples/s at b*, of those at the best size"
    head(14, 6); printf "\n"
    for (r = 1; r <= n; r++) {
        line(k = order[r])
        for (i = 1; i <= 6; i++) printf "  %-14s", speed(k, p[i])
        printf "\n"
    }
    print "\nsamples/s at the rival's own b*: exact's / the rival's, and the ratio"
    head(16, 5); printf "\n"
    for (r = 1; r <= n; r++) {
        line(k = order[r])
        for (i = 1; i <= 5; i++) printf "  %-16s", own(k, p[i])
        printf "\n"
    }
}
