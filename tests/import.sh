#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Published weights in and out.  tests/hf/FAMILY has the config.json of a tiny model of transformers, the names and shapes of
# the tensors that it saves, and its loss (tests/ref/make_hf.py).  The model file that import writes has to read the file, give
# that loss within 3e-6, and write the file again with the same bytes.  tests/hf/published has configurations of published
# models: what import writes for them has the numeric key, and the totals, of the example of that name.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a
for tool in safe npy llmc; do
    $cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/$tool" tests/$tool.c || { fault "tests/$tool.c"; finish; }
done
use_portable
cwd=$tmp/data
mkdir "$cwd"
write_hf_data "$cwd"

# job FAMILY: from its config.json to a job of two stages in $tmp/FAMILY
job() {
    ./dpgen import "$hf/$1" -o "$tmp/$1.yaml" >"$tmp/said" 2>&1 || { echo "import: $(head -n 1 "$tmp/said")"; return 1; }
    hf_data "$1"
    generate "$tmp/$1" "$tmp/$1.yaml" $dims --set train.precision.compute=f32 --set train.batch.global=2 \
        --set train.batch.micro=2 --set train.optimizer.lr=0 --set devices.0.kernels=portable \
        --set "data.train={format: npy, arrays: {$arrays}, order: sequential}" --stages 2 --schedule 1f1b --recompute none &&
        compile "$tmp/$1"
}
# start FAMILY ARGUMENT...: a run of one step, which changes nothing
run() { d=$tmp/$1; shift; (cd "$cwd" && timeout 60 "$d/job" --quiet "$@"); }

old="bert gemma gemma2 gpt2 gpt_neox gpt_oss llama mistral mixtral olmoe opt phi phi3 qwen2 qwen3 t5 t5-gated vit"
for family in $old; do          # others: tests/families.sh, which asks for gradients too
    mkdir "$tmp/$family.in"
    "$tmp/safe" "$hf/$family/tensors" "$tmp/$family.in/model.safetensors" || fault "$family: tests/safe"
    said=$(job "$family") || { fault "$family: $said"; continue; }
    run "$family" --weights "$tmp/$family.in" --steps 1 --record --export "$tmp/$family.out" \
        --checkpoint "$tmp/$family.run" >"$tmp/said" 2>&1
    is=$(sed -n 's/^loss 1 //p' "$tmp/said") want=$(cat "$hf/$family/loss")
    if awk -v a="$is" -v b="$want" 'BEGIN { d = a - b; exit !(a > 0 && d < 3e-6 * b && d > -3e-6 * b) }'; then pass
    else fault "$family: loss $is, transformers say $want: $(tail -n 1 "$tmp/said")"; fi
    expect "$family: its file, written again" cmp "$tmp/$family.in/model.safetensors" "$tmp/$family.out/model.safetensors"
    expect "$family: its checkpoint" ./dpgen export "$tmp/$family.run" --hf "$tmp/$family.hf"
    expect "$family: exported" cmp "$tmp/$family.in/model.safetensors" "$tmp/$family.hf/model.safetensors"
done

# config5.json is the same as transformers 5.24 writes it.  Its T5 is tied always, and says whether scores are scaled.
for family in $old; do
    [ -e "$hf/$family/config5.json" ] && [ "$family" != t5-gated ] || continue
    expect "$family: its newer config.json" ./dpgen import "$hf/$family/config5.json" -o "$tmp/newer.yaml"
    expect "$family: the same model" cmp "$tmp/newer.yaml" "$tmp/$family.yaml"
done
expect "tied, not scaled" ./dpgen import "$hf/t5-gated/config5.json" -o "$tmp/none.yaml"
if grep -q 'tie: shared}' "$tmp/none.yaml" && ! grep -q 'op: Scale' "$tmp/none.yaml"; then pass
else fault "a T5 whose scores are not scaled: $(grep -n -e Scale -e lm_head "$tmp/none.yaml")"; fi

