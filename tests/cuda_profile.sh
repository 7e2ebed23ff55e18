#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dpgen profile for GPUs, without one: the benchmark is compiled against the doubles of tests/double, whose events tell times by
# formula: work takes 10 us a letter of its name, a copy 1 us and 0.1 ns a byte.  So every row of the profile is known, and
# which algorithm is the fastest.  Plans from it, what they bake, and who refuses whom.  Skipped where headers are missing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cuda.sh"
need dpgen build/emitted
have_cuda nccl.h && have_cuda cublasLt.h || { skip "no headers of CUDA, cuBLAS and NCCL: $cuda_remedy" 50; finish; }
need_double
export DOUBLE_OPEN=1            # the arena of the benchmark is large, and closing it takes longer than the calls

objects="$root/rt/op/cuda/product.c $root/rt/op/cuda/linear.c $root/rt/op/cuda/linear_gelu.c
    $root/rt/op/cuda/linear_xent.c $root/rt/op/cuda/matmul.c
    $root/tests/double/cublaslt.c $root/tests/double/bias.c"
kind="$flags -I$root/tests/double -isystem $cuda/include"
mkdir "$tmp/bin" "$tmp/objects"
for source in $objects; do
    $cc $kind -O1 -c -o "$tmp/objects/$(basename "$source" .c).o" "$source" || { fault "$source"; finish; }
done
# A driver is looked for before anything is compiled.
driver=here
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
    $cc -shared -fPIC -o "$tmp/bin/libcuda.so.1" tests/double/stubcuda.c || fault "stubcuda.c"
    driver=$tmp/bin
    export LD_LIBRARY_PATH="$driver${LD_LIBRARY_PATH:+:}$LD_LIBRARY_PATH"
fi
# use_double TRANSPORT: products by the real product.c, which comes before the kernels of processors; those for GPUs, over
# tests/simt, have what is left
use_double() {
    with="-Wl,-z,muldefs $tmp/objects/*.o $root/build/double/f32/$1.obj $root/build/double/f32.a $root/build/kernels.o
        $root/build/simt.o $root/build/double/f32/simt.own -lstdc++ -lpthread -lm"
    with=$(echo $with)
}
use_double local
# make -s -C FOLDER: what stands in for nvcc
make_with() { printf '#!/bin/sh\nd=$3\n%s\n' "$1" >"$tmp/bin/make"; chmod +x "$tmp/bin/make"; }
# Times of the double are exact, so that the first is the median
once="sed -i 's/REPEATS = 9, LEAST = 3, TRIES = 3/REPEATS = 1, LEAST = 1, TRIES = 1/' \$d/launch.c"
builds="$once; exec $cc $kind -O1 -I\$d -o \$d/train \$d/launch.c \$d/stage0.c"

model=$tmp/gpt.yaml profile=$tmp/p
sed 's/D: 24, H: 3, L: 3/D: 8, H: 1, L: 1/; s/T: 16/T: 4/; s/global: 8, micro: 2/global: 4, micro: 1/' \
    "$models/tiny-gpt.yaml" >"$model"
gpus() {        # ARCH
    cat <<GPUS
devices:
  - {name: gpu, kind: cuda, arch: $1, count: 4, memory: 128MiB, workspace: 2MiB, bandwidth: 4800GB/s, call: 4us,
     flops: 67TFLOP/s, vector: 67TFLOP/s}
GPUS
}
gpus sm_90 >"$tmp/gpus"
gpus sm_80 >"$tmp/old"
gpus sm_90 | sed 's/arch: sm_90, //' >"$tmp/none"
on="--devices $tmp/gpus"
path=$PATH PATH=$tmp/bin:$PATH

