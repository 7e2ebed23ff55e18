#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The licences and sums of a folder.  Every file has an SPDX tag where it has room for one, and stands in the bill of
# materials with the sums that coreutils find; MANIFEST covers the bill and the licence, and dpgen prints the sum of MANIFEST.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted
d=$tmp/folder
./dpgen "$models/tiny-gpt.yaml" --stages 2 --estimate -o "$d" >"$tmp/out" 2>"$tmp/said" ||
    { fault "$(cat "$tmp/said")"; finish; }
cd "$d" || finish

expect "sha256sum -c MANIFEST" sha256sum --quiet -c MANIFEST
sum=$(sha256sum MANIFEST | cut -d ' ' -f 1)
expect "dpgen prints the sum of MANIFEST" grep -q "MANIFEST has SHA-256 $sum" "$tmp/out"
expect "the licence" cmp LICENSE "$root/LICENSE"

# blank NAME FOLDER: in what is written for the job no line ends in a blank, and no two blank lines follow each other
blank() {
    said=$(cd "$2" && awk 'FNR > 1 && last == "" && $0 == "" || / $/ { print FILENAME ":" FNR } { last = $0 }' \
        *.[ch] Makefile README)
    if [ "$said" ]; then fault "$1: blanks: $(echo $said)"; else pass; fi
}
blank "two stages" .

strict() { env -u WERROR make -n -B "$@" | grep -c -e -Werror; }
if [ "$(strict)" = 0 ] && [ "$(strict WERROR=1)" -gt 20 ]; then pass; else fault "-Werror: $(strict), $(strict WERROR=1)"; fi

# tag FILE: the licence of its first five lines
tag() { sed -n '1,5s/.*SPDX-Licen[s]e-Identifier: \([A-Za-z0-9.-]*\).*/\1/p' "$1" | head -n 1; }
find . -type f | sed 's,^\./,,' | sort >"$tmp/files"
while read -r file; do
    case $file in
        rt/* | verify/*) want=Apache-2.0 ;;
        LICENSE | MANIFEST | sbom.spdx.json | model.yaml) continue ;;
        *) want=CC0-1.0 ;;
    esac
    if [ "$(tag "$file")" = $want ]; then pass; else fault "$file: tag '$(tag "$file")', not $want"; fi
done <"$tmp/files"

# One line a file: name, SHA-256, SHA-1, licence
sum='"checksumValue": "\([0-9a-f]*\)"'
{ tr -d '\n' <sbom.spdx.json; echo; } | sed 's/{"fileName"/\n&/g' |
    sed -n 's/^{"fileName": "\.\/\([^"]*\)".*"SHA256", '"$sum"'.*"SHA1", '"$sum"'.*Concluded": "\([^"]*\)".*/\1 \2 \3 \4/p' \
    >"$tmp/bill"