sed 's/BertForMaskedLM/BertForPreTraining/' "$root/tests/hf/published/bert-base.json" >"$tmp/bert-base.json"
for config in "$tmp/bert-base.json" "$root"/tests/hf/published/*.json; do
    name=$(basename "$config" .json)
    [ "$config" != "$root/tests/hf/published/bert-base.json" ] || continue         # the example has both heads
    expect "import $name" ./dpgen import "$config" -o "$tmp/$name.yaml"
    for file in "$tmp/$name.yaml" "examples/$name.yaml"; do
        ./dpgen plan "$file" -D L=2 --stages 1 --limit 1TiB --estimate --json | grep '"numeric_key"'
        ./dpgen check "$file" | tail -n +2
    done >"$tmp/both"
    lines=$(($(wc -l <"$tmp/both") / 2))
    if [ "$lines" -gt 5 ] && [ "$(head -n $lines "$tmp/both")" = "$(tail -n $lines "$tmp/both")" ]; then pass
    else fault "$name: import writes another model than examples/$name.yaml"; fi
done

# Names and shapes of the published weights: the hash of the sorted lines "NAME D0xD1..." of named_parameters() of transformers
# 4.57.1, first 16 digits.  Some are made of the tiny model's config.json, with other sizes.
list() { ./dpgen check "$1" --parameters | sed "s/^/$2/" | LC_ALL=C sort; }
like() {
    is=$(list "$tmp/$1.yaml" "$3" | sha256sum | cut -c1-16)
    if [ "$is" = "$2" ]; then pass; else fault "$1: names and shapes have the hash $is, not $2"; fi
}
while read -r name want prefix; do like "$name" "$want" "$prefix"; done <<END
bert-base 680a847916382935
gemma-2b f6c416cd8de26ae7
gemma2-2b 7ee95dcc5d61f2d8
gpt2-124m f35aecf5975432c8 transformer.
llama-3.2-1b 74f2bb1d2e125fbc
mixtral-8x7b 0d9269b7ace1d849
olmoe-1b-7b f8281a710c691606
opt-125m c0fc044c141e3b34
phi-2 493d432a34b4df1e
qwen2.5-0.5b d16f0d94f581c718
qwen3-0.6b 29f6074324c848b5
t5-small 243eba273cd08b07
END
labels=$(seq 0 998 | sed 's/.*/"&": "x",/' | tr -d '\n')
while read -r name family want sizes; do
    for size in $sizes; do echo "s/\"${size%%=*}\": [^,]*/\"${size%%=*}\": ${size#*=}/"; done >"$tmp/sizes"
    sed "/\"LABEL_0\",/s/.*/$labels/" "$hf/$family/config.json" | sed -f "$tmp/sizes" >"$tmp/config.json"
    sed -i '/"[1-3]": "LABEL_/d; s/"4": "LABEL_4"/"last": "x"/' "$tmp/config.json"
    expect "$name" ./dpgen import "$tmp/config.json" -o "$tmp/$name.yaml"
    like "$name" "$want"
done <<END
llama-2-7b llama f166ba67292cd333 vocab_size=32000 hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 \
num_attention_heads=32 num_key_value_heads=32 head_dim=128 attention_bias=false
llama-3-8b llama c95a13b194c32ffd vocab_size=128256 hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 \
num_attention_heads=32 num_key_value_heads=8 head_dim=128 attention_bias=false
llama-2-70b llama 2ce894522f82ded8 vocab_size=32000 hidden_size=8192 intermediate_size=28672 num_hidden_layers=80 \
num_attention_heads=64 num_key_value_heads=8 head_dim=128 attention_bias=false
smollm2 llama aecae13bd888265e vocab_size=49152 hidden_size=576 intermediate_size=1536 num_hidden_layers=30 \
num_attention_heads=9 num_key_value_heads=3 head_dim=64 attention_bias=false tie_word_embeddings=true
mistral-7b mistral 3eb4a902c4c50ca2 vocab_size=32000 hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 \
num_attention_heads=32 num_key_value_heads=8 head_dim=128
phi-3-mini phi3 3fa749addc075fde vocab_size=32064 hidden_size=3072 intermediate_size=8192 num_hidden_layers=32 \
num_attention_heads=32 num_key_value_heads=32
gpt-neox-20b gpt_neox 5ffc93f53c8b5562 vocab_size=50432 hidden_size=6144 intermediate_size=24576 num_hidden_layers=44 \
num_attention_heads=64 rotary_pct=0.25
pythia-160m gpt_neox 8aec9a2ec49dbe39 vocab_size=50304 hidden_size=768 intermediate_size=3072 num_hidden_layers=12 \
num_attention_heads=12 rotary_pct=0.25
t5-large t5 02db25193a2b9226 d_model=1024 d_kv=64 d_ff=4096 num_layers=24 num_decoder_layers=24 num_heads=16 vocab_size=32128 \
relative_attention_num_buckets=32
vit-base vit 708321070b237c84 hidden_size=768 intermediate_size=3072 num_hidden_layers=12 num_attention_heads=12 \
image_size=224 patch_size=16
END
# ---- what is wrong is named, and nothing is written -----------------------------------------------------------------
try() { what=$1 text=$2; shift 2; refuse "$what" 5 "$text" run "$@" --steps 0 --no-checkpoint --hash; }
in=$tmp/gpt2.in
hash_of() { run gpt2 --weights "$1" --steps 0 --no-checkpoint --hash 2>"$tmp/said" | sed -n 's/^sha256 //p'; }
sum=$(hash_of "$in")
[ ${#sum} = 64 ] && pass || fault "no hash from $in"

# cut NAME SED: gpt2's list changed, as $tmp/NAME/model.safetensors
cut() { mkdir "$tmp/$1" && sed "$2" "$hf/gpt2/tensors" >"$tmp/list" && "$tmp/safe" "$tmp/list" "$tmp/$1/model.safetensors"; }
cut missing '/h.1.ln_2.bias/d'
try "a tensor is missing" "model.safetensors: tensor .h.1.ln_2.bias. is missing: are these weights of another model?" gpt2 \
    --weights "$tmp/missing"
cut more 's/^h.0.ln_1.bias .*/&\nh.0.ln_3.bias F32 24/'
try "a tensor is left over" "no parameter takes tensor .h.0.ln_3.bias.*ignore" gpt2 --weights "$tmp/more"
cut mask 's/^h.0.ln_1.bias .*/&\nh.0.attn.bias F32 1x1x12x12/'
[ "$(hash_of "$tmp/mask")" = "$sum" ] && pass || fault "an ignored tensor: $(tail -n 1 "$tmp/said")"
cut shape 's/^wpe.weight F32 12x24/wpe.weight F32 24x12/'
try "another shape" "tensor .wpe.weight. is \[24 12\], and parameter .wpe.weight. wants \[12 24\]" gpt2 --weights "$tmp/shape"
cut turned 's/c_fc.weight F32 24x96/c_fc.weight F32 96x24/'
try "axes as in the model" "c_fc.weight. is \[96 24\].*wants \[24 96\]" gpt2 --weights "$tmp/turned"
cut type 's/^wpe.weight F32/wpe.weight I16/'
try "another type" "tensor .wpe.weight. is I16" gpt2 --weights "$tmp/type"
mkdir "$tmp/none"
try "an empty folder" "neither model.safetensors nor model.safetensors.index.json" gpt2 --weights "$tmp/none"

# Two shards.  safe takes numbers from names, so that they are those of the whole file.
mkdir "$tmp/shards"
sed 12q "$hf/gpt2/tensors" >"$tmp/one" && sed 1,12d "$hf/gpt2/tensors" >"$tmp/two"
for part in one two; do
    "$tmp/safe" "$tmp/$part" "$tmp/shards/$part.safetensors"
    sed "s/\([^ ]*\) .*/\"\1\": \"$part.safetensors\",/" "$tmp/$part"
done >"$tmp/map"
index=$tmp/shards/model.safetensors.index.json
{ echo '{"metadata": {"total_size": 1}, "weight_map": {'; sed '$s/,$//' "$tmp/map"; echo '}}'; } >"$index"
[ "$(hash_of "$tmp/shards")" = "$sum" ] && pass || fault "two shards: $(tail -n 1 "$tmp/said")"

# A copy of a tied parameter is passed over where it is equal, whatever `ignore` says, and never dropped where it is not.
while read -r family copy of; do
    for is in "$copy=$of" "$copy"; do
        mkdir -p "$tmp/copy"
        { cat "$hf/$family/tensors"; sed -n "s/^$of /$is /p" "$hf/$family/tensors"; } >"$tmp/list"
        "$tmp/safe" "$tmp/list" "$tmp/copy/model.safetensors"
        case $is in
            *=*) expect "$family: an equal $copy" run "$family" --weights "$tmp/copy" --steps 0 --no-checkpoint ;;
            *) try "$family: another $copy" "tensor .$copy. differs from .*, and this model has one parameter for both" \
                   "$family" --weights "$tmp/copy" ;;
        esac
    done
