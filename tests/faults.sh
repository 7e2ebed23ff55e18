#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What goes wrong around a job.  Signals between threads and between two processes: checkpoint, stop with 75, stop
# now, and the run that goes on has the bits of the one that was never stopped.  A rank that is killed or frozen ends
# the job in seconds and leaves the last committed checkpoint.  Data and checkpoints that are wrong are refused with
# status and name.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a

model="$models/tiny-gpt.yaml"
ck=$tmp/ck alone=one
forever="--quiet --data $data --steps 100000000"
use_portable

# build NAME OPTION...: a job in $tmp/NAME
build() {
    name=$1
    shift
    said=$(generate "$tmp/$name" "$@" && compile "$tmp/$name")
    [ -z "$said" ] || { fault "$name: $said"; finish; }
}
build one $model --stages 1
build two $model --stages 2

# ---- signals, all stages in one process ------------------------------------------------------------------------------
# Waiting is for what happens, a file or the end of a process; the limit, for a job that hangs, is beyond any load.
limit=120
# until_it COMMAND...: it succeeds, or the job $pid has ended, or the limit is over; its last status
until_it() {
    tries=$((limit * 20))
    while [ $tries -gt 0 ] && ! "$@" && kill -0 "$pid" 2>/dev/null; do
        sleep 0.05
        tries=$((tries - 1))
    done
    "$@"
}
there() { ls $1 >/dev/null 2>&1; }
# wait_file WHAT FILE: the job $pid makes it
wait_file() {
    if until_it there "$2"; then pass
    elif kill -0 "$pid" 2>/dev/null; then fault "$1: not within $limit s"
    else fault "$1: the job ends before: $(tail -n 1 "$tmp/err")"; fi
}
# wait_gone WHAT PROCESS: it ends
wait_gone() {
    tries=$((limit * 20))
    while [ $tries -gt 0 ] && kill -0 "$2" 2>/dev/null; do
        sleep 0.05
        tries=$((tries - 1))
    done
    if kill -0 "$2" 2>/dev/null; then fault "$1 is still there"; else pass; fi
}
# ended WHAT STATUS: the job $pid ends with it, which may be a pattern
ended() {
    ( for second in $(seq $limit); do sleep 1; done; kill -9 "$pid" ) >/dev/null 2>&1 & killer=$!
    wait "$pid" 2>/dev/null
    got=$?
    kill -9 "$killer" 2>/dev/null       # TERM is lost where the fork has not yet put back what the trap of lib.sh set
    wait "$killer" 2>/dev/null
    case $got in
    $2) pass ;;
    *) fault "$1: status $got, not $2: $(grep -v '^[ =|]*$' "$tmp/err" | tail -n 9)" ;;
    esac
}
# newest: the step of the last committed checkpoint
newest() {
    ls "$ck"/step-*[0-9]/COMMIT 2>/dev/null | sed -n 's,.*/step-0*\([0-9][0-9]*\)/COMMIT$,\1,p' | sort -n | tail -n 1
}

