# SPDX-License-Identifier: Apache-2.0
#
# cuda_loads.awk: from the machine code that nvdisasm prints, lines `KERNEL LOADS BITS`: the most loads from global memory that
# are under way at once, in the order of the code, and the width of the widest of them.  A load is under way until an
# instruction names one of its registers.  Loads of one register, such as a row's mean, do not count.
function ended() {
    gsub(/[0-9]*_INTERNAL_[0-9a-f]+_[0-9]+_[A-Za-z0-9]+_cu_[0-9a-f]+[0-9]/, "unit", name)
    if (name != "" && most) print name, most, wide
    name = ""
}
function forget(    r) {
    for (r in loading) delete loading[r]
    n = 0
}
/^\.text\./ { ended(); name = $1; sub(/^\.text\./, "", name); sub(/:.*/, "", name); most = wide = 0; forget(); next }
/^\t\.(section|type)/ { ended(); next }
name == "" || !/^ +\/\*[0-9a-f]+\*\// { next }
{
    line = $0
    sub(/^ +\/\*[0-9a-f]+\*\/ +/, "", line)
    sub(/;.*/, "", line)
    sub(/^@!?U?P[0-9T]+ +/, "", line)
    gsub(/UR[0-9]+/, "", line)
    code = line
    sub(/ .*/, "", code)
    load = code ~ /^LDG.*\.(64|128)/
    to = line
    sub(/^[^ ]+ +/, "", to)
    operands = to
    if (load) sub(/^[^,]*,/, "", operands)
    while (match(operands, /R[0-9]+/)) {        # does it name what is still to come?
        if (substr(operands, RSTART, RLENGTH) in loading) { forget(); break }
        operands = substr(operands, RSTART + RLENGTH)
    }
    if (!load) next
    sub(/,.*/, "", to)
    bits = code ~ /\.128/ ? 128 : 64
    first = substr(to, 2) + 0
    for (r = 0; r < bits / 32; r++) loading["R" first + r] = 1
    n++
    if (n > most) most = n
    if (bits > wide) wide = bits
}
END { ended() }
