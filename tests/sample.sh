#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Text out of a language model.  One checkpoint writes the same text under plans of every kind.  At temperature 0 that is the
# text of tests/greedy.c, which has the model's formulas in f64, whether the scores are there or the loss has them inside.
# The text is longer than the sequence, so its beginning leaves.  Bad input, and models that write none.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a build/interp build/rt/hooks.h
flags="$flags -DSTAGE -DSAMPLE -Ibuild/rt"
use_portable
evaluate="--set data.eval.files=LICENSE"
model="$tmp/gpt.yaml $evaluate"
# large random weights say something else in each place
sed 's/, tie: wte//; s/normal: \[0, 0.02/normal: [0, 0.3/' "$models/tiny-gpt.yaml" >"$tmp/gpt.yaml"
sed 's/Linear, name: lm_head, out: V, bias: false}/LinearCrossEntropy, name: lm_head, out: V, bias: false,/
    s/- {op: SoftmaxCrossEntropy, targets: targets, as: loss}/   chunk: 96, targets: targets, as: loss}/' \
    "$tmp/gpt.yaml" >"$tmp/inside.yaml"
build/interp "$tmp/gpt.yaml" --data LICENSE --checkpoint "$tmp/run" --steps 2 --quiet >"$tmp/said" 2>&1 ||
    fault "no checkpoint: $(tail -n 1 "$tmp/said")"
weights=$tmp/run/step-000002/stage0.safetensors
prompt="You may "

# made NAME OPTION...: the program
made() {
    name=$1
    shift
    said=$(generate "$tmp/$name" "$@" && compile "$tmp/$name")
    [ -z "$said" ] || fault "$name: $said"
}
write() { name=$1; shift; timeout 60 $start "$tmp/$name/job" --weights "$weights" --prompt "$prompt" "$@"; }
# same NAME TEXT OPTION...: it writes that
same() {
    what=$1 text=$2
    shift 2
    write "$what" "$@" >"$tmp/text" 2>"$tmp/said"
    cmp "$tmp/text" "$text" >>"$tmp/said" 2>&1 && pass || fault "$what $*: another text: $(head -n 1 "$tmp/said")"
}

$cc $flags -O1 -o "$tmp/greedy" tests/greedy.c build/librt.a -lm -lpthread 2>"$tmp/said" ||
    fault "greedy: $(head -n 1 "$tmp/said")"
"$tmp/greedy" "$weights" "$prompt" 40 >"$tmp/greedy.txt" || fault "no text in f64"
made one $model --stages 1
same one "$tmp/greedy.txt" --tokens 40 --temperature 0
same one "$tmp/greedy.txt" --tokens 40 --top-k 1 --seed 5
write one --tokens 40 --seed 3 >"$tmp/seed3.txt" 2>&1
write one --tokens 40 --seed 4 >"$tmp/seed4.txt" 2>&1
if cmp -s "$tmp/seed3.txt" "$tmp/seed4.txt"; then fault "two seeds, one text"; else pass; fi
expect "the prompt begins the text" grep -q "^$prompt" "$tmp/seed3.txt"
weights=$tmp/run same one "$tmp/seed3.txt" --tokens 40 --seed 3
weights=$tmp/run/step-000002 same one "$tmp/seed3.txt" --tokens 40 --seed 3

# texts: as above, of each line `NAME OPTION...`
texts() {
    while read -r name options; do
        eval "made $name $options"
        same "$name" "$tmp/greedy.txt" --tokens 40 --temperature 0
        same "$name" "$tmp/seed3.txt" --tokens 40 --seed 3
    done
}
texts <<END
two $model --stages 2 --schedule 1f1b
turns $model --stages 2 --map 0,1,0,1 --schedule 1f1b --recompute full
twice $model --replicas 2 --stages 2 --set train.batch.groups=2
inside $tmp/inside.yaml $evaluate --stages 2
team $model --stages 2 --set train.blocks=2 --set plan.tensor=2
part $tmp/inside.yaml $evaluate --stages 1 --set train.blocks=2 --set plan.tensor=2 --set plan.positions=divided
END
[ -z "$SLOW" ] || texts <<END
four $model --stages 4 --schedule gpipe --recompute full
ways $model --stages 2 --schedule chimera --set train.batch.groups=2
overlap $model --stages 2 --schedule 2bw
away $model --stages 2 --schedule 1f1b --offload "['*']"
END
if over_mpi 2 2; then
    made ranks $model --stages 2 --set plan.transport=mpi
    same ranks "$tmp/seed3.txt" --tokens 40 --seed 3
    ! turn_mpi "$tmp/ranks" || same ranks "$tmp/seed3.txt" --tokens 40 --seed 3
    refuse "a long prompt, by ranks" 2 'has 17 tokens' $start "$tmp/ranks/job" --weights "$weights" --prompt 12345678901234567
