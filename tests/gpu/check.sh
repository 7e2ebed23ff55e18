#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# make gpu-check: what can only be seen on a GPU, in under ten minutes, from the folders that prepare.sh made.  Needs nvcc, the
# libraries, and no network; compute-sanitizer where it is found.
#   tests/gpu/check.sh DIR
#
#   bits        every folder of a type has one hash: stages 1 to 4, recomputation, offload, several chunks, two calls that
#               are one elsewhere; one of them again, 20 times; and of a model whose head is LinearCrossEntropy; one stage with
#               a graph for each step
#   numbers     cublasLt and cuDNN against f64, all transposes, odd sizes, f32 as f32; attention 20 times with equal bits
#   profile     the benchmark of dpgen profile has a time for every row, an algorithm for every product, copies and messages
#   sanitizer   no bad address, no read of what was never written, no race in shared memory
#   memory      the arena is what the plan says; what the libraries hold beside it is printed
set -u
dir=$(cd "$1" && pwd) || exit 2
passed=0 failed=0 skipped=0
log=$dir/check.log
: >"$log"
pass() { passed=$((passed + 1)); }
fault() { failed=$((failed + 1)); echo "gpu: $1" | tee -a "$log"; }
skip() { skipped=$((skipped + 1)); echo "gpu: skipped: $1" | tee -a "$log"; }
finish() { echo "gpu: $passed passed, $failed failed, $skipped skipped" | tee -a "$log"; [ $failed = 0 ]; exit; }
note() { echo "$1" | tee -a "$log"; }

command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm --format=csv,noheader |
    tee -a "$log" || { skip "no GPU here: nvidia-smi is missing"; finish; }

# built DIR: its program.  Kernels of folders that have the same are compiled once.
built() {
    same=$(cat "$1/kernels.cu" "$1/cuda.mk" "$1/Makefile" | grep -v '^#' | sed 's/stage[0-9]*\.o//g' | sha256sum | cut -c 1-16)
    if [ -e "$dir/kernels.$same.o" ]; then
        cp "$dir/kernels.$same.o" "$1/kernels.o"
        touch "$1/kernels.o"
    fi
    make -s -j"$(nproc)" -C "$1" >"$1/build.log" 2>&1 ||
        { fault "$1 is not built: $(grep -m 1 -i error "$1/build.log")"; return 1; }
    cp "$1/kernels.o" "$dir/kernels.$same.o"
}
hash_of() {
    (cd "$1" && timeout 120 ./train --steps 6 --quiet --hash --no-checkpoint --data "$dir/text" --log run.log) >"$1/out" 2>&1
    sed -n 's/^sha256 //p' "$1/out"
}

# What the driver says of the GPU, as a file for devices/: DIR/device.yaml
printf 'include Makefile\ndevice: ; $(CC) $(CPPFLAGS) $(RFLAGS) -o $@ %s/tests/gpu/device.c $(LIBS)\n' \
    "$(cd "$(dirname "$0")/../.." && pwd)" >"$dir/bits/f32.1/device.mk"
if make -s -C "$dir/bits/f32.1" -f device.mk device >"$dir/device.log" 2>&1 &&
    "$dir/bits/f32.1/device" >"$dir/device.yaml"; then
    pass
    note "$(cat "$dir/device.yaml")"
else fault "no description of the GPU: $(tail -n 1 "$dir/device.log")"; fi

