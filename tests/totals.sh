#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Parameter counts of the examples against the published ones.
#   GPT-2 124M   llm.c's README;  the others: their checkpoints on Hugging Face, BERT with both heads of its pre-training;
#   cifar: He et al., 4.2, with a projection where the width doubles; counted on paper;
#   those for GPUs have 47 rows of 768 more, and 6 of 768 with a bias each.
# Of images, and of models with rotary positions, the names and shapes of all parameters too: the hash of the sorted lines
# "NAME D0xD1..." of named_parameters() of torchvision, torchgpipe (AmoebaNet-D), transformers (language models).  Several
# models fit one file, by its dims.  The weights of experts are one parameter here, and one an expert there.
passed=0 failed=0
wrong() { failed=$((failed + 1)) && echo "totals: $*" >&2; }
right() { passed=$((passed + 1)); }
check_list() {  # GRAPH HASH WHAT
    got=$(sed -n 's/^state \([^ ]*\) kind=param .*shape=\([0-9x]*\) .*/\1 \2/p' "$1" |
        awk '$1 !~ /\.experts\./ { print; next }
            { split($2, d, "x") }
            { for (e = 0; e < d[1]; e++) { n = $1; sub(/\.experts\./, "&" e ".", n); print n, d[2] "x" d[3] } }' |
        grep -v '\.running_mean \|\.running_var \|\.num_batches_tracked ' | LC_ALL=C sort | sha256sum | cut -c1-16)
    if [ "$got" = "$2" ]; then right; else wrong "$3: the names and shapes have the hash $got, not $2"; fi
}
graph=$(mktemp) || exit 2
trap 'rm -f "$graph"' EXIT
while read -r model want hash dims; do
    if [ "${hash:--}" = - ]; then
        got=$(./dpgen check "examples/$model.yaml" $dims | awk '$1 == "parameters" && NF == 2 { gsub(",", "", $2); print $2 }')
    else
        ./dpgen check "examples/$model.yaml" $dims -d s >"$graph" 2>&1
        got=$(grep -v -E '^state [^ ]*\.(running_(mean|var)|num_batches_tracked) ' "$graph" |
            sed -n 's/^state [^ ]* kind=param .*shape=\([0-9x]*\) .*/\1/p' |
            awk -F x '{ n = 1; for (i = 1; i <= NF; i++) n *= $i; sum += n } END { printf "%.0f\n", sum }')
    fi
    if [ "$got" = "$want" ]; then right; else wrong "$model $dims has $got parameters, not $want"; fi
    [ "${hash:--}" = - ] || check_list "$graph" "$hash" "$model $dims"
done <<EOT
gpt2-124m 124439808
bert-base 110106428
t5-small 60506624
gpt2-355m 354823168
gpt2-774m 774030080
bert-large 336226108
t5-large 737668096
gpt2-124m-cuda 124475904
bert-base-cuda 110111042
vgg16 138357544 32c9f6d73e86d14d
vgg16-bn 138365992 d03e146253e0537f
resnet18 11689512 a5d0cc35b2d74bb1
resnet18 21797672 d364e84913b12f08 -D N1=3 -D N2=4 -D N3=6 -D N4=3
cifar 78042
resnet50 25557032 bf6e276c3984a9fd
resnet50 44549160 a84c93525212fcc9 -D N3=23
resnet50 60192808 1ce9e8bf70d5aa7e -D N2=8 -D N3=36
densenet121 7978856 9013a33c9c0fa4e0
densenet121 28681000 38679a3d1949f53c -D G=48 -D N0=96 -D N3=36
squeezenet 1235496 ba491685afed3179
mobilenetv2 3504872 478761fa126a8485
efficientnet-b0 5288548 6d707dfa5997fe6a
vit-b16 86567656 f6aadcbccfc84521
inception-v3 27161264 7373700f7e3420a3
amoebanet-d 81505540 ed8a42eac71dab99
amoebanet-d 319024120 10a45fbfc9872803 -D F=416
amoebanet-d 542734840 84152586421d4d76 -D F=544
amoebanet-d 1055832376 0519aa9c6e986dd0 -D L=36 -D F=544
amoebanet-d 1844858344 c342c6b0a1abc420 -D L=72 -D F=512
mixer-b16 59880472
convnext-tiny 28589128 0e75371749443963
convnext-tiny 88591464 - -D N3=27 -D F=128
unet 232687328
unet 362157516 - -D N=6 -D F=72
gnmt-8 193766977
gnmt-8 277718593 - -D N=8
awd-lstm 24221600
mixtral-8x7b 46702792704 0d9269b7ace1d849
olmoe-1b-7b 6919161856 f8281a710c691606
awd-lstm 33556078 - -D V=33278
tinyllama 1100048384
tinyllama 6738415616 f166ba67292cd333 -D D=4096 -D K=32 -D W=128 -D F=11008 -D L=32
tinyllama 68976648192 2ce894522f82ded8 -D D=8192 -D H=64 -D K=8 -D W=128 -D F=28672 -D L=80
tinyllama 7241732096 3eb4a902c4c50ca2 -D D=4096 -D K=8 -D W=128 -D F=14336 -D L=32
tinyllama 134515008 aecae13bd888265e -D V=49152 -D D=576 -D H=9 -D K=3 -D F=1536 -D L=30 -D THETA=100000 -D TIE=1
llama-3.2-1b 1235814400 74f2bb1d2e125fbc
llama-3.2-1b 3212749824 - -D D=3072 -D H=24 -D W=128 -D L=28
llama-3.2-1b 8030261248 c95a13b194c32ffd -D D=4096 -D W=128 -D F=14336 -D L=32 -D FACTOR=8 -D TIE=0
llama-3.2-1b 70553706496 - -D D=8192 -D H=64 -D W=128 -D F=28672 -D L=80 -D FACTOR=8 -D TIE=0
llama-3.2-1b 405853388800 - -D D=16384 -D H=128 -D W=128 -D F=53248 -D L=126 -D FACTOR=8 -D TIE=0
qwen2.5-0.5b 494032768 d16f0d94f581c718
qwen2.5-0.5b 1543714304 - -D D=1536 -D H=12 -D W=128 -D F=8960 -D L=28
qwen3-0.6b 596049920 29f6074324c848b5
gemma-2b 2506172416 f6c416cd8de26ae7
gemma-2b 8537680896 - -D D=3072 -D H=16 -D K=16 -D F=24576 -D L=28
gemma2-2b 2614341888 7ee95dcc5d61f2d8
gemma2-2b 9241705984 - -D D=3584 -D H=16 -D K=8 -D F=14336 -D L=42
phi-2 2779683840 493d432a34b4df1e
phi-2 1418270720 - -D D=2048 -D W=64 -D F=8192 -D L=24
opt-125m 125239296 c0fc044c141e3b34
opt-125m 1315758080 - -D D=2048 -D H=32 -D L=24
EOT
# multiply-adds of one image, as torchvision, timm and torchgpipe's benchmarks have them
while read -r model want; do
    got=$(./dpgen check "examples/$model.yaml" | sed -n 's/^ *multiply-adds of products.* \([0-9,]*\) .*/\1/p' | tr -d ,)
    if [ "$got" = "$want" ]; then right; else wrong "$model has $got multiply-adds, not $want"; fi
