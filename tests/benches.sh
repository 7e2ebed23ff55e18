#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs and scripts of bench/ are run by hand, so nothing else would notice that they no longer compile or parse.
set -u
. "$(dirname "$0")/lib.sh"

for file in bench/*/*.c; do
    if grep -q oneapi "$file" && ! have_onednn; then skip "$file: no oneDNN"; continue; fi
    expect "$file" "$cc" -fsyntax-only -Wall -Wextra -Werror -Wno-unknown-pragmas -std=c11 -D_DEFAULT_SOURCE \
        -I. -Igen -Irt -Irt/op -Itests "$file"
done
for file in bench/*.sh bench/*/*.sh; do
    expect "$file" sh -n "$file"
done
# a row of the table whose models are changed by its script
expect "dawnpiper async" bench/dawnpiper/run.sh async -o "$tmp/rows" -m gpt2-124m -s 4 -g rtx2080ti -p even
expect "its row" grep -q '^gpt2-124m 4 rtx2080ti even [1-9]' "$tmp/rows"
expect "dawnpiper chunked" bench/dawnpiper/run.sh chunked -o "$tmp/rows" -m gpt2-355m -g rtx2080ti -p even
expect "its row" grep -q '^gpt2-355m 4 rtx2080ti even [1-9]' "$tmp/rows"
# a plan of the corpus that is worse than the recorded one is told of, and no other
base=bench/results/corpus-0.1.txt
expect "corpus" bench/corpus/run.sh -c $base pipedream twobw
sed '/^pipedream /s/10740712212/10740712211/' $base >"$tmp/base"
refuse "corpus: a longer step" 1 "2 cases, 1 worse, 0 better" bench/corpus/run.sh -c "$tmp/base" pipedream twobw
finish