# The job that is stopped and goes on against the one that never was.
goes_on() {
    step=$(newest)
    [ -n "$step" ] || { fault "$1: there is no checkpoint"; return; }
    straight=$(job_hash "$tmp/$alone" --steps $((step + 3)))
    timeout 60 "$tmp/$2/job" --quiet --hash --data "$data" --checkpoint "$ck" --resume --steps $((step + 3)) \
        >"$tmp/out" 2>"$tmp/err"
    resumed=$(sed -n 's/^sha256 //p' "$tmp/out")
    if [ ${#straight} = 64 ] && [ "$resumed" = "$straight" ]; then pass
    else fault "$1: resumed at step $step: $resumed, straight: $straight: $(tail -n 1 "$tmp/err")"; fi
}

"$tmp/two/job" $forever --checkpoint "$ck" --log "$tmp/log" 2>"$tmp/err" & pid=$!
wait_file "SIGUSR1: a log" "$tmp/log"
kill -USR1 $pid
wait_file "SIGUSR1: a checkpoint" "$ck/step-*[0-9]/COMMIT"
if kill -0 $pid 2>/dev/null; then pass; else fault "SIGUSR1: the job ends"; fi
held=$(ls -R "$ck")
for option in "" --resume; do
    refuse "a directory that another job writes to $option" 1 \
        "another running job writes its checkpoints there (process $pid on $(uname -n))" \
        timeout 20 "$tmp/two/job" $forever --checkpoint "$ck" $option
done
if [ "$(ls -R "$ck")" = "$held" ]; then pass; else fault "the refused job changes the directory of the other"; fi
kill -TERM $pid
ended "SIGTERM" 75
if [ ! -e "$ck/lock" ]; then pass; else fault "SIGTERM: the lock is left behind"; fi
if grep -q '"event":"stop"' "$tmp/log"; then pass; else fault "SIGTERM: the log does not say stop"; fi
goes_on "SIGTERM, two stages to one" one
rm -rf "$ck" "$tmp/log"

# An evaluation that takes minutes does not keep a job from what a batch system gives it half a minute for.
build long $model --stages 2 -D T=128 -D D=96 --set "data.eval={files: $data, batches: 16384, every: 1}"
"$tmp/long/job" $forever --checkpoint "$ck" --log "$tmp/log" 2>"$tmp/err" & pid=$!
wait_file "SIGTERM in an evaluation: a log" "$tmp/log"
until_it grep -q '"event":"step"' "$tmp/log"
kill -TERM $pid
before=$(date +%s)
ended "SIGTERM in an evaluation" 75
if [ $(($(date +%s) - before)) -lt 30 ] && [ -e "$ck/step-000001/COMMIT" ]; then pass
else fault "SIGTERM in an evaluation: after $(($(date +%s) - before)) s, $(ls "$ck")"; fi
rm -rf "$ck" "$tmp/log"

"$tmp/two/job" $forever --no-checkpoint --log "$tmp/log" 2>"$tmp/err" & pid=$!
wait_file "SIGTERM without a directory: a log" "$tmp/log"
kill -TERM $pid
ended "SIGTERM without a directory" 1
if grep -q 'no directory for it' "$tmp/err"; then pass; else fault "SIGTERM without a directory: $(cat "$tmp/err")"; fi

# ---- checkpoints beside the step ------------------------------------------------------------------------------------
# They have the same bytes as those that a step waits for, and are committed after the next step has begun.
beside() {      # NAME OPTION...
    name=$1
    shift
    for async in true false; do
        build "$name" "$@" --set checkpoint.every=4 --set checkpoint.async=$async
        rm -rf "$ck" "$tmp/log"
        timeout 60 $start "$tmp/$name/job" --quiet --data "$data" --steps 11 --checkpoint "$ck" --log "$tmp/log" 2>"$tmp/err" ||
            fault "$name, async $async: $(tail -n 1 "$tmp/err")"
        rm -rf "$tmp/ck.$async"
        mv "$ck" "$tmp/ck.$async"
        order=$(sed -n 's/^{"event":"\(step\|checkpoint\)","step":\([0-9]*\),.*/\1 \2/p' "$tmp/log" | tr '\n' ' ')
        case $async$order in true*"step 5 "*"checkpoint 4 "* | false*"step 4 checkpoint 4 step 5 "*) pass ;;
        *) fault "$name, async $async: $order" ;; esac
    done
    there=$(cd "$tmp/ck.true" && ls -d step-*/COMMIT | wc -l)
    if [ "$there" = 3 ] && diff -r "$tmp/ck.true" "$tmp/ck.false" >"$tmp/said" 2>&1; then pass
    else fault "$name: $there checkpoints, $(head -n 1 "$tmp/said")"; fi
}
beside beside $model --stages 2
beside copies $model --stages 2 --replicas 2 --set train.batch.global=16 --set train.batch.groups=2 \
    --set devices.0.count=8
beside parts $model --stages 2 --replicas 2 --set train.shard=optimizer --set train.batch.global=16 --set train.batch.groups=2 \
    --set devices.0.count=8
