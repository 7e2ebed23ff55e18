# SPDX-License-Identifier: Apache-2.0
#
# lib.sh: read by the end-to-end suites.  Makes jobs by the hundred: dpgen writes a folder, the reader of the emitted
# language reads its stages, they are compiled without optimisation and linked against the runtime and kernels, which are
# compiled once (build/librt*.a).  tcc, where it is, does that in 20 ms, $cc in 400, and `make -C out` takes 5 s; suites that
# are about the Makefile of the folder call that.
#
# Jobs run as many at a time as there are cores.  What they print goes to files, so that the order of the report is fixed.

root=$(cd "$(dirname "$0")/.." && pwd) || exit 2
cd "$root" || exit 2
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
# Jobs of Open MPI that begin and end together in one folder make and remove each other's: "File exists".
export OMPI_MCA_orte_tmpdir_base="$tmp" PRTE_MCA_prte_tmpdir_base="$tmp"
suite=$(basename "$0" .sh)
passed=0 failed=0 skipped=0

cc=${CC:-cc}
clang=$(command -v clang) tcc=$(command -v tcc)
if [ -n "${SAN:-}" ]; then         # of make check SAN=1: jobs are linked with objects that want them
    cc="$cc -fsanitize=address,undefined" clang= tcc=
    export OMPI_CC="$cc"
fi
[ -z "${SLOW:-}" ] || tcc=         # the compilers that users have
own_cc=$cc own_clang=$clang
cores=$(nproc 2>/dev/null || echo 2)
models=$root/tests/models
data=$root/LICENSE                              # text that is always the same
flags="-D_GNU_SOURCE -I$root -I$root/rt -I$root/rt/op -std=c11 -pipe -fno-builtin -Wall -Wextra -Werror -Wno-unknown-pragmas"
other_mpi=
quick= linker= more= arguments= keep= start= cwd=               # cwd: where jobs run, for data that the model file names
run="--no-checkpoint --quiet --hash --data $data"

pass() { passed=$((passed + 1)); }
fault() { failed=$((failed + 1)); printf '%s: %s\n' "$suite" "$1" >&2; }
skip() { skipped=$((skipped + ${2:-1})); printf '%s: skipped: %s\n' "$suite" "$1" >&2; }
# expect WHAT COMMAND...: it must succeed
expect() { what=$1; shift; if "$@" >"$tmp/said" 2>&1; then pass; else fault "$what: $(tail -n 1 "$tmp/said")"; fi; }
# refuse WHAT STATUS TEXT COMMAND...: it must end with STATUS and say TEXT
refuse() {
    what=$1 want=$2 text=$3
    shift 3
    "$@" >"$tmp/said" 2>&1
    got=$?
    if [ "$got" = "$want" ] && grep -q -e "$text" "$tmp/said"; then pass
    else fault "$what: status $got, not $want with \`$text': $(tail -n 1 "$tmp/said")"; fi
}
finish() { echo "$suite: $passed passed, $failed failed, $skipped skipped"; [ "$failed" = 0 ]; exit; }

# need FILE...: built by make, or the suite cannot go on.  Of $made, tests/run has asked before the suites: make takes 0.1 s to
# find that there is nothing to do.
need() {
    set -- $(for file; do case " ${made:-} " in *" $file "*) ;; *) echo "$file" ;; esac; done)
    [ $# = 0 ] || make -s "$@" >"$tmp/make" 2>&1 || { cat "$tmp/make" >&2; fault "cannot build $*"; finish; }
}

# A kind of job: how its stages are compiled, with what they are linked, how the program is started.  linker: who links, where
# $quick cannot.
use_library() { with="$root/build/$1.a -lpthread -lm" start= linker= other_mpi= cc=$own_cc clang=$own_clang quick=$tcc; }
use_portable() { kind=$flags; use_library librt; }
use_bf16() { kind="$flags -DREAL_BF16"; use_library librt_bf16; }
have_onednn() { echo '#include <oneapi/dnnl/dnnl.h>' | $cc -E - >/dev/null 2>&1; }
# oneDNN multiplies bf16 on CPUs with AVX-512 only
have_onednn_bf16() { $cc -march=native -dM -E - </dev/null 2>/dev/null | grep -q __AVX512BW__; }
# use_onednn f32 | bf16: the object of its kernels comes first, with main.c, which sets the threads of OpenMP; the archive
# gives the others.  Only $cc, for the OpenMP of clang is another library.
use_onednn() {
    case $1 in f32) use_portable ;; *) use_bf16 ;; esac
    clang= linker=$cc
    make -s build/onednn_$1.o >"$tmp/onednn.log" 2>&1 || { fault "oneDNN: $(grep -m 1 error "$tmp/onednn.log")"; return 1; }
    with="$root/build/onednn_$1.o $with -fopenmp -ldnnl -lm"
}

