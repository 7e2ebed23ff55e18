#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Values in few bits (Round) on their way between stages.  The parameters have one SHA-256 wherever the cuts are, over both
# transports, and it is that of the graph interpreter.  A cut behind the codes sends them alone: every message is counted where
# the transport gets it, over MPI at MPI_Isend, and its bytes are those of docs/bits.md.  `dpgen plan` lists such values with
# the step that the plan of a model with the line has.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/interp
use_portable
open_input

# model BITS [KEYS]: the result of each block is rounded; cut.yaml is cut behind the first codes
model() {
    sed "s/      - {op: Add,       in: \[_, r\]}/&\n      - {op: Round, name: few, bits: $1$2}/" \
        "$models/tiny-gpt.yaml" >"$tmp/few.yaml"
    sed 's/^plan: {/&constraints: [{cut_after: h.0.few.code}], /' "$tmp/few.yaml" >"$tmp/cut.yaml"
}
# Each line: the peer, and the bytes
cat >"$tmp/count.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
static void count(int peer, long bytes)
{
    FILE *f = fopen(getenv("SENT"), "a");
    fprintf(f, "%d %ld\n", peer, bytes);
    fclose(f);
}
#ifdef OVER_MPI
#include <mpi.h>
int MPI_Isend(const void *from, int n, MPI_Datatype type, int peer, int tag, MPI_Comm all, MPI_Request *request)
{
    int each;
    MPI_Type_size(type, &each);
    count(peer, (long)n * each);
    return PMPI_Isend(from, n, type, peer, tag, all, request);
}
#else
struct Stage;
void *__real_link_begin(struct Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes);
void *__wrap_link_begin(struct Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes);
void *__wrap_link_begin(struct Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    if (sending)
        count(peer, bytes);
    return __real_link_begin(st, request, sending, buffer, peer, tag, bytes);
}
#endif
END
run="--no-checkpoint --quiet --hash --steps 2 --data $data"

# trained NAME few|cut OPTION...: its hash is that of the interpreter; what it sends is in $tmp/sent
trained() {
    name=$1 yaml=$tmp/$2.yaml
    shift 2
    : >"$tmp/sent"
    said=$(generate "$tmp/job" "$yaml" "$@" && compile "$tmp/job" && SENT="$tmp/sent" job_hash "$tmp/job" $run)
    if [ "$said" = "$want" ]; then pass; else fault "$name: $said, not $want"; fi
}
# sent WHAT PEER BYTES N: so many messages of that size go there, and none as the wide value
sent() {
    n=$(grep -c "^$2 $3\$" "$tmp/sent") wide=$(grep -c "^$2 3072\$" "$tmp/sent")
    if [ "$n" = "$4" ] && [ "$wide" = 0 ]; then pass; else fault "$1: $n messages of $3 bytes, $wide wide ones, $4 expected"; fi
}
interpreted() { build/interp "$tmp/few.yaml" $run 2>"$tmp/interp.err" | sed -n 's/^sha256 //p'; }

# 2 samples of 16 rows of 24 numbers: a row is a scale and two groups of 16 codes.  4 micro-batches, 2 steps.
cutting="-Wl,--wrap=link_begin $tmp/count.c"
for bits in 8 6 4 2; do
    case $bits in
        8) keys= ;;
        6) keys=", gradient: 4" ;;
        4) keys=", mode: stochastic, gradient: 8" ;;
        2) keys=", scale: tensor" ;;
    esac
    model $bits "$keys"
    want=$(interpreted)
    more=$cutting linker=$cc
    trained "$bits bits, 2 stages" cut --stages 2
    case $bits in
        2) sent "$bits bits" 1 $((4 * (1 + 48 * 2 / 2))) 8 ;;
        *) sent "$bits bits" 1 $((4 * 32 * (1 + 2 * bits / 2))) 8 ;;
    esac
    case $bits in 6) sent "its gradient" 0 $((4 * 32 * (1 + 2 * 4 / 2))) 8 ;; 4) sent "its gradient" 0 1152 8 ;; esac
    more= linker=
    for plan in "--stages 1" "--stages 3 --schedule 1f1b" "--stages 2 --recompute full"; do
        case $bits$plan in *3* | 4* | 8*1) trained "$bits bits, $plan" few $plan ;; esac
    done
done

over() {
    set -- $(mpis)
    [ -n "$1" ] || { skip "there is no mpirun, or no mpicc" 3; return; }
    use_mpi "$1" 2 || return
    model 4 ", mode: stochastic, gradient: 8"
    want=$(interpreted)
    more="-DOVER_MPI $tmp/count.c"
    trained "over MPI" cut --stages 2 --set plan.transport=mpi
    sent "over MPI" 1 640 8
    sent "over MPI, its gradient" 0 1152 8
    use_portable
    more=
}
over

# ---- what plan tells -------------------------------------------------------------------------------------------------
slow="--estimate --set links.cpu-cpu.rate=40MB/s --set links.cpu-cpu.latency=10us"
./dpgen plan examples/bytes-gpt.yaml $slow >"$tmp/told" 2>&1
step=$(sed -n 's/.*h\.1\.add_2, .* with 8 bits 57.00 KiB, and a step of \([0-9.]* ms\).*/\1/p' "$tmp/told")
two="    - {use: block, name: h, repeat: 2}\n    - {op: Round}\n    - {use: block, name: g, repeat: 2}"
sed "s/    - {use: block, name: h, repeat: L}.*/$two/" \
    examples/bytes-gpt.yaml >"$tmp/line.yaml"
./dpgen plan "$tmp/line.yaml" $slow >"$tmp/told.line" 2>&1
if [ -n "$step" ] && grep -q "^predicted step $step " "$tmp/told.line"; then pass
else fault "a step of '$step' was told, and the plan of the line has: $(grep predicted "$tmp/told.line")"; fi
if grep -q '^link ' "$tmp/told.line"; then fault "a value that is rounded is told again"; else pass; fi
finish
