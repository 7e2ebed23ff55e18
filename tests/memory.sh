#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The memory bound is exact.  Emitted code, runtime and kernels call no allocator from the first step to the
# last; what libraries call is counted and printed by caller.  Arenas filled with two different bytes end with the same
# parameters, so nothing is read that was not written; and the bytes never written in 20 steps with evaluations are exactly
# the gaps of plan.json.  A plan that leaves its arena meets a guard page.
. "$(dirname "$0")/lib.sh"
[ -z "$SAN" ] || { skip "sanitizers have an allocator and guard pages of their own"; finish; }
need dpgen build/emitted build/librt.a build/librt_bf16.a
$cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/memory" tests/memory.c || finish
$cc -std=c11 -O1 -Wall -Wextra -Werror -I. -c -o "$tmp/wrap.o" tests/wrap.c || finish
wrap=
for name in malloc calloc realloc free aligned_alloc posix_memalign memalign reallocarray strdup strndup mmap munmap \
    pthread_create step_begin watchdog_close; do
    wrap="$wrap -Wl,--wrap=$name"
done
evaluate="--set data.eval.files=LICENSE --set data.eval.every=5 --set data.eval.batches=2"
gpt="$models/tiny-gpt.yaml $evaluate --set train.batch.global=16"
branches="$models/branches.yaml $evaluate"

# ---- who allocates -------------------------------------------------------------------------------------------------
# counted NAME: no line `own`; the others are printed
counted() {
    if ! grep -q '^counted$' "$tmp/$1.out"; then fault "$1: nothing was counted"
    elif grep '^own' "$tmp/$1.out" >"$tmp/said"; then fault "$1: allocators called after start: $(tr '\n' ';' <"$tmp/said")"
    else pass; fi
    sed -n "s/^library/$1: library calls:/p" "$tmp/$1.out"
}