beside teamed $model --set train.blocks=2 --set plan.tensor=2 --stages 2
if over_mpi 2 4; then
    beside ranks $model --stages 2 --set plan.transport=mpi
    use_portable
fi
build often $model --stages 2 --set checkpoint.every=1
refuse "due while the last one is written" 0 "is due while the last one is written" "$tmp/often/job" --quiet --data "$data" \
    --steps 5 --checkpoint "$ck"
if [ "$(grep -c 'is due' "$tmp/said")" = 1 ] && [ -e "$ck/step-000005/COMMIT" ]; then pass
else fault "due: $(cat "$tmp/said")"; fi
rm -rf "$ck" "$tmp/log"

# ---- a lock that goes while it is held --------------------------------------------------------------------------------
# Whoever takes it away admits a second writer: the first one ends before it writes there again, and the other stays.
for how in lock directory; do
    rm -rf "$ck" "$tmp/log"
    "$tmp/two/job" $forever --checkpoint "$ck" --log "$tmp/log" 2>"$tmp/err" & pid=$!
    wait_file "the $how goes: a log" "$tmp/log"
    [ $how = directory ] && mv "$ck" "$tmp/away" || rm "$ck/lock"
    "$tmp/two/job" $forever --checkpoint "$ck" --log "$tmp/log.two" 2>"$tmp/err.two" & second=$!
    wait_file "the $how goes: another job" "$ck/lock"
    wait_file "the $how goes: its log" "$tmp/log.two"
    kill -USR1 $pid
    ended "the $how goes" 1
    if grep -q 'lock is no longer the file that this job holds' "$tmp/err" && [ -e "$ck/lock" ]; then pass
    else fault "the $how goes: $(cat "$tmp/err"), $(ls "$ck")"; fi
    pid=$second
    kill -TERM $pid
    ended "the $how goes, the other job" 75
    if [ ! -s "$tmp/err.two" ]; then pass; else fault "the $how goes, the other job: $(cat "$tmp/err.two")"; fi
    rm -rf "$tmp/away" "$tmp/log.two"
done
rm -rf "$ck" "$tmp/log"

# It goes while a checkpoint is being written: that one is not committed, for the other job has begun from what was there
# before, and would find it in the place of its own.
cat >"$tmp/slow.c" <<'END'
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
int __real_fsync(int file), __wrap_fsync(int file);
static atomic_int calls;
int __wrap_fsync(int file)
{
    const char *name = getenv("SYNCED");        /* made at the first call, which waits until somebody removes it */
    if (name && calls++ == 0)
        for (close(open(name, O_CREAT | O_WRONLY, 0666)); access(name, F_OK) == 0; usleep(10000))
            ;
    return __real_fsync(file);
}
END
more="$tmp/slow.c -Wl,--wrap=fsync" linker=$cc
build slow $model --stages 2
more= linker=
SYNCED=$tmp/synced "$tmp/slow/job" $forever --checkpoint "$ck" --log "$tmp/log" 2>"$tmp/err" & pid=$!
wait_file "the lock goes under a checkpoint: a log" "$tmp/log"
kill -USR1 $pid
wait_file "the lock goes under a checkpoint: which begins" "$tmp/synced"
rm -f "$ck/lock"
"$tmp/two/job" $forever --checkpoint "$ck" --log "$tmp/log.two" 2>"$tmp/err.two" & second=$!
wait_file "the lock goes under a checkpoint: another job" "$tmp/log.two"
rm -f "$tmp/synced"
ended "the lock goes under a checkpoint" 1
if grep -q 'lock is no longer the file that this job holds' "$tmp/err" && [ -z "$(newest)" ] && there "$ck/*.part"; then pass
else fault "the lock goes under a checkpoint: $(cat "$tmp/err"), $(ls "$ck")"; fi
pid=$second
kill -TERM $pid
ended "the lock goes under a checkpoint, the other job" 75
if [ ! -s "$tmp/err.two" ] && [ -n "$(newest)" ] && ! there "$ck/*.part"; then pass
else fault "the other job: $(cat "$tmp/err.two"), $(ls "$ck")"; fi
rm -rf "$ck" "$tmp/log" "$tmp/log.two"

