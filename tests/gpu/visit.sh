#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The programs of pack.sh on a machine with a GPU, in the order of what a first look at one is worth.  Needs bash, python3,
# what every system has, and the libraries of CUDA; no make, compiler, dpgen or network.
#   visit.sh [-t SECONDS] [-o DIR] [first | second | PART...]      540 seconds in all; results in ./results
#
#   first      gpt2 bits units examples memcheck more nccl
#   second     profile images large kernels races
#   A visit of some parts may stand beside another that has the rest, if nothing is timed there.
#
#   DIR/summary        a line a step: second, name, `pass`, `FAILED`, `skipped` or what was measured; card, driver, clock, power
#   DIR/logs.tar.gz    what the programs said, written anew behind each step
#
# A step has a limit, and does not begin if the limit is more than is left.  After one that hangs the others of its kind are
# skipped.  PyTorch begins at once, compiles while others run, and stands still while something is timed.  A prediction is shown
# for the card that it was made for, and no other.  PYTHON: in place of python3.  PATIENCE: percent of each limit, where
# the GPU is none (tests/gpu_visit.sh).
set -u
export LC_ALL=C CUDA_DEVICE_MAX_CONNECTIONS=32
kit=$(cd "$(dirname "$0")" && pwd) total=540 out=results
while getopts t:o: option; do
    case $option in
        t) total=$OPTARG ;;
        o) out=$OPTARG ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
parts=${*:-first} python=${PYTHON:-python3}
first='gpt2 bits units examples memcheck more nccl' second='profile images large kernels races'
case $parts in first) parts=$first ;; second) parts=$second ;; esac
for part in $parts; do
    case " $first $second " in *" $part "*) ;; *) echo "visit.sh: there is no part $part" >&2; exit 2 ;; esac
done
mkdir -p "$out" && work=$(mktemp -d) || exit 1
out=$(cd "$out" && pwd) logs=$work/logs data=$work/data passed=0 failed=0 skipped=0 torch= sampler=
mkdir "$logs" "$data"
: >"$out/summary"
exec 2>"$logs/visit"
declare -A hung
ranks=
SECONDS=0

# ---- lines --------------------------------------------------------------------------------------------------------------
card='no nvidia-smi' model=
if command -v nvidia-smi >/dev/null; then
    said=$(timeout -k 2 10 nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>"$logs/nvidia-smi" |
        head -n 1)
    card=${said:-nvidia-smi says nothing}
    buffer=
    command -v stdbuf >/dev/null && buffer='stdbuf -oL'
    $buffer nvidia-smi --query-gpu=clocks.sm,power.draw,memory.used --format=csv,noheader,nounits -lms 200 2>/dev/null |
        while IFS=', ' read -r clock power used && kill -0 $$; do
            echo "$EPOCHREALTIME $clock $power $used"
        done >"$work/samples" &
    sampler=$!