done <<EOT
vgg16 15470264320
resnet50 4089184256
inception-v3 5718899296
densenet121 2834161664
squeezenet 349151936
mobilenetv2 300774272
efficientnet-b0 385814752
convnext-tiny 4455531264
vit-b16 17563828224
mixer-b16 12601767936
unet 48987242496
amoebanet-d 10018557952
EOT

# Tables of 262144 x 8960 numbers, more than 2^31: sizes and addresses of the generated text are those of the formula, and rows
# at the end are found
far=$(mktemp -d) || exit 2
trap 'rm -rf "$graph" "$far"' EXIT
cat >"$far/far.yaml" <<EOT
dpgen: 1
model:
  dims: {V: 262144, D: 8960, T: 8}
  inputs:
    tokens: {shape: [B, T], dtype: i32, range: [0, V]}
    targets: {shape: [B, T], dtype: i32, range: [0, V]}
  graph:
    - {op: Embedding, name: wte, in: tokens, rows: V, out: D}
    - {op: LinearCrossEntropy, name: head, out: V, targets: targets, bias: false, as: loss}
  loss: loss
train: {batch: {micro: 1, global: 2}, optimizer: {type: sgd, lr: 0.1}}
data: {train: {format: npy, arrays: {tokens: t.npy, targets: g.npy}}}
devices: [{kind: cpu, memory: 1TiB, kernels: portable}]
plan: {stages: 1, schedule: gpipe}
EOT
./dpgen "$far/far.yaml" --estimate -o "$far/out" >"$far/said" 2>&1 || wrong "far: $(head -n 1 "$far/said")"
for weight in wte_weight head_weight; do        # one of the factors is a long, so that the product is
    line="sgd_update(st, /\* p \*/ A($weight), .*/\* n \*/ 1L\*V\*D,"
    if grep -q "$line" "$far/out/stage0.c"; then right; else wrong "far: no $line"; fi
done
grep -q '^enum { B = 1, V = 262144, D = 8960,' "$far/out/stage0.h" && right || wrong "far: other sizes"
for name in wte_weight head_weight wte_weight_grad_0 head_weight_grad_0; do         # 4 V D bytes each
    if grep -q "^    $name .*/\* *9395240960  f32 \[V, D\]" "$far/out/stage0.h"; then right; else wrong "far: $name"; fi
done
make -s build/librt.a && ${CC:-cc} -D_GNU_SOURCE -std=c11 -Wall -Wextra -Werror -I. -Irt -o "$far/far" tests/far.c \
    build/librt.a -lpthread -lm && "$far/far" >"$far/said"
case $? in 0) right ;; 77) echo "totals: no room for a table of 9 GiB" >&2 ;; *) wrong "far: $(cat "$far/said")" ;; esac
echo "totals: $passed passed, $failed failed"
[ "$failed" = 0 ]
