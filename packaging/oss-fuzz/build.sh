#!/bin/bash -eu
# SPDX-License-Identifier: Apache-2.0
#
# build.sh of an OSS-Fuzz project, started in the source: each target of tests/fuzz_targets, its corpus as NAME_seed_corpus.zip,
# and its words as NAME.dict.  CC, CXX, CFLAGS, CXXFLAGS, LIB_FUZZING_ENGINE, OUT: as OSS-Fuzz sets them.
make -s -j"$(nproc)" FUZZER=1 S=build/oss-fuzz SANCC="$CC $CFLAGS -std=c11 -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION" \
    SANLD="$CXX $CXXFLAGS" SANMAIN="$LIB_FUZZING_ENGINE" LIBS="-l:libyaml.a -lm -ldl -lpthread" fuzz-targets

# quoted: words of the input, as entries of a dictionary
quoted() { grep -o '[A-Za-z_][A-Za-z0-9_.-]*' | sort -u | sed 's/.*/"&"/'; }
yaml() {
    sed -n 's/^| `\([^|]*\)` |.*/\1/p' docs/model.md | quoted
    sed -n 's/^OP( *\([A-Z][A-Za-z0-9]*\).*/\1/p' gen/ops.def | quoted
    printf '"%s"\n' ': ' '- ' '{' '}' '[' ']' ', ' '|' '&a' '*a' '<<' '!!str' '---' '#'
}
json() {
    cat rt/json.c rt/safetensors.c rt/weights*.c rt/ckpt_load.c gen/base/safe.c gen/huggingface/*.c gen/view/m*.c \
        gen/view/events.c \
        rt/tokens/*.c | grep -o '\\*"[a-z_0-9]*\\*"' | tr -d '\\"' | quoted
    printf '"%s"\n' '{' '}' '[' ']' ':' ',' '\\"' '\\\\u0000' 'true' 'false' 'null' '1e999' '-0' 'F32' 'BF16' '__metadata__'
}
for corpus in tests/fuzz_targets/corpus/*; do
    target=${corpus##*/}
    cp "build/oss-fuzz/$target" "$OUT/$target"
    more=
    case $target in
        yaml) more=$(ls tests/models/*.yaml) ;;
        onnx | pt2) more=$(ls tests/graphs/*."$target") ;;
    esac
    rm -f "$OUT/${target}_seed_corpus.zip"
    zip -q -j -X "$OUT/${target}_seed_corpus.zip" "$corpus"/* $more
    case $target in
        yaml | option | table | profile) yaml >"$OUT/$target.dict" ;;
        json | safetensors | index | shards | config | tokens | log | trace) json >"$OUT/$target.dict" ;;
    esac
    printf '[libfuzzer]\nmax_len = 16384\ntimeout = 25\n' >"$OUT/$target.options"
done