for type in f32 bf16 f32-chunked bf16-chunked; do
    want=
    for folder in "$dir"/bits/$type.*; do
        built "$folder" || continue
        rm -f "$folder/run.log"
        said=$(hash_of "$folder")
        want=${want:-$said}
        if [ ${#said} = 64 ] && [ "$said" = "$want" ]; then pass
        else fault "$(basename "$folder"): ${said:-$(tail -n 1 "$folder/out")}, not $want"; fi
        loss=$(sed -n 's/.*"event":"step".*"loss":\([0-9.]*\).*/\1/p' "$folder/run.log" | tr '\n' ' ')
        note "$(basename "$folder"): $(printf %.12s "$said") loss $loss"
    done
    said=$(DPGEN_GRAPH=1 hash_of "$dir/bits/$type.1")
    if [ "$said" = "$want" ] && ! grep -q "no graph" "$dir/bits/$type.1/out"; then pass
    else fault "$type.1 with graphs: ${said:-$(tail -n 1 "$dir/bits/$type.1/out")}, not $want"; fi
    for i in $(seq 20); do
        [ "$(hash_of "$dir/bits/$type.3")" = "$want" ] || { fault "$type.3 differs the ${i}th time"; break; }
    done
    pass
done

# The tests that run over doubles elsewhere, over the libraries: built as this folder's files are.
root=$(cd "$(dirname "$0")/../.." && pwd)
numbers() {     # TYPE PROGRAM SOURCE...
    type=$1 program=$2 sources=$root/tests/$2.c
    shift 2
    for source; do sources="$sources $root/rt/op/cuda/$source.c"; done
    printf 'include Makefile\n%s: ; $(CC) $(CPPFLAGS) -I%s -DON_GPU $(RFLAGS) -o $@ %s $(LIBS) -lm\n' \
        "$program" "$root" "$sources" >"$dir/bits/$type.1/$program.mk"
    make -s -C "$dir/bits/$type.1" -f "$program.mk" "$program" >"$dir/$program.log" 2>&1 ||
        { fault "$program is not built: $(grep -m 1 -i error "$dir/$program.log")"; return; }
    said=$(timeout 200 "$dir/bits/$type.1/$program" 2>>"$log" | tail -n 1)
    note "$type $said"
    case $said in *" 0 failed") pass ;; *) fault "$type $program: $said" ;; esac
}
for type in f32 bf16; do
    numbers $type unit_cublaslt product linear linear_fp8 linear_xent matmul
done
numbers f32 unit_cuda_attention attention
numbers bf16 unit_cuda_attention attention attention_graph graph
numbers bf16 unit_cuda_conv conv conv_graph graph

# The profile of two stages that share the GPU
profile() {
    built "$dir/profile" || return
    for mode in sign kernels messages; do
        (cd "$dir/profile" && timeout 300 ./train $mode) >"$dir/profile.$mode" 2>>"$log"
        status=$?
        if [ $status = 0 ]; then pass; else fault "profile: train $mode ends with $status: $(tail -n 1 "$log")"; fi
    done
    note "profile: $(sed -n 's/^sign //p' "$dir/profile.sign" | tr '\n' ';')"
    rows=$(grep -c '^    {row' "$dir/profile/stage0.c") timed=$(grep -c '^op [0-9]* [1-9]' "$dir/profile.kernels")
    if [ "$rows" = "$timed" ]; then pass; else fault "profile: $timed of $rows rows have a time"; fi
    rows=$(grep -c '^    {row.*, [0-9]*},$' "$dir/profile/stage0.c")
    timed=$(sed -n 's/^algorithm \([0-9]*\) .*/\1/p' "$dir/profile.kernels" | sort -u | wc -l)
    if [ "$rows" = "$timed" ]; then pass; else fault "profile: $timed of $rows products have an algorithm"; fi
    note "profile: $(grep -h -e ' 16777216 ' -e '^compute' -e '^message 4 ' "$dir/profile.kernels" "$dir/profile.messages" |
        tr '\n' ';')"
}
profile

for tool in memcheck initcheck racecheck; do
    command -v compute-sanitizer >/dev/null || { skip "compute-sanitizer is not here"; break; }
    for folder in bits/bf16.2 bits/f32.2offload; do
        (cd "$dir/$folder" && timeout 200 compute-sanitizer --tool $tool --error-exitcode 9 --print-limit 5 ./train --steps 1 \
            --quiet --no-checkpoint --data "$dir/text") >"$dir/$tool.out" 2>&1
        status=$?
        case $status in
            0) pass ;;
            124) skip "$tool of $folder takes more than 200 s" ;;
            *) fault "$tool of $folder: $(grep -m 3 '=====' "$dir/$tool.out" | tr '\n' ' ')"; cat "$dir/$tool.out" >>"$log" ;;
        esac
    done
done

for folder in "$dir"/bits/bf16.4 "$dir"/bits/f32.1; do
    note "$(basename "$folder"): $(grep -o '"arena_bytes":\[*[0-9, ]*\|"library_bytes":[0-9]*' "$folder/run.log" | tr '\n' ' ')"
done
finish