fi
use_bf16
[ -z "$SLOW" ] && others=inside || others="inside narrow"
for what in $others; do
    case $what in inside) of=$tmp/inside.yaml ;; *) of=$tmp/gpt.yaml ;; esac
    for n in 1 2; do made $what$n "$of" $evaluate --set train.precision.compute=bf16 --stages $n; done
    write ${what}1 --tokens 40 >"$tmp/narrow.txt"
    same ${what}2 "$tmp/narrow.txt" --tokens 40
done
use_portable

# What is wrong is one line
job=$tmp/two/job
refuse "a long prompt" 2 '^sample: --prompt has 17 tokens, and the model sees 16: shorten it' "$job" --weights "$weights" \
    --prompt 12345678901234567
refuse "no prompt" 2 'prompt needs TEXT' "$job" --weights "$weights" --prompt ''
for option in $("$job" --help | sed -n 's/^  \(--[a-z-]*\) [A-Z].*/\1/p'); do
    refuse "an empty $option" 2 "$option needs" "$job" "$option" ''
done
refuse "an option of train" 2 'unknown option .--steps' "$job" --steps 3
refuse "no number" 2 '--temperature needs X' "$job" --temperature hot
refuse "a negative number" 2 '--top-p needs X' "$job" --top-p -1
refuse "no probability" 2 '--top-p is a probability: give it at most 1' "$job" --top-p 2
refuse "no checkpoint yet" 5 '^sample: there are no checkpoints in .*: run train first' sh -c "cd '$tmp' && '$job'"
refuse "no weights" 5 '^sample: --weights: .*none/checkpoints: No such file.* give a safetensors file' \
    sh -c "mkdir '$tmp/none' && '$job' --weights '$tmp/none/checkpoints'"
mkdir "$tmp/lists" && cp "$weights" "$tmp/lists/model.safetensors"
echo '{"weight_map": {"wte.weight": "old.safetensors"}}' >"$tmp/lists/model.safetensors.index.json"
refuse "an index beside them" 5 'lists holds .*index.json and model.safetensors, two sets of weights' \
    "$job" --weights "$tmp/lists"
cp "$weights" "$tmp/run/model.safetensors"
refuse "weights beside checkpoints" 5 'run holds checkpoints and model.safetensors: which' "$job" --weights "$tmp/run"
rm "$tmp/run/model.safetensors"
cp "$weights" "$tmp/nan"
printf '\377\377\377\177' | dd of="$tmp/nan" bs=1 seek=$(($(wc -c <"$tmp/nan") - 4)) conv=notrunc 2>/dev/null
sed 's/,"[^"]*":{"dtype"/\n&/g' "$tmp/nan" | grep -a -o 'wte.weight"[^}]*' >"$tmp/where"
at=$(sed -n 's/.*data_offsets":\[\([0-9]*\),.*/\1/p' "$tmp/where" | head -n 1)
header=$(od -An -tu8 -N8 "$tmp/nan")
printf '\377\377\377\177' | dd of="$tmp/nan" bs=1 seek=$((8 + header + at)) conv=notrunc 2>/dev/null
refuse "broken weights" 7 'a score is not finite' "$job" --weights "$tmp/nan"
refuse "a full disk" 1 'cannot write to standard output' sh -c "'$job' --weights '$weights' >/dev/full"
refuse "help" 0 '^Write text of tiny-gpt' "$job" --help