done <<END
gpt2 lm_head.weight wte.weight
gemma2 lm_head.weight model.embed_tokens.weight
qwen2 lm_head.weight model.embed_tokens.weight
opt lm_head.weight model.decoder.embed_tokens.weight
t5 lm_head.weight shared.weight
t5 encoder.embed_tokens.weight shared.weight
t5 decoder.embed_tokens.weight shared.weight
bert cls.predictions.decoder.weight bert.embeddings.word_embeddings.weight
bert cls.predictions.decoder.bias cls.predictions.bias
END
lone() {        # FAMILY TENSOR: without it
    grep -v "^$2 " "$hf/$1/tensors" >"$tmp/list" && "$tmp/safe" "$tmp/list" "$tmp/copy/model.safetensors"
    try "$1 without $2" "tensor .$2. is missing" "$1" --weights "$tmp/copy"
}
lone llama lm_head.weight
lone t5 shared.weight

# A checkpoint exported: in the shards of a published model, or in files of a size
./dpgen export "$tmp/gpt2.run" --hf "$tmp/like" --like "$tmp/shards" >"$tmp/said" 2>&1
for part in one two; do expect "shard $part" cmp "$tmp/shards/$part.safetensors" "$tmp/like/$part.safetensors"; done
./dpgen export "$tmp/gpt2.run" --hf "$tmp/sized" --shard 30000 >"$tmp/said" 2>&1
expect "three files" test -e "$tmp/sized/model-00003-of-00003.safetensors"
[ "$(hash_of "$tmp/sized")" = "$sum" ] && pass || fault "files of a size: $(tail -n 1 "$tmp/said")"
expect "their index" awk -F '[:,]' '/total_param/ { n = $2 } /total_size/ { exit !(n > 0 && $2 == 4 * n) }' \
    "$tmp/sized/model.safetensors.index.json"
