# SPDX-License-Identifier: Apache-2.0
#
# cuda.sh: read by the suites that need the headers or libraries of CUDA.  $cuda is where they are, empty where they are
# not: $CUDA_HOME, or what the nvcc in the path belongs to, or the customary folder.
cuda=
for folder in "$CUDA_HOME" "$(dirname "$(command -v nvcc)" 2>/dev/null)/.." /usr/local/cuda; do
    if [ -n "$folder" ] && [ -f "$folder/include/cuda_runtime_api.h" ]; then
        cuda=$folder
        break
    fi
done
# have_cuda HEADER: is it there?
have_cuda() { [ -n "$cuda" ] && [ -f "$cuda/include/$1" ]; }
# cuda_library NAME: its file, as a compiler takes it, or nothing
cuda_library() { ls "$cuda/lib64/lib$1.so" "$cuda/lib/lib$1.so" "$cuda"/lib/*/"lib$1.so" 2>/dev/null | head -n 1; }
