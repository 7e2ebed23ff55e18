#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The differential oracle: random models (fuzz.c), each under random plans, against the graph interpreter, which knows no
# plan.  Three steps must give the same parameters, the same losses, the same gradients, bit for bit, whatever the arena
# held before.  Then under limits at and below what the plan took: it fits, or dpgen says what does, and that is tried.
# Every other model also under a schedule whose steps overlap, for eight steps, against the same rule of versions in the
# interpreter.
#
#   tests/fuzz.sh [COUNT [SEED]]              COUNT models from SEED on; 2 and 3, or 1500 with SLOW=1.  One in four in bf16,
#                                             one in four with sums in blocks; of
#                                             more than 100 also one in eight with oneDNN, one in twenty over MPI
#   tests/fuzz.sh case MODEL.yaml OPTION...   one model under one plan, as a failure prints it
#
# A model that failed stays in build/fuzz_failed; what was found goes into tests/fuzz, and every run begins with those: their
# options are on their first line, after `status N` for those that must end with that.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/librt_bf16.a build/interp build/interp_bf16 build/fuzz build/fuzz_jobs
kept=$root/build/fuzz_failed
base="--no-checkpoint --quiet --hash --steps 3"
base_async="--no-checkpoint --quiet --hash --steps 8"       # more than any schedule has under way

# within PROGRAM ARGUMENT...: 60 s of the processor, for the machine may be busy
within() (ulimit -t 60; exec timeout 600 "$@")

# ---- one job ---------------------------------------------------------------------------------------------------------

# digest DIR: of what a job left there: parameters, losses, gradients
digest() { { cat "$1/said"; sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$1/log"; cat "$1/gradients"; } | sha256sum | cut -c 1-64; }

# job DIR DATA PROGRAM ARGUMENT...: run in DATA, what it leaves in DIR; its digest, or what is wrong
job() {
    to=$1 where=$2
    shift 2
    rm -f "$to/log" "$to/gradients"
    (cd "$where" && within "$@" --log "$to/log" --gradients "$to/gradients") >"$to/said" 2>"$to/errors" ||
        { echo "status $?: $(tail -n 1 "$to/errors")"; return 1; }
    digest "$to"
}

# key OPTION...: the kind of job that options ask for
key() {
    interpreter=build/interp
    case "$*" in
        *compute=bf16*onednn* | *onednn*compute=bf16*) interpreter= kind=$kind_bf16 with=$with_fast_bf16 start= ;;
        *onednn*) interpreter= kind=$kind_f32 with=$with_fast start= ;;
        *compute=bf16*) interpreter=build/interp_bf16 kind=$kind_bf16 with=$with_bf16 start= ;;
        *) kind=$kind_f32 with=$with_f32 start= ;;
    esac
    program_cc=${tcc:-$cc}
    case "$*" in
        *transport=mpi*) program_cc=mpicc with="$tmp/link_mpi.o $with" start="mpirun -n STAGES --oversubscribe $root_too" ;;
        *onednn*) program_cc=$cc ;;
    esac
}
root_too=
[ "$(id -u)" != 0 ] || root_too=--allow-run-as-root
use_bf16
kind_bf16=$kind with_bf16=$with
use_portable
kind_f32=$kind with_f32=$with

# subject DIR OPTION...: DIR/model.yaml under a plan, in DIR/plan; its digest, or what is wrong
subject() {
    here=$1
    shift
    rm -rf "$here/plan"
    within ./dpgen "$here/model.yaml" "$@" --estimate -o "$here/plan" >"$here/dpgen.log" 2>&1
    status=$?
    [ $status = 0 ] || { echo "dpgen: status $status: $(head -n 1 "$here/dpgen.log")"; return $status; }
    build/emitted rt/rt.h $(stages "$here/plan") >"$here/emitted.log" 2>&1 ||
        { echo "emitted: $(head -n 1 "$here/emitted.log")"; return 1; }
    [ -z "$break_it" ] || sed -i "$break_it" "$here"/plan/stage*.c
    compile "$here/plan" "$program_cc" || return 1
    fill=$(($(printf %d "0x$(echo "$*" | sha256sum | cut -c 1-2)") | 128))       # half of them NaN
    job "$here/plan" "$here" $(echo "$start" | sed "s/STAGES/$(stages "$here/plan" | wc -l)/") \
        "$here/plan/job" $base --fill $fill
}
break_it=

