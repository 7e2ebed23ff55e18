#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# How often dpgen calls one of its functions: a breakpoint of gdb that never stops.  The binary needs its symbols (make dpgen).
#
#   bench/corpus/runs.sh [-b DPGEN] [-f FUNCTION] ARGUMENT...       # FUNCTION: passes.c:run, all passes once, one plan
#
#   bench/corpus/runs.sh plan examples/gpt2-124m.yaml --estimate --stages 4 --offload auto --limit 1100MiB --json
usage() { sed -n 's/^#   //p' "$0" >&2; exit 2; }
binary=./dpgen function=passes.c:run
while getopts b:f: option; do
    case $option in b) binary=$OPTARG ;; f) function=$OPTARG ;; *) usage ;; esac
done
shift $((OPTIND - 1))
[ $# != 0 ] || usage
command -v gdb >/dev/null || { echo "runs: gdb is not there (Debian: apt-get install gdb)" >&2; exit 2; }
case $binary in */*) ;; *) binary=./$binary ;; esac
gdb -q -nx -batch -ex 'set confirm off' -ex 'set debuginfod enabled off' -ex 'set breakpoint pending off' \
    -ex 'set startup-with-shell off' -ex "break $function" -ex 'ignore 1 1000000000' -ex run -ex 'info breakpoints' \
    --args "$binary" "$@" 2>&1 |
    awk -v f="$function" '
        /^No (source file|symbol)|^Function .* not defined/ && !n { print "runs: " $0; failed = 1 }
        /breakpoint already hit/ { for (i = 1; i < NF; i++) if ($i == "hit") n += $(i + 1) }
        /exited (normally|with code)/ { how = $0; sub(/.*exited/, "exited", how); sub(/\].*/, "", how) }
        END { if (failed || how == "") { if (!failed) print "runs: the program did not end"; exit 2 }
              printf "%d calls of %s, %s\n", n, f, how }'