# ---- the file -----------------------------------------------------------------------------------------------------------
make_with "$builds $with"
expect "dpgen profile" ./dpgen profile "$model" $on --stages 3 -o "$profile"
[ -e "$profile.bench" ] && fault "something was left beside the profile"
line() { if [ "$(sed -n "$1p" "$profile")" = "$2" ]; then pass; else fault "line $1: $(sed -n "$1p" "$profile"), not $2"; fi; }
version=$(sed -n 's/^kernels cuda, cuBLAS //p' "$profile")
line 1 "dpgen-profile 2"
line 2 "device Double, sm_90, 132 SMs, 1048576 MiB"
line 4 "kernels cuda, cuBLAS $version"
line 5 "isa sm_90"
line 8 "stages 3"
line 11 "batches 1 2 4"
if sed 1,11d "$profile" | LC_ALL=C sort -c 2>"$tmp/err"; then pass; else fault "not sorted: $(cat "$tmp/err")"; fi
# Every call: 8 letters of a product by the fast algorithm; 13 more where bias_gradient adds up a bias' too.
wrong=$(awk '$1 == "op" {
        want = 10000 * ($2 ~ /^linear/ ? 8 + ($2 == "linear_backward_w" && !/ dbias=0 / ? 13 : 0) : length($2))
        if (!index($0, " alone=" want " alone_iqr=0 busy=" want " busy_iqr=0")) print
    }
    $1 ~ /^copy|^message/ {
        split($2, part, "=")
        want = sprintf("%.0f", 1000 + part[2] / 10)
        split($3, is, "=")
        if (is[2] - want > 1 || want - is[2] > 1) print
    }' "$profile" | head -n 3)
if [ -z "$wrong" ]; then pass; else fault "another time than that of the double: $wrong"; fi
for what in 'copy-in bytes=4096' 'copy-out bytes=16777216' 'message bytes=4' 'message bytes=16777216' 'compute batch=2' \
    'op linear_forward rows=16 in=8 out=24' 'op attention_packed_forward .*batch=1 .*'; do
    if [ "$(grep -c "^$what " "$profile")" = 1 ]; then pass; else fault "$(grep -c "^$what " "$profile") lines of '$what'"; fi
done
# Of each product the algorithm that is the fastest, and of the two that are, the one of less workspace.
grep '^op linear' "$profile" | sed 's/ alone=.*//; s/^op //' >"$tmp/products"
numbers="id=9 tile=19 stages=29 splitk=1 reduction=0 swizzle=1 custom=39 inner=2 cluster=9 workspace=524288"
sed -n "s/^algorithm \(.*\) part=[01] $numbers\$/\1/p" "$profile" | LC_ALL=C sort >"$tmp/tuned"
expect "an algorithm for each product" cmp "$tmp/products" "$tmp/tuned"
n=$(grep '^algorithm' "$profile" | awk '(/^algorithm linear_forward / && !/ bias=0 /) != / part=1 /' | wc -l)
if [ "$n" = 0 ]; then pass; else fault "$n algorithms of the wrong part"; fi

# ---- what uses it -------------------------------------------------------------------------------------------------------
with_times="$on --profile $profile"
folder() {      # DIR OPTION...: generated, read back, compiled, run
    to=$1
    shift
    { ./dpgen "$model" "$@" -o "$to" && build/emitted rt/rt.h $(stages "$to"); } >"$to.log" 2>&1 && compile "$to" &&
        job_hash "$to" || tail -n 1 "$to.log"
}
plain=$(folder "$tmp/plain" $on --stages 2 --estimate)
two=$(folder "$tmp/two" $with_times --stages 2)
one=$(folder "$tmp/one" $with_times --stages 1)
if [ "${#plain}" = 64 ] && [ "$plain" = "$two" ] && [ "$plain" = "$one" ]; then pass
else fault "hashes: $plain, of two stages $two, of one $one"; fi
# a call in one line
calls() { cat "$@" | sed '/^    [a-z_]*(st/{:more; /;/!{N;b more;}; s/\n  */ /g;}'; }
opened=$(calls "$tmp"/two/stage[01].c | grep -c '^    open_linear')
baked=$(calls "$tmp"/two/stage[01].c | grep -A 1 '^    open_linear' | sed 's,/\* [a-z]* \*/ ,,g' |
    grep -c '^    open_product_algorithm(st, H_[a-z_]*, [01], 9, 19, 29, 1, 0, 1, 39, 2, 9, 524288);')
