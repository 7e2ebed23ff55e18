#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dpgen-verify: folders of every kind that it knows are proved; one fault in one of them is not, whatever kind it is of; a
# folder that is no folder ends with the status of docs/verify.md.  It is a second program: no source and no function is shared.
. "$(dirname "$0")/lib.sh"
need dpgen dpgen-verify
verifier=${VERIFIER:-./dpgen-verify}

model=examples/bytes-gpt.yaml
slow=${SLOW:-}
# folder NAME OPTION...: written to $tmp/NAME
folder() {
    name=$1
    shift
    ./dpgen $model --estimate -o "$tmp/$name" "$@" >"$tmp/said" 2>&1 || fault "$name: $(tail -n 1 "$tmp/said")"
}
# proved NAME PATTERN: and says so
proved() {
    if $verifier "$tmp/$1" >"$tmp/said" 2>&1 && grep -q -e "$2" "$tmp/said"; then pass
    else fault "$1 is not proved: $(head -n 3 "$tmp/said")"; fi
}

# ---- folders
folder gpt
proved gpt '2 stages, one step of 8 micro-batches and an evaluation, .* 0 of them made again'
# the arena is used to its last byte; messages: 8 micro-batches of two tensors each way, norm, clip
proved gpt 'messages  34$'
for d in 0 1; do
    bytes=$(sed -n 's/^ *arena_bytes *= \(0x[0-9a-f]*\).*/\1/p' "$tmp/gpt/stage$d.h")
    proved gpt "stage$d .* $((bytes)) bytes of its arena of $((bytes))$"
done
# An evaluation drops nothing
with_eval "$models/tiny-gpt.yaml" >"$tmp/drop.yaml"
./dpgen "$tmp/drop.yaml" --estimate --planner even --stages 2 -o "$tmp/drop" >"$tmp/said" 2>&1
proved drop ' and an evaluation,'
expect "a step drops" grep -q 'dropout_forward(.*DROP' "$tmp/drop/stage0.c"
# Parameter groups have step values of their own; adapters; scratch of sums in blocks; histories of fp8
small() {       # NAME MODEL OPTION...
    name=$1 of=$2
    shift 2
    ./dpgen "$models/$of.yaml" --estimate --planner even --stages 2 -o "$tmp/$name" "$@" >"$tmp/said" 2>&1 ||
        fault "$name: $(tail -n 1 "$tmp/said")"
    proved "$name" '2 stages, one step of'
}
small groups tiny-gpt --set 'train.freeze=[wpe.*, h.0.*]' --set 'train.optimizer.groups=[{match: h.1.*, lr: x0.1}]'
expect "two groups" grep -q 'vals=vals:1' "$tmp/groups/model.graph"
small frozen tiny-gpt --set 'train.freeze=[wpe.*, h.0.*]' --set train.precision.compute=bf16
expect "without its master" sh -c "! grep -q '\.name = \"wpe.weight\".*\.param' '$tmp/frozen/stage0.c'"
small adapted tiny-gpt --set 'adapt={match: h.*.c_attn, rank: 4, alpha: 6, dropout: 0.1}'
small few tiny-gpt --set 'adapt={match: h.*.c_attn, rank: 4}' --set 'quantize={type: int8, match: h.0.*}'
sed 's/name: lm_head,/&  as: logits,/' "$models/tiny-gpt.yaml" >"$tmp/served.yaml"
expect "adapters beside weights of few bits, served" ./dpgen "$tmp/served.yaml" --estimate --stages 2 -o "$tmp/served" \
    --set 'adapt={match: h.*.c_attn, rank: 4}' --set 'quantize={type: int8}' --mode infer --set model.outputs=logits
small blocks heads --set train.blocks=8
small narrow images --set train.precision.compute=bf16
small nesterov mlp --set 'train.optimizer={type: sgd, nesterov: true, momentum: 0.9}'
small centred mlp --set 'train.optimizer={type: rmsprop, centered: true}'
small halves tiny-gpt --set train.precision.compute=bf16 --set train.shard=optimizer
small steps recurrent
small bare tiny-gpt --set train.precision.compute=bf16 --set train.shard=optimizer --set train.clip_norm=0
for of in branches experts near-least running tied; do small $of $of; done
for of in "$models/ops.yaml" "$models/language.yaml" "$models/scalar.yaml" examples/squeezenet.yaml; do
    name=$(basename "$of" .yaml)
    ./dpgen "$of" --estimate --planner even --stages 1 --set plan.schedule=gpipe -o "$tmp/$name" >"$tmp/said" 2>&1
    proved "$name" '1 stages, one step of'
done
small eight tiny-gpt -D D=48 --devices h100 --set train.precision.compute=fp8
proved eight '  model.yaml with  -D D=48$'
expect "fp8" grep -q linear_fp8_backward_w "$tmp/eight/stage0.c"
small most tiny-gpt -D D=48 --devices h100 --set train.precision.compute=bf16 --fuse most
proved most 'not compared .* fuse: most has other bits'
# Convolutions of a GPU, which a library prepares: proved without one
small pictures images --devices h100 --set train.precision.compute=bf16
expect "cuDNN has convolutions" grep -q open_conv_backward_x "$tmp/pictures/stage1.c"
proved gpt 'trusted  the kernels, the runtime, the compiler'
folder again --recompute full
proved again '[1-9][0-9]* of them made again'
schedules='gpipe zb-h2 interleaved-zb zb-v'
[ -z "$slow" ] || schedules='gpipe 1f1b* 1f1b-split 2bp zb-h1 zb-h2 zb* optimal interleaved interleaved-zb gis breadth-first
    1f1b-v zb-v v-half v-min dualpipe-v hanayo'
