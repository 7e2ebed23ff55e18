#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dpgen tokens.  Of each kind of tokenizer, random strings between added tokens become what the library `tokenizers` made of
# them (tests/ref/make_tokens.py).  A job trains on the file.  A tokenizer of another kind is refused by name.
. "$(dirname "$0")/lib.sh"
need dpgen
ref=tests/ref/tokens

for kind in gpt2 llama3 qwen prefix digits llama2 gemma mistral bert cased t5 xlmr albert whole; do
    expect "$kind" ./dpgen tokens --tokenizer "$ref/$kind.json" "$ref/$kind.txt" -o "$tmp/$kind.bin"
    expect "$kind: the tokens of the library" cmp "$tmp/$kind.bin" "$ref/$kind.bin"
done
./dpgen tokens --tokenizer $ref/gpt2.json $ref/gpt2.txt $ref/gpt2.txt --end '<|end|>>' -o "$tmp/two.bin" >"$tmp/told"
both=$((2 * ($(wc -c <$ref/gpt2.bin) - 1024 + 2) + 1024))
expect "two files, and a token behind each" test "$(wc -c <"$tmp/two.bin")" = $both
expect "it says how many" grep -q "^wrote $tmp/two.bin: $(((both - 1024) / 2)) tokens of .* u16" "$tmp/told"
expect "a folder is made" ./dpgen tokens --tokenizer $ref/gpt2.json $ref/gpt2.txt -o "$tmp/data/train_0.bin"
expect "with the file" cmp "$tmp/data/train_0.bin" $ref/gpt2.bin
sed 's/"id":1,/"id":70000,/' $ref/gpt2.json >"$tmp/wide.json"
./dpgen tokens --tokenizer "$tmp/wide.json" $ref/gpt2.txt -o "$tmp/wide.bin" >"$tmp/said" 2>&1
expect "wide tokens" test "$(wc -c <"$tmp/wide.bin")" = $((2 * ($(wc -c <$ref/gpt2.bin) - 1024) + 1024))
expect "their magic" test "$(od -An -td4 -N8 "$tmp/wide.bin" | tr -s ' ')" = ' 20240801 7'

# The classes of characters, where the same version of the data files is
unicode=/usr/share/unicode
if [ -z "$SLOW" ] || ! head -n 1 $unicode/PropList.txt 2>/dev/null | grep -q -F -e -15.0.0; then
    [ -z "$SLOW" ] || skip "no unicode-data 15.0.0"
else
    # of NAME SCRIPT OPTION... FILE...: the table again
    of() {
        made=$1 script=$2
        shift 2
        (cd $unicode && awk -v VERSION=15.0.0 -f "$root/tools/$script.awk" "$@") >"$tmp/$made.def"
        expect "$made.def" cmp "$tmp/$made.def" rt/tokens/$made.def
    }
    marks="DerivedNormalizationProps.txt DerivedAge.txt"
    of letters unicode PropList.txt $marks auxiliary/GraphemeBreakProperty.txt UnicodeData.txt
    of normal normal $marks UnicodeData.txt
    of compat normal -v COMPAT=1 $marks UnicodeData.txt
fi

# An escape of two halves is one character
sed 's/"content":"<|end|>"/"content":"\\ud83d\\ude00"/' $ref/gpt2.json >"$tmp/halves.json"
printf 'a\360\237\230\200' >"$tmp/smile"
./dpgen tokens --tokenizer "$tmp/halves.json" "$tmp/smile" -o "$tmp/smile.bin" >"$tmp/told" 2>&1
expect "two halves" grep -q ': 2 tokens of 5 bytes' "$tmp/told"

# Conversations, under templates that mark answers and that do not: the arrays of transformers (tests/ref/make_chat.py)
chat=tests/ref/chat
sed 's/<|end|>>/<|start|>/g' $ref/gpt2.json >"$tmp/chat.json"
for name in plain inline marked; do
    expect "chat, $name" ./dpgen tokens --tokenizer "$tmp/chat.json" --mask $chat/$name.jinja --length 64 $chat/chats.jsonl \
        -o "$tmp/$name.chat"
    for what in tokens targets documents; do
        expect "chat, $name: $what" cmp "$tmp/$name.chat/$what.npy" $chat/$name.$what.npy
    done
done
expect "the template of tokenizer_config.json" ./dpgen tokens --tokenizer "$tmp/chat.json" --mask $chat/tokenizer_config.json \
    --length 64 $chat/chats.jsonl -o "$tmp/config.chat"
