#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tools/cuda, with a python3 that plays pip: what wheels bring becomes one folder, which tests/cuda.sh finds; nothing is asked
# for where a toolkit is, and where pip, network or a wheel are missing it says so in a line, leaves nothing and is no failure.
. "$(dirname "$0")/lib.sh"
tree=$tmp/tree
mkdir -p "$tree/tools" "$tree/tests" "$tmp/bin" "$tmp/usual/include"
cp tools/cuda tools/cuda.txt "$tree/tools"
cp tests/cuda.sh "$tree/tests"
touch "$tmp/usual/include/cuda_runtime_api.h"
cat >"$tmp/bin/python3" <<'PYTHON'
#!/bin/sh
echo "$*" >>"$ASKED"
case $PIP:$* in
    none:*) exit 1 ;;
    *--version) exit ;;
    away:*) printf 'WARNING: retrying\nERROR: no network\n' >&2; exit 1 ;;
esac
while [ "$1" != --target ]; do shift; done
cd "$2" || exit 1
mkdir -p nvidia/cu13/bin nvidia/cu13/include nvidia/cu13/lib nvidia/cudnn/include nvidia/cudnn/lib nvidia/nccl/include \
    nvidia/nccl/lib
touch nvidia/cu13/include/cuda_runtime_api.h nvidia/cu13/lib/libcudart.so.13 nvidia/cudnn/include/cudnn.h \
    nvidia/cudnn/lib/libcudnn.so.9 nvidia/nccl/include/nccl.h nvidia/nccl/lib/libnccl.so.2
[ "$PIP" = other ] || { touch nvidia/cu13/bin/nvcc; chmod +x nvidia/cu13/bin/nvcc; }
PYTHON
chmod +x "$tmp/bin/python3"
# get SETTING...: tools/cuda on a machine without a toolkit; what it says in $tmp/said, what pip was asked in $tmp/asked
get() {
    rm -rf "$tree/build"
    mkdir "$tree/build"
    : >"$tmp/asked"
    env -u CUDA_HOME ASKED="$tmp/asked" PATH="$tmp/bin:/usr/bin:/bin" CUDA_PLACES="$tree/build/cuda" "$@" "$tree/tools/cuda" \
        >"$tmp/said" 2>&1
}
without() {     # PIP TEXT
    get PIP="$1"
    status=$?
    if [ "$status" = 0 ] && [ -z "$(ls -A "$tree/build")" ] &&
        grep -q "^cuda: .*$2.*; tests that want CUDA will skip" "$tmp/said"; then pass
    else fault "$1: status $status, build/ has $(ls "$tree/build"): $(cat "$tmp/said")"; fi
}
without none "has no pip"
without away "ERROR: no network"
without other "no nvidia/cu13/bin/nvcc"
get CUDA_HOME="$tmp/usual"
if [ ! -s "$tmp/asked" ] && [ ! -s "$tmp/said" ]; then pass
else fault "a toolkit is there: $(cat "$tmp/asked" "$tmp/said")"; fi
get
for file in bin/nvcc include/cuda_runtime_api.h include/cudnn.h include/nccl.h lib/libcudart.so lib/libcudnn.so \
    lib/libnccl.so; do
    if [ -e "$tree/build/cuda/$file" ]; then pass; else fault "no $file: $(cat "$tmp/said")"; fi
done
if [ "$(ls "$tree/build")" = cuda ]; then pass; else fault "left behind: $(ls "$tree/build")"; fi
if grep -q -e '--require-hashes.* -r tools/cuda.txt' "$tmp/asked"; then pass; else fault "asked: $(cat "$tmp/asked")"; fi
found=$(cd "$tree" && env -u CUDA_HOME PATH=/usr/bin:/bin CUDA_PLACES="$tree/build/cuda" sh -c \
    '. tests/cuda.sh; have_cuda nccl.h && cuda_library cudnn')
if [ "$found" = "$tree/build/cuda/lib/libcudnn.so" ]; then pass; else fault "tests find $found"; fi
if ! grep -v '^#' tools/cuda.txt | grep -qv '^[a-z0-9-]*==[0-9.]* --hash=sha256:[0-9a-f]\{64\}$'; then pass
else fault "tools/cuda.txt: a line without version and sum"; fi
finish