# generate DIR OPTION...: the folder, and its stages read back.  Without SLOW=1 its cuts are even, unless an option names
# another planner: the search for the best takes longer than most jobs here.
even=
[ -n "${SLOW:-}" ] || even="--planner even"
generate() {
    to=$1
    shift
    rm -rf "$to"
    ./dpgen $even "$@" --estimate -o "$to" >"$to.log" 2>&1 || { echo "dpgen: $(head -n 1 "$to.log")"; return 1; }
    build/emitted rt/rt.h $(stages "$to") >"$to.log" 2>&1 || { echo "emitted: $(head -n 1 "$to.log")"; return 1; }
}
stages() { (i=0; while [ -e "$1/stage$i.c" ]; do echo "$1/stage$i.c"; i=$((i + 1)); done); }

# compile DIR [COMPILER]: DIR/job, with $more options; by $quick where nobody says another
compile() {
    compiler=${2:-${quick:-$cc}}
    if [ "$compiler" = "$quick" ] && [ -n "$linker$more" ]; then
        compile_apart "$1" "${linker:-$cc}"
    else
        $compiler -O0 $kind $more -o "$1/job" "$1/launch.c" $(stages "$1") $with
    fi >"$1.log" 2>&1 && compile_other "$1" >>"$1.log" 2>&1 ||
        { echo "compiler: $(grep -m 1 -e error -e undefined "$1.log" || head -n 1 "$1.log")"; return 1; }
}
# compile_apart DIR LINKER: by $quick; LINKER links.  Objects of tcc do not say that their stack is no code.
compile_apart() {
    for source in "$1/launch.c" $(stages "$1"); do $quick $kind -c -o "${source%.c}.o" "$source" || return 1; done
    $2 -O0 $kind $more -z noexecstack -o "$1/job" "$1"/*.o $with
}

# compile_other DIR: DIR/job.other, the same with the other MPI that is here
compile_other() {
    [ -n "$other_mpi" ] || return 0
    set -- "$1" "$1"/*.o
    [ -e "$2" ] || set -- "$1" "$1/launch.c" $(stages "$1")
    dir=$1
    shift
    mpicc.$other_mpi -O0 $kind $more -z noexecstack -o "$dir/job.other" "$@" "$tmp/link.$other_mpi.o" ${with#*.o }
}

# make_quickly DIR ARGUMENT...: its Makefile, with little optimisation
make_quickly() {
    d=$1
    shift
    make -s -j2 -C "$d" CFLAGS='-std=c11 -O0 -fno-builtin $(WARN)' RFLAGS='-std=c11 -O0 -ffp-contract=off $(WARN)' \
        KFLAGS='-std=c11 -O1 -ffp-contract=off -fno-math-errno $(WARN)' "$@"
}
# use_ready [FLAG]: what make of a folder calls takes our runtime and kernels from build/, and gives FLAG to all else
use_ready() {
    [ -z "${SAN:-}" ] || return
    need build/librt.a build/librt_bf16.a
    READY_CC=$(command -v cc) READY_FLAGS=$* READY_PATH=$PATH PATH=$root/tests/ready:$PATH
    OMPI_CC=$root/tests/ready/cc MPICH_CC=$OMPI_CC
    export READY_CC READY_FLAGS READY_PATH PATH OMPI_CC MPICH_CC
}
# take_objects FROM TO: what make has compiled of rt/ in one folder, for another of the same flags
take_objects() { (cd "$1" && tar cf - .flags* $(find rt -name '*.[od]')) | tar xmf - -C "$2"; }

# write_ops_data DIR: arrays for tests/models/ops.yaml, and $run to use them
write_ops_data() {
    $cc -std=c11 -O1 -Wall -Wextra -Werror -o "$tmp/npy" tests/npy.c || { fault "tests/npy.c"; finish; }
    cwd=$1 run="--no-checkpoint --quiet --hash"
    mkdir -p "$cwd"
    (cd "$cwd" && "$tmp/npy" tokens.npy i4 0 32 24 6 && "$tmp/npy" other.npy i4 0 32 24 5 &&
        "$tmp/npy" mask.npy i4 0 2 24 5 && "$tmp/npy" image.npy f4 -1 1 24 6 3 &&
        "$tmp/npy" targets.npy i4 -1 32 24 6 && "$tmp/npy" wanted.npy f4 -1 1 24 8) || fault "no arrays"
}

# write_hf_data DIR: arrays for the tiny models of tests/hf, and $hf, a folder of each; hf_data FAMILY: $arrays and $dims by the
# inputs of $tmp/FAMILY.yaml
write_hf_data() {
    hf=$tmp/hf
    awk -v to="$hf" -f "$root/tests/hf.awk" $(find "$root/tests/hf" -maxdepth 1 -type f) || fault "tests/hf.awk"
    (cd "$1" && for array in tokens.npy:61:2:11 targets.npy:61:2:11 long.npy:61:2:12 types.npy:2:2:12 mask.npy:2:2:12 \
        labels.npy:61:2:12 tags.npy:5:2:12 next.npy:2:2 kinds.npy:5:2; do
        echo $array | { IFS=: read -r file high dims && "$tmp/npy" $file i4 0 "$high" $(echo $dims | tr : ' '); }
    done; "$tmp/npy" ones.npy i4 1 2 2 12; "$tmp/npy" image.npy f4 -1 1 2 8 8 3; "$tmp/npy" sound.npy f4 -1 1 2 24 6)
}
hf_data() {
    file=$tmp/$1.yaml arrays="tokens: tokens.npy, targets: targets.npy" dims="-D T=11"
    asks() { sed -n '/^  inputs:/,/^  [bg]/p' "$file" | grep -q "^ *$1: *{shape: \[$2"; }
    if asks image; then
        arrays="image: image.npy, labels: kinds.npy" dims=
    elif asks sound; then
        arrays="sound: sound.npy, decoder_ids: tokens.npy, labels: targets.npy" dims="-D T=11"
    elif asks decoder_ids; then
        arrays="ids: long.npy, mask: mask.npy, decoder_ids: tokens.npy, labels: targets.npy" dims="-D S=12 -D T=11"
    elif asks mask; then
        arrays="tokens: long.npy, mask: mask.npy, labels: labels.npy" dims=
        ! asks labels 'B\]' || arrays=${arrays%labels.npy}kinds.npy
        ! asks labels 'B, T\].*C\]' || arrays=${arrays%labels.npy}tags.npy
        ! grep -q 'causal: true' "$file" || arrays="tokens: long.npy, mask: ones.npy${arrays#*mask.npy}"
        ! asks types || arrays="$arrays, types: types.npy"
        ! asks next || arrays="$arrays, next: next.npy"
    fi
}

# cpus COUNT: a file of devices
cpus() { echo "devices: [{name: cpu, kind: cpu, count: $1, memory: 64MiB, threads: 1, kernels: portable}]"; }
# with_eval FILE: that model of bytes, whose loss counts hits among three, evaluated in every second step
with_eval() {
    { sed 's/op: SoftmaxCrossEntropy,/& top: 3,/' "$1"; echo; } | awk '/^data:/ { print
        print "  eval: {format: bytes, files: \"*\", tokens: tokens, next: targets, every: 2, batches: 5}"; next } 1'
}
# steps_of LOG: its steps and evaluations, without times
steps_of() { sed -n 's/,"tokens_per_s".*//; s/,"time".*//; /"event":"\(step\|eval\)"/p' "$1"; }
# facts NAME MODEL OPTION...: losses, norms, rates of its log; the hashes of parameters and of gradients
facts() {
    name=$1
    shift
    rm -f "$tmp/$name.jsonl"
    said=$(generate "$tmp/$name" "$@" && compile "$tmp/$name" &&
        "$tmp/$name/job" --no-checkpoint --hash --data "$data" ${evals:+--eval-data "$root/README.md"} \
            --log "$tmp/$name.jsonl" --gradients "$tmp/$name.grads" >"$tmp/$name.said" 2>&1) ||
        { echo "$name: $said $(tail -n 1 "$tmp/$name.said")"; return; }
    steps_of "$tmp/$name.jsonl"
    sed -n 's/^sha256 //p' "$tmp/$name.said"
    sha256sum <"$tmp/$name.grads"
}
# fates_of OPTION...: lines for `plans` of $model: numbers of stages, schedules and what happens to results
fates_of() {
    for n in 1 2 3 4; do
        for schedule in gpipe 1f1b zb-h1; do
            echo "$n.$schedule.none $model --stages $n --schedule $schedule --recompute none $*"
            echo "$n.$schedule.full $model --stages $n --schedule $schedule --recompute full $*"
            echo "$n.$schedule.away $model --stages $n --schedule $schedule --offload \"['*']\" $*"
        done
    done
    echo "v.1f1b $model --stages 2 --map 0,1,0,1 --schedule 1f1b $*"
    echo "apart $model --stages 2 --schedule 1f1b --fuse none $*"
    echo "auto $model --stages 3 --schedule 1f1b --recompute auto $*"
}
# like_interpreter WHAT PROGRAM OPTION...: the plans of the result against each other and the interpreter of $model
like_interpreter() {
    label=$1 program=$root/$2
    shift 2
    want=$(cd "$cwd" && "$program" "$model" "$@" 2>"$tmp/interp.log" | sed -n 's/^sha256 //p')
    if [ -n "$want" ]; then pass; else fault "$label: the interpreter gives no hash: $(tail -n 1 "$tmp/interp.log")"; fi
    one_hash "$label" "$want"
}

word() { printf "\\$1\\$2\\$3\\$4"; }      # a float, from its bytes in octal
i4() { for i in "$@"; do case $i in 0) word 0 0 0 0 ;; 1) word 1 0 0 0 ;; *) word 234 377 377 377 ;; esac; done; }
# write_parts: $tmp/parts.yaml and its data, whose means are known on paper.  All scores are 40 and 0, or -40 and 0: a wrong
# target costs 40.  A micro-batch whose tokens go to one expert costs 1, one with both 1/2.  An evaluation has 1 wrong target of
# 4 in two micro-batches, and no target in the third: 3/4 are hits.  A fourth is the first again, so that 2 of 5 are wrong.
# Another loss, never wrong, has 4 targets a sample.
write_parts() {
    $cc -std=c11 -O1 -o "$tmp/npy" tests/npy.c || { fault "tests/npy.c"; return; }
    (cd "$tmp" && ./npy x.npy f4 0 1 4 4 1 && ./npy t.npy i4 0 2 4 4 &&
        head -c 128 x.npy >x.head && head -c 128 t.npy >t.head &&
        forty="word 0 0 40 102" less="word 0 0 40 302" &&
        { cat x.head; for i in 1 2; do $forty; $forty; $forty; $forty; $less; $less; $less; $less; done; } >x.npy &&
        { cat t.head; for i in 1 2; do i4 0 0 0 0 1 1 1 1; done; } >t.npy &&
        sed 's/(4, 4/(3, 4/' x.head >ex.npy && for i in 1 2 3 4 5 6 7 8 9 10 11 12; do $forty; done >>ex.npy &&
        sed 's/(4, 4/(3, 4/' t.head | tee et.npy >er.npy && i4 1 - - - 0 0 0 - - - - - >>et.npy &&
        i4 0 0 0 0 0 0 0 0 0 0 0 0 >>er.npy) || fault "no data for parts of a mean"
    cat >"$tmp/parts.yaml" <<'END'
dpgen: 1
model:
  name: parts
  dims: {T: 4}
  inputs:
    x:       {shape: [B, T, 1], dtype: f32}
    targets: {shape: [B, T], dtype: i32, range: [0, 2]}
    rights:  {shape: [B, T], dtype: i32, range: [0, 2]}
  graph:
    - {op: Linear, name: same, in: x, out: 1, bias: false, init: ones, as: y}
    - {op: Linear, name: none, in: x, out: 1, bias: false, init: zeros, as: z}
    - {op: Concat, in: [y, z], as: scores}
    - {op: SoftmaxCrossEntropy, in: scores, targets: rights, as: right}
    - {op: SoftmaxCrossEntropy, in: scores, targets: targets, top: 1, as: wrong}
    - {op: Add, in: [wrong, right], as: both}
    - {op: Route, in: scores, top: 1, as: [share, expert, slot, offset]}
    - {op: RouteLoss, in: [scores, expert], factor: 0.5, as: spread}
    - {op: Add, in: [both, spread], as: loss}
  loss: loss
train:
  batch: {global: 4, micro: 1, groups: 2}
  steps: 1
  optimizer: {type: sgd, lr: 1e-30}
data:
  train: {format: npy, arrays: {x: x.npy, targets: t.npy, rights: t.npy}, order: sequential}
  eval:  {format: npy, arrays: {x: ex.npy, targets: et.npy, rights: er.npy}, every: 1, batches: 3}
devices: [{name: cpu, kind: cpu, count: 4, memory: 1MiB, threads: 1, kernels: portable}]
plan: {stages: 1, schedule: gpipe}
END
}
parts() {       # WANT OPTION...: losses of the step and of the evaluation, and its accuracy
    want=$1
    shift
    said=$(generate "$tmp/parts" "$tmp/parts.yaml" "$@" && compile "$tmp/parts" && cd "$tmp" &&
        parts/job --quiet --no-checkpoint --log "$tmp/parts.jsonl" 2>&1 &&
        sed -n 's/.*"event":"\(step\|eval\)".*"loss":\([^,}]*\),\(.*"accuracy":\([^,}]*\)\)*.*/\2 \4/p' "$tmp/parts.jsonl" |
            awk '{printf $2 ? "%.6g %g " : "%.6g ", $1, $2}')
    rm -f "$tmp/parts.jsonl"
    if [ "$said" = "$want " ]; then pass; else fault "parts of a mean, $*: $said, not $want"; fi
}

