#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What a site does with a folder of transport mpi.  --help and --version need no launcher.  A launcher of another MPI is named.
# A log by mpirun has whole lines.  expected and verify take MPIRUN, in a folder whose name has blanks and apostrophes, and
# leave nothing behind when they fail.  A signal that ranks hear on either side of a step writes one checkpoint.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a
use_portable
open_input
all=$(mpis)
[ -n "$all" ] || { skip "there is no mpirun, or no mpicc" 20; finish; }
model=$models/tiny-gpt.yaml
bare="env -u OMPI_COMM_WORLD_SIZE -u PMI_SIZE -u SLURM_STEP_NUM_TASKS -u PMIX_RANK"

# job NAME: of two ranks, linked with this MPI, in $tmp/NAME; $start starts it
job() {
    use_portable
    use_mpi "$1" 2 || return
    said=$(generate "$tmp/$1" $model --stages 2 --set plan.transport=mpi && compile "$tmp/$1")
    [ -z "$said" ] || fault "$1: $said"
}

for mpi in $all; do
    job "$mpi" || continue
    at=$tmp/$mpi/job
    for option in --help --version; do
        for launcher in "$bare" "$start"; do
            expect "$mpi: $option by $launcher" $launcher "$at" $option
            if [ "$(grep -c 'transport:* mpi' "$tmp/said")" = 1 ]; then pass; else fault "$mpi: $option: $(cat "$tmp/said")"; fi
        done
    done
    # A terminal for rank 0 is the launcher's, where the output is a file
    expect "$mpi: three steps" $start "$at" --no-checkpoint --data "$data" --steps 3
    lines=$(grep -c '^step [123]/3  loss .* norm .*MiB.\?$' "$tmp/said")
    if [ "$lines" = 3 ]; then pass; else fault "$mpi: $lines lines of steps"; fi
    if grep -q "$(printf '\033')" "$tmp/said"; then fault "$mpi: codes of terminals in a pipe"; else pass; fi
    for names in SLURM_STEP_NUM_TASKS=2/SLURM_PROCID=0/Slurm PMIX_RANK=0/A=/PMIx; do
        refuse "$mpi: alone, by ${names##*/}" 2 "${names##*/} started more than this process, but it is alone in its MPI (" \
            $bare "${names%%/*}" "$(echo "$names" | cut -d/ -f2)" "$at" --no-checkpoint
    done
    refuse "$mpi: alone, in a batch script" 2 "ranks started: 1;" $bare SLURM_NTASKS=2 "$at" --no-checkpoint
    for other in $all; do
        [ $other != $mpi ] || continue
        start_mpi $other 2
        refuse "$mpi, started by $other" 2 "launcher and mpicc are of two MPIs" timeout 60 $start "$at" --no-checkpoint
        if [ "$(grep -c 'are of two MPIs' "$tmp/said")" = 1 ]; then pass; else fault "not said once: $(cat "$tmp/said")"; fi
    done
done

# ---- ranks of two plans, and of machines of two byte orders --------------------------------------------------------------
# two MPI OTHER: rank 0 of a job, and rank 1 of another one
two() (
    start_mpi "$1" 1
    first=$tmp/$1/job second=$tmp/$2/job
    set -- --no-checkpoint --data "$data" --steps 1
    timeout 60 $start "$first" "$@" : -n 1 "$second" "$@"
)
mkdir "$tmp/rt" && cp rt/link_mpi.c "$tmp/rt" && sed 's/{.one = 1}/{.one = 1 << 24}/' rt/wire.h >"$tmp/rt/wire.h"
for mpi in $all; do
    [ -x "$tmp/$mpi/job" ] || continue
    use_portable
    use_mpi "$mpi" 2
    said=$(generate "$tmp/other" $model --stages 2 --schedule zb-h1 --set plan.transport=mpi && compile "$tmp/other" &&
        cp -r "$tmp/$mpi" "$tmp/turned" && $linker $flags -O2 -Irt -c -o "$tmp/turned.o" "$tmp/rt/link_mpi.c")
    with="$tmp/turned.o ${with#* }"
    said=$said$(compile "$tmp/turned")
    [ -z "$said" ] || fault "$mpi: two jobs: $said"
    expect "$mpi: two ranks of a job" two "$mpi" "$mpi"
    refuse "$mpi: two plans" 2 "rank 1, on .*, runs another plan than rank 0, on .*; give all ranks one folder" two "$mpi" other
    refuse "$mpi: two byte orders" 6 "rank 1, on .*, has another byte order than rank 0, on .*; take machines" two "$mpi" turned
    rm -rf "$tmp/other" "$tmp/turned"
    use_portable
    use_mpi "$mpi" 2