# Tokens that are no bytes are numbers
generate "$tmp/two" $model --stages 2 --schedule 1f1b --set data.train.format=llmc-tokens >"$tmp/said" && compile "$tmp/two"
"$job" --weights "$weights" --prompt '89 111 117 32 109 97 121 32' --tokens 40 --temperature 0 >"$tmp/numbers"
od -An -v -tu1 "$tmp/greedy.txt" | tr -s ' \n' ' ' | cut -c 2- | cut -d ' ' -f -48 >"$tmp/wanted"
expect "numbers" cmp "$tmp/numbers" "$tmp/wanted"
refuse "no numbers" 2 'give their numbers' "$job" --weights "$weights" --prompt 'You may'
refuse "an unknown number" 2 'token 1 is 256, which this model does not know' "$job" --weights "$weights" --prompt '89 256'

# Words: a tokenizer turns the prompt to tokens, and tokens to text; unit_rt_sample has what they are
tok=$root/tests/ref/tokens
sed 's/V: 256/V: 600/; s/format: bytes, files: [^,]*,/format: llmc-tokens, files: data.bin,/' "$tmp/gpt.yaml" >"$tmp/words.yaml"
./dpgen tokens --tokenizer $tok/gpt2.json LICENSE -o "$tmp/data.bin" >"$tmp/said" 2>&1 || fault "no tokens"
(cd "$tmp" && "$root/build/interp" words.yaml --checkpoint words --steps 1 --quiet) >"$tmp/said" 2>&1 ||
    fault "no checkpoint of words: $(tail -n 1 "$tmp/said")"
words="$tmp/words.yaml --set data.eval.files=data.bin"
made words1 $words --stages 1
made words2 $words --stages 2 --schedule 1f1b --recompute full
say() { timeout 60 "$tmp/$1/job" --weights "$tmp/words" --tokenizer "$tok/gpt2.json" --seed 3 --tokens 60 --prompt "$2"; }
say words1 "You may not use<|end|>" >"$tmp/words1.txt" 2>"$tmp/said" || fault "no words: $(tail -n 1 "$tmp/said")"
expect "the prompt begins the words" grep -a -q "^You may not use<|end|>." "$tmp/words1.txt"
say words2 "You may not use<|end|>" >"$tmp/words2.txt" 2>&1
expect "the same words under another plan" cmp "$tmp/words1.txt" "$tmp/words2.txt"
refuse "too many words" 2 '^sample: --prompt has 41 tokens, and the model sees 16' \
    say words2 "In no event shall any Contributor be liable to You for damages, including any"
sed 's/{1,3}/{1,4}/' "$tok/llama3.json" >"$tmp/odd.json"
refuse "an unknown pattern" 2 'odd.json: the pattern of its pre-tokenizer is not known: .*{1,4}' "$tmp/words2/job" \
    --weights "$tmp/words" --tokenizer "$tmp/odd.json"
refuse "no such tokenizer" 2 'cannot open none.json: No such file' "$tmp/words2/job" --weights "$tmp/words" \
    --tokenizer none.json
refuse "a tokenizer of bytes" 2 'tokens of this model are bytes, and need none' "$tmp/one/job" --weights "$weights" \
    --tokenizer "$tok/gpt2.json"

# mute TEXT OPTION...: no program, and why
mute() {
    text=$1
    shift
    ./dpgen "$@" --estimate -o "$tmp/mute" >"$tmp/said" 2>&1 || fault "$*: $(tail -n 1 "$tmp/said")"
    refuse "$text" 2 "^sample: .*$text" make -s -C "$tmp/mute" sample
    expect "$text: no sources" test ! -e "$tmp/mute/rt/sample"
}
mute "no evaluation.*data.eval" "$models/tiny-gpt.yaml"
sed 's/causal: true, //' "$models/tiny-gpt.yaml" >"$tmp/ahead.yaml"
mute "h.0.attention is not causal" "$tmp/ahead.yaml" $evaluate
arrays=
for name in tokens other mask image targets wanted; do arrays="$arrays --set data.eval.arrays.$name=$name.npy"; done
mute "no stream of tokens" "$models/ops.yaml" $arrays
mute "paced job compute nothing" $model --pace
./dpgen $model --estimate --prefix tiny -o "$tmp/mute" >"$tmp/said" 2>&1
refuse "with --prefix" 2 'made with --prefix' make -s -C "$tmp/mute" sample
finish
