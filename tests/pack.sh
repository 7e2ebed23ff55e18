#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dpgen pack: published instances fit in their capacity, proofs are printed, bad files are refused with their place.  What is
# answered is checked here pair by pair, by a program that shares nothing with dpgen.  PACK=DIR: instances to fit besides.
. "$(dirname "$0")/lib.sh"
need dpgen
instances=$root/tests/data/packing

# valid INSTANCE ANSWER CAPACITY: the same blocks in the same order, inside, no two that meet share a byte
valid() {
    cut -d, -f1-4 "$2" | cmp -s - "$1" || { echo "not the blocks of the instance"; return 1; }
    awk -F, -v most="$3" 'NR > 1 {
        if (NF != 5 || $5 < 0 || $5 + $4 > most) { print "block " $1 " lies outside"; exit 1 }
        for (i = 2; i < NR; i++)
            if (lo[i] < $3 && $2 < up[i] && at[i] < $5 + $4 && $5 < at[i] + size[i]) {
                print "blocks " id[i] " and " $1 " share bytes"; exit 1
            }
        id[NR] = $1; lo[NR] = $2; up[NR] = $3; size[NR] = $4; at[NR] = $5
    }' "$2"
}

for file in "$instances"/*.csv ${PACK:+"$PACK"/*.csv}; do
    name=$(basename "$file" .csv)
    if ! timeout 20 ./dpgen pack "$file" -o "$tmp/answer.csv" >"$tmp/said" 2>&1; then fault "$name: $(tail -n 1 "$tmp/said")"
    elif ! valid "$file" "$tmp/answer.csv" "${name##*.}" >"$tmp/wrong"; then fault "$name: $(cat "$tmp/wrong")"
    else pass; fi
    ./dpgen pack "$file" >"$tmp/again.csv" 2>"$tmp/summary"
    cp "$tmp/said" "$tmp/first"
    expect "$name: the same answer twice" cmp "$tmp/answer.csv" "$tmp/again.csv"
    expect "$name: summary behind the answer" cmp "$tmp/first" "$tmp/summary"
done

# The order of the lines changes nothing, whichever two are alike.
printf 'id,lower,upper,size\na,0,2,4\nb,0,2,4\nc,1,3,4\nd,1,3,4\n' >"$tmp/alike.csv"
for file in "$tmp/alike.csv" "$instances"/?.*.csv; do
    { head -n 1 "$file"; tail -n +2 "$file" | sort -t, -k4,4 -k1,1r; } >"$tmp/shuffled.csv"
    ./dpgen pack "$file" -o "$tmp/answer.csv" >"$tmp/said" && ./dpgen pack "$tmp/shuffled.csv" -o "$tmp/again.csv" >"$tmp/said"
    sort "$tmp/answer.csv" >"$tmp/first" && sort "$tmp/again.csv" >"$tmp/second"
    expect "$(basename "$file"): lines in another order" cmp "$tmp/first" "$tmp/second"
done
expect "D in the bytes alive at once" ./dpgen pack "$instances/D.1048576.csv" --capacity 986112

small=$instances/input.12.csv
cp "$small" "$tmp/free.csv"
expect "least height" ./dpgen pack "$tmp/free.csv"
if grep -q 'height 12, .*; optimal' "$tmp/said"; then pass; else fault "least height: $(tail -n 1 "$tmp/said")"; fi
./dpgen pack "$small" -o "$tmp/answer.csv" >"$tmp/said" 2>&1
ln "$tmp/answer.csv" "$tmp/old.csv"             # replaced, not written into: who has it open keeps the old one
cp "$tmp/answer.csv" "$tmp/was.csv"
expect "another answer" ./dpgen pack "$instances/$(ls "$instances" | grep -v '^input.12' | head -n 1)" -o "$tmp/answer.csv"
expect "the old answer" cmp "$tmp/was.csv" "$tmp/old.csv"
[ ! -e "$tmp/answer.csv.part" ] && pass || fault "a part of the answer is left"
refuse "over capacity" 4 'proven not to fit in 11 bytes: at least 12' ./dpgen pack "$small" --capacity 11
expect "a capacity of the option" ./dpgen pack "$small" --capacity 1KiB

# Three that cross in a ring, a fourth over two of them: 3 are alive at once, 3 bytes do not do (see unit_pack for many more).
printf 'id,lower,upper,size\na,0,2,2\nb,1,4,1\nc,3,6,2\nd,5,8,1\ne,0,1,1\nf,2,3,2\ng,4,5,1\nh,6,8,2\n' >"$tmp/ring.csv"
expect "proof" ./dpgen pack "$tmp/ring.csv"
if grep -q 'optimal' "$tmp/said"; then pass; else fault "proof: $(tail -n 1 "$tmp/said")"; fi

# wrong WHAT PLACE TEXT CONTENT: refused at line:column
wrong() {
    printf '%b' "$4" >"$tmp/bad.csv"
    refuse "$1" 3 "bad\.csv:$2: error: .*$3" ./dpgen pack "$tmp/bad.csv"
}
head='id,lower,upper,size\n'
wrong "empty"               1:1  "the file is empty" ''
wrong "no column"           1:1  "names no column size" 'id,lower,upper\na,0,1\n'
wrong "twice a column"      1:16 "a second column upper" 'id,lower,upper,upper,size\n'
wrong "a column too few"    3:1  "3 columns" "${head}a,0,1,4\nb,0,1\n"
wrong "a word for a number" 2:5  "upper is not a whole number" "${head}a,0,x,4\n"
wrong "a fraction"          2:8  "size is not a whole number" "${head}a,0,1,4.5\n"
wrong "nothing"             2:7  "size is empty" "${head}a,0,1,\n"
wrong "never alive"         2:5  "never lives" "${head}a,3,3,4\n"
wrong "no size"             2:7  "at least 1" "${head}a,0,1,0\n"
wrong "negative size"       2:7  "at least 1" "${head}a,0,1,-4\n"
wrong "too large"           2:7  "too large" "${head}a,0,1,99999999999999999999\n"
wrong "sum too large"       3:7  "add up" "${head}a,0,1,900000000000000000\nb,0,1,900000000000000000\n"
wrong "twice an id"         3:1  "a second block with id a" "${head}a,0,1,4\na,2,3,4\n"
wrong "no id"               2:1  "without an id" "${head},0,1,4\n"
refuse "no file" 2 "cannot read" ./dpgen pack "$tmp/none.csv"
refuse "no argument" 2 "which file" ./dpgen pack
refuse "bad capacity" 2 "'12x' is no number with a known unit: write it like 1MiB" ./dpgen pack "$small" --capacity 12x
refuse "unknown option" 2 "no such option" ./dpgen pack "$small" --fast
refuse "two files" 2 "is one too many" ./dpgen pack "$small" "$small"
printf 'id,size,upper,lower,note\r\na,4,2,0,x\r\n\r\nb,4,3,1,y' >"$tmp/order.csv"
expect "columns in another order, CRLF, an empty line" ./dpgen pack "$tmp/order.csv"
printf 'id,lower,upper,size\n' >"$tmp/none.csv"
expect "no blocks" ./dpgen pack "$tmp/none.csv"
finish