fi
known() { case $1 in *H100*) echo H100 ;; *H200*) echo H200 ;; esac; }
model=$(known "$card")
now() { echo "$EPOCHREALTIME"; }
# state FROM TO: median clock and power of the samples between, or the last before
state() {
    [ -s "$work/samples" ] || { echo '? MHz, ? W'; return; }
    awk -v from="$1" -v to="$2" '$1 <= to { last = $2 " " $3 } $1 >= from && $1 <= to { print $2, $3; n++ }
        END { if (!n) print last }' "$work/samples" >"$work/between"
    echo "$(cut -d' ' -f1 "$work/between" | middle) MHz, $(cut -d' ' -f2 "$work/between" | middle) W"
}
middle() { sort -g | awk 'NF { x[++n] = $1 } END { print n ? n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2 : "?" }'; }
# line NAME TEXT [FROM TO]: into the summary; then all logs into one archive
line() {
    printf '%4d s  %-22s %s  [%s; %s]\n' "$SECONDS" "$1" "$2" "$card" "$(state "${3:-0}" "${4:-$(now)}")" |
        tee -a "$out/summary"
    cp "$work/samples" "$logs" 2>/dev/null
    cp "$out/summary" "$logs"
    tar -C "$work" -czf "$out/logs.new" logs 2>/dev/null && mv "$out/logs.new" "$out/logs.tar.gz"
    sync "$out/summary" "$out/logs.tar.gz" 2>/dev/null || sync
}
pass() { passed=$((passed + 1)); line "$name" "pass: $1" "$from" "$to"; }
fault() { failed=$((failed + 1)); line "$name" "FAILED: $1" "$from" "$to"; }
skip() { skipped=$((skipped + 1)); line "$1" "skipped: $2"; }
finish() {
    trap - EXIT
    for child in $torch $sampler; do kill -CONT -- "-$child" "$child"; kill -KILL -- "-$child" "$child"; done 2>/dev/null
    line visit "$passed passed, $failed failed, $skipped skipped"
    rm -rf "$work"
    exit $((failed > 0))            # without a number a trap ends with what was before it
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# ---- steps --------------------------------------------------------------------------------------------------------------
# go NAME KIND LIMIT COMMAND...: false if it was skipped or has hung; else $status, $from and $to
go() {
    name=$1 kind=$2 limit=$((($3 * ${PATIENCE:-100} + 99) / 100))
    shift 3
    if [ -n "${hung[$kind]:-}" ]; then skip "$name" "${hung[$kind]} hung"; return 1; fi
    if [ "$limit" -gt $((total - SECONDS)) ]; then skip "$name" "$limit s, and $((total - SECONDS)) are left"; return 1; fi
    case $1 in "$kit"/bin/*) [ -x "$1" ] || { skip "$name" "${1##*/} is not in the kit"; return 1; } ;; esac
    from=$(now)
    (cd "$data" && exec timeout -k 5 "$limit" "$@") >"$logs/$name" 2>&1 </dev/null &
    child=$! end=$((SECONDS + limit + 10))
    while kill -0 "$child" 2>/dev/null && [ "$SECONDS" -lt "$end" ]; do sleep 0.1; done
    if kill -0 "$child" 2>/dev/null; then status=137         # not even KILL ends what waits inside the driver
    else wait "$child"; status=$?; fi
    to=$(now)
    case $status in
        124 | 137) hung[$kind]=$name; fault "does not end in $limit s; $(last)"; return 1 ;;
    esac
}
last() { tail -n 1 "$logs/$name" | cut -c 1-200; }
# ends: the step has, with 0
ends() { [ "$status" = 0 ] || { fault "status $status: $(last)"; return 1; }; }
# train NAME KIND LIMIT PROGRAM OPTION...
train() {
    local step=$1 kind=$2 limit=$3 program=$4
    shift 4
    go "$step" "$kind" "$limit" ${ranks:+"$kit/ranks" "$ranks"} "$kit/bin/$program" --quiet --no-checkpoint \
        --log "$logs/$step.log" "$@"
}
losses() { sed -n 's/.*"event":"step".*"loss":\([^,]*\).*/\1/p' "$logs/$name.log" | awk '{ printf "%.5f ", $1 }'; }
synced() { DPGEN_SYNC=1 train "$1" sync 20 "$2" --steps 2 && ends && pass "losses $(losses)"; }
selftest() {
    go "selftest.$1" "$2" 20 "$kit/bin/$1" --selftest --no-checkpoint && ends &&
        pass "$(grep -c 'as in f64' "$logs/$name") results as in f64, others: $(sed -n 's/.*others: //p' "$logs/$name" |
            tr '\n' ' ')"
}
# hash NAME KIND PROGRAM: all of a kind have one
declare -A want
hashed() {
    local most=20
    [ -z "$ranks" ] || most=40
    train "$1" "$2" $most "$3" --steps 6 --hash && ends || return
    local sum=$(sed -n 's/^sha256 //p' "$logs/$name") type=$4
    want[$type]=${want[$type]:-$sum}
    if [ ${#sum} != 64 ]; then fault "no hash: $(last)"
    elif [ "$sum" != "${want[$type]}" ]; then fault "${sum:0:12}, not ${want[$type]:0:12}; losses $(losses)"
    elif grep -q 'no graph' "$logs/$name"; then fault "$(grep -m 1 'no graph' "$logs/$name")"
    else pass "${sum:0:12}; losses $(losses)"; fi
}
# timed NAME KIND LIMIT PROGRAM [STEPS]: the median step behind the first five, and the card's state in those steps
timed() {
    local steps=${5:-25}
    still
    train "$1" "$2" "$3" "$4" --steps "$steps" && ends || { go_on; return; }
    go_on
    sed -n '/"event":"step"/s/.*"ms":\([0-9.]*\).*"time":\([0-9.]*\).*/\1 \2/p' "$logs/$name.log" >"$work/steps"
    from=$(sed -n "5s/.* //p" "$work/steps") to=$(sed -n '$s/.* //p' "$work/steps")
    local ms=$(tail -n +6 "$work/steps" | cut -d' ' -f1 | middle)
    local beside=$(sed -n 's/.*"library_bytes":\([0-9]*\).*/\1/p' "$logs/$name.log")
    pass "$ms ms, $(rate "$4" "$ms"); $(predicted "$4" "$ms")$((${beside:-0} >> 20)) MiB beside the arena; $(
        grep -m 1 -i 'no graph' "$logs/$name")"
}
rate() {        # PROGRAM MS
    awk -v name="$1" -v ms="$2" '$1 == name { printf "%.0f %s/s", $2 / ms * 1e3, $3
        if ($4 > 0) printf ", %.1f TFLOP/s", $4 / ms / 1e9 }' "$kit/timed"
}
predicted() {
    local said=$(awk -v name="$1" -v card="$model" -v ms="$2" '$1 == name && $2 == card && $3 > 0 {
        printf "predicted for an %s %s ms (%s), measured %.2f of it; ", card, $3, $4, ms / $3 }' "$kit/predicted")
    echo "${said:-no prediction for this card; }"
}