# prepare DIR OPTION...: data, and the digest that every plan must have, in $want
prepare() {
    key "$@"
    build/fuzz_jobs data "$1/model.yaml" "$1" 2>"$1/errors" || { want="data: $(head -n 1 "$1/errors")"; return 1; }
    mkdir -p "$1/reference"
    if [ -n "$interpreter" ]; then
        where=$1
        shift
        want=$(job "$where/reference" "$where" "$root/$interpreter" model.yaml "$@" $base) ||
            { want="interpreter: $want"; return 1; }
    else
        want=$(subject "$@" --stages 1 --schedule gpipe --recompute none) || { want="one stage: $want"; return 1; }
    fi
}

# ---- one model under many plans --------------------------------------------------------------------------------------
# Lines of the result: `pass`, `note TEXT`, `fail TEXT`; those that fail are printed when they do.

# compare DIR OPTIONS: a plan against the reference
compare() {
    got=$(eval "subject $1 $2")
    case $? in 4) refused=yes ;; *) refused= ;; esac
    if [ "$got" = "$want" ]; then echo pass; return 0; fi
    [ -n "$3" ] && [ -n "$refused" ] && return 4
    if [ -n "$refused" ] && grep -q "messages under way at once" "$1/dpgen.log"; then echo full; return 4; fi   # of given cuts
    [ ${#got} != 64 ] || got="other bits than the reference"
    mkdir -p "$kept"
    cp "$1/model.yaml" "$kept/$(basename "$1").yaml"
    echo "fail $got
fail     tests/fuzz.sh case build/fuzz_failed/$(basename "$1").yaml $2"
    return 1
}

# under_limits DIR OPTIONS: the plan just made fits exactly what it takes.  With less, dpgen has another, or names a limit
# that does.
under_limits() {
    most=$(sed -n 's/.*"arena_bytes": \([0-9]*\).*/\1/p' "$1/plan/plan.json" | sort -n | tail -n 1)
    compare "$1" "$2 --limit $most" may
    if [ $? = 4 ]; then
        mkdir -p "$kept"
        cp "$1/model.yaml" "$kept/$(basename "$1").yaml"
        echo "fail a plan of $most bytes is lost at that limit
fail     ./dpgen build/fuzz_failed/$(basename "$1").yaml $2 --limit $most"
    fi
    less=$((most * 7 / 8))
    compare "$1" "$2 --limit $less" may
    [ $? = 4 ] || return
    remedy=$(sed -n 's/.*--limit \([0-9.]*[A-Za-z]*\).*/\1/p' "$1/dpgen.log" | head -n 1)
    [ -z "$remedy" ] || compare "$1" "$2 --limit $remedy"
}

# model SEED PLANS: all of that
model() {
    d=$tmp/$1
    mkdir -p "$d"
    options=$(options_of "$1")
    build/fuzz "$1" >"$d/model.yaml" || { echo "fail fuzz $1"; return; }
    if ! prepare "$d" $options; then
        mkdir -p "$kept"
        cp "$d/model.yaml" "$kept/$1.yaml"
        echo "fail $want
fail     tests/fuzz.sh case build/fuzz_failed/$1.yaml $options"
        rm -rf "$d"
        return
    fi
    build/fuzz_jobs plans "$d/model.yaml" "$1" "$2" >"$d/plans"
    turn=0
    while read -r line; do
        turn=$((turn + 1))
        compare "$d" "$options $line" && [ $turn = 1 ] && under_limits "$d" "$options $line"
    done <"$d/plans"
    tame "$d" $options
    [ $(($1 % 2)) = 1 ] || overlapping "$d" "$1" $options
    rm -rf "$d"
}

# overlapping DIR SEED OPTIONS: a plan whose steps overlap; one that dpgen refuses, as values that skip stages may make it, is
# none
overlapping() (
    d=$1 seed=$2
    shift 2
    base=$base_async
    case "$*" in *compute=bf16*) type=bf16 ;; *) type=f32 ;; esac
    build/fuzz_jobs async "$d/model.yaml" "$seed" $type >"$d/async" || { echo "fail fuzz_jobs async $seed"; return; }
    rule="$* $(sed -n 1p "$d/async")"
    if ! prepare "$d" $rule; then
        case $want in *"is not finite"*) echo "note $want" ;; *) echo "fail $want, of" $rule ;; esac     # delays diverge
        return
    fi
    compare "$d" "$rule $(sed -n 2p "$d/async")" may
    case $? in 0) echo overlap ;; 4) echo "note $(head -n 1 "$d/dpgen.log")" ;; esac
)