expect "is the same" cmp "$tmp/config.chat/targets.npy" $chat/inline.targets.npy
talk() { ./dpgen tokens --tokenizer "$tmp/chat.json" --mask "$1" --length "$2" "$3" -o "$tmp/no.chat"; }
said='{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}'
echo "$said" >"$tmp/said.jsonl"
# mute STATUS TEXT TEMPLATE [LINE]: a template, or a conversation, that is refused
mute() {
    printf %s "$3" >"$tmp/mute.jinja"
    printf '%s\n' "${4:-$said}" >"$tmp/mute.jsonl"
    refuse "$2" "$1" "$2" talk "$tmp/mute.jinja" 64 "$tmp/mute.jsonl"
}
mute 3 "mute.jinja:2:18: error: of an object the filter 'tojson' is not known" 'x
{{ messages[0] | tojson }}'
mute 3 "function 'strftime_now' is not known of templates" '{{ strftime_now("%d") }}'
mute 3 "mute.jinja:1:[0-9]*: error: a block that is not known" '{% include "x" %}'
mute 3 "the template ends, and a block has no elif" '{% if messages %}'
many() { awk -v n="$1" -v text="$2" 'BEGIN { while (n--) printf "%s", text }'; }
mute 3 "an expression of more than 2000 characters" "{{ $(many 3000 '(') }}"
mute 3 "an expression of more than 2000 characters" "{{ 1$(many 2000 ' + 1') }}"
mute 3 "inside one another, .* more than 100 deep" "$(many 101 '{% for m in messages %}')"
mute 3 "elif behind elif, more than 100 deep" "{% if messages %}$(many 101 '{% elif messages %}')"
mute 3 "a mark without its }}" 'a {{ messages'
mute 3 "nothing more is expected here" '{{ messages messages }}'
mute 3 "is asked of a value that is not defined" '{{ person.name }}'
mute 3 "mute.jsonl:1: message 2: what the template writes of it depends on what comes behind it" \
    '{% for m in messages %}{{ m.content if loop.last }}{% endfor %}'
# Each word is what Jinja makes of the expression
mute 3 "messages: roleuseruser7contentaa7|a+b+c|3|äö|böäb|13|2-4|True|False|True|True|True|y|a|1|True|False|3" \
    '{%- set m = messages[0] -%}{%- set n = namespace(t="") -%}
    {%- for k, v in m.items() -%}{%- set n.t = n.t ~ k ~ v ~ m.get(k) ~ m.get("c", 7) -%}{%- endfor -%}
    {{ raise_exception([n.t, "a-b-c".replace("-", "+"), ([1, 2] + [3]) | length, "äbö"[0] ~ "äbö"[-1],
    "äbö"[1:] ~ "äbö"[:-1], 7 % 3 ~ 7 // 2, -7 % 3 ~ -7 // 2, "b" > "a", 2 <= 1, 1 == true, [1, ["x"]] == [1, ["x"]],
    m == messages[0], "x y".split(" ") | last, "xaxx".strip("x"), "é" | length, "role" in m, "z" not in "xyz",
    range(3) | list | length] | join("|")) }}'
mute 3 "mute.jsonl:1: the template refuses the first 2 messages: no a" '{{ raise_exception("no " + messages[0].content) }}'
mute 3 "mute.jsonl:1: this is no JSON" x '{"messages": [}'
mute 3 "mute.jsonl:1: this line has no 'messages'" x '{"text": "a"}'
mute 3 "message 1: 'content' is to be a text" x '{"messages": [{"role": "user", "content": [1]}]}'
mute 3 "message 1 has 'tool_calls'" x '{"messages": [{"role": "user", "content": "", "tool_calls": []}]}'
mute 3 "no conversation has an answer within 64 positions" '{{ messages[0].content }} more'
refuse "no template there" 3 "there is no chat_template" talk $ref/llama3.json 64 "$tmp/said.jsonl"
refuse "no length" 2 "belong together" ./dpgen tokens --tokenizer "$tmp/chat.json" --mask $chat/plain.jinja LICENSE \
    -o "$tmp/no.chat"
refuse "a length of 0" 2 "a number of positions" talk $chat/plain.jinja 0 "$tmp/said.jsonl"
expect "nothing is written of them" test ! -e "$tmp/no.chat"

