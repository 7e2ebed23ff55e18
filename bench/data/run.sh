#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a micro-batch of pictures costs the host: read from files of floats and of bytes, in one thread, from the page cache.
#
#   run.sh [-r ROUNDS] [-n PICTURES] [-s SIDE]
#
# The reader is compiled as in jobs.  Medians of ROUNDS (11) loads of 256 pictures of 224 x 224 x 3, in turn.
set -eu
rounds=11 pictures=256 side=224
while getopts r:n:s: option; do
    case $option in
    r) rounds=$OPTARG ;; n) pictures=$OPTARG ;; s) side=$OPTARG ;;
    *) exit 2 ;;
    esac
done
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
make -s build/librt.a
${CC:-cc} -std=c11 -O2 -ffp-contract=off -D_GNU_SOURCE -Irt -o "$tmp/load" bench/data/load.c rt/data.c build/librt.a \
    -lpthread -lm
"$tmp/load" "$tmp" "$pictures" "$side" "$rounds"