# job_hash DIR ARGUMENT...: what --hash prints; with the other MPI too
job_hash() {
    at=$1
    shift
    run_job "$at/job" "$start" "$@" && mine=$(sed -n 's/^sha256 //p' "$at.out") || return 1
    if [ -n "$other_mpi" ]; then
        run_job "$at/job.other" "$other_start" "$@" || return 1
        [ "$(sed -n 's/^sha256 //p' "$at.out")" = "$mine" ] || mine="$other_mpi has another hash"
    fi
    echo "$mine"
}
run_job() {     # PROGRAM START ARGUMENT...
    program=$1 starter=$2
    shift 2
    (cd "${cwd:-.}" && exec timeout "${patience:-120}" $starter "$program" $run "$@") >"$at.out" 2>"$at.log" ||
        { echo "job: status $?: $(tail -n 1 "$at.log")"; return 1; }
}

# plan NAME COMPILER OPTION...: one line `NAME HASH`, or `NAME` and what went wrong.  $keep: names whose folders stay, or yes
plan() {
    name=$1 compiler=$2
    shift 2
    d=$tmp/$name
    said=$(generate "$d" "$@" && compile "$d" "$compiler" && job_hash "$d" $arguments)
    echo "$name ${said:-printed no hash}"
    case " $keep " in *" $name "* | " yes ") ;; *) rm -rf "$d" "$d.log" "$d.out" ;; esac
}

