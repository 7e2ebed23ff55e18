#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Slurm itself, with SLOW=1: its controller on host1, its daemons on host2 and host3, each in namespaces (hosts.sh), and
# the folder's job.sbatch, with each MPI that is here.  A training that is done is COMPLETED.  One that is warned is queued
# again, and ends with the hash of one that was never stopped.  A failure has its own status and is not queued again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/hosts.sh"
[ -n "$SLOW" ] || { skip "the long form alone runs Slurm: SLOW=1"; finish; }
[ "$(id -u)" = 0 ] || { skip "Slurm of two hosts wants root"; finish; }
tools/deps sites >"$tmp/said" 2>&1
for tool in slurmctld slurmd munged ip nft; do
    command -v $tool >/dev/null || { skip "there is no $tool: tools/deps sites"; finish; }
done
hosts_open 3 || { skip "no namespaces for hosts: $(head -n 1 "$tmp/said")"; finish; }
need dpgen build/emitted build/librt.a build/compare
use_portable

# ---- a cluster -----------------------------------------------------------------------------------------------------------
mkdir -p "$tmp/slurm/state" "$tmp/slurm/munge" "$tmp/slurm/tmp.host2" "$tmp/slurm/tmp.host3"
chmod 755 "$tmp"
head -c 1024 /dev/urandom >"$tmp/slurm/key"
chmod 400 "$tmp/slurm/key"
munged --force --foreground --key-file="$tmp/slurm/key" --socket="$tmp/slurm/munge/socket" --pid-file="$tmp/slurm/munge/pid" \
    --log-file="$tmp/slurm/munge/log" --seed-file="$tmp/slurm/munge/seed" >"$tmp/slurm/munge/out" 2>&1 & munge=$!
trap 'kill $munge; hosts_close; rm -rf "$tmp"' EXIT
export SLURM_CONF="$tmp/slurm/slurm.conf"
cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=host1($net.11)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$tmp/slurm/munge/socket,cred_expire=10
StateSaveLocation=$tmp/slurm/state
SlurmdSpoolDir=$tmp/slurm/spool.%n
SlurmctldPidFile=$tmp/slurm/slurmctld.pid
SlurmdPidFile=$tmp/slurm/slurmd.%n.pid
TmpFS=$tmp/slurm/tmp.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SlurmdTimeout=15
ReturnToService=2
KillWait=5
MinJobAge=3600
JobRequeue=1
SchedulerParameters=batch_sched_delay=0,sched_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
NodeName=host2 NodeAddr=$net.12 CPUs=4 RealMemory=2000
NodeName=host3 NodeAddr=$net.13 CPUs=4 RealMemory=2000
PartitionName=all Nodes=host2,host3 Default=YES MaxTime=INFINITE State=UP
END
wait_for 10 test -S "$tmp/slurm/munge/socket" || { fault "munge: $(tail -n 1 "$tmp/slurm/munge/log")"; finish; }
on 1 slurmctld -D >"$tmp/slurm/slurmctld.log" 2>&1 &
daemon() { on "$1" slurmd -D >>"$tmp/slurm/slurmd$1.log" 2>&1 & }
daemon 2
daemon 3
idle() { on 1 sinfo -h -o '%D %t' | grep -qx '2 idle'; }
wait_for 60 idle || { fault "no cluster: $(tail -n 3 "$tmp/slurm"/*.log)"; finish; }