# ---- a process killed, then one that finds what it left --------------------------------------------------------------
"$tmp/two/job" $forever --checkpoint "$ck" --log "$tmp/log.killed" 2>"$tmp/err" & pid=$!
wait_file "SIGKILL: a log" "$tmp/log.killed"
kill -USR1 $pid
wait_file "SIGKILL: a checkpoint" "$ck/step-*[0-9]/COMMIT"
kill -KILL $pid
ended "SIGKILL" 137
mkdir "$ck/step-999999.part"
echo torn >"$ck/step-999999.part/stage0.safetensors"
mkdir "$ck/step-888888"
goes_on "SIGKILL, and torn checkpoints beside" two
if [ ! -e "$ck/step-999999.part" ]; then pass; else fault "what was never committed is not cleaned away"; fi

# ---- checkpoints that are wrong --------------------------------------------------------------------------------------
last=$ck/$(printf 'step-%06d' "$(newest)")
resume="--quiet --data $data --checkpoint $ck --resume --steps 100000000"
before=$(ls -R "$ck")
build other $model --stages 1 --set model.dims.D=48
refuse "a checkpoint of another model" 5 "belongs to another model" \
    timeout 60 "$tmp/other/job" --quiet --data "$data" --checkpoint "$ck" --resume
build more $model --stages 1 --set train.batch.global=16
build both $model --stages 1 --set train.batch.global=16 --set model.dims.D=48
refuse "another model with other micro-batches" 5 "belongs to another model" \
    timeout 60 "$tmp/both/job" --quiet --data "$data" --checkpoint "$ck" --resume
refuse "a checkpoint of other micro-batches" 5 "was written with micro 4, this job has 8" \
    timeout 60 "$tmp/more/job" --quiet --data "$data" --checkpoint "$ck" --resume
build wide $model --stages 1 --set train.batch.micro=4 --set train.batch.global=16
refuse "a checkpoint of larger micro-batches" 5 "was written with batch 2, this job has 4" \
    timeout 60 "$tmp/wide/job" --quiet --data "$data" --checkpoint "$ck" --resume
build sgd $model --stages 1 --set 'train.optimizer={type: sgd, lr: 0.1, momentum: 0.9}'
refuse "a checkpoint of another optimiser" 5 "moments of .adamw., .* those of .sgd momentum.; .* --weights" \
    timeout 60 "$tmp/sgd/job" --quiet --data "$data" --checkpoint "$ck" --resume
expect "the parameters of that checkpoint" \
    timeout 60 "$tmp/more/job" --quiet --data "$data" --no-checkpoint --weights "$last" --steps 1
cp "$last/stage1.safetensors" "$tmp/kept"
head -c 1000 "$tmp/kept" >"$last/stage1.safetensors"
refuse "a cut checkpoint" 5 "cut short" timeout 60 "$tmp/two/job" $resume
cp "$tmp/kept" "$last/stage1.safetensors"
printf X | dd of="$last/stage1.safetensors" bs=1 seek=5000 conv=notrunc 2>/dev/null
refuse "a turned byte" 5 "is damaged" timeout 60 "$tmp/two/job" $resume
rm "$last/stage1.safetensors"
refuse "a missing file" 5 "^train: checkpoint: cannot open" timeout 60 "$tmp/two/job" $resume
cp "$tmp/kept" "$last/stage1.safetensors"
refuse "a directory in use" 5 "go on from it with --resume" \
    timeout 60 "$tmp/two/job" --quiet --data "$data" --checkpoint "$ck"
if [ "$(ls -R "$ck")" = "$before" ]; then pass
else fault "a refused checkpoint is changed"; fi

# ---- data that is other than before -----------------------------------------------------------------------------------------
two() { timeout 60 "$tmp/two/job" --quiet --checkpoint "$tmp/moved" "$@"; }
cp "$data" "$tmp/copy"
tr e o <"$data" >"$tmp/changed"
expect "a checkpoint to go on from" two --data "$data" --steps 1
refuse "the same data by another name" 0 '^end$' sh -c '"$@" && echo end' sh "$tmp/two/job" --quiet --checkpoint "$tmp/moved" \
    --resume --data "$tmp/copy" --steps 2
