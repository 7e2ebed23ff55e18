# SPDX-License-Identifier: Apache-2.0
#
# cuda_registers.awk: what `ptxas -v` says of each kernel, as lines `KERNEL REGISTERS SPILLED`: bytes that are stored to and
# loaded from memory for want of registers.  The name is the compiler's, without its mark of the unit.
/Function properties for / { name = $NF }
/Compiling entry function/ { name = $0; sub(/.*function '/, "", name); sub(/'.*/, "", name) }
/bytes spill stores/ { spilled = $5 + $9 }
/Used [0-9]* registers/ {
    sub(/.*Used /, "")
    gsub(/[0-9]*_INTERNAL_[0-9a-f]+_[0-9]+_[A-Za-z0-9]+_cu_[0-9a-f]+[0-9]/, "unit", name)
    print name, $1, spilled
}