if [ "$opened" -gt 10 ] && [ "$opened" = "$baked" ]; then pass; else fault "$baked algorithms of $opened products"; fi
if grep -q open_product_algorithm "$tmp/plain"/stage?.c || grep -q algorithms= "$tmp/plain/launch.c"; then
    fault "algorithms without a profile"
else pass; fi
key() { sed -n 's/.*\.key = "\(.*\)".*/\1/p' "$tmp/$1/launch.c"; }
if [ "$(key two)" = "$(key one)" ] && [ "$(key two | sed 's/ algorithms=[0-9a-f]\{16\}$//')" = "$(key plain)" ] &&
    [ "$(key two)" != "$(key plain)" ]; then pass; else fault "keys: $(key two); $(key one); $(key plain)"; fi
expect "the profile is in the folder" cmp "$profile" "$tmp/two/profile"
# One product in another way: another key, for the graphs that have it alone.
sed '/^algorithm linear_forward rows=4 in=8 out=24 /s/id=9/id=8/' "$profile" >"$tmp/p8"
./dpgen "$model" $on --profile "$tmp/p8" --stages 2 -o "$tmp/other" >"$tmp/said" 2>&1 || fault "$(tail -n 1 "$tmp/said")"
if [ "$(key other)" != "$(key two)" ]; then pass; else fault "another algorithm has the same key"; fi
./dpgen "$model" $with_times --stages 2 -d a >"$tmp/plan.txt" 2>"$tmp/said" || fault "-d a: $(tail -n 1 "$tmp/said")"
expect "from a plan" ./dpgen "$model" $with_times --from "$tmp/plan.txt" -o "$tmp/from"
expect "from a plan with other algorithms" ./dpgen "$model" $on --profile "$tmp/p8" --from "$tmp/plan.txt" -o "$tmp/from8"
if [ "$(key from)" = "$(key two)" ] && [ "$(key from8)" = "$(key other)" ]; then pass
else fault "keys of a plan that is read: $(key from); $(key from8)"; fi
sed '/^algorithm linear_forward rows=16 in=8 out=24 /s/id=9/id=8/' "$profile" >"$tmp/p8"
./dpgen "$model" $on --profile "$tmp/p8" --stages 2 -o "$tmp/other" >"$tmp/said" 2>&1 || fault "$(tail -n 1 "$tmp/said")"
if [ "$(key other)" = "$(key two)" ]; then pass; else fault "an algorithm of another micro-batch is in the key"; fi

# A size that is chosen later is added: what had an algorithm keeps it.
if [ -n "$SLOW" ]; then
    expect "micro: auto" ./dpgen "$tmp/gpt.yaml" $on --stages 1 --set train.batch.micro=auto --set train.batch.global=8 \
        -o "$tmp/auto"
    expect "the size that was chosen" grep -q '^batches 1 2 4 8$' "$tmp/gpt.gpu.profile"
    expect "with its algorithms" ./dpgen plan "$tmp/gpt.yaml" $on --stages 1 --set train.batch.micro=auto \
        --set train.batch.global=8
    rm -f "$tmp/gpt.gpu.profile"
fi

# ---- who refuses whom ---------------------------------------------------------------------------------------------------
runs() { refuse "$1" 6 "$2" env "$3" "$tmp/two/job" $run; }
runs "another GPU" "chosen on Double, sm_90, 132 SMs, cuBLAS $version, and GPU 0 is Another.*dpgen profile" DOUBLE_NAME=Another
runs "another cuBLAS" "and GPU 0 is Double, sm_90, 132 SMs, cuBLAS 13.99.7" DOUBLE_CUBLAS=139907
refuse "another arch" 5 "p:5: measured with isa 'sm_90', but this model has 'sm_80'" \
    ./dpgen plan "$model" --devices "$tmp/old" --profile "$profile"
