#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Small models of today's language have the same bits under any plan, in f32 and in bf16 (tests/models/language.yaml: rotary
# positions, shared heads of keys, gates, norms of heads, a window; recurrent.yaml: LSTM and additive attention; experts.yaml).
# The graph interpreter, which knows no plan, gives the hash.  SLOW=1 takes 40 plans of each, and of a fourth one, with a scaled
# table, and a scaled head that is the table and has the loss inside.  `packed` has documents, and whatever else changes scores
# and positions; `grouped` has experts in groups, with corrections.
#   language.sh gpus          the kernels for GPUs have one hash under two plans, over the double
#   language.sh onednn        so have those of oneDNN, with frozen weights of few bits, too
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a build/interp build/interp_bf16
models_of_language="language recurrent grouped packed"
$cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/npy" tests/npy.c || { fault "tests/npy.c"; finish; }
cwd=$tmp/data run="--no-checkpoint --quiet --hash"
mkdir -p "$cwd"
(cd "$cwd" && for array in tokens.npy:29:10 targets.npy:29:10 source.npy:29:7 present.npy:2:7 target.npy:29:6 next.npy:29:6 \
    documents.npy:3:10; do
    echo $array | { IFS=: read -r file high wide && "$tmp/npy" $file i4 0 "$high" 24 "$wide"; } || exit 1
done) || fault "no arrays"

plans_of() {    # OPTION...
    fates_of "$@"
    echo "pair $model --stages 2 --map 0,1,1,0 --schedule gpipe --recompute full $*"
}
some() { if [ -n "$SLOW" ]; then cat; else grep -E "^($1)"; fi; }

cat >"$tmp/scale.sed" <<'END'
s/^ *- {op: PositionEmbedding/    - {op: Scale, factor: sqrt(D)}\n&/
s/^ *- {op: Linear, name: lm_head\(.*\)}/    - {op: Scale, factor: 1\/sqrt(D)}\
    - {op: LinearCrossEntropy, name: lm_head\1, targets: targets, as: loss}/
/SoftCap, cap: 3/d
/SoftmaxCross/d
END
sed -f "$tmp/scale.sed" $models/language.yaml >"$tmp/scaled.yaml"
# Several documents in a sample, by the model's key and by a line's own; and with q, k and v in one
sed 's/^  init:/    documents: {shape: [B, T], dtype: i32}\n  documents: documents\n&/
    s/^    - {op: RMSNorm, name: model.norm/    - {op: Linear, name: qkv, out: 3*D}\
    - {op: Attention, packed: qkv, heads: H, documents: documents}\
    - {op: Rotary, width: 8, theta: 50, scaling: yarn, factor: 4, original: 64, as: x}\
    - {op: StopGradient, as: still}\
    - {op: Parameter, name: sinks, shape: [1, H], as: sinks}\
    - {op: Linear, name: wide, in: still, out: H*W, as: q}\
    - {op: Elu, alpha: 0.5}\
    - {op: Softplus, as: k}\
    - {op: Attention, in: [q, k, q], heads: H, window: 3, alibi: 0.5, sinks: sinks}\
    - {op: Linear, name: narrow, out: D}\
    - {op: Add, in: [_, x]}\n&/
    s/targets: targets.npy/&, documents: documents.npy/' $models/language.yaml >"$tmp/packed.yaml"
model_of() { if [ -e "$tmp/$1.yaml" ]; then echo "$tmp/$1.yaml"; else echo "$models/$1.yaml"; fi; }
sed 's/top: 2, normalize: true/&, correction: true, init: corrections/
    s/name: again.gate, in: y, out: 3/name: again.gate, in: y, out: 4/; s/experts: 3, out: D/experts: 4, out: D/
    s/scores: sigmoid/&, correction: true, init: corrections, groups: 2, kept: 1, best: 2/
    s/^  init: {/&corrections: {uniform: [-0.1, 0.1]}, /' $models/experts.yaml >"$tmp/grouped.yaml"
sed 's/name: mlp.gate, /&init: zeros, /; s/name: again.gate, /&init: zeros, /' $models/experts.yaml >"$tmp/one.yaml"

# ---- the kernels for GPUs, over the double ---------------------------------------------------------------------------
gpus() {
    . tests/cuda.sh
    have_cuda nccl.h || { skip "no headers of CUDA and NCCL: $cuda_remedy" 2; finish; }
    need_double
    eight_gpus >"$tmp/gpus"
    run="$run --fill 0xff"
    [ -n "$SLOW" ] || run="$run --steps 2"
    for name in $models_of_language one; do for type in f32 ${SLOW:+bf16}; do
        [ $type = f32 ] && use_portable || use_bf16
        double=$root/build/double/$type first=
        with="$double/own.obj $double/local.obj $double.a -lpthread -lm -ldl -lstdc++" quick=$tcc linker=$cc
        model=$(model_of $name)
        [ -n "$SLOW" ] || model="$model --set train.batch.global=4"
        for options in "--stages 1 --schedule gpipe" "--stages 3 --schedule 1f1b --recompute full"; do
            said=$(generate "$tmp/gpu" $model $options --set train.precision.compute=$type --devices "$tmp/gpus" &&
                compile "$tmp/gpu" && job_hash "$tmp/gpu")
            [ ${#said} = 64 ] && [ "$said" = "${first:-$said}" ] && pass ||
                fault "$name, GPUs, $type, $options: $said, not $first"
            first=$said
        done
    done; done
}
if [ "$1" = gpus ]; then gpus; finish; fi

# ---- the kernels of oneDNN -------------------------------------------------------------------------------------------
if [ "$1" = onednn ]; then
    have_onednn || { skip "there is no oneDNN"; finish; }
    for name in $models_of_language; do
        for few in '' ${SLOW:+int8} $([ $name = packed ] && echo nf4); do
            model=$(model_of $name)
            [ -z "$few" ] || model="$model --set \"train.freeze=['*_proj.*']\" --set quantize.type=$few"
            use_onednn f32 && plans_of --set devices.0.kernels=onednn | some '1.gpipe.none|3.zb-h1.away|4.1f1b.full' | plans &&
                one_hash "oneDNN, $name, $few"
        done
    done
    finish
fi

for name in $models_of_language ${SLOW:+scaled}; do
    model=$(model_of $name)
    use_portable
    plans_of | some "$([ $name = language ] && echo '4.1f1b.full|')3.zb-h1.away|v" | plans
    like_interpreter "$name, f32" build/interp
    reference=$hash
    use_bf16
    plans_of --set train.precision.compute=bf16 | some '3.1f1b.full' | plans
    like_interpreter "$name, bf16" build/interp_bf16 --set train.precision.compute=bf16
    [ "$hash" != "$reference" ] && pass || fault "$name: bf16 has the hash of f32"
done

# Equal logits: all tokens go to the first experts.  The folder, and so its arena, knows nothing of it.
model=$tmp/one.yaml
use_portable
run="$run --fill 0xff"           # experts without rows leave no NaN of their rooms
plans_of | some '2.1f1b.full' | plans
run=${run% --fill*}
like_interpreter "one expert" build/interp
finish