if [ "$(cat "$tmp/said")" = end ]; then pass; else fault "the same data by another name: $(cat "$tmp/said")"; fi
refuse "other data" 0 "step-000002 was trained with other data: samples from step 2 on" \
    two --resume --data "$tmp/changed" --steps 3

build rate $model --stages 1 --set train.optimizer.lr=0.5 --set train.steps=7
refuse "other settings" 0 "with other settings: train.optimizer.lr 0.[0-9]* (now 0.5), .*from step 3 on" timeout 60 \
    "$tmp/rate/job" --quiet --checkpoint "$tmp/moved" --resume --data "$tmp/changed" --steps 3

# ---- rows that are shuffled anew in each pass -----------------------------------------------------------------------------
# 37 rows, 8 a step: stopped inside of a pass, and where one ends; other stages, replicas and names of files.  The losses and
# rates of all steps are those of the run that was never stopped.
$cc -std=c11 -O1 -o "$tmp/npy" tests/npy.c || fault "tests/npy.c"
mkdir "$tmp/named"
(cd "$tmp" && ./npy x.npy f4 -1 1 37 6 && ./npy y.npy i4 0 5 37 && cp x.npy named/z.npy && cp y.npy named/a.npy)
cat >"$tmp/rows.yaml" <<END
dpgen: 1
model:
  dims: {D: 6}
  inputs: {x: {shape: [B, D], dtype: f32}, labels: {shape: [B], dtype: i32, range: [0, 5]}}
  graph:
    - {op: Linear, name: one, in: x, out: 2*D}
    - {op: Dropout, p: 0.2}
    - {op: Linear, name: two, out: 5}
    - {op: SoftmaxCrossEntropy, targets: labels, as: loss}
  loss: loss
train: {batch: {micro: 1, global: 8, groups: 2}, steps: 40, optimizer: {lr: 0.05}, schedule: {type: cosine, warmup: 9}}
data: {train: {format: npy, arrays: {x: x.npy, labels: y.npy}}}
END
build rows "$tmp/rows.yaml" --stages 2
build wide_rows "$tmp/rows.yaml" --stages 1 --set plan.replicas=2
rows() { (cd "$tmp" && timeout 60 "./$1/job" --quiet --log "$2" $3 >/dev/null 2>"$tmp/err"); }
steps() { sed -n 's/.*"step":\([0-9]*\),\("loss":[^,]*\).*\("lr":[^,]*\).*/\1 \2 \3/p' "$tmp/$1"; }
rows rows whole.log --no-checkpoint
for stop in 6 37; do
    rm -rf "$tmp/rows.ck" "$tmp/parts.log"
    rows rows parts.log "--checkpoint rows.ck --steps $stop"
    rows wide_rows parts.log "--checkpoint rows.ck --resume --data named/z.npy named/a.npy"
    if [ "$(steps parts.log)" = "$(steps whole.log)" ] && [ "$(steps whole.log | wc -l)" = 40 ] && [ ! -s "$tmp/err" ]
    then pass
    else fault "rows, stopped at step $stop: $(head -n 1 "$tmp/err"), $(steps parts.log | wc -l) steps"; fi
done

refuse "a job that is done" 0 "step 3 is done already, and the job ends with step 2" \
    two --resume --data "$tmp/changed" --steps 2

# ---- data that is wrong ----------------------------------------------------------------------------------------------
printf '%04000d\377' 7 >"$tmp/high"
head -c 3 "$data" >"$tmp/short"
refuse "a missing file" 1 "no file matches" timeout 60 "$tmp/two/job" --quiet --no-checkpoint --data "$tmp/none*"
refuse "short data" 1 "a sample needs" timeout 60 "$tmp/two/job" --quiet --no-checkpoint --data "$tmp/short"
mkfifo "$tmp/pipe"
refuse "data from a pipe" 1 "data: .*pipe is not a plain file" \
    timeout -k 1 10 "$tmp/two/job" --quiet --no-checkpoint --data "$tmp/pipe"
