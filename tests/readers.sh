#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every reader of files, under the sanitizers of the compiler, on the corpus of its fuzz target, on texts that dpgen writes
# itself and on the model files and graphs of the tests.  SLOW=1 also runs each target with the fuzzer of clang, FUZZ_SECONDS
# (600) long; what it finds stays in build/fuzzer and belongs into the corpus.  NAME...: these targets alone.
. "$(dirname "$0")/lib.sh"
need dpgen dpgen-verify
corpus=tests/fuzz_targets/corpus
echo 'int main(void) { return 0; }' >"$tmp/empty.c"
if ! $cc -fsanitize=address,undefined -o "$tmp/empty" "$tmp/empty.c" 2>"$tmp/said"; then
    skip "$cc has no sanitizers: $(head -n 1 "$tmp/said")"
    finish
fi
targets=${*:-$(ls "$corpus")}
for target in $targets; do binaries="$binaries build/san/$target"; done
need $binaries

# Texts of dpgen itself
mkdir -p "$tmp/folder" "$tmp/yaml" "$tmp/graph" "$tmp/plan" "$tmp/pt2" "$tmp/onnx"
cp tests/graphs/*.pt2 "$tmp/pt2"
cp tests/graphs/*.onnx "$tmp/onnx"
sed -n 's/^    "\(.*\)\\n";*$/\1/p' tests/fuzz_targets/small.h >"$tmp/small.yaml"
cp "$tmp/small.yaml" "$models"/*.yaml "$tmp/yaml"
./dpgen "$models/mlp.yaml" -d f >"$tmp/graph/mlp" 2>"$tmp/said" || fault "no graph: $(head -n 1 "$tmp/said")"
for options in "" "--map 0,1,0,1 --schedule 1f1b" "--replicas 2 --stages 1 --set train.batch.groups=2" "--offload [act]"; do
    i=$((i + 1))
    ./dpgen "$tmp/small.yaml" --estimate $options -d a >"$tmp/plan/small.$i" 2>"$tmp/said" ||
        fault "no plan with $options: $(head -n 1 "$tmp/said")"
done

# Folders, without their comments
for options in "--stages 1" "--stages 2 --schedule 1f1b" "--stages 2 --schedule 2bw --set train.clip_scope=parameter" \
    "--stages 1 --offload [act]"; do
    i=$((i + 1))
    ./dpgen "$tmp/small.yaml" --estimate $options -o "$tmp/out" >"$tmp/said" 2>&1 || fault "no folder: $(tail -n 1 "$tmp/said")"
    for file in stage0.h stage0.c stage1.h stage1.c launch.c; do
        [ -e "$tmp/out/$file" ] || continue
        $own_cc -fpreprocessed -dD -E -P "$tmp/out/$file" >"$tmp/said" && mv "$tmp/said" "$tmp/out/$file"
    done
    expect "it is right without comments" ./dpgen-verify --edited "$tmp/out"
    for file in stage0.h stage0.c stage1.h stage1.c launch.c model.graph; do
        [ ! -e "$tmp/out/$file" ] || { echo "> $file" && cat "$tmp/out/$file"; }
    done >"$tmp/folder/small.$i"
    { cat "$tmp/folder/small.$i" && echo "> MANIFEST" && cat "$tmp/out/MANIFEST"; } >"$tmp/folder/sums.$i"
    rm -rf "$tmp/out"
done

export ASAN_OPTIONS="detect_leaks=0 log_path=$tmp/asan" UBSAN_OPTIONS="print_stacktrace=1 log_path=$tmp/asan"
for target in $targets; do
    inputs=$(ls "$corpus/$target"/* "$tmp/$target"/* 2>"$tmp/said")
    if build/san/$target $inputs >"$tmp/out" 2>&1; then passed=$((passed + $(sed -n 's/ inputs$//p' "$tmp/out")))
    else
        fault "$target: ended at $(tail -n 1 "$tmp/out")"
        cat "$tmp"/asan* 2>"$tmp/said" | head -n 30 >&2
        rm -f "$tmp"/asan*
    fi
done

if [ -n "$SLOW" ]; then
    echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { return p && n < 0; }' >"$tmp/empty.c"
    if [ -z "$clang" ] || ! $clang -fsanitize=fuzzer -o "$tmp/empty" "$tmp/empty.c" 2>"$tmp/said"; then
        skip "clang has no fuzzer here"
        finish
    fi
    for target in $targets; do
        make -s FUZZER=1 "build/fuzzer/$target" >"$tmp/said" 2>&1 || { fault "$target: $(head -n 1 "$tmp/said")"; continue; }
        mkdir -p "build/fuzzer/found/$target" "$tmp/$target"
        expect "fuzzer, $target" "build/fuzzer/$target" -close_fd_mask=3 -timeout=25 -rss_limit_mb=4096 \
            -max_total_time="${FUZZ_SECONDS:-600}" -artifact_prefix="build/fuzzer/$target." -verbosity=0 -max_len=16384 \
            "build/fuzzer/found/$target" "$corpus/$target" "$tmp/$target"
    done
    # What a service of fuzzing builds: it runs from a folder of its own, with corpus and words
    out=$tmp/service
    mkdir "$out" "$tmp/elsewhere"
    expect "oss-fuzz" env CC="$clang" CXX=clang++ CFLAGS="-O1 -g1 -fsanitize=address,undefined,fuzzer-no-link" \
        CXXFLAGS="-fsanitize=address,undefined,fuzzer-no-link" LIB_FUZZING_ENGINE=-fsanitize=fuzzer OUT="$out" \
        packaging/oss-fuzz/build.sh
    for target in $targets; do
        dict=$(ls "$out/$target.dict" 2>"$tmp/said")
        unzip -q "$out/${target}_seed_corpus.zip" -d "$out/corpus.$target"
        expect "oss-fuzz, $target" sh -c \
            "cd '$tmp/elsewhere' && '$out/$target' -runs=1 -close_fd_mask=3 ${dict:+-dict=$dict} '$out/corpus.$target'"
    done
fi
rm -rf build/fuzzed.* build/report.html build/events.out.tfevents.0.dpgen
finish
