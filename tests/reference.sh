#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models through the whole line, against PyTorch: losses, norms, first and last gradient, parameters at the end; of images
# the running statistics too.  A small one with four optimisers of torch.optim, of which two stop in the middle and go on.
# SLOW=1: eight more models of language, seven of images.
#   reference.sh [DPGEN [COMPARE]] [-- OPTIONS FOR DPGEN]     such as -- --set plan.stages=2
root=$(cd "$(dirname "$0")/.." && pwd)
dpgen=$root/dpgen compare=$root/build/compare limit=1e-4 least=1e-12
if [ $# -gt 0 ] && [ "$1" != -- ]; then dpgen=$1; shift; fi
if [ $# -gt 0 ] && [ "$1" != -- ]; then compare=$1; shift; fi
if [ $# -gt 0 ]; then shift; fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0

# check WHAT COMMAND...
check() {
    what=$1
    shift
    if "$@" >"$tmp/said" 2>&1; then passed=$((passed + 1)); return 0; fi
    failed=$((failed + 1))
    echo "reference.sh: $what" >&2
    tail -n 5 "$tmp/said" >&2
    return 1
}

# take: the model file of $model, and its start values.  Of a config.json it is what dpgen import writes.
take() {
    file=$model.yaml start=$model.start.safetensors
    [ -e $model.tensors ] || return 0
    start=$tmp/$model.start.safetensors
    [ -x "$tmp/safe" ] || cc -std=c11 -O1 -o "$tmp/safe" "$root/tests/safe.c" || return
    "$tmp/safe" $model.tensors "$start" || return
    [ -e $model.json ] || return 0
    file=$tmp/$model.yaml
    "$dpgen" import $model.json -o "$file"
}
arrays="{tokens: language.tokens.npy, targets: language.targets.npy}"
rates="lr: 1e-2, betas: [0.9, 0.95], eps: 1e-3, weight_decay: 0.1, decay_only: matrices"
like_gpt() {    # OPTION...: with the training of make_ref.py
    "$dpgen" "$file" --set train.precision.compute=f32 --set train.batch="{global: 6, micro: 2}" --set train.steps=20 \
        --set train.optimizer="{type: adamw, $rates}" --set train.schedule="{type: cosine, warmup: 4, final: 0.1}" \
        --set data.train="{format: npy, order: sequential, arrays: $arrays}" \
        --set devices="[{name: cpu, kind: cpu, kernels: portable, memory: 64MiB, threads: 1}]" \
        --set plan="{stages: 1, schedule: gpipe}" "$@"
}
as_it_is() { "$dpgen" "$file" "$@"; }

# The first folder compiles its kernels, with SLOW=1 all that it has, with its own flags; what the others have besides is that
# of build/.
ready() {
    [ -z "$SAN" ] || return
    export READY_CC="$(command -v cc)" READY_PATH="$PATH" READY_FLAGS= READY_KERNELS="$1"
    PATH=$root/tests/ready:$PATH
}
[ -n "$SLOW" ] || ready own
generate() {
    take && $([ -e $model.json ] && echo like_gpt || echo as_it_is) --estimate -o "$out" "$@" && make -C "$out" || return
    [ "$READY_CC" ] || ready
    READY_KERNELS=
    [ -n "$SLOW" ] || READY_FLAGS=-O0
}
# train STEPS LOG CHECKPOINTS GRADIENTS
train() {
    "$out/train" --weights "$start" --steps "$1" --log "$2" --checkpoint "$3" --gradients "$4" --quiet
}
hash_of() { "$1/train" --weights "$start" --steps 5 --no-checkpoint --quiet --hash | grep '^sha256 [0-9a-f]'; }
ends_of() { find "$1" -path '*-000020/*.safetensors' | sort; }

cd "$root/tests/ref" || exit 1          # model files name their data from here
for model in gpt t5 mixtral lstm ${SLOW:+bert llama qwen3 mistral gemma2 gpt_neox phi olmoe} \
    resnet ${SLOW:+densenet mobilenet efficientnet convnext vit amoebanet unet}; do
    out=$tmp/$model
    [ $model != resnet ] || least=1e-2          # from here on images: README.md, gradients that cancel
    check "$model: generate and build" generate "$@" || continue
    for steps in 1 20; do
        at=$tmp/$model.$steps
        check "$model: $steps steps" train $steps "$at.log" "$at.run" "$at.grad" || continue
        check "$model: gradient of step $steps" "$compare" --least $least $model.grad$steps.safetensors "$at.grad" $limit
    done
    check "$model: losses and norms" "$compare" --loss $model.losses.txt "$tmp/$model.20.log" $limit
    check "$model: parameters after 20 steps" "$compare" $model.end.safetensors $(ends_of "$tmp/$model.20.run") $limit
    [ $model = gpt ] || continue
    hash_of "$out" >"$tmp/built"                # by the flags of the folder, and by those of build/
    out=$tmp/again
    check "$model: generate and build again" generate "$@" || continue
    hash_of "$out" >"$tmp/ready"
    check "$model: the bits of other flags" grep -qxFf "$tmp/built" "$tmp/ready"
done
# Sums in eight blocks, on two devices a stage, of t5 with divided rows: the same limits in f32, losses to 1e-2 in bf16.
blocks() {      # TYPE OPTION...
    out=$tmp/$model.$1.blocks at=$tmp/$model.$1.blocks.20 bound=$limit name="$model, $1, 8 blocks"
    [ $1 = f32 ] || bound=1e-2
    set -- "$@" --set train.precision.compute=$1 --set train.blocks=8 --set plan.tensor=2 --set devices.0.count=2
    [ $model != t5 ] || set -- "$@" --set plan.positions=divided
    shift
    check "$name: generate and build" generate "$@" || return
    check "$name: 20 steps" train 20 "$at.log" "$at.run" "$at.grad" || return
    [ $bound = $limit ] || sed -i 's/,"norm":[^,}]*//' "$at.log"
    check "$name: losses" "$compare" --loss $model.losses.txt "$at.log" $bound
    [ $bound = $limit ] || return
    check "$name: gradient of step 20" "$compare" --least $least $model.grad20.safetensors "$at.grad" $limit
    check "$name: parameters after 20 steps" "$compare" $model.end.safetensors $(ends_of "$at.run") $limit
}
least=1e-12
for model in ${SLOW:+gpt llama bert mixtral} t5; do
    for type in f32 ${SLOW:+bf16}; do blocks $type "$@"; done
done
# rule NAME OPTIMIZER OPTION...
model=rules
rule() {
    name=$1 rule=$2
    shift 2
    out=$tmp/$name
    check "$name: generate and build" generate --set train.optimizer="$rule" "$@" || return
    check "$name: 20 steps" train 20 "$out.log" "$out.run" "$out.grad" || return
    check "$name: losses and norms" "$compare" --loss $model.$name.losses.txt "$out.log" $limit
    check "$name: parameters after 20 steps" "$compare" $model.$name.end.safetensors $(ends_of "$out.run") $limit
}
rule nesterov "{type: sgd, lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 0.01}" "$@"
rule rmsprop "{type: rmsprop, lr: 0.01, alpha: 0.9, eps: 1e-3}" "$@"
rule moving "{type: rmsprop, lr: 0.005, alpha: 0.95, eps: 1e-2, momentum: 0.8, weight_decay: 0.02}" "$@"
again() {       # 10 steps, and 10 more
    "$out/train" --weights "$start" --steps 10 --checkpoint "$out.again" --quiet &&
        "$out/train" --resume --checkpoint "$out.again" --quiet &&
        cmp "$(ends_of "$out.again" | head -n 1)" "$(ends_of "$out.run" | head -n 1)"
}
check "moving: stop and go on" again
rule centred "{type: rmsprop, lr: 0.005, alpha: 0.9, eps: 1e-2, momentum: 0.5, centered: true}" "$@"
check "centred: stop and go on" again

# tuned NAME OPTION...: the gpt with parameters that do not learn, or with rates of their own (make_tuned.py)
model=gpt least=1e-12 limit=1e-5
tuned() {
    name=$1 out=$tmp/gpt.$1
    shift
    check "$name: generate and build" generate "$@" || return
    for steps in 1 20; do
        at=$out.$steps
        check "$name: $steps steps" train $steps "$at.log" "$at.run" "$at.grad" || continue
        check "$name: gradient of step $steps" "$compare" --least $least $model.$name.grad$steps.safetensors "$at.grad" 1e-4
    done
    check "$name: losses and norms" "$compare" --loss $model.$name.losses.txt "$out.20.log" $limit
    check "$name: parameters after 20 steps" "$compare" $model.$name.end.safetensors $(ends_of "$out.20.run") $limit
}
# rests NAME PARAMETER...: the job of a name has no gradient and no moments of these, and they are what they were
rests() {
    for stage in "$tmp/gpt.$1"/stage*.h; do
        grep -q -e "arena" "$stage" || { echo "$stage: no arena"; return 1; }
    done
    for parameter in "$@"; do
        ! grep -hE "$(echo "$parameter" | tr . _)_(grad|m|v)(_|[^a-z])" "$tmp/gpt.$name"/stage*.[ch] || return 1
    done
}
frozen="wpe.weight h.0.ln_1.weight h.0.attn.c_attn.weight h.0.mlp.c_proj.bias"
tuned through --set train.freeze="[wpe.*, h.0.*, h.1.ln_2.weight, h.1.attn.c_attn.weight]" "$@"
check "through: no gradient, no moment" rests through $frozen h.1.ln_2.weight h.1.attn.c_attn.weight
tuned prefix --set train.freeze="[wte.*, wpe.*, h.0.*]" "$@"
check "prefix: no gradient, no moment" rests prefix $frozen wte.weight
tuned groups --set train.optimizer.groups="[{match: [h.1.*, wpe.*], lr: x0.3, weight_decay: 0},
    {match: ['*.ln_*', ln_f.*], lr: 2e-2, betas: [0.7, 0.9], eps: 1e-4}]" "$@"
# packed MODEL: several documents in a sample, which the reference has one by one (make_packed.py)
packed() {
    model=$1 name=packed out=$tmp/$1.packed shared=language
    [ $1 != gpt ] || shared=gpt
    shift
    set -- --set model.inputs.documents="{shape: [B, T], dtype: i32}" --set model.documents=documents \
        --set data.train.arrays="{documents: $shared.documents.npy, tokens: $shared.tokens.npy, targets:
            $shared.packed.npy}" "$@"
    check "$model, packed: generate and build" generate "$@" || return
    for steps in 1 20; do
        at=$out.$steps
        check "$model, packed: $steps steps" train $steps "$at.log" "$at.run" "$at.grad" || continue
        check "$model, packed: gradient of step $steps" "$compare" --least $least $model.packed.grad$steps.safetensors \
            "$at.grad" 1e-4
    done
    check "$model, packed: losses and norms" "$compare" --loss $model.packed.losses.txt "$out.20.log" $limit
}
for model in gpt llama ${SLOW:+mistral}; do
    packed $model "$@"
done
# The llama with PEFT's adapters beside queries and values (make_lora.py)
lora() {
    "$tmp/safe" llama.lora.tensors "$tmp/lora.start" && "$dpgen" import llama.json -o "$tmp/lora.yaml" || return
    file=$tmp/lora.yaml
    [ "$READY_CC" ] || ready
    READY_KERNELS=
    like_gpt --estimate -o "$out" --set adapt="{match: ['*.q_proj', '*.v_proj'], rank: 3, alpha: 6}" "$@" &&
        make -C "$out"
}
model=llama name=lora out=$tmp/gpt.lora start=$tmp/lora.start limit=1e-5
[ -x "$tmp/safe" ] || cc -std=c11 -O1 -o "$tmp/safe" "$root/tests/safe.c"
if check "lora: generate and build" lora "$@"; then
    for steps in 1 20; do
        at=$out.$steps
        check "lora: $steps steps" train $steps "$at.log" "$at.run" "$at.grad" || continue
        check "lora: gradient of step $steps" "$compare" --least $least llama.lora.grad$steps.safetensors "$at.grad" 1e-4
    done
    check "lora: losses and norms" "$compare" --loss llama.lora.losses.txt "$out.20.log" $limit
    # as PEFT saves them, and merges them into f32; and read back, from the folder that PEFT would write
    check "lora: export" "$dpgen" export "$out.20.run" --adapter "$tmp/peft"
    check "lora: adapters" "$compare" llama.lora.adapter.safetensors "$tmp/peft/adapter_model.safetensors" $limit
    cp llama.lora.adapter.safetensors "$tmp/peft/adapter_model.safetensors"
    check "lora: read" "$out/train" --weights "$start" --adapter "$tmp/peft" --steps 1 --log "$out.again" --no-checkpoint \
        --quiet
    check "lora: the loss with what was read" "$compare" --loss llama.lora.again.txt "$out.again" $limit
    check "lora: merge" "$dpgen" export "$out.20.run" --hf "$tmp/merged"
    check "lora: merged" "$compare" llama.lora.merged.safetensors "$tmp/merged/model.safetensors" 1e-6
    check "lora: only adapters learn" rests lora model.layers.0.self_attn.q_proj.weight model.norm.weight lm_head.weight
fi
# The same beside projections of few bits, rounded by bitsandbytes and numpy (make_quantized.py): to the last bit
for type in nf4 int8; do
    out=$tmp/gpt.$type at=$out.20 name=quantized
    check "$type: generate and build" lora --set quantize="{type: $type, match: '*_proj'}" "$@" || continue
    check "$type: a step" train 1 "$out.1.log" "$out.1.run" "$at.grad" &&
        check "$type: gradient of step 1" "$compare" --least $least llama.$type.grad1.safetensors "$at.grad" 1e-4
    check "$type: 20 steps" train 20 "$at.log" "$at.run" "$at.grad" || continue
    check "$type: losses and norms" "$compare" --loss llama.$type.losses.txt "$at.log" $limit
    check "$type: the weights" "$out/train" --quiet --weights "$start" --steps 0 --no-checkpoint --export "$at.made"
    check "$type: as they were rounded" "$compare" llama.$type.weights.safetensors "$at.made/model.safetensors" 0
done
echo "reference: $passed passed, $failed failed"
[ $failed -eq 0 ]