# plans < LINES of `NAME OPTION...`: all of them, of each 24 in all one by clang and one by $cc; results in $tmp/result, by
# name
plans() {
    cat >"$tmp/list"
    turn=$(cat "$tmp/turn" 2>/dev/null)         # a variable would not leave a pipe
    for worker in $(seq "$cores"); do
        awk -v n="$cores" -v i="$worker" -v t="${turn:-0}" 'NR % n == i % n {print (t + NR) % 24, $0}' "$tmp/list" |
        while read -r by name options; do
            case $by in 1) by=${clang:-$cc} ;; 2) by=$cc ;; *) by=${quick:-$cc} ;; esac
            eval "plan $name \"\$by\" $options" </dev/null      # mpirun would read what is left of the list
        done >"$tmp/result.$worker" &
    done
    wait
    cat "$tmp"/result.[0-9]* | sort >"$tmp/result"
    rm -f "$tmp"/result.[0-9]*
    results=$(wc -l <"$tmp/result")
    echo $((turn + results)) >"$tmp/turn"
    [ "$results" = "$(wc -l <"$tmp/list")" ] || fault "of $(wc -l <"$tmp/list") plans there are $results results"
    cut -d' ' -f1 "$tmp/list" | sort | uniq -d | sed 's/$/ is the name of two plans/' >>"$tmp/result"
}

