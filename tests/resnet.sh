#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# ResNets: names and shapes of running statistics follow torchvision's scheme, which is written here as loops.  Multiplications
# of these and other networks of images are the published ones (parameters: totals.sh).  ResNet-18 on small images has one hash
# over stages, and with calls apart that are one elsewhere.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a

# scheme BASIC? N1 N2 N3 N4: what a state_dict of torchvision lists, num_batches_tracked as one number
scheme() {
    awk -v basic="$1" -v n="$2 $3 $4 $5" '
    function conv(name, out, from, k) { print name ".weight", out "x" from "x" k "x" k }
    function norm(name, c) {
        print name ".weight", c; print name ".bias", c
        print name ".running_mean", c; print name ".running_var", c; print name ".num_batches_tracked", 1
    }
    BEGIN {
        split(n, blocks); conv("conv1", 64, 3, 7); norm("bn1", 64); from = 64
        for (l = 1; l <= 4; l++) {
            mid = 64 * 2 ^ (l - 1); out = basic ? mid : 4 * mid
            for (b = 0; b < blocks[l]; b++) {
                at = "layer" l "." b
                conv(at ".conv1", mid, from, basic ? 3 : 1); norm(at ".bn1", mid)
                conv(at ".conv2", mid, mid, 3); norm(at ".bn2", mid)
                if (!basic) { conv(at ".conv3", out, mid, 1); norm(at ".bn3", out) }
                if (from != out) { conv(at ".downsample.0", out, from, 1); norm(at ".downsample.1", out) }
                from = out
            }
        }
        print "fc.weight", "1000x" from; print "fc.bias", 1000
    }' | sort
}
# multiplies FILE MULTIPLICATIONS DIMS: those of Conv and Linear, for one image
multiplies() {
    ./dpgen check "examples/$1.yaml" $3 --set train.batch.global=1 --set train.batch.micro=1 -d s >"$tmp/graph" 2>&1 ||
        { fault "$1 $3: $(head -n 1 "$tmp/graph")"; return; }
    said=$(sed -n 's/^op F:.* row=\(Conv\|ConvGroups\|Linear\) .*flop=\([0-9]*\) .*/\2/p' "$tmp/graph" |
        awk '{n += $1} END {printf "%.0f", n / 2}')
    [ "$said" = "$2" ] && pass || fault "$1 $3: $said multiplications, not $2"
}
# resnet FILE MULTIPLICATIONS DIMS N1 N2 N3 N4
resnet() {
    file=$1 dims=$3
    multiplies "$1" "$2" "$3"
    shift 3
    sed -n 's/^state \([^ ]*\) kind=param .*shape=\([0-9x]*\) .*/\1 \2/p' "$tmp/graph" | sort >"$tmp/names"
    scheme "$([ "$file" = resnet18 ] && echo 1 || echo 0)" "$@" >"$tmp/want"
    diff "$tmp/want" "$tmp/names" >"$tmp/diff" && pass || fault "$file $dims, names: $(sed -n 2p "$tmp/diff")"
}
resnet resnet18 3663761408 "-D N1=3 -D N2=4 -D N3=6 -D N4=3" 3 4 6 3
resnet resnet50 4089184256 "" 3 4 6 3
# torchvision's and torchgpipe's own counts
while read -r file products dims; do multiplies "$file" "$products" "$dims"; done <<EOT
vgg16 15470264320
densenet121 2834161664
densenet121 7727907072 -D G=48 -D N0=96 -D N3=36
squeezenet 349151936
mobilenetv2 300774272
efficientnet-b0 385814752
convnext-tiny 4455531264
mixer-b16 12601767936
amoebanet-d 10018557952
unet 48987242496
EOT

$cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/npy" tests/npy.c || { fault "tests/npy.c"; finish; }
cwd=$tmp/data run="--no-checkpoint --quiet --hash"
mkdir -p "$cwd"
(cd "$cwd" && "$tmp/npy" images.npy f4 -1 1 16 32 32 3 && "$tmp/npy" labels.npy i4 0 10 16) || fault "no arrays"
use_portable
small="examples/resnet18.yaml -D S=32 -D C=10 --estimate --set train.batch.global=4 --set train.batch.micro=2"
steps=1
[ -z "$SLOW" ] || steps=2
small="$small --set train.steps=$steps --set devices.0.threads=1"
apart="--fuse none"
[ -z "$SLOW" ] || apart=
{ echo "one $small --stages 1"
  echo "late $small --stages 3 --recompute full --schedule zb-h1 $apart"
  [ -z "$SLOW" ] || echo "apart $small --stages 2 --fuse none"; } | plans
one_hash "resnet18"
use_bf16
small="$small --set train.precision.compute=bf16"
{ echo "bf16 $small --stages 1 --recompute full"
  echo "bf16.apart $small --stages 2 --fuse none"; } | plans
one_hash "resnet18 in bf16"
use_portable
joined=$(./dpgen $small --stages 1 -d f 2>&1 | grep -Ec 'call=batchnorm_add_relu_.* (skip=r|dskip=w):' || true)
expect "norm, addition and Relu in one call, there and back" test "$joined" = 16

