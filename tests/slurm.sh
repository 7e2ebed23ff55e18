#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A job of two ranks under Slurm, with scripts as srun and scontrol.  The batch script is the one of the folder, job.sbatch.
# tests/slurm_real.sh runs it under Slurm itself.
# srun here starts the ranks over MPI with the variables that Slurm gives a task, and ends with the highest status of a task,
# as srun does.  The time limit comes near: each task gets SIGTERM; the step ends with 75, scontrol puts the job into the queue
# again, the second run goes on from the checkpoint, and the parameters are those of a run that nobody stopped.
. "$(dirname "$0")/lib.sh"
[ -n "$(mpis)" ] || { skip "there is no mpirun, or no mpicc" 31; finish; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
need dpgen build/emitted build/librt.a
use_portable
mpicc $flags -O2 -c -o "$tmp/link_mpi.o" rt/link_mpi.c || { fault "link_mpi.c"; finish; }
model="$models/tiny-gpt.yaml --stages 2 -D L=1 --set train.steps=400"
generate "$tmp/one" $model && compile "$tmp/one" || fault "no job over local"
with="$tmp/link_mpi.o $with" cc=mpicc linker=mpicc
generate "$tmp/two" $model --set plan.transport=mpi && compile "$tmp/two" || fault "no job over mpi"

bin=$tmp/bin
mkdir "$bin" "$tmp/tasks"
# A task's shell ends with 0 whatever the task does: mpirun would kill the other shells before they write their status.
cat >"$bin/srun" <<'END'
#!/bin/sh
n=$SLURM_NTASKS
while :; do
    case $1 in -n) n=$2; shift 2 ;; --*) echo "$1" >>"$TASKS.asked"; shift ;; *) break ;; esac
done
rm -f "$TASKS"/*
env -u SLURM_JOB_ID -u SLURM_NTASKS mpirun -n "$n" --oversubscribe sh -c '
    export SLURM_JOB_ID='"$SLURM_JOB_ID"' SLURM_NTASKS='"$n"' SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS='"$n"'
    export SLURM_PROCID=$OMPI_COMM_WORLD_RANK SLURM_LOCALID=$OMPI_COMM_WORLD_LOCAL_RANK SLURM_NODEID=0
    echo $$ >"$TASKS/$SLURM_PROCID.part" && mv "$TASKS/$SLURM_PROCID.part" "$TASKS/$SLURM_PROCID"
    "$@" & task=$!
    echo $task >"$TASKS/$SLURM_PROCID.part" && mv "$TASKS/$SLURM_PROCID.part" "$TASKS/$SLURM_PROCID"
    wait $task; status=$?
    echo $status >"$TASKS/$SLURM_PROCID.status"' srun "$@"
sort -n "$TASKS"/*.status | tail -n 1 >"$TASKS/highest"
exit "$(cat "$TASKS/highest")"
END
cat >"$bin/scontrol" <<'END'
#!/bin/sh
echo "$@" >>"$TASKS.queue"
END
chmod +x "$bin/srun" "$bin/scontrol"
export TASKS="$tmp/tasks" SLURM_JOB_ID=4711 SLURM_NTASKS=2

expect "sh reads the batch script" sh -n "$tmp/two/job.sbatch"
mv "$tmp/two/job" "$tmp/two/train"
batch() {       # NUMBER: as sbatch would
    (cd "$tmp" && export FOLDER=two CHECKPOINT="$tmp/a run" PATH="$bin:$PATH"
        exec timeout 120 sh two/job.sbatch --data "$data" --hash --log "$tmp/log") >"$tmp/out.$1" 2>"$tmp/err.$1"
}

"$tmp/one/job" --quiet --no-checkpoint --hash --data "$data" >"$tmp/whole"
batch 1 & script=$!
for i in $(seq 600); do [ "$(grep -c '"event":"step"' "$tmp/log" 2>/dev/null)" -ge 5 ] 2>/dev/null && break; sleep 0.05; done
for rank in 0 1; do kill -TERM "$(cat "$tmp/tasks/$rank")"; done
wait $script
expect "the script's status is that of the job" test $? = 75
expect "srun hands on 75" grep -qx 75 "$tmp/tasks/highest"
expect "both ranks end with it" test "$(cat "$tmp"/tasks/[01].status | tr '\n' ' ')" = "75 75 "
expect "the job is queued again" grep -qx "requeue 4711" "$tmp/tasks.queue"
expect "it did not end before" grep -q '"event":"stop"' "$tmp/log"
expect "a checkpoint" test -n "$(ls "$tmp/a run"/step-*/COMMIT)"
case $linker in *mpich) way=pmi2 ;; *) way=pmix ;; esac
for option in --mpi=$way --kill-on-bad-exit=1 --cpus-per-task=1; do
    expect "srun is given $option" grep -qx -e $option "$tmp/tasks.asked"
done
for line in '--ntasks=2' '--time=.*' '--signal=TERM@300' '--open-mode=append' '--requeue'; do
    expect "sbatch reads $line" grep -qx -e "#SBATCH $line" "$tmp/two/job.sbatch"
done
mkdir "$tmp/a run/step-900000.part" && touch "$tmp/a run/step-900000.part/COMMIT"
batch 2
expect "the second run's status is 0" test $? = 0
expect "the second run is done" grep -qx 0 "$tmp/tasks/highest"
expect "it is not queued a third time" test "$(wc -l <"$tmp/tasks.queue")" = 1
events() { grep -c "\"event\":\"$1\"" "$tmp/log"; }
expect "it went on and did not begin again" test "$(events start) $(events step)" = "2 400"
for run in out.2 whole; do sed -n 's/^sha256 //p' "$tmp/$run" >"$tmp/$run.hash"; done
expect "a hash" test "$(wc -c <"$tmp/whole.hash")" = 65
expect "the parameters are those of one run" cmp "$tmp/whole.hash" "$tmp/out.2.hash"

# A wrong start: a rank too many, and a job of one process with the names that srun alone sets
try() { (PATH=$bin:$PATH; exec srun "$@"); }
refuse "three tasks" 2 "this job has 2 stages" try -n 3 "$tmp/two/train" --quiet --no-checkpoint --data "$data"
refuse "a job of one process" 2 "SLURM_STEP_NUM_TASKS is 2.*transport: mpi" env SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 \
    "$tmp/one/job" --quiet --no-checkpoint --data "$data"

# Whatever else the job ends with is the status of the script, and no reason to queue it again
printf '#!/bin/sh\necho "$@"\nexit $STATUS\n' >"$tmp/two/train"
for status in 0 1 5 7 137; do
    export STATUS=$status
    batch 3
    expect "a job that ends with $status" test $? = $status
done
expect "none of them is queued again" test "$(wc -l <"$tmp/tasks.queue")" = 1
expect "it goes on" grep -q -e "--checkpoint $tmp/a run --resume " "$tmp/out.3"
rm -r "$tmp/a run"/step-*[0-9]
batch 3
expect "not from a checkpoint that was never committed" grep -q -e "--checkpoint $tmp/a run --data" "$tmp/out.3"
rm "$tmp/two/train"
refuse "a folder that nobody has built" 2 "there is no program two/train: run make" \
    sh -c 'cd "$1" && FOLDER=two sh two/job.sbatch' sh "$tmp"
finish