sed 's/^runtime .*/runtime 0123456789abcdef/' "$profile" >"$tmp/x"
refuse "other kernels" 5 "x:10: measured with runtime '0123456789abcdef'" ./dpgen plan "$model" $on --profile "$tmp/x"
damaged() {     # WHAT TEXT SED
    sed "$3" "$profile" >"$tmp/x"
    refuse "$1" 5 "$2" ./dpgen plan "$model" $on --profile "$tmp/x"
}
damaged "an algorithm without its workspace" "x:12: not an algorithm of a product" '12s/ workspace=.*//'
damaged "of a ninth part" "x:12: not an algorithm of part 0 to 7" '12s/ part=. / part=8 /'
damaged "twice" "x:13: lines are sorted" '12p'
damaged "too large" "x:12: not an algorithm of a product" '12s/ tile=19 / tile=4294967296 /'
damaged "too late" "lines are sorted" '12{h;d};$G'
head -c 3000 "$profile" >"$tmp/x"
refuse "cut off" 5 "the end of the line is missing" ./dpgen plan "$model" $on --profile "$tmp/x"

# ---- where nothing can be measured --------------------------------------------------------------------------------------
DOUBLE_DEVICES=0; export DOUBLE_DEVICES
remedy="--estimate, .*--profile FILE"
refuse "no GPU" 6 "no GPU is to be seen.*$remedy" ./dpgen profile "$model" $on -o "$tmp/x"
cp "$model" "$tmp/bare.yaml"
refuse "no GPU, and no profile" 6 "no GPU is to be seen.*$remedy" ./dpgen "$tmp/bare.yaml" $on -o "$tmp/out"
expect "a plan all the same" ./dpgen plan "$tmp/bare.yaml" $on
make_with 'echo "cuda.mk:50: *** no CUDA toolkit: there is no include/cuda_runtime_api.h.  Stop." >&2; exit 2'
refuse "no nvcc" 6 "no CUDA toolkit.*$remedy" ./dpgen profile "$model" $on -o "$tmp/x"
if [ $driver = here ]; then skip "there is an NVIDIA driver here" 2
else
    make_with "touch $tmp/asked"
    refuse "no driver" 6 "no NVIDIA driver here: libcuda.so.1: .*$remedy" env LD_LIBRARY_PATH="$tmp" ./dpgen profile "$model" \
        $on -o "$tmp/x"
    if [ ! -e "$tmp/asked" ]; then pass; else fault "kernels are compiled where there is no driver"; fi
fi
# what a benchmark opens it has
make_with 'grep -q open_attention $d/stage0.c || exit 1
for call in $(grep -o "open_[a-z_]*(" $d/stage0.c); do
    grep -q "^void $call" $d/rt/op/cuda/*.c || { echo "nobody defines $call" >&2; exit 1; }
done
echo "all are there" >&2
exit 1'
refuse "its libraries" 6 "all are there" ./dpgen profile "$model" --set train.precision.compute=bf16 $on -o "$tmp/x"
refuse "no arch" 3 "has no 'arch'" ./dpgen profile "$model" --devices "$tmp/none" -o "$tmp/x"

# ---- a head in chunks -----------------------------------------------------------------------------------------------------
# Its products are several of one call: scores without a bias and with one, gradients of the weight and of x, and the same of
# the last chunk, which is shorter.
DOUBLE_DEVICES=1
turns="s/TRIES = 1/TRIES = 2/
s|^    open_product_algorithm(st.*|{ FILE *f = fopen(\"$tmp/given\", \"a\"); fprintf(f, \"%d \", c->id); fclose(f); }\n&|"
make_with "$once; sed -i '$turns' \$d/launch.c; ${builds#"$once; "} $with"
model=$tmp/heads.yaml
sed 's/T: 8, D: 12/T: 1, D: 4/; s/batch: {global: 16, micro: 4}/batch: {global: 2, micro: 1}/; s/steps: 20/steps: 3/' \
    "$models/heads.yaml" >"$model"
expect "profile of two heads" ./dpgen profile "$model" $on --stages 2 -o "$tmp/heads"
# the guesses of a product take turns, and then the fastest is given
case $(cat "$tmp/given") in
    '7 8 9 7 8 9 9 7 8 9 7 8 9 9 '*) pass ;;
    *) fault "algorithms are timed in the order $(head -c 40 "$tmp/given")" ;;
esac
parts() { sed -n "s/^algorithm $1.* rows=1 in=4 out=256 chunk=$2 .* part=\([0-9]\) .*/\1/p" "$tmp/heads" | tr '\n' ' '; }
said="$(parts 'linear_xent_forward bias=0' 96)/$(parts linear_xent_forward 192)/$(
    parts 'linear_xent_backward dbias=0 bias=0' 96)/$(parts linear_xent_backward 192)"