for schedule in $schedules; do
    case $schedule in
        inter* | gis | breadth* | *-v | v-* | hanayo) folder "$schedule" --schedule "$schedule" --set plan.chunks=2 ;;
        *) folder "$schedule" --schedule "$schedule" ;;
    esac
    proved "$schedule" '2 stages, one step of 8'
done
folder chimera --schedule chimera --set train.batch.groups=2
proved chimera '2 stages, one step of 8'
folder replicas --replicas 2 --set train.batch.groups=4 --set devices.0.count=4
proved replicas '4 stages, one step of 8'

folder shard --replicas 2 --set train.batch.groups=4 --set devices.0.count=4 --set train.shard=optimizer
proved shard '4 stages, one step of 8'
folder offload --offload auto --limit 30MiB
proved offload '2 stages, one step of 8'
expect "something is offloaded" grep -q '^    offload_begin' "$tmp/offload/stage0.c"
# Steps that overlap: each reads the versions of its rule, from every phase on
each='--set train.clip_scope=parameter --set train.batch.micro=16 -D D=56 -D T=32 --stages 4 --set devices.0.count=4'
folder 2bw --schedule 2bw
proved 2bw '2 stages, 5 steps of 8 micro-batches'
folder 2bw.half --schedule 2bw --set train.precision.compute=bf16
proved 2bw.half '2 stages, 5 steps of 8 micro-batches'
rules='pipedream spectrain pb pipemare'
[ -z "$slow" ] || rules='pipedream vertical timeprest spectrain spectrain-once xpipe nag pb pipemare'
sgd='s/optimizer: {type: adamw.*/optimizer: {type: sgd, lr: 0.05, momentum: 0.9, weight_decay: 1e-4, decay_only: matrices}/'
for rule in $rules; do
    case $rule in
        pb | pipemare) sed "$sgd" $model >"$tmp/$rule.yaml" ;;
        nag) sed 's/type: adamw/type: nadamw/' $model >"$tmp/$rule.yaml" ;;
        *) cp $model "$tmp/$rule.yaml" ;;
    esac
    ./dpgen "$tmp/$rule.yaml" --estimate $each --schedule $rule -o "$tmp/$rule" >"$tmp/said" 2>&1
    proved $rule "^  versions  $rule"