grep -v '^MANIFEST$\|^sbom' "$tmp/files" | while read -r file; do
    case $file in rt/* | verify/* | LICENSE) of=Apache-2.0 ;; model.yaml) of=NOASSERTION ;; *) of=CC0-1.0 ;; esac
    echo "$file $(sha256sum "$file" | cut -d ' ' -f 1) $(sha1sum "$file" | cut -d ' ' -f 1) $of"
done >"$tmp/want"
expect "the bill of materials" diff "$tmp/want" "$tmp/bill"
code=$(cut -d ' ' -f 3 "$tmp/want" | sort | tr -d '\n' | sha1sum | cut -d ' ' -f 1)
expect "the code of the package" grep -q "\"packageVerificationCodeValue\": \"$code\"" sbom.spdx.json
if [ "$(grep -c CONTAINS sbom.spdx.json)" = "$(wc -l <"$tmp/want")" ]; then pass
else fault "relations of another number of files"; fi

# rt.h: of the actions and kernels those that files of this folder define, in the lines that the tests compiled
names() { grep -h -o '^void [a-z0-9_]*(Stage' "$@" | sort -u; }
names rt/rt.h >"$tmp/printed"
names rt/*.c rt/op/*.c >"$tmp/defined"
names "$root/rt/rt.h" | comm -12 - "$tmp/defined" >"$tmp/want"
expect "rt.h: the calls of its files" diff "$tmp/want" "$tmp/printed"
if grep -vxFf "$root/rt/rt.h" rt/rt.h >"$tmp/said"; then fault "rt.h: $(head -n 1 "$tmp/said")"; else pass; fi

# parts NAME FOLDER: each part of rt/parts.h that a file of the folder defines stands in launch.c, and no other does
parts() {
    tr '\n' ' ' <"$root/rt/parts.h" | grep -o -e 'extern const [A-Za-z]* [a-z0-9_, ]*;' -e ' PART([A-Za-z]*, [a-z]*, [a-z_]*)' |
        sed 's/^extern const [A-Za-z]* //; s/^ PART(.*, //; s/[,;)]/ /g' | tr -s ' ' '\n' |
        grep -v -x -e job_parts -e sample_parts >"$tmp/parts"
    while read -r part; do
        grep -rq "^const .*\<$part = {" "$2/rt" && echo "$part"
    done <"$tmp/parts" >"$tmp/there"
    grep -o '&[a-z0-9_]*' "$2/launch.c" | tr -d '&' | grep -xFf "$tmp/parts" >"$tmp/named"
    sort -o "$tmp/there" "$tmp/there"
    sort -o "$tmp/named" "$tmp/named"
    expect "$1: the parts in launch.c" diff "$tmp/there" "$tmp/named"
}
parts "two stages" .
cd "$root" || finish
# Of a job that has none of them, no file of a part comes along: lines of rt/ at most
most=12951
if ./dpgen examples/bytes-gpt.yaml --estimate -o "$tmp/few" >"$tmp/out" 2>"$tmp/said"; then
    parts bytes-gpt "$tmp/few"
    expect "bytes-gpt: no part but its format and answers" grep -q '^const Parts job_parts = {0};$' "$tmp/few/launch.c"
    lines=$(find "$tmp/few/rt" -type f | xargs cat | wc -l)
    if [ "$lines" -le $most ]; then pass; else fault "bytes-gpt: $lines lines of rt/, $most at most"; fi
else fault "bytes-gpt: $(cat "$tmp/said")"; fi
for options in "--schedule 2bw" "--pace" "--replicas 2 --stages 1 --set train.batch.groups=2 --set train.shard=parameters"; do
    rm -rf "$tmp/few"
    if ./dpgen examples/bytes-gpt.yaml $options --estimate -o "$tmp/few" >"$tmp/out" 2>"$tmp/said"; then
        parts "$options" "$tmp/few"
        blank "$options" "$tmp/few"
    else fault "$options: $(cat "$tmp/said")"; fi
done
many=$(sed -n 's/.*enum { MANY = \([0-9]*\) }; .*/\1/p' rt/op/pointwise.c gen/emit/files.c | uniq -c | awk '{ print $1 }')
if [ "$many" = 2 ]; then pass; else fault "pointwise.c and files.c have another number of rows that are many"; fi
# Kernels for convolutions of single channels come along with a job that has some, those for many rows with one that has many
for job in "mobilenetv2.yaml rt/op/depthwise.c" "resnet18.yaml rt/op/without/depthwise.c" \
    "bytes-gpt.yaml rt/op/without/gelu_erf.c" "convnext-tiny.yaml rt/op/gelu_erf.c" \
    "bytes-gpt.yaml rt/op/without/pointwise.c" "bytes-gpt.yaml --set train.batch.micro=4 rt/op/pointwise.c"; do
    rm -rf "$tmp/few"
    if ./dpgen examples/${job% *} --estimate -o "$tmp/few" >"$tmp/out" 2>"$tmp/said"; then
        got=$(cd "$tmp/few" && find rt -name "${job##*/}")
        if [ "$got" = "${job##* }" ]; then pass; else fault "${job% *}: $got, not ${job##* }"; fi
        columns=$(sed -n '/^\/\* Offsets/,$s/ = 0x.*//p' "$tmp/few/stage0.h" | awk '{ print length }' | sort -u | wc -l)
        if [ "$columns" = 1 ]; then pass; else fault "${job% *}: offsets in $columns columns"; fi
        key=$(grep -c "'key " "$tmp/few/Makefile")
        if [ "$key" = 1 ]; then pass; else fault "${job% *}: the numeric key stands $key times in the Makefile"; fi
    else fault "${job% *}: $(cat "$tmp/said")"; fi
done
finish
