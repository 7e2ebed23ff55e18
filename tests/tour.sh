#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# docs/tour.md: every indented line is run, in order, as a reader would.  Each ends with status 0, and every hash that is
# printed is the same.  Kernels are compiled with little optimisation, which changes no bit.
. "$(dirname "$0")/lib.sh"
need dpgen
[ -n "$SLOW" ] || use_ready -O1
page=docs/tour.md
mkdir "$tmp/checkout"
for part in dpgen README.md docs; do ln -s "$root/$part" "$tmp/checkout/$part"; done
unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM      # the page says it
quick='KFLAGS=-std=c11\ -O1\ -ffp-contract=off\ -fno-math-errno RFLAGS=-std=c11\ -O0 CFLAGS=-std=c11\ -O0'
[ -n "$SLOW" ] || export MAKEFLAGS="-s -j2 -- $quick"

sed -n 's/^    //p' $page >"$tmp/commands"
expect "commands" test "$(wc -l <"$tmp/commands")" -ge 20
mpi=yes
command -v mpicc >/dev/null 2>&1 && command -v mpirun >/dev/null 2>&1 || mpi=
from=$(date +%s)
while IFS= read -r line; do
    case $mpi:$line in
        :*mpi*) skip "no MPI: $line"; continue ;;
        :*--resume* | :*/sample*) skip "no MPI, no checkpoint: $line"; continue ;;
    esac
    echo "\$ $line" >>"$tmp/log"
    case $line in 'export '*) eval "$line"; pass; continue ;; esac
    case $line in 'make -C tour/four' | 'make -C tour/mpi')     # the same flags: compiled once
        [ -n "$SLOW" ] || take_objects "$tmp/checkout/tour/two" "$tmp/checkout/${line#make -C }" ;;
    esac
    (cd "$tmp/checkout" && timeout 300 sh -c "$line") </dev/null >"$tmp/out" 2>&1
    status=$?
    cat "$tmp/out" >>"$tmp/log"
    if [ $status = 0 ]; then pass; else fault "$line: status $status: $(tail -n 1 "$tmp/out")"; fi
    case $line in *' expected '* | *' verify '*) ;; *) sed -n 's/^sha256 //p' "$tmp/out" >>"$tmp/hashes" ;; esac
    case $line in *'--limit 1MiB'*) expect "no plan is status 4" grep -qx 'status 4' "$tmp/out" ;; esac
    case $line in *'--limit 3MiB'*) expect "less memory: made again" grep -q 'made again\|recompute' "$tmp/out" ;; esac
done <"$tmp/commands"
[ -n "$mpi" ] && hashes=3 || hashes=2
expect "$hashes hashes" test "$(wc -l <"$tmp/hashes")" = $hashes
expect "one value" test "$(sort -u "$tmp/hashes" | wc -l)" = 1
expect "nothing is left" test ! -e "$tmp/checkout/tour"
if [ $(($(date +%s) - from)) -lt 1200 ]; then pass; else fault "more than twenty minutes"; fi
[ $failed = 0 ] || cat "$tmp/log"
finish