options_of() {
    options=
    [ $(($1 % 4)) != 3 ] || options="--set train.precision.compute=bf16"
    fast=$with_fast
    [ -z "$options" ] || fast=$with_fast_bf16
    [ -z "$fast" ] || [ $(($1 % 8)) != 5 ] || options="$options --set devices.0.kernels=onednn"
    [ $(($1 % 8)) -lt 6 ] || options="$options --set train.blocks=$((1 << $1 / 8 % 5))"
    [ -z "$mpi" ] || [ $(($1 % 20)) != 1 ] || options="$options --set plan.transport=mpi"
    echo "$options"
}

# tame DIR OPTIONS: with one group for each micro-batch the same sums have another order: it must show, or the model sees
# nothing
tame() {
    micro=$(sed -n 's/.*batch: {global: \([0-9]*\), micro: \([0-9]*\).*/\1 \2/p' "$1/model.yaml" | awk '{print $1 / $2}')
    [ "$micro" -ge 3 ] && [ -n "$interpreter" ] && ! grep -q "groups: [24]" "$1/model.yaml" || return
    where=$1
    shift
    other=$(job "$where/reference" "$where" "$root/$interpreter" model.yaml "$@" --set train.batch.groups="$micro" $base)
    if [ "$other" = "$want" ]; then echo tame; else echo wild; fi
}

# ---- commands --------------------------------------------------------------------------------------------------------

# alone MODEL OPTIONS: in $tmp/case
alone() (
    mkdir -p "$tmp/case"
    cp "$1" "$tmp/case/model.yaml"
    case "$2" in *precision*bf16*) set_key="--set train.precision.compute=bf16" ;; *) set_key= ;; esac
    case "$2" in *onednn*) set_key="$set_key --set devices.0.kernels=onednn" ;; esac
    case "$2" in *train.blocks=*) set_key="$set_key --set $(echo "$2" | grep -o 'train.blocks=[0-9]*')" ;; esac
    case "$2" in *plan.schedule=*)
        base=$base_async set_key=$(echo "$2" | sed 's/ *--recompute.*//') ;;
    esac
    prepare "$tmp/case" $set_key || { echo "fail $want"; return 1; }
    compare "$tmp/case" "$2"
)

# ends MODEL STATUS OPTIONS: dpgen has an answer, but no folder
ends() {
    eval "within ./dpgen $1 $3 --estimate -o $tmp/none" >"$tmp/ends" 2>&1
    got=$?
    if [ $got = "$2" ] && [ ! -e "$tmp/none" ]; then
        echo pass
    else
        echo "fail status $got: $(tail -n 2 "$tmp/ends" | head -n 1)"
    fi
}

quoted() { for word in "$@"; do case $word in *[\[\ ]*) printf '"%s" ' "$word" ;; *) printf '%s ' "$word" ;; esac; done; }