# one_hash WHAT [HASH]: every line of the result has HASH, or that of the first; leaves it in $hash.  Tells of the first
# five that have not.
one_hash() {
    hash=${2:-$(awk 'length($2) == 64 && NF == 2 {print $2; exit}' "$tmp/result")}
    [ ${#hash} = 64 ] || hash=none          # plans that are refused alike have no hash
    wrong=0
    while read -r which said; do
        if [ "$said" = "$hash" ]; then
            pass
            continue
        fi
        wrong=$((wrong + 1))
        [ ${#said} != 64 ] || said="hash $(printf %.12s "$said"), not $(printf %.12s "$hash")"
        if [ $wrong -le 5 ]; then fault "$1: $which: $said"; else failed=$((failed + 1)); fi
    done <"$tmp/result"
    [ $wrong -le 5 ] || echo "$suite: $1: and $((wrong - 5)) more" >&2
}

# The MPIs that are here, in Debian's names: mpicc.openmpi, mpirun.openmpi; `here` is the one without a second name
mpis() {
    for mpi in openmpi mpich; do
        ! command -v mpicc.$mpi >/dev/null || ! command -v mpirun.$mpi >/dev/null || echo $mpi
    done | grep . || ! command -v mpicc >/dev/null || ! command -v mpirun >/dev/null || echo here
}
# open_input: from here on the suite has an input in which nothing comes, not even an end.  Hydra hands the end of its own on
# to its proxy, which may be gone where ranks end at once, and then SIGPIPE ends mpirun.
open_input() { mkfifo "$tmp/input" && exec <>"$tmp/input"; }
# start_mpi MPI RANKS: the words that start a job
start_mpi() {
    case $1 in here) start=mpirun ;; *) start=mpirun.$1 ;; esac
    start="$start -n $2"
    $start --version 2>&1 | grep -q 'Open MPI\|OpenRTE' || return 0
    start="$start --oversubscribe"
    [ "$(id -u)" != 0 ] || start="$start --allow-run-as-root"
}
# compile_link MPI: our transport over it; $linker is its compiler
compile_link() {
    case $1 in here) linker=mpicc ;; *) linker=mpicc.$1 ;; esac
    [ -e "$tmp/link.$1.o" ] || $linker $flags -O2 -c -o "$tmp/link.$1.o" rt/link_mpi.c 2>"$tmp/mpi.log" ||
        { fault "rt/link_mpi.c, $1: $(head -n 1 "$tmp/mpi.log")"; return 1; }
}
# use_mpi MPI RANKS: until the next use_portable jobs are linked with it and started on so many ranks
use_mpi() {
    compile_link "$1" || return 1
    start_mpi "$@"
    with="$tmp/link.$1.o $with" cc=$linker clang=
}
# turn_mpi DIR: from now on its job is that of the other MPI; false if there is none
turn_mpi() { [ -n "$other_mpi" ] && mv "$1/job.other" "$1/job" && start=$other_start; }
# over_mpi RANKS SKIPPED: the same, and what `plans` and job_hash run is run with another MPI too, if there is one; false, and
# said, if there is none
over_mpi() {
    set -- "$1" "$2" $(mpis)
    [ -n "$3" ] || { skip "there is no mpirun, or no mpicc" "$2"; return 1; }
    if [ -n "$4" ]; then
        compile_link "$4" || return 1
        start_mpi "$4" "$1"
        other_mpi=$4 other_start="env UCX_RNDV_THRESH=0 $start"      # no message is sent before its receive has begun
    else
        skip "one MPI is here, $3; MPICH and Open MPI are tested side by side"
    fi
    use_mpi "$3" "$1"
}