refuse "weights from a pipe" 5 "weights: .*pipe is not a plain file" \
    timeout -k 1 10 "$tmp/two/job" --quiet --no-checkpoint --data "$data" --weights "$tmp/pipe"
refuse "no weights" 5 "^train: weights: cannot open" \
    timeout 60 "$tmp/two/job" --quiet --no-checkpoint --data "$data" --weights "$tmp/none.st"
refuse "a log that nobody reads" 1 "pipe: this pipe has no reader" \
    timeout -k 1 10 "$tmp/two/job" --quiet --no-checkpoint --data "$data" --log "$tmp/pipe"
refuse "no data, a new directory" 1 "no file matches" \
    timeout 60 "$tmp/two/job" --quiet --checkpoint "$tmp/new" --data "$tmp/none*"
refuse "no weights, a new directory" 5 "cannot open" \
    timeout 60 "$tmp/two/job" --quiet --checkpoint "$tmp/new" --data "$data" --weights "$tmp/none.st"
refuse "nothing to resume from" 5 "no committed checkpoint" \
    timeout 60 "$tmp/two/job" --quiet --checkpoint "$tmp/new" --data "$data" --resume
if [ ! -e "$tmp/new" ]; then pass; else fault "a job that did not start leaves a directory"; fi
build narrow $model --stages 2 --set model.inputs.targets.range='[0, 128]' --set train.steps=100000
refuse "an id out of range" 1 "high: element 4000 is 255, outside \[0, 128) of input .targets" \
    timeout 60 "$tmp/narrow/job" --quiet --no-checkpoint --data "$tmp/high"
ln -s /dev/null "$tmp/device"
refuse "gradients into a device" 1 "not a plain file" \
    timeout 60 "$tmp/two/job" --quiet --no-checkpoint --data "$data" --steps 1 --gradients "$tmp/device"
if [ -L "$tmp/device" ]; then pass; else fault "gradients take the place of a device"; fi
mkdir "$tmp/place"
for option in --gradients --trace --dump-arena; do
    # forever: it is refused before the first step, and the files of the others are not left behind
    refuse "$option without a directory" 1 "^train: $option .*/none/file.*: cannot write" timeout 20 "$tmp/two/job" \
        $forever --no-checkpoint --gradients "$tmp/place/a" --trace "$tmp/place/b" --dump-arena "$tmp/place/c" \
        $option "$tmp/none/file"
done
if [ -z "$(ls "$tmp/place")" ]; then pass; else fault "a refused job leaves $(ls "$tmp/place")"; fi
expect "all that is written at the end" timeout 60 "$tmp/two/job" --quiet --no-checkpoint --data "$data" --steps 1 \
    --gradients "$tmp/place/a" --trace "$tmp/place/b" --dump-arena "$tmp/place/c"
if [ "$(cd "$tmp/place" && echo *)" = "a b c.stage0 c.stage1" ]; then pass; else fault "written: $(ls "$tmp/place")"; fi
# A disk that is full at the end: nothing half written stays, and what was there before does where it is replaced whole.
rm -rf "$tmp/place" && mkdir "$tmp/place"
for option in "--gradients a" "--export b" "--trace c" "--dump-arena d"; do
    refuse "$option on a full disk" 1 "cannot write.*: File too large" sh -c 'trap "" XFSZ; ulimit -f 8; exec "$@"' sh \
        timeout 60 "$tmp/two/job" --quiet --no-checkpoint --data "$data" --steps 3 ${option% *} "$tmp/place/${option#* }"