# ---- PyTorch ------------------------------------------------------------------------------------------------------------
# torch_begin ARGUMENT...: compiles, says `ready`, waits for `go`, and then is timed
torch_begin() {
    export TORCHINDUCTOR_CACHE_DIR=$work/inductor
    set -m
    "$python" "$kit/torch_side.py" "$work" "$@" >"$logs/torch.$1" 2>&1 </dev/null &
    torch=$!
    set +m
}
still() { [ -z "$torch" ] || kill -STOP -- "-$torch" 2>/dev/null; }
go_on() { [ -z "$torch" ] || kill -CONT -- "-$torch" 2>/dev/null; }
torch_timed() { # NAME LIMIT
    name=$1 from=$(now)
    local limit=$(($2 < total - SECONDS ? $2 : total - SECONDS))        # it has compiled already
    local end=$((SECONDS + limit))
    while kill -0 "$torch" 2>/dev/null && [ "$SECONDS" -lt "$end" ]; do
        [ ! -e "$work/ready" ] || [ -e "$work/go" ] || { from=$(now); touch "$work/go"; }
        sleep 0.1
    done
    to=$(now)
    if kill -0 "$torch" 2>/dev/null; then
        fault "does not end in $limit s; $(tail -n 1 "$logs/$name" | cut -c 1-200)"
        kill -KILL -- "-$torch" 2>/dev/null
    else
        wait "$torch" && status=0 || status=$?
        if [ "$status" = 0 ]; then pass "$(grep '^step ' "$logs/$name" | tr '\n' ';')"
        elif [ "$status" = 3 ]; then skip "$name" "$(tail -n 1 "$logs/$name")"
        else fault "status $status: $(tail -n 1 "$logs/$name" | cut -c 1-200)"; fi
    fi
    torch=
}