if [ "$said" = "0 4 /1 5 /0 2 3 4 6 7 /1 2 3 5 6 7 " ]; then pass; else fault "algorithms of parts $said"; fi
plain=$(folder "$tmp/plain" $on --stages 1 --estimate)
two=$(folder "$tmp/two" $on --profile "$tmp/heads" --stages 2)
if [ "${#plain}" = 64 ] && [ "$plain" = "$two" ]; then pass; else fault "two heads: $plain, with a profile $two"; fi
baked=$(calls "$tmp"/two/stage[01].c | grep -A 6 '^    open_linear_xent' | grep -c open_product_algorithm)
if [ "$baked" = 16 ]; then pass; else fault "$baked algorithms of two heads"; fi

# ---- what is joined -------------------------------------------------------------------------------------------------------
# A profile has the calls of every word of fuse, and `fastest` takes the word whose plan it makes the fastest.
mlp=$tmp/mlp.yaml
cat >"$mlp" <<'MLP'
dpgen: 1
model:
  inputs: {x: {shape: [B, 8], dtype: f32}, t: {shape: [B, 8], dtype: f32}}
  graph:
    - {op: Linear, name: stem, in: x, out: 8, as: stem}
    - {op: Linear, name: fc, out: 32}
    - {op: Gelu, name: act, approximate: tanh}
    - {op: Linear, name: proj, out: 8}
    - {op: Dropout, name: drop, p: 0.1}
    - {op: Add, name: total, in: [_, stem]}
    - {op: MeanSquaredError, targets: t, as: loss}
  loss: loss
train: {precision: {compute: bf16}, batch: {global: 12, micro: 2}, steps: 2, optimizer: {type: sgd, lr: 0.01}}
MLP
make_with "$once; exec $cc $kind -DREAL_BF16 -O1 -I\$d -o \$d/train \$d/launch.c \$d/stage0.c -Wl,-z,muldefs $(echo \
    "$root"/build/double/bf16/own.obj "$root"/build/double/bf16/local.obj "$root"/build/double/bf16.a) -lstdc++ -lpthread -lm"
expect "profile of every word" ./dpgen profile "$mlp" $on --stages 1 -o "$tmp/words"
for call in linear_gelu_forward linear_gelu_backward gelu_forward 'dropout_forward .*onto=1' 'dropout_forward [^o]*'; do
    if grep -q "^op $call.* alone=" "$tmp/words"; then pass; else fault "the profile of every word has no $call"; fi
done
# a product on a sum of gradients, in a model where two read one tensor
awk '/name: fc/ { sub(/}$/, ", as: fc}") }
    /name: act/ { print "    - {op: Linear, name: side, in: stem, out: 32}"; $0 = "    - {op: Add, name: both, in: [_, fc]}" }
    1' "$mlp" >"$tmp/side.yaml"
expect "profile of a sum in a product" ./dpgen profile "$tmp/side.yaml" $on --stages 1 -o "$tmp/side"
if grep -q '^op linear_add_backward_x .*onto=1.* alone=' "$tmp/side"; then pass
else fault "a sum in a product: $(grep backward_x "$tmp/side" | head -n 2)"; fi
# Calls that share a launch: tables of up to 55 rows, the last one whatever it holds, until a millisecond is full.
wrong=$(awk '$1 == "op" && $2 == "sgd_update" {
        for (n = 1; (want = int((n + 54) / 55) * 80000) < 1000000; n *= 2) { }
        want = sprintf("%.0f", want / n)
        if (!index($0, " alone=" want " alone_iqr=0 busy=" want " busy_iqr=0")) print
        rows++
    }
    END { if (!rows) print "none" }' "$tmp/words")