tokens() { ./dpgen tokens "$@" -o "$tmp/no.bin"; }
# other TEXT SED: a tokenizer that was changed so is refused with TEXT
other() { sed "$2" $ref/${3:-llama3}.json >"$tmp/other.json"; refuse "$1" 3 "$1" tokens --tokenizer "$tmp/other.json" LICENSE; }
other 'the pattern of its pre-tokenizer is not known: .*{1,4}' 's/{1,3}/{1,4}/'
other 'Split, is not known' 's/Isolated/Removed/'
other 'pre-tokenizer, Punctuation, is not known' 's/"BertPreTokenizer"/"Punctuation"/' bert
other 'its normalizer, Nmt, is not known' 's/"NFC"/"Nmt"/' qwen
other 'Replace, has a pattern that is not known: x' 's/{"Regex":" {2,}"}/{"Regex":"x"}/' t5
other 'precompiled_charsmap is cut, or no Base64' 's/"precompiled_charsmap":"...../&!/' t5
other 'precompiled_charsmap is cut, or no Base64' 's/"precompiled_charsmap":"[^"]*/"precompiled_charsmap":"AAAAAAAA/' t5
other 'its model is WordLevel; known are BPE, WordPiece and Unigram' 's/"WordPiece"/"WordLevel"/' bert
other 'has no token .<none>., which is its unk_token' 's/"unk_token":"[^"]*"/"unk_token":"<none>"/' bert
other 'its unk_id is 70000, and its vocabulary has' 's/"unk_id":0/"unk_id":70000/' t5
other 'no token spells .*, and there is no token of what is unknown' 's/"unk_id":0/"unk_id":null/; s/\["o",/["\\u0000",/' t5
other 'token 7, .*, is no text with a number' 's/\["s",/["s","s",/' t5
other 'is WordPiece, and its pre-tokenizer ByteLevel' 's/"BertPreTokenizer"/"ByteLevel"/' bert
other 'end_of_word_suffix, which is not known' 's/"end_of_word_suffix":null/"end_of_word_suffix":"<w>"/'
other 'neither byte-level nor has it byte_fallback' 's/"byte_fallback":true/"byte_fallback":false/' llama2
other 'no token for byte 0x0a' 's/<0x0A>/<0xA>/g' llama2
other 'has the flag single_word' 's/"single_word":false/"single_word":true/'
other 'merge 0, .*, is not of two tokens to a third one' 's/"merges":\[\[[^]]*\]/"merges":[["a","zzz"]/'
other 'more text after the end' 's/$/}/'
head -c 5000 $ref/gpt2.json >"$tmp/other.json"
refuse "a file that is cut" 3 'other.json: this is no tokenizer.json' tokens --tokenizer "$tmp/other.json" LICENSE
echo '{"a": 1}' >"$tmp/other.json"
refuse "another file" 3 'it is no tokenizer.json' tokens --tokenizer "$tmp/other.json" LICENSE
printf 'good \377 bad' >"$tmp/latin"
refuse "no UTF-8" 3 'latin: byte 5 is no UTF-8' tokens --tokenizer $ref/gpt2.json "$tmp/latin"
printf 'e\314\201' >"$tmp/marks"
printf '\303\251' >"$tmp/whole"
for text in marks whole; do ./dpgen tokens --tokenizer $ref/qwen.json "$tmp/$text" -o "$tmp/$text.bin" >"$tmp/said" 2>&1; done
expect "NFC puts marks to their letter" cmp "$tmp/marks.bin" "$tmp/whole.bin"
# U+0958 has three bytes, and six in NFC: an added token that is normalized is found whole
longer='s/"content":"<|end|>>",\(.*\)"normalized":false/"content":"\\u0958",\1"normalized":true/'
sed "$longer" $ref/qwen.json >"$tmp/longer.json"
printf 'a\340\245\230' >"$tmp/longer"
./dpgen tokens --tokenizer "$tmp/longer.json" "$tmp/longer" -o "$tmp/longer.bin" >"$tmp/told" 2>&1
expect "an added token that NFC makes longer" grep -q ': 2 tokens of 4 bytes' "$tmp/told"
refuse "no such file" 2 'none.json' tokens --tokenizer "$tmp/none.json" LICENSE
id=$(sed -n 's/.*"id":\([0-9]*\),"content":"<|end|>>".*/\1/p' $ref/gpt2.json | head -n 1)
./dpgen tokens --tokenizer $ref/gpt2.json $ref/gpt2.txt $ref/gpt2.txt --end "$id" -o "$tmp/id.bin" >"$tmp/told"
expect "an end by its id, $id" cmp "$tmp/id.bin" "$tmp/two.bin"
refuse "no such id" 2 'the ids of .* end at' tokens --tokenizer $ref/gpt2.json LICENSE --end 999999
most=$(sed -n 's/.* end at \([0-9]*\).*/\1/p' "$tmp/said")
refuse "one more than the last id" 2 "end at $most" tokens --tokenizer $ref/gpt2.json LICENSE --end $((most + 1))
expect "the last id" ./dpgen tokens --tokenizer $ref/gpt2.json LICENSE --end "$most" -o "$tmp/most.bin"
refuse "no such end" 2 'no such added token' tokens --tokenizer $ref/gpt2.json LICENSE --end '<eos>'
refuse "no tokenizer" 2 'no tokenizer is named' ./dpgen tokens LICENSE -o "$tmp/no.bin"
refuse "no output" 2 'no file to write is named' ./dpgen tokens --tokenizer $ref/gpt2.json LICENSE
refuse "no files" 2 'no texts are named' tokens --tokenizer $ref/gpt2.json
refuse "tokens behind" 2 'tokens comes first' ./dpgen --estimate tokens LICENSE
expect "nothing is written" test ! -e "$tmp/no.bin"
finish