# ---- libraries and data -------------------------------------------------------------------------------------------------
wheels=$("$python" -c 'import nvidia; print(*nvidia.__path__)' 2>/dev/null)
paths=$kit/lib:
for folder in $(for w in $wheels; do echo "$w/cu13/lib" "$w"/*/lib; done) /usr/local/cuda/lib64 /usr/local/cuda*/lib64 \
    /usr/local/cuda*/lib /opt/cuda/lib64; do
    [ ! -d "$folder" ] || paths=$paths$folder:
done
export LD_LIBRARY_PATH=$paths${LD_LIBRARY_PATH:-}
# FILE TYPE LOW HIGH DIM...: NumPy arrays, and tokens as llm.c has them; large arrays repeat a block
make_data() {
    cp "$kit/text" "$data"
    timeout 60 "$python" - "$kit/arrays" "$data" <<'PYTHON'
import array, random, struct, sys
random.seed(1)
for row in open(sys.argv[1]):
    name, kind, low, high, *dims = row.split()
    low, high, dims = int(low), int(high), [int(d) for d in dims]
    n = 1
    for d in dims:
        n *= d
    code = {"f4": "f", "i4": "i", "u1": "B", "tokens": "H"}[kind]
    block = [random.uniform(low, high) if kind == "f4" else random.randrange(low, high) for _ in range(min(n, 100003))]
    some = array.array(code, block)
    with open(sys.argv[2] + "/" + name, "wb") as f:
        if kind == "tokens":
            f.write(struct.pack("<256i", 20240520, 1, n, *[0] * 253))
        else:
            order = "|" if kind == "u1" else "<"
            text = "{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }" % (order, kind,
                                                                                  "".join("%d, " % d for d in dims))
            f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.encode().ljust(117) + b"\n")
        for at in range(0, n, len(block)):
            f.write(some[:min(len(block), n - at)].tobytes())
PYTHON
}
libraries() {
    name=libraries from=$(now) to=$from
    for program in "$kit"/bin/*; do
        ldd "$program" 2>&1 | sed -n "s|^[ \t]*\(.*\) => not found|\1|p" | while read -r library; do
            echo "$library ${program##*/}"; done
    done >"$logs/missing"
    local missing=$(cut -d' ' -f1 "$logs/missing" | sort | uniq -c | awk '{ printf "%s for %d programs; ", $2, $1 }')
    if [ -z "$missing" ]; then pass "all there"; return; fi
    fault "not here: $missing"
    # what is here may do when the program is built here
    if [ ! -d "$kit/folder" ] || ! command -v make >/dev/null; then skip rebuild "no make, or no folder in the kit"; return; fi
    go rebuild rebuild 120 make -s -C "$kit/folder" train && ends || return
    pass "gpt2-most is built here"
    cp "$kit/folder/train" "$kit/bin/gpt2-most"
}
basics() {
    libraries
    go device basics 10 "$kit/bin/device" && ends && pass "$(head -n 1 "$logs/device" | cut -c 3-)"
    cp "$logs/device" "$out/device.yaml" 2>/dev/null
    [ -n "$model" ] || model=$(known "$(head -n 1 "$logs/device" 2>/dev/null)")
    go version basics 10 "$kit/bin/bits.bf16.1" --version && ends && pass "$(tr '\n' ' ' <"$logs/version" | cut -c 1-300)"
    name=data from=$(now)
    make_data >"$logs/data" 2>&1 && status=0 || status=$?
    to=$(now)
    ends && pass "$(du -sm "$data" | cut -f1) MB"
}
# sanitized NAME TOOL PROGRAM OPTION...
sanitizer=$(command -v compute-sanitizer ||
    ls /usr/local/cuda*/bin/compute-sanitizer /opt/cuda/bin/compute-sanitizer 2>/dev/null | head -n 1)