done
if [ -z "$(find "$tmp/place" -type f)" ]; then pass; else fault "a full disk leaves $(find "$tmp/place" -type f)"; fi
for launcher in OMPI_COMM_WORLD_SIZE=2/OMPI_COMM_WORLD_RANK=0 PMI_SIZE=2/PMI_RANK=0 \
    SLURM_STEP_NUM_TASKS=2/SLURM_PROCID=0; do
    refuse "transport local under a launcher" 2 "${launcher%%=*} is 2, but all stages" \
        timeout 60 env "${launcher%/*}" "${launcher#*/}" "$tmp/two/job" --quiet --no-checkpoint --data "$data" --steps 1
done
refuse "its second rank, which is silent" 2 '^end$' \
    sh -c 'PMI_SIZE=2 PMI_RANK=1 timeout 60 "$1" --quiet --no-checkpoint; s=$?; echo end; exit $s' sh "$tmp/two/job"
[ "$(wc -l <"$tmp/said")" = 1 ] || fault "the second rank speaks as well"
expect "a launcher of one rank" timeout 60 env PMI_SIZE=1 PMI_RANK=0 SLURM_NTASKS=4 SLURM_PROCID=0 \
    "$tmp/two/job" --quiet --no-checkpoint --data "$data" --steps 1
# Stacks of 256 MiB, and no memory for a second one
if [ -z "${SAN:-}" ]; then
    refuse "no memory for a thread" 1 'no thread for stage1; check .ulimit -u. (processes) and .ulimit -v. (memory)' \
        sh -c 'ulimit -s 262144 && ulimit -v 200000 && "$@"' - \
        timeout 60 "$tmp/two/job" --quiet --data "$data" --no-checkpoint --steps 1
fi
refuse "an unknown option" 2 "unknown option" timeout 60 "$tmp/two/job" --fast
refuse "data for no evaluation" 2 "this job has no evaluation" \
    timeout 60 "$tmp/two/job" --quiet --no-checkpoint --data "$data" --eval-data "$data" --steps 1
full() { "$tmp/two/job" --quiet --no-checkpoint --data "$data" --steps 1 "$@" >/dev/full; }
if [ -c /dev/full ]; then
    for option in --help --version --hash; do
        refuse "$option, and nowhere to write it" 1 "cannot write to standard output: No space" full $option
    done
    timeout 60 "$tmp/two/job" --quiet --data "$data" --no-checkpoint --steps 1 --log /dev/full 2>"$tmp/lost"
    expect "a log that nothing fits in" grep -q '/dev/full: metrics are lost from here on: No space' "$tmp/lost"
    expect "no line of it is cut" sh -c '! grep "is cut" "$1"' - "$tmp/lost"
else
    skip "there is no /dev/full" 5
fi
refuse "help" 0 "Usage: train" timeout 60 "$tmp/two/job" --help