done
# another rule: the versions are not those that it writes
cp -r "$tmp/pipedream" "$tmp/other"
sed 's/\.versions = "pipedream/.versions = "vertical/' "$tmp/pipedream/launch.c" >"$tmp/other/launch.c"
refuse "another rule" 1 'version' $verifier --edited "$tmp/other"
sed 's/\.versions = "pipedream/.versions = "pipedreams/' "$tmp/pipedream/launch.c" >"$tmp/other/launch.c"
refuse "a rule that nobody knows" 3 'a rule' $verifier --edited "$tmp/other"
# A version off by one
sed '/void stage0_period_0(/,/^}/s/weights \*\/ 0/weights *\/ 1/' "$tmp/2bw/stage0.c" >"$tmp/stage0.c"
rm -rf "$tmp/other"
cp -r "$tmp/2bw" "$tmp/other"
cp "$tmp/stage0.c" "$tmp/other/"
refuse "a version off by one" 1 'stage0.c' $verifier --edited "$tmp/other"
# In one phase alone: slots of its prologue, messages in another order
fault_of_phase() {      # WHAT PATTERN AWK...
    what=$1 text=$2
    rm -rf "$tmp/other"
    cp -r "$tmp/pipedream" "$tmp/other"
    shift 2
    awk "$@" "$tmp/pipedream/stage1.c" >"$tmp/other/stage1.c"
    expect "$what: an edit" test "$(diff "$tmp/pipedream/stage1.c" "$tmp/other/stage1.c" | grep -c '^>')" -gt 0
    refuse "$what" 1 "$text" $verifier --edited "$tmp/other"
}
last=$(sed -n 's/.*stage1_prologue_\([0-9]*\)(.*/\1/p' "$tmp/pipedream/stage1.c" | sort -n | tail -n 1)
expect "several phases" test "$last" -gt 1
fault_of_phase "the last prologue reads another version" 'stage1.c' "/void stage1_prologue_$last\(/ { on = 1 }
    on && sub(/weights \*\/ 0/, \"weights */ 1\") { on = 0 } 1"
fault_of_phase "messages in another order in one phase" 'phase [1-9].* are not those of phase 0' \
    "/void stage1_period_$last\\(/ { on = 1 } /^}/ { on = 0 }
    on && /(send_begin|transfer_wait)\\(/ && held { print held; held = 0 }
    on && /send_begin\\(/ { held = \$0; next } { print } on && held && /recv_begin\\(/ { print held; held = on = 0 }"
# Stages of several devices: packed heads; shared ones with weights dropped; sums in bf16; heads of a position bias
sed 's/V: 256/V: 251/; s/D: 24, H: 3/D: 32, H: 4/' "$models/tiny-gpt.yaml" >"$tmp/team.yaml"
team() {        # NAME MODEL DEVICES STAGES OPTION...
    name=$1 of=$2 t=$3 n=$4
    shift 4
    ./dpgen "$of" --estimate --planner even --stages "$n" --set devices.0.count=$((t * n)) --set plan.tensor="$t" \
        --set train.blocks=4 -o "$tmp/$name" "$@" >"$tmp/said" 2>&1 || fault "$name: $(tail -n 1 "$tmp/said")"
    proved "$name" "stages of $t devices, .* of [24] micro-batches"
}
team team "$tmp/team.yaml" 2 2
team team.half "$tmp/team.yaml" 4 1 --set train.precision.compute=bf16 --recompute full
team llama "$models/tiny-llama.yaml" 2 2 --set plan.positions=divided
team team.rows "$tmp/team.yaml" 2 1 --set plan.positions=divided --recompute "['*.gather']"
team team.everywhere "$tmp/team.yaml" 2 1 --set plan.positions=everywhere
team bias "$models/tiny-t5.yaml" 2 2
team team.twice "$tmp/team.yaml" 2 2 --replicas 2 --set train.batch.groups=2 --set devices.0.count=8
sed 's/F: 9/F: 16/; s/E: 5/E: 4/; s/out: 3,/out: E,/; s/experts: 3,/experts: E,/' "$models/experts.yaml" >"$tmp/experts.yaml"
team team.experts "$tmp/experts.yaml" 2 1 --set plan.experts=devices --recompute full
team team.tokens "$tmp/experts.yaml" 4 1 --set plan.experts=devices --set plan.positions=divided -D T=9
team team.away "$tmp/team.yaml" 2 1 --offload "['*']"
sed 's/, tie: wte//' "$tmp/team.yaml" >"$tmp/untied.yaml"
team team.2bw "$tmp/untied.yaml" 2 2 --schedule 2bw --set train.clip_scope=parameter
# A BatchNorm, an addition and a Relu are one call, which is the composition of the three
./dpgen examples/cifar.yaml --estimate -o "$tmp/cifar" >"$tmp/said" 2>&1
proved cifar 'one step of 4'
expect "calls are joined" grep -q batchnorm_relu_backward "$tmp/cifar/stage0.c"
expect "with a shortcut, too" grep -q batchnorm_add_relu_backward "$tmp/cifar/stage0.c"
expect "not in the reference" sh -c "! grep -q -e batchnorm_relu -e batchnorm_add '$tmp/cifar/model.graph'"

# ---- one fault
# mutant KIND N: the Nth place of stage 0 where it fits
mkdir "$tmp/mutant"
ln -s "$tmp"/gpt/* "$tmp/mutant/"
mutant() {
    rm -f "$tmp/mutant/stage0.c"
    awk -f tests/verify_mutant.awk -v kind="$1" -v at="$2" "$tmp/gpt/stage0.c" >"$tmp/mutant/stage0.c" || return 1
    $verifier --edited "$tmp/mutant" >"$tmp/said" 2>&1
    case $? in
        1 | 3) caught=$((caught + 1)) ;;
        0) right="$right $1:$2" ;;
        *) fault "$1 $2: $(head -n 1 "$tmp/said")" ;;
    esac
}
step=11
[ -z "$slow" ] || step=1
for kind in shift swap skip wait micro peer shrink acc slot tag number; do
    at=1 caught=0 right=
    while mutant $kind $at; do at=$((at + step)); done
    if [ $caught -gt 0 ] && [ -z "$right" ]; then pass; else fault "$kind: $caught caught, taken for right:$right"; fi
done
# Done twice, or in another order, a call may be right.  Not so: a gradient added twice, a call before its operand
for kind in double order; do
    at=1 caught=0 right=
    while mutant $kind $at; do at=$((at + step)); done
    if [ $caught -gt 0 ]; then pass; else fault "$kind: none is caught, taken for right:$right"; fi
done
awk -f tests/verify_mutant.awk -v kind=twice -v call=linear_backward_w -v at=1 "$tmp/gpt/stage0.c" >"$tmp/mutant/stage0.c"
refuse "a gradient added twice" 1 'stage0.c:[0-9]*: .* is not what one device computes' $verifier --edited "$tmp/mutant"
mutant wait 3
refuse "a wait less" 1 'stage0.c:[0-9]*: ' $verifier --edited "$tmp/mutant"
# It says where, what was expected and what was found
mutant micro 2
refuse "another micro-batch" 1 'linear_forward.y (rows 256, in 224, out 672) *model.graph:[0-9]*, micro-batch 2' \
    $verifier --edited "$tmp/mutant"
refuse "expected" 1 '^  expected' $verifier --edited "$tmp/mutant"

# ---- planted faults: those of TrainVerify's artifact (F1 to F14), of Megatron-LM#7452, and the classes of docs/verify.md
# fault_in WHAT STAGES CALL N FROM TO [PAST]: in the Nth of these calls that matches FROM, in each of the stages
base=gpt
fault_in() {
    what=$1 stages=$2 kind=edit
    [ -z "${7:-}" ] || kind=early
    rm -rf "$tmp/other"
    mkdir "$tmp/other"
    ln -s "$tmp/$base"/* "$tmp/other/"
    for d in $stages; do
        rm "$tmp/other/stage$d.c"
        awk -f tests/verify_mutant.awk -v kind=$kind -v past="${7:-}" -v call="$3" -v at="$4" -v from="$5" \
            -v to="$6" "$tmp/$base/stage$d.c" >"$tmp/other/stage$d.c" || fault "$what: no such place in stage $d"
    done
    began=$(date +%s%N)
    refuse "$what" 1 'dpgen-verify: stage' second $verifier --edited "$tmp/other"
    took=$((($(date +%s%N) - began) / 1000)) planted=$((planted + 1)) all=$((all + took))
    [ $took -le $slowest ] || slowest=$took
    case $what in F[0-9]*) fourteen=$((fourteen + took)) ;; esac
}
second() { (ulimit -t 1; exec "$@"); }          # of the processor
planted=0 all=0 slowest=0 fourteen=0
# the first fold of another replica's sum stands in the step itself
folds=$(awk '/void stage0_step/ { exit } /group_fold\(st/ { n++ } END { print n + 1 }' "$tmp/replicas/stage0.c")
base=replicas
fault_in "F1: a sum of another replica is left out" 0 group_fold "$folds" . ''
fault_in "F2: a sum of another replica never comes" 0 recv_begin 25 . ''
fault_in "F3: it is copied where it is to be added" 0 group_fold "$folds" group_fold version_copy
fault_in "F4: it is added once more" 0 group_fold "$folds" group_fold \
    'group_fold(st, A(wte_weight_grad_0 + grads_slot[0]), A(wte_weight_grad_0_in2), 64);
    group_fold'
base=gpt
fault_in "F5: a sum joined to backward is left out" 0 layernorm_backward 2 '[AS]\([^()]*\), acc' '0, acc'
fault_in "F6: a message for the wrong stage" 0 send_begin 1 'peer \*\/ 1' 'peer */ 0'
fault_in "F7: a constant of one stage" 0 layernorm_forward 1 'EPS|0x[0-9a-f.p-]*f' 0x1p-10f
fault_in "F8: a constant of all stages" '0 1' layernorm_forward 1 'EPS|0x[0-9a-f.p-]*f' 0x1p-10f
fault_in "F9: the scale of an attention" 1 attention_packed_forward 1 'SCALE|0x1\.[0-9a-f.p-]*f' 0x1p-2f
fault_in "F10: backward reads another use" 0 layernorm_backward 2 'h_1_add\)' 'h_1_add_2)'
fault_in "F11: results of backward change places" 0 attention_packed_backward 1 'fb, h_1_attention\)' 'fb, d_h_1_attention)'
fault_in "F12: the targets that count" 1 xent_forward 1 'ignore \*\/ -100' 'ignore */ -101'
fault_in "F13: the limit of a norm" 0 norm_total 1 'LIMIT|0x1p\+0f' 0x1p+1f
base=replicas
fault_in "F14: a gradient leaves before the last backward" 0 send_begin 9 . '' chunk0_backward
fault_in "7452.3: targets are not counted" 1 data_count 1 . ''
fault_in "7452.7: a sum for another subtree" 0 group_fold 1 '_in2' '_in2 + 64'
base=gpt
fault_in "7452.1: a loss counts twice" 1 loss_report 1 '^' '    loss_report(st, A(softmaxcrossentropy), A(vals), 1);'
fault_in "7452.8: a parameter is missing in the norm" 1 norm_partial 3 . ''
fault_in "7452.9: other targets are counted" 1 data_count 1 'ignore \*\/ -100' 'ignore */ 0'
bias=h_2_attn_c_attn_bias
fault_in "gradients begin anew in each micro-batch" 1 chunk1_backward 2 'acc \*\/ 1' 'acc */ 0'
fault_in "two live values share bytes" 0 gelu_forward 1 'h_0_gelu\)' 'h_0_attention)'
fault_in "a request too many" 0 send_begin 1 'request \*\/ [0-9]*' 'request */ 256'
fault_in "the gradient of the loss is not begun" 1 loss_seed 1 . ''
fault_in "a parameter has two updates" 1 adamw_update 2 '^' "    adamw_update(st, A($bias), 0, A(${bias}_grad_0), A(${bias}_m),
    A(${bias}_v), A(clip), A(vals), 672, 0x1.ccccccp-1f, 0x1.e66666p-1f, 0x1.5798eep-27f, 0);"
fault_in "a parameter has the gradient of another" 1 adamw_update 1 'h_2_attn_c_proj_weight_grad' \
    'h_3_attn_c_proj_weight_grad'
base=drop
fault_in "7452.11: uses of a tied weight are not added" 0 tie_add 1 . ''
fault_in "a tied weight has two updates" 0 adamw_update 1 'adamw_update[^;]*;' '& &'
fault_in "a tied weight counts twice in the norm" 0 norm_total 1 'count \*\/ 40' 'count */ 41'
base=experts
fault_in "experts are missing in the norm" 0 norm_partial 4 . ''
fault_in "the loss of the router is scaled otherwise" 1 route_loss_forward 1 FACTOR 0x1p-3f
fault_in "two messages to a peer change places" 0 send_begin 2 . '' send_begin
base=branches
fault_in "a skip is sent before another" 0 send_begin 3 . '' send_begin
base=again
fault_in "a value is not made again" 0 gelu_forward 3 . ''
base=offload
fault_in "a copy is fetched before it is there" 0 copy_wait 1 . ''
fault_in "a copy comes from another place" 0 fetch_begin 1 '_host' '_host + 64'
base=groups
fault_in "the rates of another group" 1 adamw_update 1 'A\(vals\)' 'A(vals + 112)'
base=shard
fault_in "a part of an update is too short" 0 adamw_update 1 'n \*\/ [0-9]*' 'n */ 64'
fault_in "a part of a norm is another" 0 norm_blocks 1 'first \*\/ [0-9]*' 'first */ 200'
base=team
fault_in "devices do not add" 0 linear_rows_forward 1 'linear_rows_forward(.*), /. tmp ./ 0' \
    'linear_forward(st, S(lb, h_0_attn_c_proj), S(fb, h_0_attention), A(h_0_attn_c_proj_weight), A(h_0_attn_c_proj_bias)'
fault_in "blocks in another order" 0 linear_columns_backward_x 2 'pieces \*\/ 3' 'pieces */ 1'
fault_in "a part of another device" 0 send_begin 1 'peer \*\/ 1' 'peer */ 2'
fault_in "one of three projections" 0 norm_team 1 'outer \*\/ 3' 'outer */ 1'
fault_in "the norm of a part" 0 norm_team 1 'norm_team(.*) n .\/ [0-9]*, .. outer .. 3, .. room .. 512' \
    'norm_partial(st, A(norm), A(h_0_attn_c_attn_weight_grad_0), 1536'
fault_in "rows of the table of one device" 0 embedding_rows_forward 1 'embedding_rows_forward[(].*whole .. 251' \
    'embedding_forward(st, S(lb, wte), S(lb, tokens), A(wte_weight), B*T, D, 126'
fault_in "a gradient of all words" 0 embedding_rows_backward 1 'embedding_rows_backward[(].*whole .. 251' \
    'embedding_backward(st, A(wte_weight_grad_0), S(lb, d_wpe), S(lb, tokens), acc, B*T, D, 126'
fault_in "words behind the last one" 1 linear_columns_backward_x 1 'whole \*\/ 251' 'whole */ 256'
base=team.half
fault_in "dropout draws anew where a value is made again" 0 dropout_forward 2 SITE_h_0_add SITE_h_1_add
fault_in "or for another micro-batch" 0 dropout_forward 4 'A\(vals\), mb' 'A(vals), 0'
fault_in "scores behind the last one" 0 xent_part_forward 1 'whole \*\/ 251' 'whole */ 256'
fault_in "a loss of one device" 0 xent_part_forward 1 'xent_part_forward[(].*whole .. 251' "xent_forward(st, S(lb, \
    softmaxcrossentropy), S(lb, softmaxcrossentropy_lse), S(lb, lm_head), S(lb, targets), A(vals), B*T, 63, -100, 0"
base=team.rows
fault_in "draws of the first rows" 0 dropout_rows_forward 1 'dropout_rows_forward[(].*, DROP' \
    'dropout_forward(st, S(fb, h_0_add), S(lb, h_0_attn_c_proj), S(fb, wpe), A(vals), mb, 2, 256, DROP'
fault_in "a norm of one device's rows" 0 layernorm_rows_backward 1 'layernorm_rows_backward[(].*whole .. 32' \
    "layernorm_backward(st, S(lb, d_h_2_add_2), A(ln_f_weight_grad_0), A(ln_f_bias_grad_0), S(lb, d_ln_f_part), \
    S(fb, h_2_add_2), A(ln_f_weight), S(fb, ln_f_mean), S(fb, ln_f_rstd), 0, acc, 16, D"
fault_in "rows of another norm" 0 gather_forward 1 'h_0_ln_2\)' 'h_0_ln_1)'
fault_in "half of the rows" 0 gather_forward 2 'n \*\/ 512' 'n */ 256'
fault_in "rows that are not there" 0 layernorm_rows_backward 1 'whole \*\/ 32' 'whole */ 31'
fault_in "a part of fewer rows" 0 linear_rows_scatter_forward 1 'mine \*\/ 16' 'mine */ 15'
fault_in "a sum of all rows" 0 linear_rows_scatter_forward 1 'linear_rows_scatter_forward[(].*mine .. 16' \
    "linear_rows_forward(st, S(lb, h_0_attn_c_proj), S(fb, h_0_attention), A(h_0_attn_c_proj_weight), \
    A(h_0_attn_c_proj_bias), S(lb, h_0_attn_c_proj_tmp), H_attn_c_proj_fwd, B*T, 16, D"
base=team.everywhere
fault_in "queries of other rows" 0 rows_to_heads 1 'pieces .. 3, .. width .. 32' 'pieces */ 1, 96'
fault_in "heads of fewer rows" 0 rows_to_heads 1 'mine .. 16' 'mine */ 15'
fault_in "rows for heads" 0 heads_to_rows 1 'heads_to_rows[(].*width .. 32' \
    'part_forward(st, S(fb, h_0_attention_rows), S(fb, h_0_attention), 256, 512'
fault_in "a weight of one device's rows" 0 linear_positions_backward_w 1 'linear_positions_backward_w[(].*whole .. 32' \
    "linear_backward_w(st, A(h_2_mlp_c_proj_weight_grad_0), A(h_2_mlp_c_proj_bias_grad_0), S(lb, d_h_2_add_2), \
    S(fb, h_2_gelu), H_mlp_c_proj_bwd_w, acc, 16, 4*D, D"
base=team.experts
fault_in "rows of other experts" 0 dispatch_experts_forward 1 'v_route_slot\), A\(route_offset' \
    'v_route_slot), A(again_route_offset'
fault_in "experts of another router" 0 grouped_experts_forward 2 'A\(route_offset' 'A(again_route_offset'
fault_in "half of the experts" 0 grouped_experts_forward 1 'experts \*\/ 2' 'experts */ 1'
fault_in "room for fewer rows" 0 grouped_experts_forward 1 'rows \*\/ 2\*B\*T' 'rows */ B*T'
fault_in "weights that each device has" 0 grouped_experts_forward 1 'mlp_experts_gate_proj_weight' 'gate'
fault_in "the first experts on each device" 0 grouped_experts_forward 3 'grouped_experts_forward[(].*experts .. 2' \
    'grouped_forward(st, A(mlp_experts_down_proj), A(gate), A(route_offset), A(mlp_experts_down_proj_weight), 0, 2*B*T, F, D, 2'
fault_in "tokens add rows of one device" 0 combine_experts_forward 1 'combine_experts_forward[(].*experts .. 2' \
    'combine_forward(st, A(combine), A(mlp_experts_down_proj), A(route), A(v_route_slot), B*T, 2, D'
fault_in "gradients of rows of one device" 0 dispatch_experts_backward 1 'dispatch_experts_backward[(].*experts .. 2' \
    'dispatch_backward(st, A(d_add_t1), A(d_dispatch_2), A(again_route_slot_r), B*T, 1, D'
fault_in "rows of one device for those of all" 0 combine_experts_backward 1 'A\(mlp_experts_down_proj_r\)' 'A(d_add)'
base=team.tokens
fault_in "rows of all tokens" 0 combine_experts_scatter_forward 1 'combine_experts_scatter_forward[(].*mine .. 5' \
    "combine_experts_forward(st, S(lb, combine), S(fb, mlp_experts_down_proj), S(fb, route), S(fb, v_route_slot), \
    S(fb, route_offset), S(lb, combine_tmp), B*T, 2, D, 1"
fault_in "tokens of another router" 0 dispatch_experts_scatter_backward 1 'v_again_route_slot' 'v_route_slot'
base=team
fault_in "heads of all devices" 0 attention_packed_forward 1 'heads \*\/ 2' 'heads */ 4'
echo "$planted planted faults in $((all / 1000)) ms, the slowest in $((slowest / 1000)); F1 to F14 in $((fourteen / 1000)) ms"

# ---- no folder, or another one
damage() {      # FILE SED: a copy of the folder with that file edited
    rm -rf "$tmp/other"
    cp -r "$tmp/gpt" "$tmp/other"
    sed "$2" "$tmp/gpt/$1" >"$tmp/other/$1"
}
verify="$verifier $tmp/other"
damage stage0.c 's/\.eval_actions = [0-9]*/.eval_actions = 0/'
sed 's/\.eval_actions = [0-9]*/.eval_actions = 0/' "$tmp/gpt/stage1.c" >"$tmp/other/stage1.c"
refuse "an evaluation that is not counted" 1 'no action of the [0-9]* that are counted' $verify --edited
damage stage1.c '30s/$/ /'
refuse "an edited file" 5 'stage1.c differs from MANIFEST' $verify
expect "an edited file that is right" $verify --edited
damage MANIFEST '1s/^./x/'
refuse "a line of MANIFEST" 5 'differs from MANIFEST' $verify
damage MANIFEST '2s/ .*//'
refuse "half a line of MANIFEST" 3 'MANIFEST:2' $verify
damage MANIFEST '2s,  .*,  rt/../../x,'
refuse "a name that leads out of the folder" 3 'MANIFEST:2' $verify
damage MANIFEST "2s,  .*,  $(printf '\033')[2Kproved,"
refuse "a name that a terminal would obey" 5 '^dpgen-verify: ?.2Kproved is in MANIFEST' $verify
if [ -w /dev/full ]; then
    refuse "no room for the report" 6 'standard output' sh -c "$verifier '$tmp/gpt' >/dev/full"
fi
damage stage0.c ''
ln -sf /dev/zero "$tmp/other/stage0.c"
refuse "a file without an end" 3 'stage0.c has more than 1 GiB' $verify --edited
rm "$tmp/other/stage0.c"
mkdir "$tmp/other/stage0.c"
refuse "a folder in place of a file" 3 'stage0.c cannot be read' $verify --edited
rmdir "$tmp/other/stage0.c"
refuse "a file less" 5 'stage0.c is in MANIFEST' $verify
refuse "no stage" 3 'stage0.c cannot be opened' $verify --edited
rm "$tmp/other/MANIFEST"
refuse "no MANIFEST" 3 'no MANIFEST' $verify
rm "$tmp/other/model.graph"
refuse "no reference" 3 'no model.graph' $verify --edited
damage stage0.c '300,$d'
refuse "a source cut off" 3 'stage0.c:' $verify --edited
damage stage0.c 's/^#include "stage0.h"/#define A(x) 0/'
refuse "a macro" 3 'stage0.c:[0-9]*: a directive' $verify --edited
damage stage0.c 's/gelu_forward/gelu_backwards/'
refuse "a call that nobody knows" 3 'gelu_backwards is no routine above' $verify --edited
damage model.graph 's/call=gelu_forward/call=/'
refuse "a reference without a call" 3 'model.graph:' $verify --edited
damage model.graph 's/micro=8/micro=9/'
refuse "another job" 1 'not those of model.graph' $verify --edited
damage launch.c 's|    .stages = |    .blocks = 8, .stages = |'
refuse "other blocks" 1 'blocks or type are not those of model.graph' $verify --edited
damage model.graph 's/n=i:229376 tanh=i:1/n=i:229376 tanh=i:0/'
refuse "another reference" 1 'gelu_forward.y (tanh 1)' $verify --edited
refuse "no folder named" 2 'usage' $verifier
refuse "an option that is none" 2 'usage' $verifier --all "$tmp/gpt"
expect "its help" $verifier --help

damage stage0.c ''
rm "$tmp/other/model.yaml"
refuse "no model file" 0 'not compared  model.graph with model.yaml: there is no model.yaml' $verify --edited

# ---- one edit, and what it says
grep -v -e '^#' -e '^$' tests/verify_refusals >"$tmp/refusals"
while read -r base file want edit && read -r text; do
    rm -rf "$tmp/other"
    mkdir "$tmp/other"
    ln -s "$tmp/$base"/*.c "$tmp/$base"/*.h "$tmp/$base"/model.graph \
        "$tmp/$base/model.yaml" "$tmp/other/"
    rm "$tmp/other/$file"
    sed "$edit" "$tmp/$base/$file" >"$tmp/other/$file"
    if cmp -s "$tmp/$base/$file" "$tmp/other/$file"; then fault "an edit that changes nothing: $edit"
    else refuse "$base $file $edit" "$want" "$text" $verify --edited; fi
done <"$tmp/refusals"
# What an edit of one line cannot say
deep() { awk -v s="$1" -v t="$2" 'BEGIN { for (i = 0; i < 120; i++) r = r t } { sub(s, "&" r) } 1' "$tmp/gpt/$3"; }
damage stage0.h '' && deep 'H_attention_fwd  *= ' '(' stage0.h >"$tmp/other/stage0.h"
refuse "brackets" 3 'brackets or braces too deep' $verify --edited
damage stage0.c '' && deep 'parameter\[\] = ' '{' stage0.c >"$tmp/other/stage0.c"
refuse "braces" 3 'brackets or braces too deep' $verify --edited
damage stage0.c ''
awk '/^static void stage0_step/ { print "static void r0(Stage *st)\n{\n}"
    for (i = 1; i < 70; i++) printf "static void r%d(Stage *st)\n{\n    r%d(st);\n}\n", i, i - 1 }
    { sub(/step_begin\(st, A\(vals\)\);/, "& r69(st);") } 1' "$tmp/gpt/stage0.c" >"$tmp/other/stage0.c"
refuse "routines" 1 'routines too deep' $verify --edited
sed 's/^count 0 input=1/count 0 input=0/' "$tmp/gpt/model.graph" >"$tmp/other/model.graph"
sed 's,data_count(\(.*\)/\* input \*/ 1,data_count(\1 0,' "$tmp/gpt/stage1.c" >"$tmp/other/stage1.c"
cp "$tmp/gpt/stage0.c" "$tmp/other"
refuse "other targets count" 1 'count 0 of model.graph counts other targets' $verify --edited
sed 's/^count 0/count 1/' "$tmp/gpt/model.graph" >"$tmp/other/model.graph"
sed 's,/\* count \*/ 0); *$,1);,' "$tmp/gpt/stage1.c" >"$tmp/other/stage1.c"
refuse "no targets count" 1 'model.graph has no count 0' $verify --edited
damage stage1.c 's/\.arena = arena_bytes/& + 64/;s/\.parameters = 25/.parameters = 26/
    s/Parameter parameter\[\] = {/&{.name = "extra", .shape = {4}, .start = ZEROS, .param = AT(arena_bytes)},/'
sed 's/^state wte.weight .*/&\nstate extra kind=param type=f32 shape=4 bytes=16 param=extra frozen=1/' "$tmp/gpt/model.graph" \
    >"$tmp/other/model.graph"
refuse "a parameter more" 1 'the model has no parameter extra' $verify --edited
damage model.graph 's/^state wte.weight .*/&\nstate extra kind=param type=f32 shape=4 bytes=16 param=extra/
    s/^state wte.weight.grad.*/&\nstate extra.grad.0 kind=grad type=f32 shape=4 bytes=16 param=extra/'
refuse "a gradient more" 1 '1 gradients of extra are made by no call' $verify --edited
damage model.graph 's/^op F:loss_report.*/&\nop F:extra row=Scale call=scale_forward y=w:extra x=r:ln_f n=i:57344 factor=f:1/
    s/^tensor ln_f .*/&\ntensor extra kind=act type=f32 bytes=229376/'
refuse "an operator more" 1 'the model has no such operator' $verify --edited
damage model.yaml 's/^  blocks:$/&\n    c0: [{use: c1, repeat: 4096}]\n    c1: [{use: c2, repeat: 4096}]/
    s/^    - {op: LayerNorm, name: ln_f}.*/&\n    - {use: c0}/; s/^  graph:/    c2: [{use: c3, repeat: 0}]\n    c3: []\n&/'
refuse "too many lines" 1 'more lines than a model has' $verify --edited
damage launch.c 's/\.groups = 1,/.groups = 1048576,/;s/\.micro = 8/.micro = 1048576/'
sed 's/^graph .*/& micro=1048576 groups=1048576/;s/^\(state wte.weight.grad.*bytes=\)[0-9]*/\11125899906842624/' \
    "$tmp/gpt/model.graph" >"$tmp/other/model.graph"
refuse "gradients of too many groups" 3 'sizes that no machine has' $verify --edited
damage launch.c ''
awk '/^tensor/ && !n++ { for (i = 0; i < 1100; i++) print "tensor t" i " kind=act type=f32 bytes=1125899906842624" } 1' \
    "$tmp/gpt/model.graph" >"$tmp/other/model.graph"
refuse "tensors that no machine has" 3 'sizes that no machine has' $verify --edited
if [ -z "${SAN:-}" ]; then
    for kib in 4000 5000 6000 7000; do (ulimit -v $kib && $verifier --edited "$tmp/gpt") >"$tmp/said.$kib" 2>&1; done
    expect "no memory" grep -q '^dpgen-verify: no memory$' "$tmp"/said.[4-7]000
fi

# ---- in the line: what dpgen writes was proved before, and what is not proved is a bug of dpgen, which leaves no folder
need build/libgen.a
expect "a dpgen with bugs to order" $own_cc ${LDFLAGS:-} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wl,--wrap=verify_main \
    -o "$tmp/planted" tests/planted.c gen/main.o build/libgen.a -lyaml -lm -ldl
mkdir "$tmp/line"
planted() { PLANT=$1 "$tmp/planted" $model --estimate -o "$tmp/line/out" $more; }
refuse "a proof" 0 'wrote' planted true
was=$(sha256sum "$tmp/line/out/MANIFEST")
expect "it is what dpgen writes" diff -r "$tmp/gpt" "$tmp/line/out"
mutate() { echo "awk -f $root/tests/verify_mutant.awk -v kind=$1 -v at=$2 stage0.c >s; mv s stage0.c"; }
refuse "a mutant is a bug" 70 'a bug in dpgen .*does not prove the folder (status 1); --no-verify' planted "$(mutate micro 2)"
for line in '^dpgen-verify: stage[01].c:[0-9]*: ' '^  expected' 'linear_forward.y (rows 256.*micro-batch 2'; do
    refuse "it says so: $line" 70 "$line" planted "$(mutate micro 2)"
done
refuse "a source cut off" 70 'stage1.c:' planted "sed -i '9,\$d' stage1.c"
refuse "a call that nobody knows" 70 'gelu_backwards is no routine' planted "sed -i s/gelu_forward/gelu_backwards/ stage0.c"
refuse "a proof that crashes" 70 'status 139' planted 'signal 11'
for end in 'signal 9' 'status 6'; do refuse "$end" 1 '^dpgen: no memory to prove .*--no-verify' planted "$end"; done
expect "the folder that was there is there" sh -c "cd '$tmp/line/out' && sha256sum --quiet -c MANIFEST"
[ "$was" = "$(sha256sum "$tmp/line/out/MANIFEST")" ] && pass || fault "another MANIFEST"
rm -r "$tmp/line/out"
refuse "no folder" 70 'nothing was written' planted "$(mutate micro 2)"
[ -z "$(ls -A "$tmp/line")" ] && pass || fault "left behind: $(ls -A "$tmp/line")"
more=--no-verify
refuse "a folder without a proof" 0 'wrote' planted 'status 1'
expect "it says so" grep -q 'written with --no-verify' "$tmp/line/out/UNPROVED"
expect "and so does MANIFEST" grep -q '  UNPROVED$' "$tmp/line/out/MANIFEST"
diff -rq "$tmp/gpt" "$tmp/line/out" | grep -v -e UNPROVED -e MANIFEST -e sbom >"$tmp/said"
[ ! -s "$tmp/said" ] && pass || fault "--no-verify changes more: $(cat "$tmp/said")"
for option in "" "-d f"; do
    refuse "no use ${option:-of plan}" 2 'no use for --no-verify' ./dpgen ${option:-plan} $model --no-verify
done
# A folder proves itself
refuse "make proof" 0 'proved: 2 stages' make -s -C "$tmp/line/out" proof
cp "$tmp/line/out/verify/prove" "$tmp/prove"
mv "$tmp/line/out/stage0.c" "$tmp/stage0.c"
awk -f tests/verify_mutant.awk -v kind=micro -v at=2 "$tmp/stage0.c" >"$tmp/line/out/stage0.c"
refuse "make proof of an edited one" 2 'stage0.c differs from MANIFEST' make -s -C "$tmp/line/out" proof
refuse "it is not proved" 1 'stage[01].c:[0-9]*: ' "$tmp/prove" --edited "$tmp/line/out"
mv "$tmp/stage0.c" "$tmp/line/out/stage0.c"
expect "the next folder has no program of the last" ./dpgen $model --estimate -o "$tmp/line/out"
[ ! -e "$tmp/line/out/verify/prove" ] && pass || fault "verify/prove is kept"
cp "$tmp/prove" "$tmp/line/out/verify/prove"
expect "make clean" make -s -C "$tmp/line/out" clean
[ ! -e "$tmp/line/out/verify/prove" ] && pass || fault "make clean leaves verify/prove"
cmp -s verify/calls.def "$tmp/line/out/verify/calls.def" && pass || fault "another calls.def"
files() { (cd "$1" && ls verify/*.[ch] verify/*.def); }
expect "its source is all of it" test "$(files .)" = "$(files "$tmp/line/out")"
expect "a folder for GPUs" ./dpgen $model --estimate --devices h100 --set train.precision.compute=bf16 -o "$tmp/line/gpu"
refuse "proves itself without their compiler" 0 'proved: ' make -s -C "$tmp/line/gpu" proof NVCC=/nothing

# ---- its table of calls, against the two that were written apart from it
rows="awk -f tests/verify_rows.awk"
cat verify/calls.def verify/elements.def >"$tmp/calls.def"
expect "rows" $rows "$tmp/calls.def" rt/rt.h gen/ops.def
for edit in 's/r bias:f width/w bias:f width/' 's/, i causal//' '/^LANES(gate_forward/d' 's/loss_seed/loss_seeds/' \
    '/^ELEMENT(Gelu,/d' '/^ELEMENT(Gelu,/s/"x"/"y"/' 's/w lse:f/w lse:r/' \
    's/"w y:r n, r a:r n, r b:r n/"w y:r n, r b:r n, r a:r n/' \
    '/^CALL(linear_forward/,/)$/s/i in,/l in,/' '/^CALL(layernorm_forward/,/)$/s/i width/l width/'; do
    sed "$edit" verify/calls.def verify/elements.def >"$tmp/calls.def"
    refuse "rows: $edit" 1 'here\|rt.h\|no row\|divides nothing\|a sum along' $rows "$tmp/calls.def" rt/rt.h gen/ops.def
done

# ---- a second program
expect "no file in common" test -z "$(grep -rhn '^#include "' verify --include=*.[ch] |
    grep -v '"\(../verify\|verify\|model\).h"\|"\(calls\|duals\|layers\).def"')"
same() {        # FILE...: functions of more than three lines that stand in verify/ too
    awk '
        FNR == 1 { mine = FILENAME ~ /^verify/; body = "" ; inside = 0 }
        /^\{/ { inside = 1; body = ""; lines = 0; next }
        /^\}/ && inside {
            inside = 0
            if (lines > 3 && mine) own[body] = FILENAME
            if (lines > 3 && !mine && body in own) print FILENAME ": " own[body]
            next
        }
        inside { line = $0; gsub(/[ \t]+/, " ", line); body = body line "\n"; lines++ }
' verify/*.c verify/model/*.c "$@"
}
same $(find gen rt tests -name '*.c') >"$tmp/shared"
expect "no function in common: $(head -n 1 "$tmp/shared")" test ! -s "$tmp/shared"
sed -n '/^void lex_next/,/^}/p' verify/token.c >"$tmp/copied.c"
same "$tmp/copied.c" >"$tmp/shared"
expect "a function that was copied is found" test -s "$tmp/shared"
# One name alone crosses between the two, and what dpgen links is all of verify/ but main()
nm -A verify/*.o verify/model/*.o | awk '$(NF - 1) ~ /[TDBR]/ { print $NF }' | sort -u >"$tmp/own"
nm -A gen/*.o gen/*/*.o build/gen/*.o build/gen/*/*.o | awk '$(NF - 1) == "U" { print $NF }' | sort -u >"$tmp/used"
expect "gen/ calls verify_main() alone" test "$(comm -12 "$tmp/own" "$tmp/used")" = verify_main
for compiler in $own_cc ${own_clang:-} ${tcc:-}; do
    strict='-Wall -Wextra -Wpedantic -Wconversion -Werror'
    case $compiler in *tcc*) strict=-w ;; esac
    expect "$compiler" "$compiler" -std=c11 $strict -o "$tmp/one" verify/*.c
    expect "$compiler: its verdict" "$tmp/one" "$tmp/gpt"
done
expect "lines beside its tables" test "$(cat verify/*.[ch] | wc -l)" -le 5106
expect "lines of what reads a model file" test "$(cat verify/model/*.[ch] | wc -l)" -le 1689
finish