sanitized() {
    local tool=$1 program=$2
    shift 2
    if [ -z "$sanitizer" ]; then skip "$tool.$program" "no compute-sanitizer"; return; fi
    go "$tool.$program" "$tool" 60 "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 5 "$@" "$kit/bin/$program" \
        --steps 1 --quiet --no-checkpoint || return
    if [ "$status" = 0 ]; then pass "nothing found"
    else fault "status $status: $(grep -m 2 '=====' "$logs/$name" | tr '\n' ' ')"; fi
}

# counted PROGRAM: Nsight Compute's time of each kernel of the second step; the slowest names in the line, all in the log
counter=$(command -v ncu || ls /usr/local/cuda*/bin/ncu /opt/nvidia/nsight-compute/*/ncu 2>/dev/null | head -n 1)
counted() {
    if [ -z "$counter" ]; then skip "ncu.$1" "no ncu"; return; fi
    go "ncu.$1" ncu 90 "$counter" --clock-control none --metrics gpu__time_duration.sum --csv --page raw --print-units base \
        "$kit/bin/$1" --steps 2 --quiet --no-checkpoint --log "$logs/ncu.$1.log" || return
    ends && pass "$("$python" - "$logs/$name" 2>"$logs/$name.kernels" <<'PYTHON'
import collections, csv, sys
rows = list(csv.reader(l for l in open(sys.argv[1]) if l.startswith('"')))
name, time = rows[0].index("Kernel Name"), rows[0].index("gpu__time_duration.sum")
runs = [(r[name], float(r[time].replace(",", "")) / 1e6) for r in rows[2:]]
# Both steps have the same kernels; some calls run once before them.  A kernel that ran twice tells how long a step is.
at, total, times = collections.defaultdict(list), collections.Counter(), collections.Counter()
for i, (n, t) in enumerate(runs):
    at[n].append(i)
apart = collections.Counter(p[1] - p[0] for p in at.values() if len(p) == 2).most_common(1)
runs = runs[-apart[0][0]:] if apart else runs
for n, t in runs:
    total[n] += t
    times[n] += 1
for n, t in total.most_common():
    print("%8.3f ms %4d of %8.1f us  %s" % (t, times[n], 1e3 * t / times[n], n), file=sys.stderr)
print("%d kernels, %.2f ms;" % (len(runs), sum(total.values())),
      "; ".join("%s %.2f" % (n.split("(")[0][-48:], t) for n, t in total.most_common(8)))
PYTHON
)"
}

# a time for every row, an algorithm for every product
profiled() {
    local timed=$(grep -c '^op [0-9]* [1-9]' "$logs/$name")
    local chosen=$(sed -n 's/^algorithm \([0-9]*\) .*/\1/p' "$logs/$name" | sort -u | wc -l)
    if [ "$1" != kernels ]; then pass "$(grep -h -e '^sign ' -e ' 16777216 ' -e '^message 4 ' "$logs/$name" | tr '\n' ';')"
    elif [ "$timed $chosen" = "$rows $products" ]; then pass "$timed rows, $chosen algorithms"
    else fault "$timed of $rows rows have a time, $chosen of $products products an algorithm"; fi
}