fast() {
    [ -z "$with_fast" ] || return 0
    if ! have_onednn; then skip "there is no oneDNN"; return 1; fi
    use_onednn f32 && with_fast=$with && have_onednn_bf16 && use_onednn bf16 && with_fast_bf16=$with
    use_portable
}
with_fast= with_fast_bf16= mpi=
over_mpi() {
    if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then
        skip "there is no mpirun, or no mpicc"
        return 1
    fi
    mpicc $flags -O2 -c -o "$tmp/link_mpi.o" rt/link_mpi.c 2>"$tmp/mpi.log" ||
        { fault "rt/link_mpi.c: $(head -n 1 "$tmp/mpi.log")"; return 1; }
    mpi=yes
}

case $1 in case)
    file=$2
    shift 2
    case "$*" in *onednn*) fast ;; esac
    case "$*" in *transport=mpi*) over_mpi ;; esac
    said=$(alone "$file" "$(quoted "$@")")
    echo "$said"
    [ "$said" = pass ]
    exit ;;
esac

# ---- the corpus ------------------------------------------------------------------------------------------------------
for file in tests/fuzz/*.yaml; do
    [ -f "$file" ] || continue
    plan=$(sed -n '1s/^# *//p' "$file")
    case $plan in
        "status "*) plan=${plan#status } && said=$(ends "$file" "${plan%% *}" "${plan#* }") ;;
        *) said=$(alone "$file" "$plan") ;;
    esac
    if [ "$said" = pass ]; then pass; else fault "$file: $(echo "$said" | head -n 1 | cut -c 6-)"; fi
done

# ---- a mistake is seen: the gradients of a weight start from what the arena held -------------------------------------
build/fuzz 4 >"$tmp/wrong.yaml"
break_it='s/, acc, /, 1, /'
kind_was=$kind_f32
kind_f32="$kind_f32 -Wno-unused-parameter"
said=$(alone "$tmp/wrong.yaml" "--stages 2 --schedule 1f1b" | head -n 1)
if [ "$said" = "fail other bits than the reference" ]; then pass; else fault "a wrong chain goes unseen: $said"; fi
break_it= kind_f32=$kind_was
rm -f "$kept/case.yaml"
rmdir "$kept" 2>/dev/null

# ---- random models ---------------------------------------------------------------------------------------------------
count=${1:-2} from=${2:-2} each=3
[ -z "$SLOW" ] || count=${1:-1500} from=${2:-1}
[ "$count" -gt 3 ] || each=2
if [ "$count" -gt 100 ]; then fast; over_mpi; fi
for worker in $(seq "$cores"); do
    for seed in $(seq "$from" $((from + count - 1))); do
        [ $((seed % 50)) != 0 ] || [ "$worker" != 1 ] ||
            echo "$suite: $(cat "$tmp"/result.[0-9]* 2>/dev/null | grep -c pass) plans agree"
        [ $((seed % cores)) != $((worker % cores)) ] || model "$seed" "$each" | sed "s/^/$seed /" |
            tee -a "$tmp/result.$worker" | sed -n "s/^\([0-9]*\) fail /$suite: \1 /p" >&2
    done &
done
wait
cat "$tmp"/result.[0-9]* >"$tmp/all"
passed=$((passed + $(grep -c '^[0-9]* pass$' "$tmp/all")))
failed=$((failed + $(grep -c '^[0-9]* fail [^ ]' "$tmp/all")))
overlaps=$(grep -c ' overlap$' "$tmp/all") notes=$(grep -c ' note ' "$tmp/all")
if [ $((overlaps * 2)) -ge $notes ]; then pass; else fault "$overlaps plans overlap, $notes are refused"; fi
wild=$(grep -c ' wild$' "$tmp/all") tame=$(grep -c ' tame$' "$tmp/all")
if [ $((wild + tame)) -lt 5 ] || [ $((tame * 4)) -le $wild ]; then pass
else fault "$tame of $((wild + tame)) models do not see another order of their sums"; fi
finish