done

# ---- signals that come late: while the checkpoint is written, and when the job is on its way out -------------------------
cat >"$tmp/late.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int MPI_Finalize(void);
int fsync(int file)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    static int stops;
    if (!getenv("STOP"))                /* of the process: the thread that writes hears none */
        kill(getpid(), SIGUSR1);
    else if (!stops++)
        kill(getpid(), SIGTERM);
    return real(file);
}
int MPI_Finalize(void)
{
    int (*real)(void) = (int (*)(void))dlsym(RTLD_NEXT, "MPI_Finalize");
    raise(SIGTERM);
    while (getenv("HANG"))
        sleep(1);
    return real();
}
unsigned alarm(unsigned seconds)
{
    unsigned (*real)(unsigned) = (unsigned (*)(unsigned))dlsym(RTLD_NEXT, "alarm");
    return real(seconds ? 1 : 0);
}
END
said=$(use_portable && generate "$tmp/one" $model --stages 1 --set checkpoint.every=5 --set checkpoint.async=false &&
    compile "$tmp/one") ||
    fault "one: $said"
if $cc -shared -fPIC -o "$tmp/late.so" "$tmp/late.c" -ldl 2>"$tmp/said"; then
    expect "signals while a checkpoint is written" env LD_PRELOAD="$tmp/late.so" "$tmp/one/job" --quiet --data "$data" \
        --checkpoint "$tmp/ck" --steps 12 --log "$tmp/log"
    expect "those of steps 5, 10 and 12, and no other" test "$(grep -c '"event":"checkpoint"' "$tmp/log")" = 3
    said=$(use_portable; use_mpi "$mpi" 2
        generate "$tmp/late" $model --stages 2 --set plan.transport=mpi --set checkpoint.every=5 &&
            compile "$tmp/late") || fault "late: $said"
    start_mpi "$mpi" 2
    # The first SIGTERM, while the checkpoint of step 5 is written, asks for a stop; a second one would end the process
    refuse "a second SIGTERM when all is done" 75 '^end$' sh -c '"$@"; status=$?; echo end; exit $status' sh \
        env STOP=1 $start env LD_PRELOAD="$tmp/late.so" "$tmp/late/job" --quiet --data "$data" --steps 1000000 \
        --checkpoint "$tmp/ck2"
    # mpirun may end with the status of the rank that it kills, as soon as the first one ends with its own
    timeout 60 env HANG=1 $start sh -c '"$@"; status=$?; echo "status $status"; exit $status' sh \
        env LD_PRELOAD="$tmp/late.so" "$tmp/late/job" --quiet --data "$data" --no-checkpoint --steps 1 >"$tmp/said" 2>&1
    if grep -q '^status 1$' "$tmp/said" && grep -q '^train: the job is done, and MPI does not end' "$tmp/said"; then pass
    else fault "an MPI that does not end: $(cat "$tmp/said")"; fi
    expect "and a checkpoint" sh -c 'ls "$1"/step-*/COMMIT' sh "$tmp/ck2"
else
    skip "no shared objects here" 5
fi

# ---- the folder's own make -----------------------------------------------------------------------------------------------
use_ready -O1
home="$tmp/o'brien & co"
mkdir -p "$home/it is/texts"
cp "$data" "$home/it is/texts"
sed 's|/usr/share/common-licenses/\*|texts/*|' $model >"$tmp/model.yaml"
ours="$tmp/model.yaml --stages 2 --estimate"
if ./dpgen $ours --set plan.transport=mpi -o "$home/it is/out" >"$tmp/said" 2>&1 &&
    make_quickly "$home/it is/out" CC="${linker:-mpicc}" >"$tmp/said" 2>&1; then pass
else fault "the folder: $(head -n 1 "$tmp/said")"; fi
start_mpi $mpi 2
in_folder() { make_quickly "$home/it is/out" CC="$linker" HERE="$home/it is" MPIRUN="${start% -n 2*} ${start#*-n 2}" "$@"; }
expect "expected" in_folder expected
expect "verify" in_folder verify
if [ -e "$home/it is/out/verify.new" ]; then fault "verify.new is left"; else pass; fi
for target in expected verify; do
    refuse "$target, and nothing starts" 2 "Error" in_folder $target MPIRUN=false
    if [ -e "$home/it is/out/$target.new" ]; then fault "$target.new is left"; else pass; fi
done
expect "a local job" ./dpgen $ours -o "$home/local"
if [ -e "$home/it is/out/job.sbatch" ] && [ ! -e "$home/local/job.sbatch" ]; then pass
else fault "a batch script for mpi alone"; fi
finish