# allocations NAME OPTION...: a job with evaluation, checkpoints, metrics and trace under the counters
allocations() {
    job=$1
    shift
    said=$(more="$wrap $tmp/wrap.o"; generate "$tmp/$job" "$@" && compile "$tmp/$job" &&
        job_hash "$tmp/$job" --log "$tmp/$job.metrics" --trace "$tmp/$job.trace" --checkpoint "$tmp/$job.ckpt")
    if [ ${#said} = 64 ]; then counted "$job"; else fault "$job: $said"; fi
}
use_portable
run="--quiet --hash --data $data --eval-data $data"
[ -z "$SLOW" ] || allocations one $gpt --stages 1 --set checkpoint.every=5
allocations four $gpt --stages 4 --schedule 1f1b --recompute full --set checkpoint.every=5
allocations away $gpt --stages 2 --schedule 1f1b --offload "['*']" --set checkpoint.every=5
allocations disk $gpt --stages 2 --schedule gpipe --offload "{to: disk, what: ['*']}" --set checkpoint.every=5
use_bf16
allocations bf16 $branches --stages 2 --schedule 1f1b --set train.precision.compute=bf16 --set checkpoint.every=5
compilers=$clang
if ! have_onednn; then skip "there is no oneDNN"
elif use_onednn f32; then
    [ -n "$SLOW" ] || run="$run --steps 6"
    allocations onednn $gpt --stages 2 --schedule 1f1b --set devices.0.kernels=onednn
    run=${run% --steps 6}
fi
clang=$compilers

# Both kinds are seen: a kernel that allocates, and one that calls a library that does, in place of that of the archive.
use_portable
cat >"$tmp/leak.c" <<'END'
#include "rt/rt.h"
#include <stdio.h>
#include <stdlib.h>
void loss_seed(Stage *st, float *y)
{
    (void)st;
    *y = 1;
    free(malloc(8));
    FILE *f = fopen("/dev/null", "r");
    if (f)
        fclose(f);
}
END
(more="$wrap $tmp/wrap.o $tmp/leak.c -Wl,-z,muldefs"; generate "$tmp/leak" $gpt --stages 2 && compile "$tmp/leak" &&
    job_hash "$tmp/leak" --no-checkpoint) >"$tmp/said" 2>&1
if grep -q '^own malloc 160$' "$tmp/leak.out" && grep -q '^own free 160$' "$tmp/leak.out" &&
    grep -q '^library libc.* 160$' "$tmp/leak.out"; then pass
else fault "a kernel that allocates goes unseen: $(cat "$tmp/said")"; fi

# ---- which bytes are written ---------------------------------------------------------------------------------------
# written NAME OPTION...: two runs, dumps of all stages against the gaps
written() {
    job=$1 d=$tmp/$1
    shift
    said=$(generate "$d" "$@" && compile "$d" && job_hash "$d" --no-checkpoint --fill 0xa5 --dump-arena "$d/a") &&
        again=$(job_hash "$d" --no-checkpoint --fill 0x5a --dump-arena "$d/b")
    if [ ${#said} = 64 ] && [ "$said" = "$again" ]; then pass
    else fault "$job: filled with a5: $said; with 5a: $again"; return; fi
    for dump in "$d"/a.stage*; do           # stage0, and where a stage has more devices, stage0.1
        stage=${dump##*/a.stage}
        "$tmp/memory" "$d/plan.json" "${stage%%.*}" "$dump" 0xa5 "$d/b.stage$stage" 0x5a >"$tmp/said" 2>&1
        if [ $? = 0 ]; then pass; else fault "$job: $(head -n 3 "$tmp/said")"; fi
    done
}
some="'[h.*.ln_*, h.*.gelu, h.1.attention, wpe]'"
# Models, schedules and ways of backward take turns, except with SLOW=1, here and below
for n in 1 2 ${SLOW:+3} 4; do
    case ${SLOW:+all}$n in all* | 1) written branches.$n.1f1b $branches --stages $n --schedule 1f1b ;; esac
    case ${SLOW:+all}$n in all* | 4) written gpt.$n.gpipe $gpt --stages $n --schedule gpipe ;; esac
    case ${SLOW:+all}$n in all* | 2) written gpt.$n.1f1b $gpt --stages $n --schedule 1f1b --recompute full ;; esac
    case ${SLOW:+all}$n in all* | 4) written branches.$n.gpipe $branches --stages $n --schedule gpipe --recompute full ;; esac
done
[ -z "$SLOW" ] || eval "written gpt.some $gpt --stages 3 --schedule 1f1b --recompute $some"
fast="--set links.cpu-host.rate=8GB/s --set links.cpu-host.latency=1ns"
for n in 1 ${SLOW:+2} 4; do
    [ $n$SLOW = 4 ] || written gpt.away.$n $gpt --stages $n --schedule 1f1b --offload "['*']" $fast
    [ $n$SLOW = 1 ] || written branches.away.$n $branches --stages $n --schedule gpipe --offload "['*']"
done
file="'{to: disk, what: [h.*.mlp.*, h.*.add*]}'"
eval "written gpt.disk $gpt --stages 3 --schedule 1f1b --recompute $some --offload $file $fast"
[ -z "$SLOW" ] || written gpt.warm $gpt --stages 4 --schedule 1f1b --set plan.warmup=B
written branches.warm $branches --stages 3 --schedule 1f1b --set plan.warmup=B --offload "['*']"
# steps that overlap, of the model without its tie; 20 steps are more than are under way at once
sed 's/, tie: wte//' "$models/tiny-gpt.yaml" >"$tmp/untied.yaml"
untied="$tmp/untied.yaml $evaluate --set train.batch.global=16"
each="--set train.batch.micro=16 --set train.clip_norm=0"
written gpt.2bw $untied --stages 3 --schedule 2bw --recompute full
written gpt.pipedream $untied --stages 4 --schedule pipedream $each
written gpt.vertical $untied --stages 2 --schedule vertical $each
written gpt.groups $gpt --stages 2 --schedule 1f1b --set train.batch.groups=4
team="--set train.blocks=4 --set plan.tensor=2 --set train.clip_norm=1"
written llama.team $models/tiny-llama.yaml $evaluate $team --stages 2 --schedule 1f1b --recompute full
use_bf16
written llama.team.bf16 $models/tiny-llama.yaml $evaluate $team --stages 1 --set train.precision.compute=bf16 \
    --set plan.positions=divided --recompute full
for n in ${SLOW:+1 2} 4; do
    written gpt.bf16.$n $gpt --stages $n --schedule 1f1b --set train.precision.compute=bf16 --recompute full
done
use_portable
was=$run
write_ops_data "$tmp/ops"
ops="$models/ops.yaml --set data.eval.every=5 --set data.eval.batches=2"
for name in tokens other mask image targets wanted; do
    ops="$ops --set data.eval.arrays.$name=$name.npy"
done
for n in 1 3; do
    [ $n$SLOW = 1 ] || written ops.$n $ops --stages $n --schedule 1f1b
    [ $n$SLOW = 3 ] || written ops.$n.full $ops --stages $n --schedule gpipe --recompute full
done
run=$was cwd=

# A buffer that nobody writes is seen: one gap less in the plan.
sed 's/"gaps": \[\[[0-9]*, [0-9]*\], /"gaps": [/' "$tmp/gpt.2.1f1b/plan.json" >"$tmp/plan.json"
d=$tmp/gpt.2.1f1b
if "$tmp/memory" "$tmp/plan.json" 0 "$d/a.stage0" 0xa5 "$d/b.stage0" 0x5a >"$tmp/said" 2>&1
then fault "a gap that is not in the plan goes unseen"; else pass; fi

# ---- the guard pages -----------------------------------------------------------------------------------------------
# outside WHAT OFFSET: an offset of stage 1 that lies outside must end the job by a signal, not with a result
outside() {
    rm -rf "$tmp/out"
    cp -r "$tmp/gpt.2.1f1b" "$tmp/out"
    sed -i "s/^\( *norm  *= \)0x[0-9a-f]*/\1$2/" "$tmp/out/stage1.h"
    if cmp -s "$tmp/out/stage1.h" "$tmp/gpt.2.1f1b/stage1.h"; then fault "$1: nothing to corrupt"; return; fi
    said=$(compile "$tmp/out") || { fault "$1: $said"; return; }
    sh -c "ulimit -c 0; '$tmp/out/job' $run --no-checkpoint; exit \$?" >"$tmp/said" 2>&1
    got=$?
    if [ $got = 139 ]; then pass; else fault "$1: status $got, not that of SIGSEGV"; fi
}
arena=$(sed -n 's/.*Offsets in the arena, \([0-9]*\) bytes.*/\1/p' "$d/stage1.h")
outside "behind the arena" $(((arena + 4095) / 4096 * 4096))
outside "in front of the arena" "(size_t)-4096"
finish
