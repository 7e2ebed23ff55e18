#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Offload that runs: inside 60 % of the memory that keeping everything takes, with the same bits (same.sh has the other
# plans); copies that overlap computation in the trace, each fetch behind its offload; one link for both directions; a file
# whose directory cannot be written, has no room, fails while it is used, or gives less than it was asked for; hosts that are
# full; a tensor that two lists name.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a
use_portable
gpt="$models/tiny-gpt.yaml --set train.batch.global=32 --estimate"
fast="--set links.cpu-host.rate=8GB/s --set links.cpu-host.latency=1ns"

# job NAME OPTION...: its hash in $said
make_job() {
    name=$1
    shift
    said=$(generate "$tmp/$name" "$@" && compile "$tmp/$name" && job_hash "$tmp/$name" $arguments)
}
same() { if [ "$said" = "$reference" ]; then pass; else fault "$1: $said, not $reference"; fi; }
arenas() { sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p' "$tmp/$1/plan.json" | sort -n | tail -n 1; }

make_job keep $gpt --stages 2 --schedule gpipe
reference=$said
if [ ${#said} = 64 ]; then pass; else fault "the job that keeps everything: $said"; fi

# ---- 60 % of the memory ----------------------------------------------------------------------------------------------
limit=$(($(arenas keep) * 6 / 10))
make_job less $gpt --stages 2 --schedule gpipe --offload "['*']" $fast --limit $limit
same "inside 60 %"
if [ "$(arenas less)" -le $limit ]; then pass; else fault "$(arenas less) bytes under a limit of $limit"; fi
if grep -q '"offload_bytes": [1-9]' "$tmp/less/plan.json" && grep -q '"host_bytes": [1-9]' "$tmp/less/plan.json" &&
    grep -q 'offloaded a micro-batch' "$tmp/less/report.html" && grep -q 'to the host' "$tmp/less/trace.json"
then pass; else fault "plan.json, report.html and trace.json do not say what is offloaded"; fi

# ---- one link for both directions ------------------------------------------------------------------------------------
make_job half $gpt --stages 3 --schedule 1f1b --offload "['h.*']" --set links.cpu-host.rate=2GB/s \
    --set links.cpu-host.duplex=half
same "half duplex"
if grep -q 'lanes = 1' "$tmp/half/stage0.c"; then pass; else fault "half duplex has two threads a stage"; fi

# ---- the trace -------------------------------------------------------------------------------------------------------
# Events of process 2, one a line.  Of each copy: a fetch begins behind the end of its offload in the same step, and some
# run while their stage computes.
trace() {
    awk -F'"' -v stages="$2" '
    function field(key,    at) {
        at = match($0, "\"" key "\":[-0-9.]*")
        return substr($0, at + length(key) + 3, RLENGTH - length(key) - 3) + 0
    }
    /"ph":"X","pid":2/ {
        tid = field("tid"); from = field("ts"); to = from + field("dur")
        for (i = 1; i < NF; i++) if ($i == "name") name = $(i + 2)
        if (tid >= 1000) {
            copies++
            stage = int((tid - 1000) / 2)
            what = stage " " substr(name, index(name, " ") + 1)
            if (name ~ /^offload/) gone[what] = to
            else if (!(what in gone) || from < gone[what] - 0.01) early++
            else fetched++
            cfrom[copies] = from; cto[copies] = to; cstage[copies] = stage
        } else if (name ~ /^(forward|backward|recompute)/) {
            n[tid]++
            first[tid, n[tid]] = from; last[tid, n[tid]] = to
        }
    }
    END {
        for (c = 1; c <= copies; c++)
            for (i = 1; i <= n[cstage[c]]; i++)
                if (first[cstage[c], i] < cto[c] && last[cstage[c], i] > cfrom[c]) { beside++; break }
        printf "%d copies, %d fetched, %d early, %d beside computation\n", copies, fetched, early, beside
        exit !(copies > 0 && fetched * 2 == copies && !early && beside > 0)
    }' "$1"
}
wide="-D D=96 -D T=256 --set train.batch.global=16 --set train.batch.micro=4"
arguments="--steps 1"
make_job wide $models/tiny-gpt.yaml --estimate --stages 1 --schedule gpipe $wide --offload "[h.*.mlp.*, h.*.gelu, h.*.attn.*]" \
    --set links.cpu-host.rate=2GB/s
arguments=
if [ ${#said} = 64 ]; then pass; else fault "the wide job: $said"; fi
for try in 1 2 3 4 5; do        # where all cores have other work, a copy may get none beside its stage
    job_hash "$tmp/wide" --steps 1 --trace "$tmp/trace" >/dev/null
    said=$(trace "$tmp/trace") && break
done
if trace "$tmp/trace" >/dev/null; then pass; else fault "the trace: $said"; fi

# ---- a file ----------------------------------------------------------------------------------------------------------
disk="{to: disk, what: ['h.*'], dir: spill}"
make_job disk $gpt --stages 2 --schedule 1f1b --offload "$disk" $fast
case $said in *"cannot make a file"*) pass ;; *) fault "a directory that is not there: $said" ;; esac
arguments="--offload-dir $tmp"
make_job disk $gpt --stages 2 --schedule 1f1b --offload "$disk" $fast
same "--offload-dir"
if [ -z "$(find "$tmp" -maxdepth 1 -name '.offload*')" ]; then pass; else fault "a file is left over"; fi
refuse "a directory that is none" 1 'cannot make a file for offloaded tensors in .*: Not a directory; name a directory' \
    "$tmp/disk/job" $run --offload-dir "$root/LICENSE"

# Calls of the file under control: the first argument of FAULT says what happens.
cat >"$tmp/calls.c" <<'END'
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
static const char *is(const char *what)
{
    const char *fault = getenv("FAULT");
    return fault && !strcmp(fault, what) ? fault : NULL;
}
int __real_posix_fallocate(int file, off_t at, off_t n);
int __wrap_posix_fallocate(int file, off_t at, off_t n);
int __wrap_posix_fallocate(int file, off_t at, off_t n)
{
    return is("full") ? ENOSPC : __real_posix_fallocate(file, at, n);
}
static int fails(const char *what, int why, size_t *n)
{
    static int calls;
    calls++;
    if (is(what) && calls > 50)
        errno = why;
    else if (is("again") && calls % 3 == 0)
        errno = EINTR;
    else {
        if (is("again") && *n > 4096)
            *n = 4096;
        return 0;
    }
    return 1;
}
ssize_t __real_pwrite(int file, const void *data, size_t n, off_t at);
ssize_t __wrap_pwrite(int file, const void *data, size_t n, off_t at);
ssize_t __wrap_pwrite(int file, const void *data, size_t n, off_t at)
{
    return fails("write", ENOSPC, &n) ? -1 : __real_pwrite(file, data, n, at);
}
ssize_t __real_pread(int file, void *data, size_t n, off_t at);
ssize_t __wrap_pread(int file, void *data, size_t n, off_t at);
ssize_t __wrap_pread(int file, void *data, size_t n, off_t at)
{
    if (is("cut"))
        return 0;
    return fails("read", EIO, &n) ? -1 : __real_pread(file, data, n, at);
}
END
if said=$(more="$tmp/calls.c -Wl,--wrap=posix_fallocate,--wrap=pwrite,--wrap=pread" compile "$tmp/disk"); then pass
else fault "the calls: $said"; fi
# file FAULT TEXT: status 1 and that text
file() {
    refuse "$1" 1 "$2" env FAULT="$1" "$tmp/disk/job" $run $arguments
    if [ -z "$(find "$tmp" -maxdepth 1 -name '.offload*')" ]; then pass; else fault "$1: a file is left over"; fi
}
file full 'has no room for [0-9]* bytes of offloaded tensors: No space left on device; name a directory'
file write 'cannot write the file of offloaded tensors in .*: No space left on device'
file read 'cannot read the file of offloaded tensors in .*: Input/output error'
file cut 'cannot read the file of offloaded tensors in .*: Input/output error'
said=$(FAULT=again; export FAULT; job_hash "$tmp/disk" $arguments)
same "short and interrupted calls"
arguments=

# ---- the list being fixed, times move no byte --------------------------------------------------------------------------
# A plan without its times, under others: links and devices many times slower.
under="$gpt --stages 2 --schedule 1f1b"
./dpgen $under --offload "['h.*']" $fast -d a | sed -E 's/ (from|to|wire_from|wire_to|busy|step|bound)=[0-9]+//g' >"$tmp/fixed"
for slow in "" "--set links.cpu-host.rate=1MB/s --set links.cpu-host.latency=1ms --set devices.0.flops=1GFLOP/s"; do
    ./dpgen $under --offload "['h.*']" $fast $slow --from "$tmp/fixed" -o "$tmp/fixed.out" >"$tmp/said" 2>&1 ||
        fault "a plan without times: $(tail -n 1 "$tmp/said")"
    sed -E 's/"(busy|step)[a-z_]*_ns": [0-9]+//g' "$tmp/fixed.out/plan.json" >"$tmp/fixed.json${slow:+.slow}"
    rm -rf "$tmp/fixed.out"
done
if cmp -s "$tmp/fixed.json" "$tmp/fixed.json.slow"; then pass; else fault "other times, other bytes"; fi

# ---- no plan, wrong plans --------------------------------------------------------------------------------------------
plan="./dpgen plan $gpt --stages 2 --schedule 1f1b"
refuse "a host that is full" 4 'host 0 would hold [0-9.]* KiB of offloaded tensors.* gives it 20.00 KiB: stage 0 .*, stage 1' \
    $plan --offload "['h.*']" --set train.batch.global=8 --set hosts.offload=20KiB
if grep -q 'tried and fits: --set hosts.offload=[0-9]*; plan.offload: {to: disk, ...}; --offload none' "$tmp/said"; then pass
else fault "its remedies: $(tail -n 1 "$tmp/said")"; fi
expect "the first remedy" $plan --offload "['h.*']" --set train.batch.global=8 \
    --set "hosts.offload=$(sed -n 's/.*hosts.offload=\([0-9]*\).*/\1/p' "$tmp/said")"
cuts="--cuts 8,17,26"
[ -z "$SLOW" ] || cuts=
for hosts in 1 2; do
    $plan --stages 4 $cuts --offload "['h.*']" --set hosts.count=$hosts --set hosts.offload=200KiB \
        >"$tmp/$hosts.hosts" 2>&1
    echo $? >>"$tmp/$hosts.hosts"
done
if [ "$(tail -n 1 "$tmp/1.hosts")" = 4 ] && [ "$(tail -n 1 "$tmp/2.hosts")" = 0 ]; then pass
else fault "one host and two: $(tail -n 2 "$tmp/1.hosts" "$tmp/2.hosts" | tr '\n' ' ')"; fi
expect "a file needs no memory of the host" $plan --offload "{to: disk, what: ['h.*']}" --set hosts.offload=20KiB
if [ -n "$SLOW" ]; then         # the prices of copies leave no plan that packs
    expect "what fits without copies" ./dpgen plan examples/t5-small.yaml --devices devices/v100-16gb.yaml --estimate \
        --stages 4 --schedule 1f1b --set train.batch.micro=2 --limit 1475MiB --offload auto
fi
# Offload is a choice: it never costs a plan that there is without.
step() { ./dpgen plan "$@" --estimate --json 2>/dev/null | sed -n 's/.*"step_ns": \([0-9]*\).*/\1/p' | head -n 1; }
not_slower() {  # OPTION...
    with=$(step "$@" --offload auto) without=$(step "$@" --offload none)
    if [ "${with:-9999999999999}" -le "${without:-0}" ]; then pass; else fault "$*: $with, without offload $without"; fi
}
not_slower examples/gpt2-124m.yaml -D L=6 --devices devices/a100-40gb.yaml --stages 4 --schedule gpipe --recompute auto \
    --set train.batch.micro=2 --set train.batch.global=32 --limit 2622MiB
if [ -n "$SLOW" ]; then
    not_slower examples/t5-small.yaml -D L=4 --devices devices/a100-40gb.yaml --stages 5 --schedule gpipe --recompute auto \
        --set train.batch.micro=4 --set train.batch.global=80 --limit 1639MiB
    not_slower examples/gpt2-124m.yaml -D L=8 --devices devices/rtx2080ti.yaml --stages 5 --schedule gpipe --recompute auto \
        --set train.batch.micro=1 --set train.batch.global=10 --limit 1993MiB
fi
refuse "one name in two lists" 3 "'h.1.gelu' names h.1.gelu, as 'h.\*.gelu' does in plan.recompute, --recompute:1:2" \
    $plan --offload "[h.1.gelu]" --recompute "[h.*.gelu]"
refuse "no such operator" 3 "did you mean 'h.0.gelu'" $plan --offload "[h.0.gelo]"
refuse "an asynchronous schedule" 4 "offload goes with synchronous schedules" \
    ./dpgen plan $models/mlp.yaml --estimate --stages 2 --schedule 2bw --recompute none --set train.batch.global=32 \
    --offload "['*']"
finish
