# SPDX-License-Identifier: Apache-2.0
#
# attend.awk: reads nvdisasm's text of attention_mma.cu.  Of each kernel: instructions and products of tensor cores in its loop
# over tiles, and the one per the other.  Instructions are those of the cheapest way through the loop that leaves out neither
# random numbers nor words of masks; other branches (soft caps, windows, odd sizes, staging of rows) are left out, and loops
# inside run once.  So it compares versions of a kernel, and is less than what runs.
function close_kernel(    i, t, from, to, all, c, d, best) {
    from = 0
    for (i = 1; i <= n; i++)            # the loop with most products, the shortest of them
        if (i in goal && (goal[i] in label) && label[goal[i]] <= i) {
            t = label[goal[i]]
            c = sum[i] - sum[t - 1]
            if (c > all || (c == all && from && t > from)) { all = c; from = t; to = i }
        }
    if (!all) return
    for (i = from; i <= to; i++) d[i] = -1
    d[from] = 0
    for (i = from; i < to; i++) {
        if (d[i] < 0) continue
        t = i in goal && goal[i] in label ? label[goal[i]] : 0
        if (t > i && t <= to && sum[t - 1] == sum[i] && !skips(i, t) && (d[t] < 0 || d[i] + 1 < d[t])) d[t] = d[i] + 1
        if (!(i in always) && (d[i + 1] < 0 || d[i] + 1 < d[i + 1])) d[i + 1] = d[i] + 1
    }
    printf "%s %d %d %.1f\n", name, d[to] + 1, all, (d[to] + 1) / all
}
# A branch over random numbers or masks to a place that has none.
function skips(i, t,    j) {
    if (random[t - 1] == random[i]) return 0
    for (j = t; j <= n && j < t + 40 && !(j in goal); j++)
        if (random[j] > random[t - 1]) return 0
    return 1
}
/^\.text\./ {
    close_kernel()
    name = $1
    sub(/^\.text\./, "", name)
    sub(/:$/, "", name)
    n = sum[0] = random[0] = 0
    split("", label)
    split("", goal)
    split("", always)
    next
}
/^\.L_x_[0-9]+:/ { sub(/:.*/, "", $1); label[$1] = n + 1; next }
/^ *\/\*[0-9a-f]+\*\// {
    n++
    sum[n] = sum[n - 1] + /HMMA/
    random[n] = random[n - 1] + /0x2d3ee5ad|0x326172a9|-0x2daee0ad|-0x2d3ee5ad|0xd2511f53|-0x326172a9|0xcd9e8d57|LDG\.E R/
    if (/ BRA / && match($0, /\.L_x_[0-9]+/)) goal[n] = substr($0, RSTART, RLENGTH)
    if (/\*\/ +BRA / ) always[n] = 1
    if (/EXIT|RET\./ && !/@/) always[n] = 1
}
END { close_kernel() }