./dpgen export "$tmp/gpt2.run" --hf "$tmp/others" --like "$hf/gpt2" >"$tmp/said" 2>&1
expect "the other files" cmp "$tmp/others/config.json" "$hf/gpt2/config.json"
expect "one file then" cmp "$tmp/others/model.safetensors" "$in/model.safetensors"
export_to() { ./dpgen export "$@" --hf "$tmp/none.hf"; }
refuse "no checkpoint" 5 "there is no checkpoint: name step-N" export_to "$hf"
refuse "a folder that is full" 2 "has model.safetensors already" ./dpgen export "$tmp/gpt2.run" --hf "$tmp/others"
refuse "shards of another model" 3 "index.json does not list tensor .model.decoder" export_to "$tmp/opt.run" \
    --like "$tmp/shards"
refuse "no size" 2 "shard: '5XB' is no number with a known unit" export_to "$tmp/gpt2.run" --shard 5XB
cp -r "$tmp/gpt2.run" "$tmp/hurt.run"
printf x | dd of="$tmp/hurt.run/step-000001/stage0.safetensors" bs=1 seek=4000 conv=notrunc 2>/dev/null
refuse "a bit that turned" 5 "stage0.safetensors is damaged: its SHA-256" export_to "$tmp/hurt.run"
printf x | dd of="$tmp/hurt.run/step-000001/index.json" bs=1 seek=40 conv=notrunc 2>/dev/null
refuse "an index that turned" 5 "index.json is damaged: its SHA-256" export_to "$tmp/hurt.run"
expect "nothing is written" test ! -e "$tmp/none.hf"

# One list of tensors a folder: what is written is what is read
for dir in "$tmp/sized" "$tmp/gpt2.run/step-000001"; do
    refuse "an export beside another list" 1 "export .*: .*index.json there lists the tensors of other files" run gpt2 \
        --weights "$in" --steps 0 --no-checkpoint --export "$dir"
    expect "it is not begun" test ! -e "$dir/model.safetensors" -a ! -e "$dir/model.safetensors.part"
    cp "$in/model.safetensors" "$dir"
    try "two lists" "holds .*index.json and model.safetensors, two sets of weights" gpt2 --weights "$dir"
    rm "$dir/model.safetensors"
done
refuse "an export into a checkpoint" 2 "has index.json already" ./dpgen export "$tmp/gpt2.run" \
    --hf "$tmp/gpt2.run/step-000001"

# A name with what C, JSON, a shell and make have a use for: in the job, in its checkpoint, and in what both write
odd='w"p\e'\''s $(x) %s ??/ {0} `é` $$'
yaml=$(printf %s "$odd" | sed "s/'/''/g; s/[\\\\&/]/\\\\&/g")
sed "s/^weights:/&\\n  rename: {wpe.weight: '$yaml'}/" "$tmp/gpt2.yaml" >"$tmp/odd.yaml"
for seed in 1 2; do
    said=$(generate "$tmp/odd$seed" "$tmp/odd.yaml" -D T=11 --set train.precision.compute=f32 --set train.batch.global=2 \
        --set train.batch.micro=2 --set devices.0.kernels=portable --set train.seed=$seed --stages 2 --recompute none \
        --set "data.train={format: npy, arrays: {tokens: tokens.npy, targets: targets.npy}}" && compile "$tmp/odd$seed")
    [ -z "$said" ] || fault "odd names: $said"
