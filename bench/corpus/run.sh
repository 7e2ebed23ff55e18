#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Plans every case of bench/corpus/cases with one binary: is a plan of another binary better, and is it found in less time?
#
#   bench/corpus/run.sh [-b DPGEN] [-o RESULTS] [-c BASE] [NAME...]
#
# A line of RESULTS is: name, exit status, predicted step in ns, sum of all arenas in bytes, user and system seconds of the
# processor, largest resident memory in KiB.  Seconds and memory are those of getrusage(), which /usr/bin/time prints.  A case
# is stopped after 120 s of the processor; its status is then above 128.
#
# Examples on four CPUs are priced with kernels: onednn, which they named when the first RESULTS were made.
#
# With -c, RESULTS of another binary, both are compared: a ratio above 1 means that this binary is worse.  A case is worse if
# its step is longer, if its plan is gone, or if it was stopped.  The exit status is 1 if any case is worse.
cd "$(dirname "$0")/../.." || exit 2
export LC_ALL=C
binary=./dpgen out="" base=""
while getopts b:o:c: option; do
    case $option in
        b) binary=$OPTARG ;; o) out=$OPTARG ;; c) base=$OPTARG ;;
        *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
stop() { echo "corpus: $1" >&2; exit 2; }
[ -x /usr/bin/time ] || stop "/usr/bin/time is not there (Debian: apt-get install time)"
[ -x "$binary" ] || stop "$binary is no program: make dpgen, or name one with -b"
[ -z "$base" ] || [ -r "$base" ] || stop "$base cannot be read"
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# Weights that two stages read have no versions: the models of untied/ have two weights for each tied one.
mkdir "$tmp/untied"
for file in examples/*.yaml; do sed 's/, tie: [a-z_.]*//' "$file" >"$tmp/untied/${file#*/}"; done

set -f                                  # 1f1b* and [1] are no patterns
plan() {        # NAME MODEL OPTION...: one line
    name=$1 model=$2
    shift 2
    case $model in untied/*) model=$tmp/$model ;; esac
    case " $* " in
    *" --devices "*) ;;
    *) if grep -q 'count: 4, memory: 32GiB, threads: 2}' "$model"; then set -- "$@" --set devices.0.kernels=onednn; fi ;;
    esac
    (ulimit -t 120
     exec /usr/bin/time -q -o "$tmp/cost" -f '%U %S %M' "$binary" plan "$model" "$@" --estimate --json) \
        >"$tmp/plan" 2>/dev/null
    awk -v name="$name" -v status=$? '
        function value(key) { match($0, "\"" key "\": [0-9]+"); return substr($0, RSTART + length(key) + 4) + 0 }
        FILENAME ~ /cost$/ { if (NF == 3) { seconds = $1 + $2; kib = $3 } next }
        /"step_ns"/ && step == "" { step = sprintf("%.0f", value("step_ns")) }
        /"arena_bytes"/ { arenas += value("arena_bytes") }
        END { if (step == "") { step = "-"; arenas = "-" } else arenas = sprintf("%.0f", arenas)
              printf "%-24s %3d %13s %12s %7.2f %8d\n", name, status, step, arenas, seconds, kib }' "$tmp/cost" "$tmp/plan"
}
wanted=" $* "
echo "# case, status, step ns, arenas bytes, processor s, resident KiB" >"$tmp/results"
while read name arguments; do            # without -r: a line may go on behind a backslash
    case $name in '' | '#'*) continue ;; esac
    case $wanted in '  ' | *" $name "*) ;; *) continue ;; esac
    plan "$name" $arguments </dev/null | tee -a "$tmp/results" >&2
done <bench/corpus/cases
grep -q -v '^#' "$tmp/results" || stop "no such case in bench/corpus/cases: $*"
awk '!/^#/ { n++; s += $5; if ($5 > most) { most = $5; name = $1 } }
    END { printf "# %d cases, %.1f s of the processor, slowest %s %.2f s\n", n, s, name, most }' "$tmp/results" >"$tmp/last"
cat "$tmp/last" >>"$tmp/results"
if [ -n "$out" ]; then cp "$tmp/results" "$out" || exit 2; fi
if [ -z "$base" ]; then cat "$tmp/last"; exit; fi

awk '/^#/ || NF != 6 { next }
    FNR == NR { status[$1] = $2; step[$1] = $3; seconds[$1] = $5; next }
    !($1 in status) { printf "%-24s not in the base\n", $1; next }
    {
        word = ""
        if (($3 == "-") != (step[$1] == "-")) word = $3 == "-" ? "worse" : "better"
        else if ($3 != "-") word = $3 + 0 > step[$1] + 0 ? "worse" : $3 + 0 < step[$1] + 0 ? "better" : ""
        if ($2 > 128) word = "worse"
        if ($2 != status[$1]) word = word " status " status[$1] " -> " $2
        ratio = $3 == "-" || step[$1] == "-" ? "-" : sprintf("%.6f", $3 / step[$1])
        printf "%-24s step %8s  processor %7.2f s -> %7.2f s %6s  %s\n", $1, ratio, seconds[$1], $5,
            (seconds[$1] > 0 ? sprintf("%.2f", $5 / seconds[$1]) : "-"), word
        worse += word ~ /^worse/; better += word ~ /^better/; n++
        was += seconds[$1]; is += $5
        if ($5 >= most) { most = $5; name = $1 }
    }
    END {
        if (!n) { print "no case in common"; exit 1 }
        printf "%d cases, %d worse, %d better; processor %.1f s -> %.1f s, ratio %.3f; slowest %s %.2f s\n",
            n, worse, better, was, is, (was > 0 ? is / was : 0), name, most
        exit worse > 0
    }' "$base" "$tmp/results" | sed 's/ *$//' >"$tmp/compared"
cat "$tmp/compared"
! grep -q ' worse$\| worse status' "$tmp/compared"