# On GPUs the sum of two gradients and the norm that reads it are one call, where no result of it lies on a part of a term.
generate "$tmp/gpu" examples/resnet50.yaml -D S=32 -D C=5 -D N2=1 -D N3=1 --devices devices/h100.yaml --stages 1 \
    --set train.precision.compute=bf16
awk 'function number(s,    n) {
        for (s = substr(s, 3); s != ""; s = substr(s, 2)) n = 16 * n + index("123456789abcdef", substr(s, 1, 1))
        return n
    }
    function lies_on(a, b) { return at[a] != at[b] && at[a] < at[b] + bytes[b] && at[b] < at[a] + bytes[a] }
    function laid(x, y, a, b) { return lies_on(x, a) || lies_on(x, b) || lies_on(y, a) || lies_on(y, b) }
    FILENAME ~ /h$/ { if ($2 == "=") { sub(/,/, "", $3); at[$1] = number($3); bytes[$1] = $5 }; next }
    /^    [a-z_]*\(/ { text = "" }
    { text = text $0 }
    !/;/ { next }
    text !~ /grad_add|add_.*relu_backward/ { text = ""; next }
    { call = text; sub(/\(.*/, "", call); gsub(/ /, "", call); gsub(/dskip \*\/ 0/, "A(none)", text)
      n = split(text, part, "A\\("); for (i = 1; i <= n; i++) sub(/\).*/, "", part[i]) }
    call == "grad_add" { first[part[2]] = part[3]; second[part[2]] = part[4]; sums++ }
    call == "add_batchnorm_relu_backward" { pairs++; wrong += laid(part[2], part[3], part[6], part[7]) }
    call == "batchnorm_add_relu_backward" && part[6] in first { apart++
        wrong += !laid(part[2], part[3], first[part[6]], second[part[6]]) }
    END { print pairs " " sums " " apart + 0; exit wrong || sums + pairs != 8 || apart + 1 != sums || !pairs }' \
    "$tmp/gpu/stage0.h" "$tmp/gpu/stage0.c" >"$tmp/sums" && pass || fault "sums of gradients and norms: $(cat "$tmp/sums")"

# examples/cifar.yaml by its own pictures: the same in every range; SLOW=1: it learns them, on two stages
$cc -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror -o "$tmp/shapes" examples/corpus/shapes.c || fault "shapes.c"
draw() { (cd "$cwd" && "$tmp/shapes" "$@") || fault "shapes $*"; }
draw all 0 40
draw part 30 10
same() { [ "$(tail -c "$2" "$cwd/all-$1.npy" | cksum)" = "$(tail -c "$2" "$cwd/part-$1.npy" | cksum)" ]; }
if same images 122880 && same labels 40; then pass; else fault "a picture depends on the range"; fi

# A cut inside a joined call: where memory is short, auto takes the plan with each Relu apart, if it is faster or the only one.
tiny="examples/cifar.yaml -D W=8 --estimate --stages 2 --schedule 1f1b --set train.steps=2"
step() { ./dpgen plan $tiny "$@" --json 2>/dev/null | sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p' | head -n 1; }
for short in "auto --limit 2400KiB" "full --limit 2700KiB"; do
    # shellcheck disable=SC2086
    auto=$(step --recompute $short) apart=$(step --recompute $short --fuse sums)
    expect "$short: apart $apart, auto ${auto:-none}" test "${auto:-0}" = "${apart:-1}"
    ./dpgen plan $tiny --recompute $short -d a >"$tmp/plan" 2>"$tmp/said"
    expect "$short: its graph" test "$(./dpgen plan $tiny --recompute $short -d f 2>&1 | grep -c '^op F')" = \
        "$(grep -c '^place F' "$tmp/plan")"
    # shellcheck disable=SC2086
    expect "$short: the note, read back" grep -q 'each activation is a call of its own' <<READ
$(./dpgen plan $tiny --recompute $short --from "$tmp/plan" 2>&1)
READ
done
expect "enough memory: calls are joined" test "$(step --recompute none)" -lt "$(step --recompute none --fuse sums)"
draw train 0 32
draw test 32 8
{ echo "tiny.wide $tiny --planner exact"
  echo "tiny.short $tiny --recompute full --limit 2700KiB --planner exact"; } | plans
one_hash "cifar, in little memory"

learns() {
    draw train 0 2560
    draw test 2560 320
    said=$(generate "$tmp/cifar" examples/cifar.yaml && compile "$tmp/cifar" && cd "$cwd" &&
        timeout 300 "$tmp/cifar/job" --no-checkpoint 2>&1)
    right=$(echo "$said" | sed -n 's/.*  accuracy \([0-9]*\).*/\1/p' | tail -n 1)
    if [ "${right:-0}" -ge 90 ]; then pass; else fault "cifar: accuracy $right: $(echo "$said" | tail -n 1)"; fi
}
[ -z "$SLOW" ] || learns
finish