done
want=$(run odd1 --steps 1 --hash --export "$tmp/odd.out" --checkpoint "$tmp/odd.run" 2>"$tmp/said")
expect "its name in JSON" grep -qaF "\"$(printf %s "$odd" | sed 's/["\\]/\\&/g')\":{" "$tmp/odd.out/model.safetensors"
expect "odd names from a checkpoint" ./dpgen export "$tmp/odd.run" --hf "$tmp/odd.hf"
expect "odd names: the same file" cmp "$tmp/odd.out/model.safetensors" "$tmp/odd.hf/model.safetensors"
said=$(run odd2 --weights "$tmp/odd.hf" --steps 0 --no-checkpoint --hash 2>&1)
if [ ${#want} = 71 ] && [ "$said" = "$want" ]; then pass; else fault "odd names: $said, not $want: $(tail -n 1 "$tmp/said")"; fi

mv "$tmp/shards/two.safetensors" "$tmp/two.safetensors"
try "a shard is missing" "two.safetensors: the shard is missing, and .*index.json lists it" gpt2 --weights "$tmp/shards"
mv "$tmp/two.safetensors" "$tmp/shards"
sed -i 's/"wpe.weight": "[^"]*"/"wpe.weight": "..\/two.safetensors"/' "$index"
try "a shard elsewhere" "leads out of the folder" gpt2 --weights "$tmp/shards"
refuse "a folder that cannot be" 1 "export .*: cannot write there" run gpt2 \
    --weights "$in" --steps 0 --no-checkpoint --export /dev/null/x

# A checkpoint of llm.c, F32 and BF16: the same tensors, without its padding.  All numbers are those of both types.
for version in 5 3; do
    "$tmp/llmc" "$in/model.safetensors" "$tmp/gpt2.bin" 12 61 2 4 24 $version >"$tmp/said" 2>&1 ||
        fault "tests/llmc: $(cat "$tmp/said")"
    expect "import of llm.c" ./dpgen import "$tmp/gpt2.bin" -o "$tmp/llmc.yaml"
    [ "$(hash_of "$tmp/llmc.safetensors")" = "$sum" ] && pass || fault "llm.c, version $version: $(tail -n 1 "$tmp/said")"
done
head -c 5000 "$tmp/gpt2.bin" >"$tmp/cut.bin"
refuse "a checkpoint of llm.c that is cut" 3 "cut.bin: it has 5000 bytes, and its header wants [0-9]*: it is cut short" \
    ./dpgen import "$tmp/cut.bin" -o "$tmp/none.yaml"
cp LICENSE "$tmp/text.bin"
refuse "another file" 3 "no checkpoint of llm.c, version 3 or 5" ./dpgen import "$tmp/text.bin" -o "$tmp/none.yaml"

# Names with a prefix, without one, and older names: the numbers follow from the names, so equal headers are what is asked for
header() { dd bs=1 count=6000 <"$1/model.safetensors" 2>/dev/null | tr '}' '\n' | sed -n 's/.*"\([a-z].*\)":{"dtype.*/\1/p'; }
other() {       # FAMILY NAME SED: read under other names, and written under those of the family
    mkdir "$tmp/$2"
    sed "$3" "$hf/$1/tensors" >"$tmp/list" && "$tmp/safe" "$tmp/list" "$tmp/$2/model.safetensors"
    run "$1" --weights "$tmp/$2" --steps 0 --no-checkpoint --export "$tmp/$2.out" >"$tmp/said" 2>&1
    header "$tmp/$1.in" >"$tmp/want"
    if header "$tmp/$2.out" | cmp -s - "$tmp/want" && [ -s "$tmp/want" ]; then pass
    else fault "$2: $(tail -n 1 "$tmp/said")"; fi
}
other gpt2 longer 's/^/transformer./'
other opt shorter 's/^model\.//'
other bert older 's/LayerNorm.weight/LayerNorm.gamma/; s/LayerNorm.bias/LayerNorm.beta/'

# ---- config.json ----------------------------------------------------------------------------------------------------
wrong() {       # WHAT TEXT SED [FAMILY]
    sed "$3" "$hf/${4:-llama}/config.json" >"$tmp/config.json"
    refuse "$1" 3 "$2" ./dpgen import "$tmp/config.json" -o "$tmp/wrong.yaml"
    [ ! -e "$tmp/wrong.yaml" ] && pass || fault "$1: a file was written"
}
wrong "an unknown field" "config.json:[0-9]*:3: error: .logit_scale. is not known of model type .llama." \
    's/"mlp_bias"/"logit_scale": 2,\n  &/'
wrong "another scaling" "rope_scaling.rope_type: dpgen does not do .dynamic. for model type .llama." 's/"llama3"/"dynamic"/'
wrong "an unknown field of scaling" "rope_scaling.beta_quick. is not known" 's/"low_freq_factor"/"beta_quick": 32,\n    &/'
layers() {      # TEXT LAYERS: of gemma2, s with a window, f without
    kinds=$(echo "$2" | sed 's/s/"sliding_attention", /g; s/f/"full_attention", /g; s/, $//')
    sed "s/\"sliding_window\"/\"layer_types\": [$kinds], &/" "$root/tests/hf/published/gemma2-2b.json" >"$tmp/config.json"
    refuse "layers $2" 3 "$1" ./dpgen import "$tmp/config.json" -o "$tmp/wrong.yaml"
}
layers "layer_types: dpgen does not do another order" sff
layers "layer_types: dpgen does not do another order" sfsff
layers "layer_types: a list of 26 layers is expected" sfsf
wrong "an act" "hidden_act: dpgen does not do .relu2." 's/"silu"/"relu2"/'
wrong "a type that is not done" "dpgen does not do model type .mamba. yet: it lacks a selective scan" \
    's/"model_type": "llama"/"model_type": "mamba"/'
wrong "another head" "3:5: error: architectures: .LlamaForSequenceClassification. lacks a head of words, which" \
    's/LlamaForCausalLM/LlamaForSequenceClassification/'
wrong "no head, and none is tied" "architectures: .LlamaModel. lacks a head of words" 's/LlamaForCausalLM/LlamaModel/'
expect "a head of words" ./dpgen import "$hf/bert-words" -o "$tmp/bert-words.yaml"
heads() {       # TEXT NAME TENSORS: of bert, whose weights lack TENSORS
    mkdir -p "$tmp/heads"
    sed "s/BertForPreTraining/$2/" "$hf/bert/config.json" >"$tmp/heads/config.json"
    sed "/$3/d" "$hf/bert/tensors" >"$tmp/list" && "$tmp/safe" "$tmp/list" "$tmp/heads/model.safetensors"
    refuse "heads of $2" 3 "$1" ./dpgen import "$tmp/heads" -o "$tmp/wrong.yaml"
}
heads "3:5: error: architectures: .BertModel. lacks heads of masked words, of the next sentence or of classes" BertModel '^cls'
heads ".BertForQuestionAnswering. lacks heads of masked words" BertForQuestionAnswering '^cls'
heads "these weights of .BertForTokenClassification. have no tensor .classifier.weight." BertForTokenClassification '^cls'
heads "these weights of .BertForMaskedLM. have no tensor .cls.predictions.transform.dense.weight." BertForMaskedLM '^cls'
sed 's/BertForPreTraining/BertForMaskedLM/' "$hf/bert/config.json" >"$tmp/heads/config.json"
grep -v '^cls.seq\|pooler' "$hf/bert/tensors" >"$tmp/list" && "$tmp/safe" "$tmp/list" "$tmp/heads/model.safetensors"
expect "one head" ./dpgen import "$tmp/heads" -o "$tmp/one.yaml"
expect "of words alone" cmp "$tmp/one.yaml" "$tmp/bert-words.yaml"
sed '/"[1-4]": "LABEL_/d; s/"0": "LABEL_0",/"0": "x"/' "$hf/bert-classes/config.json" >"$tmp/config.json"
refuse "one class" 3 "id2label: one class, whose score is a number that is fitted" ./dpgen import "$tmp/config.json" \
    -o "$tmp/wrong.yaml"
expect "the name of one head, and weights of both" sh -c \
    "rm $tmp/heads/model.safetensors; sed 's/BertForPreTraining/BertForMaskedLM/' $hf/bert/config.json >$tmp/heads/config.json
     cp $tmp/bert.in/model.safetensors $tmp/heads; ./dpgen import $tmp/heads/config.json -o $tmp/both.yaml >$tmp/both.said"
expect "both heads, then" sh -c "./dpgen import $tmp/heads -o $tmp/both.yaml && cmp $tmp/both.yaml $tmp/bert.yaml"
expect "the folder, not the file" grep -q -- "--weights $tmp/heads\$" "$tmp/both.said"

# Files of other kinds: what they are, and what to do
refuse "weights alone" 3 "safetensors: weights, .*; put the model's config.json beside it.*--weights" \
    ./dpgen import "$tmp/missing/model.safetensors" -o "$tmp/wrong.yaml"
refuse "weights beside a config.json" 3 "safetensors: weights, .*; name its folder, .*: dpgen import $tmp/heads" \
    ./dpgen import "$tmp/heads/model.safetensors" -o "$tmp/wrong.yaml"
zip() { printf 'PK\003\004%060d%s' 0 "$1" >"$tmp/$2"; refuse "$2" 3 "$3" ./dpgen import "$tmp/$2" -o "$tmp/wrong.yaml"; }
zip net/code/__torch__.py model.jit "a program of TorchScript, which is not read; export the model: torch.export.save"
zip net/data.pkl pytorch_model.bin "a pickle of PyTorch, .*; save weights as safetensors"
zip model/models/model.json model.zip "an archive of torch.export; let its name end with .pt2"
printf 'GGUF\003\0\0\0' >"$tmp/model.gguf"
refuse "GGUF" 3 "a file of GGUF.*; name the folder" ./dpgen import "$tmp/model.gguf" -o "$tmp/wrong.yaml"
wrong "a mistyped type" "model type .lama. is not known" 's/"model_type": "llama"/"model_type": "lama"/'
wrong "no width" "there is no .hidden_size." '/"hidden_size"/d'
wrong "a width that is a word" "hidden_size: a number is expected" 's/"hidden_size": 24/"hidden_size": "24"/'

for factor in '{"a": 1}' '[2]' '"hidden_size"' true null; do
    wrong "a factor $factor" "short_factor: a list of numbers is expected" "/short_factor/{n;s/1.0/$factor/}" phi3-short
done
wrong "no list of factors" "short_factor: a list of numbers is expected" \
    '/short_factor/,/\]/c\"short_factor": 1,' phi3-short
wrong "a width below 0" "config.json:12:18: error: hidden_size: 1 to 2147483647 is expected, not -24" \
    's/"hidden_size": 24/"hidden_size": -24/'
wrong "no heads" "num_attention_heads: 1 to 2147483647 is expected, not 0" \
    's/"num_attention_heads": 4/"num_attention_heads": 0/'
wrong "a size above all" "hidden_size: 1 to 2147483647 is expected, not 9876543210" \
    's/"hidden_size": 24/"hidden_size": 9876543210/'
wrong "a factor of 0" "rope_scaling.factor: 1 to 1e6 is expected, not 0" 's/"factor": 8.0/"factor": 0/'
for p in 7 1 -0.5 0.99999999; do     # the last is 1 where it is written
    wrong "dropout $p" "config.json:[0-9]*:24: error: attention_dropout: 0 to below 1 is expected, not $p" \
        "s/\"attention_dropout\": 0.0/\"attention_dropout\": $p/"
done
wrong "an eps" "rms_norm_eps: at least 0 is expected, not -1e-6" 's/"rms_norm_eps": 1e-06/"rms_norm_eps": -1e-6/'
for theta in 0.5 9e18; do
    wrong "theta $theta" "rope_theta: 1 to 1e12 is expected, not $theta" "s/\"rope_theta\": [0-9.]*/\"rope_theta\": $theta/"
done
# Keys that contradict one another: the mistakes of the model file, told of the keys that its line has its values from
wrong "heads that share no keys" "config.json:[0-9]*:26: error: 'num_attention_heads' and 'num_key_value_heads' make no model: \
.*: 4 heads cannot share 3 heads of keys" 's/"num_key_value_heads": 2/"num_key_value_heads": 3/'
wrong "turns out of order" "'rope_scaling.low_freq_factor' and 'rope_scaling.high_freq_factor' make no model: .*: low is" \
    's/"low_freq_factor": 1.0/"low_freq_factor": 5.0/'
wrong "heads that do not divide a width" "error: 'num_attention_heads' and 'hidden_size' make no model: .*: width 24 is not \
divisible by 5 heads" 's/"num_attention_heads": 4/"num_attention_heads": 5/' bert
wrong "the line of the other key" "\^ 'hidden_size' is 24 in line 10$" \
    's/"num_attention_heads": 4/"num_attention_heads": 5/' bert
wrong "a width of a head that follows" "error: 'n_embd', 'n_head' and 'rotary_dim' make no model: .*: dims is even and at \
most the width of a head, 3, not 4" 's/"n_head": 4/"n_head": 8/' codegen
wrong "more at once than experts" "error: 'num_experts_per_tok' and 'num_local_experts' make no model: .*: top 9 of" \
    's/"num_experts_per_tok": [0-9]*/"num_experts_per_tok": 9/' mixtral
wrong "no positions are left" ":30: error: 'max_position_embeddings' makes no model: model.dims.P: -1 is out" \
    's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 1/' roberta-words
wrong "a width of a head in parts" "'hidden_size' and 'num_attention_heads' make no model: 'D/H' is not an integer" \
    '/"head_dim"/d; s/"num_attention_heads": 4/"num_attention_heads": 5/'
absent='/"num_key_value_heads"/d; s/"num_attention_heads": 4/"num_attention_heads": 6/'
wrong "a key that is absent" ":26: error: 'num_attention_heads' and 'num_key_value_heads' make no model" "$absent" mistral
wrong "its default" "\^ 'num_key_value_heads' is 8 where it is absent$" "$absent" mistral
wrong "images that patches do not fill" "'image_size' and 'patch_size' make no model: '(S/P)\*(S/P)+1' is not an integer" \
    's/"image_size": 8/"image_size": 9/' vit
dense='s/"first_k_dense_replace": 1/"first_k_dense_replace": 9/'
wrong "layers without experts" "error: 'first_k_dense_replace' and 'num_hidden_layers' make no model: weights.each: no \
parameter is named '\*.experts.gate_proj.weight'" "$dense" deepseek_v3
wrong "how many layers" "\^ 'num_hidden_layers' is 2 in line [0-9]*$" "$dense" deepseek_v3
cp "$tmp/gpt2.bin" "$tmp/five.bin"
printf '\005' | dd of="$tmp/five.bin" bs=1 seek=20 conv=notrunc 2>"$tmp/dd"
refuse "five heads of llm.c" 3 "five.bin: no model file can be made of it: .*: width 24 is not divisible by 5 heads" \
    ./dpgen import "$tmp/five.bin" -o "$tmp/wrong.yaml"
expect "of which nothing is written" test ! -e "$tmp/wrong.yaml" -a ! -e "$tmp/wrong.safetensors"
# One kind of token is a row that all add, and no input
sed 's/"type_vocab_size": 2/"type_vocab_size": 1/' "$hf/bert/config.json" >"$tmp/config.json"
expect "a bert of one kind" ./dpgen import "$tmp/config.json" -o "$tmp/kinds.yaml"
expect "which has no input of kinds" sh -c "! grep -q types: $tmp/kinds.yaml"
# Its head of words has the one norm of another name
expect "a roberta of classes" ./dpgen import "$hf/roberta-classes/config.json" -o "$tmp/kinds.yaml"
expect "a modernbert, whose norms have no such name" ./dpgen import "$hf/modernbert/config.json" -o "$tmp/kinds.yaml"
refuse "no folder" 2 "cannot read /nonexistent: .*; name the folder of a published model, with its config.json" \
    ./dpgen import /nonexistent -o "$tmp/wrong.yaml"

# ---- adapters of PEFT -------------------------------------------------------------------------------------------------
hf_data llama
adapt="adapt={match: ['*.q_proj'], rank: 2, alpha: 4}"
lora() {
    generate "$tmp/lora" "$tmp/llama.yaml" $dims --set train.precision.compute=f32 --set devices.0.kernels=portable \
        --set "data.train={format: npy, arrays: {$arrays}, order: sequential}" --stages 2 --schedule 1f1b --set "$adapt" &&
        compile "$tmp/lora"
}
said=$(lora) && pass || fault "a job with adapters: $said"
list_adapters() {
    ./dpgen check "$tmp/llama.yaml" $dims --set "$1" --parameters |
        sed -n 's/^\(.*lora_[AB].weight\) /base_model.model.\1 F32 /p'
}
# peft NAME ADAPT CONFIG: $tmp/NAME as PEFT writes it
peft() {
    mkdir "$tmp/$1" && list_adapters "$2" >"$tmp/list" && echo "$3" >"$tmp/$1/adapter_config.json" &&
        "$tmp/safe" "$tmp/list" "$tmp/$1/adapter_model.safetensors" || fault "$1"
}
take() { what=$1 text=$2 peft=$3; try "$what" "$text" lora --weights "$tmp/llama.in" --adapter "$tmp/$peft"; }
peft peft "$adapt" '{"r": 2, "lora_alpha": 4, "alpha_pattern": {}, "use_dora": false}'
expect "adapters of PEFT" run lora --weights "$tmp/llama.in" --adapter "$tmp/peft" --steps 0 --no-checkpoint
peft wide "$(echo "$adapt" | sed "s/'\*.q_proj'/&, '*.k_proj'/")" '{"r": 2, "lora_alpha": 4}'
take "adapters of more operators" "no adapter of this job takes tensor .base_model.*k_proj.lora_A.weight.*fewer" wide
peft apart "$adapt" '{"r": 2, "alpha_pattern": {"q_proj": 8}, "lora_alpha": 4}'
take "a factor of one operator" "alpha_pattern is not done here" apart
peft torn "$adapt" '{"r": 2, "lora_al'
take "a torn configuration" "adapter_config.json: byte 18: a character that no string may hold" torn
peft page "$adapt" ''
printf '{"lora_alpha": 4,%4073s"r": 2' '' >"$tmp/page/adapter_config.json"
take "one that ends with its page" "adapter_config.json: byte 4096: a comma or } is expected" page

# Beside a checkpoint they are read as beside published weights.  A job without them would lose what they have learnt.
adapted() { run lora --weights "$1" --adapter "$tmp/peft" --steps 0 --no-checkpoint --hash; }
expect "a checkpoint with adapters" run lora --weights "$tmp/llama.in" --steps 1 --checkpoint "$tmp/lora.run"
expect "adapters beside a checkpoint" test "$(adapted "$tmp/lora.run/step-000001")" = "$(adapted "$tmp/llama.in")"
try "a checkpoint with adapters that the job has not" "step-000001: no parameter takes tensor .*lora_A.weight" llama \
    --weights "$tmp/lora.run/step-000001"

# ---- section weights --------------------------------------------------------------------------------------------------
slip() {        # WHAT TEXT SED: of phi3's model file
    sed "$3" "$tmp/phi3.yaml" >"$tmp/slip.yaml"
    refuse "$1" 3 "$2" ./dpgen check "$tmp/slip.yaml"
}
slip "a rule that names nothing" "weights.stack: no parameter is named .\*.qproj.weight." \
    's/"\*.q_proj.weight"/"*.qproj.weight"/'
slip "parts that do not fit" "does not fit below" 's/"\*.up_proj.weight"\]/"*.down_proj.weight"]/'
slip "two stars" "a name with one . at most" 's/"\*.up_proj.weight"\]/"*.up*.weight"]/'
slip "no place for a number" "weights.each: '.*' has {} once" 's/^  stack:/  each: {"*.up_proj.weight": "*.up.weight"}\n&/'
slip "parts that are no tensors" "weights.each: 'model.norm.weight' \[24\] has no parts" \
    's/^  stack:/  each: {model.norm.weight: "model.{}.norm"}\n&/'
slip "two parameters of one name" "weights: 'model.embed_tokens.weight' and 'model.norm.weight' are both tensor 'x' of files" \
    's/^  stack:/  rename: {model.norm.weight: x, model.embed_tokens.weight: x}\n&/'
slip "a name without its star" "weights: '.*layers.0.*' and '.*layers.1.*' are both tensor 'x' of files" \
    's/^  stack:/  rename: {"*.input_layernorm.weight": x}\n&/'
twice="names '.*' already, and one tensor holds it"
slip "twice in a stack" "slip.yaml:[0-9]*:[0-9]*: error: weights.stack: weights.stack $twice" \
    's/\["\*.q_proj.weight", "\*.k_proj.weight"/["*.q_proj.weight", "*.q_proj.weight"/'
slip "in two stacks" "slip.yaml:[0-9]*:[0-9]*: error: weights.stack: weights.stack $twice" \
    's/^  stack:/&\n    - {file: "*.both.weight", of: ["*.o_proj.weight", "*.v_proj.weight"]}/'
slip "renamed and in a stack" "weights.stack: weights.rename $twice" \
    's/^  stack:/  rename: {"*.q_proj.weight": "*.q.weight"}\n&/'
slip "apart and in a stack" "weights.stack: weights.each $twice" \
    's/^  stack:/  each: {"*.q_proj.weight": "*.q.{}.weight"}\n&/'
slip "renamed and apart" "weights.each: weights.rename $twice" \
    's/^  stack:/  rename: {"*.o_proj.weight": "*.o.weight"}\n  each: {"*.o_proj.weight": "*.o.{}.weight"}\n&/'
slip "a word that is none" "weights.type: .f17. is not known" 's/type: f16/type: f17/'
finish