part_gpt2() {
    synced sync.f32 bits.f32.1
    synced sync.bf16 bits.bf16.1
    selftest bits.bf16.1 selftest
    selftest bits.f32.1 selftest
    timed gpt2-most gpt2 40 gpt2-most
    [ ! -e "$kit/bin/gpt2-profiled" ] || timed gpt2-profiled gpt2 40 gpt2-profiled
    timed gpt2-auto gpt2 40 gpt2-auto
    DPGEN_GRAPH=1 timed gpt2-most.graph graph 40 gpt2-most
    timed gpt2-fp8 gpt2 40 gpt2-fp8
    timed gpt2-fp8-fast gpt2 40 gpt2-fp8-fast
    still
    go product product 10 "$kit/bin/product" && ends && pass "bf16 product of 8192 cubed: $(last)"
    go_on
    torch_timed torch.gpt2 120
    counted gpt2-most
}
part_bits() {
    for plan in 1 2 3 4 2offload; do hashed "bits.bf16.$plan" bits "bits.bf16.$plan" bf16; done
    DPGEN_GRAPH=1 hashed bits.bf16.1.graph graph bits.bf16.1 bf16
    for again in 1 2 3 4 5; do hashed "bits.bf16.3.again$again" bits bits.bf16.3 bf16; done
    for plan in 1 3; do hashed "bits.f32.$plan" bits "bits.f32.$plan" f32; done
}
part_units() {
    for unit in products.bf16 attention conv products.f32 products.tf32; do
        go "unit.$unit" unit 30 "$kit/bin/unit.$unit" || continue
        case $(last) in
            *' 0 failed') if ends; then pass "$(tail -n 2 "$logs/$name" | tr '\n' ' ')"; fi ;;
            *) fault "status $status: $(last); $(head -n 1 "$logs/$name" | cut -c 1-100)" ;;
        esac
    done
}
part_examples() {
    for program in "$kit"/bin/own.*; do [ ! -e "$program" ] || selftest "${program##*/}" examples; done
}
part_memcheck() {
    sanitized memcheck bits.f32.2offload
    sanitized memcheck bits.bf16.2
}
part_more() {
    for plan in 2v 2apart; do hashed "bits.bf16.$plan" bits "bits.bf16.$plan" bf16; done
    for plan in 2 4 2offload 2v 2apart; do hashed "bits.f32.$plan" bits "bits.f32.$plan" f32; done
    for type in bf16 f32; do
        for plan in 1 2 3; do hashed "chunked.$type.$plan" chunked "chunked.$type.$plan" "chunked.$type"; done
    done
}
# processes of one job on this GPU, over the NCCL of the kit
part_nccl() {
    [ -e "$kit/lib/libnccl.so.2" ] || { skip nccl "no NCCL of 2.30.3 or later in the kit"; return; }
    ranks=2 hashed nccl.bf16.2 nccl nccl.bf16.2 bf16
    hashed pairs.bf16.local bits pairs.bf16.local pairs
    ranks=4 hashed pairs.bf16.nccl nccl pairs.bf16.nccl pairs
    DPGEN_GRAPH=1 ranks=2 hashed nccl.bf16.2.graph nccl nccl.bf16.2 bf16
}
part_profile() {
    read -r rows products <"$kit/profile"
    for mode in sign kernels messages; do
        still
        go "profile.$mode" profile 70 "$kit/bin/profile" $mode && ends && profiled $mode
        go_on
    done
    still
    go passes passes 30 "$kit/bin/passes" && ends && pass "$(tr '\n' ';' <"$logs/passes")"
    go_on
}
part_images() {
    [ -n "$torch" ] || torch_begin resnet50 256
    timed resnet50.204MiB images 60 resnet50.204MiB
    timed resnet50.512MiB images 60 resnet50.512MiB
    timed resnet50.bytes images 60 resnet50.bytes
    torch_timed torch.resnet50 150
    counted resnet50.512MiB
}
part_large() { timed gpt2-1558m large 120 gpt2-1558m 10; }
part_kernels() {
    for type in bf16 f32; do
        go "kernels.$type" kernels 60 "$kit/bin/kernels.$type" && ends && pass "$(last)"
    done
}
# kernels of libraries on Hopper have barriers of their own, which racecheck takes for races, and they are slow under it
part_races() {
    for program in bits.f32.2offload bits.bf16.2; do
        sanitized racecheck "$program" --kernel-name-exclude kns=cutlass --kernel-name-exclude kns=nvjet \
            --kernel-name-exclude kns=xmma --kernel-name-exclude kns=cudnn --kernel-name-exclude kns=gemm
        sanitized initcheck "$program"
    done
}
case " $parts " in *' gpt2 '*) torch_begin gpt2 32 ;; *' images '*) torch_begin resnet50 256 ;; esac
basics
for part in $parts; do part_$part; done