# ---- two processes ---------------------------------------------------------------------------------------------------
# Two ranks, and the second one has a folder of its own by the name of $tmp/own.
apart() {
    for way in -m -rm; do
        unshare $way mount --bind "$tmp" "$tmp" 2>/dev/null && break
        way=
    done
    [ -n "$way" ] || { skip "unshare and mount are not allowed here: folders that hosts do not share" 4; return; }
    mkdir -p "$tmp/own/ck" "$tmp/other/ck" "$tmp/own/ck/step-000001"
    touch "$tmp/own/ck/step-000001/COMMIT"
    while read -r what options; do
        refuse "$what that hosts do not share" 1 "does not see $tmp/own[^ ]* of $(uname -n): it must be on a file system that" \
            timeout 60 $launch sh -c 'way=$1 tmp=$2; shift 2
                [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] && exec "$@"
                exec unshare $way sh -c "mount --bind \"$tmp/other\" \"$tmp/own\" && exec \"\$@\"" sh "$@"' sh $way "$tmp" \
            "$tmp/ranks/job" $forever --watchdog 2 $options
    done <<END
checkpoints --checkpoint $tmp/own/new
old_checkpoints --checkpoint $tmp/own/ck --resume
an_export --no-checkpoint --export $tmp/own/hf
gradients --no-checkpoint --gradients $tmp/own/g.st
END
    if [ "$(cd "$tmp/own" && echo *)" = ck ] && [ "$(ls "$tmp/own/ck")" = step-000001 ]; then pass
    else fault "folders that hosts do not share: $(ls -R "$tmp/own")"; fi
}
# strike SIGNAL FOLDER NAME: its second rank, which is NAME to the first one
strike() {
    signal=$1 ranks=$2 name=$3
    patient=                    # the watchdog waits as by default, longer than any disk
    [ $signal != STOP ] || patient="--watchdog 4"
    rm -rf "$ck" "$tmp"/rank.* "$tmp"/status.*
    # each rank writes its process number, then becomes the job; its status is written when it has ended
    $launch sh -c 'rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} tmp=$1; shift
        sh -c "echo \$\$ >\"$tmp/rank.$rank\"; exec \"\$@\"" sh "$@"; status=$?
        echo $status >"$tmp/status.$rank"; exit $status' sh "$tmp" \
        "$tmp/$ranks/job" $forever --checkpoint "$ck" $patient --log "$tmp/rank.log" \
        2>"$tmp/err" >/dev/null & pid=$!
    wait_file "$signal: a log" "$tmp/rank.log"
    kill -USR1 "$(cat "$tmp/rank.0")"
    wait_file "$signal: a checkpoint before it" "$ck/step-*[0-9]/COMMIT"
    kill -$signal "$(cat "$tmp/rank.1")"
    case $signal in
    TERM) ended "a rank with SIGTERM" 75 ;;
    KILL)       # mpirun may end with the status of a rank that it kills itself, here and below
        ended "a rank with SIGKILL" '[!0]*'
        expect "a rank with SIGKILL: its own status" grep -qx 137 "$tmp/status.1"
        ;;
    STOP)
        ended "a frozen rank" '[19]'
        if grep -q 'no progress for' "$tmp/err"; then pass; else fault "a frozen rank: no word of the watchdog"; fi
        at="\(none: [^;]*\|, \(from\|to\) $name on $(hostname)\)"
        if grep -q "stage0 on $(hostname): action .*$at;" "$tmp/err"; then pass
        else fault "a frozen rank is not named: $(grep silent "$tmp/err")"; fi
        ;;
    ABRT)       # as a library does; the other rank waits for it meanwhile
        ended "a rank with SIGABRT" '[!0]*'
        expect "a rank with SIGABRT: its own status" grep -qx 1 "$tmp/status.1"
        if grep -q 'a library ended rank 1 (abort)' "$tmp/err"; then pass; else fault "SIGABRT: $(head -n 1 "$tmp/err")"; fi
        ;;
    esac
    for rank in 0 1; do
        wait_gone "$signal: rank $rank" "$(cat "$tmp/rank.$rank")"
    done
    goes_on "$ranks, SIG$signal, to one process" $alone
}
two_ranks() {       # MPI
    use_portable
    use_mpi "$1" 2 || return
    launch=$start start=
    refuse "transport local, two ranks" 2 "start it without mpirun" $launch \
        "$tmp/two/job" --quiet --checkpoint "$tmp/both" --data "$data" --steps 1
    build ranks $model --stages 2 --set plan.transport=mpi
    apart
    refuse "one rank" 2 "this job has 2 stages.* ranks started: 1;" \
        $(echo "$launch" | sed 's/-n 2/-n 1/') "$tmp/ranks/job" --quiet
    refuse "three ranks" 2 "this job has 2 stages.* ranks started: 3;" \
        timeout 60 $(echo "$launch" | sed 's/-n 2/-n 3/') "$tmp/ranks/job" --quiet
    for signal in TERM KILL STOP ABRT; do strike $signal ranks stage1; done
    [ "$1" = "$(mpis | head -n 1)" ] || return
    build team $model --set train.blocks=2 --set plan.tensor=2 --stages 1 --set plan.transport=mpi
    alone=whole
    for signal in KILL STOP; do strike $signal team 'stage0[.]1'; done
    alone=one
}
[ -n "$(mpis)" ] || skip "there is no mpirun, or no mpicc" 36
open_input
build whole $model --set train.blocks=2 --stages 1
for mpi in $(mpis); do two_ranks "$mpi"; done
finish