if [ -z "$wrong" ]; then pass; else fault "another time of a call than its part of a table: $wrong"; fi
# timed NAME CALL NANOSECONDS...: a profile with these times of calls, and all others as they are
timed() {
    sed "/^op linear_gelu_/s/ alone=.*/ alone=$2 alone_iqr=0 busy=$2 busy_iqr=0/
        /^op .* onto=1/s/ alone=.*/ alone=$3 alone_iqr=0 busy=$3 busy_iqr=0/" "$tmp/words" >"$tmp/$1"
}
key_of() { ./dpgen plan "$mlp" $on --stages 1 "$@" -d a 2>"$tmp/said" | sed -n 's/^plan .* key=//p'; }
chosen() {      # WORD PROFILE MICRO: the word is noted, and its key is that of the word by itself
    by="--profile $tmp/$2 --set train.batch.micro=$3"
    fast=$(key_of $by --fuse fastest) word=$(key_of $by --fuse "$1")
    if [ -n "$word" ] && [ "$fast" = "$word" ]; then pass; else fault "fastest by $2, $3: key $fast, not $word"; fi
    expect "fastest by $2, $3" sh -c "./dpgen plan $mlp $on --stages 1 $by --fuse fastest | grep '^  note    fuse $1'"
}
timed joined 1000 1000
timed slow 90000000 1000
timed apart 90000000 90000000
for micro in 2 3; do         # measured, and between two sizes that were
    chosen most joined $micro
    chosen auto slow $micro
    chosen none apart $micro
done
grep -v '^op linear_gelu_' "$tmp/joined" >"$tmp/before"
refuse "a profile of before" 5 "no line 'op linear_gelu_forward.*measure again" ./dpgen plan "$mlp" $on --stages 1 \
    --profile "$tmp/before" --fuse fastest
# a plan is read as what it is, whatever would be chosen now
for word in most auto none; do
    ./dpgen plan "$mlp" $on --stages 1 --profile "$tmp/joined" --fuse $word -d a >"$tmp/plan.txt" 2>"$tmp/said"
    for fuse in $word fastest; do
        ./dpgen plan "$mlp" $on --stages 1 --profile "$tmp/joined" --fuse $fuse --from "$tmp/plan.txt" >"$tmp/by.$fuse" 2>&1
    done
    if grep -q 'measured' "$tmp/by.$word" && cmp -s "$tmp/by.$word" "$tmp/by.fastest"; then pass
    else fault "a plan of $word, read by fastest: $(diff "$tmp/by.$word" "$tmp/by.fastest" | head -n 3 | tr '\n' ' ')"; fi
done
refuse "cuts of one word" 3 "plan.cuts count operators" ./dpgen plan "$mlp" $on --stages 2 --cuts 1 --fuse fastest

# ---- a process a stage --------------------------------------------------------------------------------------------------
use_double nccl
# The double's NCCL is a pipe: fewer rounds and sizes
less="sed -i 's/\\(message_bytes.*65536\\),.*/\\1};/; s/MESSAGES = 6, ROUNDS = 256/MESSAGES = 3, ROUNDS = 4/' \$d/launch.c"
make_with "$less; $builds $with"
DOUBLE_DEVICES=2
expect "nccl, two GPUs" timeout 60 ./dpgen profile "$model" $on --stages 2 --set plan.transport=nccl -o "$tmp/x"
for bytes in 4 4096 65536; do
    if grep -q "^message bytes=$bytes alone=" "$tmp/x"; then pass; else fault "no message of $bytes bytes over nccl"; fi
done
DOUBLE_DEVICES=1
expect "nccl, one GPU" ./dpgen profile "$model" $on --stages 2 --set plan.transport=nccl -o "$tmp/x"
if grep -q '^message' "$tmp/x"; then fault "messages of NCCL on one GPU"; else pass; fi
if grep -q "one GPU here.*keep their estimate" "$tmp/said"; then pass; else fault "nothing is said about messages"; fi
finish