# ---- jobs ----------------------------------------------------------------------------------------------------------------
# submit NAME OPTION... -- ARGUMENT...: $job
submit() {
    name=$1
    shift
    options=
    while [ "$1" != -- ]; do options="$options $1"; shift; done
    shift
    job=$(cd "$tmp" && FOLDER="$mpi" CHECKPOINT="$tmp/$name.run" on 1 sbatch --parsable --nodes=2 \
        --output="$tmp/$name.out" $options "$mpi/job.sbatch" --quiet --data "$data" "$@" 2>"$tmp/said") ||
        fault "$name: $(cat "$tmp/said")"
}
field() { on 1 scontrol show job "$job" | sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" | head -n 1; }
state() { field JobState; }
over() { case $(state) in COMPLETED | FAILED | CANCELLED | TIMEOUT | NODE_FAIL) ;; *) false ;; esac; }
# ended WHAT STATE CODE RESTARTS
ended() {
    wait_for "${limit:-120}" over
    got="$(state) $(field ExitCode) $(field Restarts)"
    if [ "$got" = "$2 $3 $4" ]; then pass
    else
        fault "$mpi: $1: $got ($(field Reason)), not $2 $3 $4: $(tail -n 3 "$tmp/$name.out")"
        on 1 scancel "$job"
    fi
}
hash_of() { sed -n 's/^sha256 //p' "$tmp/$name.out" | tail -n 1; }
running() { [ "$(grep -c '"event":"step"' "$tmp/$name.log" 2>/dev/null)" -ge "$1" ]; }
checkpoints() { grep -c '"event":"checkpoint"' "$tmp/$name.log"; }
same_hash() { [ ${#whole} = 64 ] && [ "$(hash_of)" = "$whole" ] && pass || fault "$mpi: $1: hash $(hash_of), not $whole"; }
steps=4000
long=100000000

said=$(generate "$tmp/one" "$models/tiny-gpt.yaml" --stages 2 -D L=1 --set train.steps=$steps && compile "$tmp/one") ||
    fault "no job over local: $said"
whole=$(job_hash "$tmp/one")
for mpi in $(mpis); do
    use_portable
    use_mpi $mpi 2 || continue
    said=$(generate "$tmp/$mpi" "$models/tiny-gpt.yaml" --stages 2 -D L=1 --set train.steps=$steps --set plan.transport=mpi &&
        compile "$tmp/$mpi") || { fault "$mpi: $said"; continue; }
    mv "$tmp/$mpi/job" "$tmp/$mpi/train"

    submit done.$mpi -- --steps 20
    ended "a training that is done" COMPLETED 0:0 0

    submit again.$mpi -- --hash --log "$tmp/again.$mpi.log"
    wait_for 60 running 50 && on 1 scancel -s TERM "$job"
    ended "a job that was warned" COMPLETED 0:0 1
    same_hash "a job that was warned"
    [ "$(grep -c '"event":"step"' "$tmp/$name.log")" = $steps ] && pass || fault "$mpi: steps were done twice, or not at all"

    submit save.$mpi -- --steps $long --log "$tmp/save.$mpi.log"
    wait_for 60 running 50 && on 1 scancel -s USR1 "$job"
    wait_for 20 checkpoints
    sleep 1
    [ "$(checkpoints)" = 1 ] && pass || fault "$mpi: one signal to all ranks: $(checkpoints) checkpoints"
    on 1 scancel "$job"
    ended "a job that its owner ends" CANCELLED 0:15 0

    submit none.$mpi -- --data "$tmp/no such file"
    ended "no data" FAILED 1:0 0
    cp -r "$tmp/again.$mpi.run" "$tmp/damaged.$mpi.run"
    for file in "$tmp/damaged.$mpi.run"/step-*/stage0.safetensors; do
        printf X | dd of="$file" bs=1 seek=5000 conv=notrunc 2>/dev/null
    done
    submit damaged.$mpi -- --steps $long
    ended "a damaged checkpoint" FAILED 5:0 0

    submit killed.$mpi -- --steps $long --log "$tmp/killed.$mpi.log"
    wait_for 60 running 50
    for process in $(of_hosts); do
        ! tr '\0' ' ' 2>/dev/null <"/proc/$process/cmdline" | grep -q "^$mpi/train" || victim=$process
    done
    kill -9 "$victim"
    limit=20 ended "a rank that is killed" FAILED "137:0" 0

    # The first rank that ends with 75 makes srun kill the others: they end as soon as it does
    for round in 1 2 3 4 5 6 7 8 9 10; do
        rm -rf "$tmp/end.run" "$tmp/end.log"
        case $mpi in mpich) way=pmi2 ;; *) way=pmix ;; esac
        name=end
        on 1 srun --mpi=$way --kill-on-bad-exit=1 -N 2 -n 2 "$tmp/$mpi/train" --quiet --data "$data" --steps $long \
            --checkpoint "$tmp/end.run" --log "$tmp/end.log" 2>"$tmp/said" & step=$!
        wait_for 60 running 20
        on 1 scancel -s TERM "$(on 1 squeue -h -o %i)"
        wait $step
        got=$?
        [ $got = 75 ] && pass || fault "$mpi: srun ends with $got, not 75: $(tail -n 1 "$tmp/said")"
    done
done

# ---- the time limit, and a host that is gone: with the last of them -------------------------------------------------------
restarted() { [ "$(field Restarts)" -ge 1 ]; }
submit limit --time=2 --signal=TERM@90 -- --steps $long --log "$tmp/limit.log"
wait_for 150 restarted && pass || fault "a job that comes to its limit: $(state), $(field Restarts) restarts"
[ "$(checkpoints)" = 1 ] && grep -q '"on request"' "$tmp/limit.log" && pass || fault "it did not stop on request"
on 1 scancel "$job"

submit gone -- --hash --log "$tmp/gone.log"
wait_for 60 running 50 && on 1 scancel -s USR1 "$job"
wait_for 20 checkpoints
cut_link 3
begun=$(date +%s)
wait_for 90 restarted && pass || fault "a host that is gone: $(state)"
echo "$suite: a host that is gone: queued again after $(($(date +%s) - begun)) s"
heal_link 3
limit=200 ended "a host that comes back" COMPLETED 0:0 1
same_hash "a host that comes back"
finish
