#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every option that names what is written, of every program: an empty name; each input of the command, by its name, by a hard
# and by a symbolic link; another output; a folder that is missing; a disk that is read-only or full; a limit on the size of
# files.  The status is the documented one, every file is as it was, and nothing is left.  Options come from the tables in the
# sources (option_rows.c), so that a new one without a row here is a fault.  SLOW=1 asks about each input, not the first alone.
#
# Disks are mounts of a namespace of its own; without the right to make one those cases are skipped by name.
if [ -z "${PATHS_APART:-}" ]; then
    for unshare in "unshare -m" "unshare -rm"; do
        $unshare sh -c 'mount -t tmpfs none /mnt' 2>/dev/null || continue
        PATHS_APART=yes exec $unshare env PATHS_APART=yes "$0" "$@"
    done
    PATHS_APART=no
fi
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a build/libgen.a
use_portable
trap 'umount "$tmp/w/disk" 2>/dev/null; rm -rf "$tmp"' EXIT
dpgen="timeout 600 $root/dpgen"
build() {
    said=$(generate "$tmp/$1" "$models/tiny-gpt.yaml" --stages 1 --set "$2" && compile "$tmp/$1")
    [ -z "$said" ] || { fault "no job: $said"; finish; }
}
build one plan.offload=none
build away "plan.offload={to: disk, what: ['*']}"
build beside "adapt={match: h.0.attn.c_attn, rank: 2}"

# ---- the tables ----------------------------------------------------------------------------------------------------
# rows COMMAND SOURCE: `COMMAND OPTION KIND`
rows() {
    case $2 in
    rt/*) side="-DJOB -Irt/sample" library=build/librt.a ;;
    *) side=-Igen library="build/libgen.a -lyaml -ldl" ;;
    esac
    names=$(sed -n 's/^\(static \)*const \(Job\)*Option \([a-z_]*\)\[\] = .*/\3/p' "$2")
    $own_cc -D_GNU_SOURCE $side -I. -Irt -std=c11 -O0 -DSOURCE="\"$2\"" -DTABLE="$names" -o "$tmp/rows" tests/option_rows.c \
        $library -lpthread -lm 2>"$tmp/rows.log" || fault "$2: $(grep -m 1 error "$tmp/rows.log")"
    "$tmp/rows" | sed "/ elsewhere$/d; s/^/$1 /"
}
{
    rows train rt/options.c
    rows sample rt/sample/sample.c
    rows serve rt/serve/serve.c         # tests/serve.sh asks about its --out
    rows pack gen/pack/file.c
    rows tokens gen/tokens/tokens.c
    rows import gen/huggingface/import.c
    rows export gen/huggingface/export.c
    rows model gen/options.c | while read -r _ option kind; do      # each command that has a use for it
        for command in model check plan explain compare schedules profile report metrics; do
            case $command in model) word= ;; explain) word="explain x" ;; *) word=$command ;; esac
            $dpgen $word x "$option" f 2>&1 | grep -q "no use for $option" || echo "$command $option $kind"
        done
    done
} >"$tmp/table"
while read -r command option kind; do       # a command with a table of its own has its options in options.def too, for --help
    case $command in
    pack | tokens | import | export)
        expect "$command --help names $option" sh -c '$1 "$2" --help | grep -q -e "^  $3 "' - "$dpgen" "$command" "$option" ;;
    esac
done <"$tmp/table"
for file in $(grep -l '^[a-z ]*const \(Job\)*Option [a-z_]*\[\] = ' gen/*.c gen/*/*.c rt/*.c rt/*/*.c); do
    expect "a row asks about the table of $file" grep -q "^    rows .* $file" "$0"
done
expect "dpgen-verify writes no file" sh -c \
    '! grep -n -e "fopen(.*\"[wa]" -e "open(.*O_[WRC]" -e "rename(" -e "mkdir(" verify/*.c verify/model/*.c'

# ---- the commands --------------------------------------------------------------------------------------------------
mkdir "$tmp/w" && cd "$tmp/w" || exit 2
cp "$data" text && cp "$models/tiny-gpt.yaml" net.yaml && cp "$root/tests/ref/tokens/gpt2.json" tok.json
sed -n "s/^config //p" "$root/tests/hf/gpt2" >config.json && cp "$root/tests/graphs/branch.onnx" net.onnx
printf 'id,lower,upper,size\na,0,2,4\nb,1,3,4\n' >pack.csv
"$tmp/one/job" --quiet --data text --checkpoint ck --steps 1 --export pub --trace trace --log log \
    >said 2>&1 || fault "no job runs"
"$tmp/beside/job" --quiet --data text --checkpoint adapted --steps 1 >said 2>&1 || fault "no job with adapters runs"
mv pub/model.safetensors weights && rmdir pub && mkdir out && cp "$tmp/one/report.html" out
train="--quiet --data text --weights weights --steps 1"
# call COMMAND OPTION VALUE
call() {
    case $1:$2 in
    train:--checkpoint) timeout 60 "$tmp/one/job" $train "$2" "$3" ;;
    train:--offload-dir) timeout 60 "$tmp/away/job" $train --no-checkpoint "$2" "$3" ;;
    train:*) timeout 60 "$tmp/one/job" $train --no-checkpoint "$2" "$3" ;;
    pack:*) $dpgen pack pack.csv "$2" "$3" ;;
    tokens:*) $dpgen tokens --tokenizer tok.json text "$2" "$3" ;;
    import:*) $dpgen import ${from:-config.json} "$2" "$3" ;;
    export:--adapter) $dpgen export adapted "$2" "$3" ;;
    export:*) $dpgen export ck "$2" "$3" ;;
    model:*) $dpgen net.yaml --estimate --planner even "$2" "$3" ;;
    compare:*) $dpgen compare net.yaml --estimate --quick --planners even "$2" "$3" ;;
    schedules:*) $dpgen schedules net.yaml --estimate --csv gpipe "$2" "$3" ;;
    profile:*) $dpgen profile net.yaml "$2" "$3" ;;
    report:*) $dpgen report out --trace trace "$2" "$3" ;;
    metrics:*) $dpgen metrics log "$2" "$3" ;;
    *:--from | *:--devices | *:--trace | *:--planners | *:-d | check:* | plan:*) $dpgen $1 net.yaml "$2" "$3" ;;
    explain:*) $dpgen explain net.yaml loss "$2" "$3" ;;
    *) echo "no row of this test knows how to ask" ;;
    esac
}
inputs() {
    case $1:$2 in
    train:*) echo text weights ;;
    tokens:*) echo text tok.json ;;
    import:*) echo config.json ;;
    export:--adapter) echo adapted/step-000001/stage0.safetensors adapted/step-000001/index.json ;;
    export:*) echo ck/step-000001/stage0.safetensors ck/step-000001/index.json ;;
    report:*) echo trace out/report.html ;;
    metrics:*) echo log ;;
    pack:*) ;;                  # it may be written over: all columns are kept
    *) echo net.yaml ;;
    esac
}
# Where in the value the first file lies
ending() {
    case $1:$2:$3 in
    *:checkpoints) echo /lock ;;
    export:--adapter:*) echo /${file_of_adapters:-adapter_model.safetensors} ;;
    *:published | export:*) echo /model.safetensors ;;
    *:by_stage) echo .stage0 ;;
    metrics:*) echo /events.out.tfevents.0.dpgen ;;
    esac
}
state() {
    find . ! -type f | sort
    find . -type f -exec cksum {} + | sort
}
# wanted WHAT STATUS COMMAND...: it ends so, a line says why, and every file is as it was
wanted() {
    what=$1 want=$2 before=$(state)
    shift 2
    { "$@" </dev/null; echo $? >"$tmp/status"; } 2>&1 | cat >"$tmp/said"
    got=$(cat "$tmp/status") after=$(state)
    if [ "$got" != "$want" ]; then fault "$what: status $got, not $want: $(tail -n 1 "$tmp/said")"
    elif [ ! -s "$tmp/said" ]; then fault "$what: nothing says why"
    elif [ "$after" != "$before" ]; then
        echo "$before" >"$tmp/before"
        echo "$after" | diff "$tmp/before" - | sed -n 's/^[<>].*/&/p' | tr '\n' ' ' >"$tmp/differ"
        fault "$what: $(cat "$tmp/differ")"
    else pass; fi
}
# small COMMAND...: no file may be longer than it is
small() { (ulimit -f 0; "$@"); }

# an_input COMMAND OPTION KIND FILE: what is written is that file
an_input() {
    at=$(ending "$1" "$2" "$3")
    status=2
    case $1:$2 in export:* | train:--offload-dir) status=1 ;; esac      # a file in place of the folder
    [ "$at" ] || wanted "$1 $2 $4" $status call "$1" "$2" "$4"
    for way in "ln -f" "ln -sf"; do
        mkdir -p links
        to=links/to$at
        case $at in /*) mkdir -p links/to ;; esac
        case $way in *s*) $way "$PWD/$4" "$to" ;; *) $way "$4" "$to" ;; esac
        case $1 in export) status=2 ;; esac
        wanted "$1 $2, $way $4" $status call "$1" "$2" links/to
        rm -rf links
    done
}
# A page of the disk, so that a longer one needs another
old_file() { { head -c 4095 text | tr '\n' ' ' && echo; } >"$1"; }
# hardware COMMAND OPTION KIND: places that take nothing
hardware() {
    at=$(ending "$1" "$2" "$3")
    status=1
    case $1:$2 in train:--log) status=0 ;; esac     # the job goes on, and says that metrics are lost
    case $at in /*) mkdir -p old ;; esac
    case $1:$2:$3 in *:checkpoints | *:folder | *:published | model:*) ;; *) old_file "old$at" ;; esac
    wanted "$1 $2 under ulimit -f" $status small call "$1" "$2" old
    rm -rf old old.*
    [ $PATHS_APART = yes ] || { skip "$1 $2, a disk: no namespace of mounts" 2; return; }
    mkdir -p disk && mount -t tmpfs -o size=4m none disk || { fault "no disk"; return; }
    case $at:$2 in /* | *:--offload-dir) mkdir disk/old ;; esac
    case $1:$2:$3 in *:checkpoints | *:folder | *:published | model:*) ;; *) old_file "disk/old$at" ;; esac
    cat /dev/zero >disk/filler 2>/dev/null
    wanted "$1 $2 on a full disk" $status call "$1" "$2" disk/old
    if [ "$1" != model ] && { [ "$3" = output ] || [ "$at" = .stage0 ]; }; then
        ln -s "old$at" "disk/link$at"
        wanted "$1 $2 by a link on a full disk" $status call "$1" "$2" disk/link
        rm "disk/link$at"
    fi
    rm disk/filler
    if [ "$1" != profile ] || [ "${SLOW:-}" ]; then expect "$1 $2, when there is room again" call "$1" "$2" disk/old; fi
    case $1 in export) rm -r disk/old ;; esac
    mount -o remount,ro disk
    wanted "$1 $2 on a disk that is read-only" 1 call "$1" "$2" disk/old
    umount disk && rmdir disk
}

while read -r command option kind; do
    wanted "$command $option, an empty name" 2 call "$command" "$option" ""
    case $kind in input | text) continue ;; esac
    for file in $(inputs "$command" "$option" | if [ "${SLOW:-}" ]; then cat; else sed 's/ .*//'; fi); do
        an_input "$command" "$option" "$kind" "$file"
    done
    status=1
    case $command:$option in model:*) status=1 ;; esac
    wanted "$command $option, a folder that is missing" $status call "$command" "$option" missing/folder/x
    hardware "$command" "$option" "$kind"
done <<END
$(grep -v -e ' number$' -e ' flag$' -e '^sample' -e '^serve' "$tmp/table")
END
# ---- two outputs of a job: each pair, where the second names the file of the first ---------------------------------
written() { grep '^train .* \(output\|checkpoints\|published\|by_stage\)$' "$tmp/table"; }
written | while read -r _ first kind; do
    written | while read -r _ second other; do
        [ "$other" != output ] || [ "$first" = "$second" ] || echo "$first one $second one$(ending train "$first" "$kind")"
    done
done >"$tmp/pairs"
expect "nine pairs" test "$(wc -l <"$tmp/pairs")" -ge 9
while read -r pair; do
    case $pair in *--checkpoint*) none= ;; *) none=--no-checkpoint ;; esac
    wanted "train $pair" 2 timeout 60 "$tmp/one/job" $train $none $pair
done <"$tmp/pairs"

# ---- what no option names ------------------------------------------------------------------------------------------
cp net.onnx graph.onnx && ln -s graph.onnx graph.safetensors
wanted "import: the weights beside the model are the graph" 2 $dpgen import graph.onnx -o graph.yaml
rm graph.onnx graph.safetensors
wanted "new, over a model" 2 $dpgen new net
wanted "new, a limit" 1 small $dpgen new fresh
refused() {
    what=$1 text=$2
    shift 2
    wanted "$what" 2 "$@"
    if grep -q -e "$text" "$tmp/said"; then pass; else fault "$what: no word of $text"; fi
}
mkdir bare like && cp config.json like
file_of_adapters=adapter_config.json
an_input export --adapter folder adapted/step-000001/index.json
for file in adapter_model.safetensors adapter_config.json; do
    : >bare/$file
    refused "--adapter beside others" "bare has $file already; name another folder" $dpgen export adapted --adapter bare
    rm bare/$file
done
refused "--like of nothing" "--like nothing: No such file" $dpgen export ck --hf to --like nothing
refused "--like of no model" "neither weights nor config.json" $dpgen export ck --hf to --like bare
refused "--like of the new folder" "is the folder to write" $dpgen export ck --hf like --like ./like
refused "--shard of --like" "not of --shard" sh -c 'echo "{\"weight_map\": {}}" >bare/model.safetensors.index.json
    "$@"; status=$?; rm bare/model.safetensors.index.json; exit $status' - $dpgen export ck --hf to --like bare --shard 1MB
for size in 20000 "20 kB" 19.53125KiB; do
    $dpgen export ck --hf "to$size" --shard "$size" >"$tmp/said" 2>&1
    expect "--shard $size" diff -r to20000 "to$size"
done
expect "several shards" test -e to20000/model-00002-of-*.safetensors
refused "--shard of no number" "'5XB' is no number with a known unit" $dpgen export ck --hf to --shard 5XB
refused "--shard beyond count" "is more than can be counted" $dpgen export ck --hf to --shard 1000000000000000000000
rm -rf to20* to19*
cp pack.csv packed.csv && ln -s packed.csv packed
expect "pack keeps all columns, through a link" $dpgen pack packed.csv -o packed
expect "the link stays" test -L packed
expect "and the file is packed" grep -q '^id,lower,upper,size,offset$' packed.csv
$dpgen schedules net.yaml --estimate --csv gpipe -o /dev/stdout >"$tmp/csv" 2>&1
expect "the standard output is written to, and not replaced" grep -q 0F0 "$tmp/csv"

# ---- a data file that is cut while a job reads it; a line that a crash has cut -------------------------------------
head -c 3000000 /dev/zero >cut
timeout 60 "$tmp/one/job" --quiet --data cut --no-checkpoint --steps 100000000 --log cut.log >shrank 2>&1 & job=$!
until [ -s cut.log ] || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
: >cut
wait $job
expect "a data file shrinks" test $? = 1
expect "it says so" grep -qx "train: data cut shrank while it was read: it must keep its bytes until the end" shrank
printf '{"event":"step","st' >torn
timeout 60 "$tmp/one/job" $train --no-checkpoint --log torn >"$tmp/said" 2>&1
expect "a torn log ends its line" test "$(sed -n 2p torn | cut -c 1-16)" = '{"event":"start"'

# ---- two at once -----------------------------------------------------------------------------------------------------
mkdir to
refuse "export beside another one" 1 "another dpgen writes to to; name another folder" flock to $dpgen export ck --hf to
rmdir to
if [ "$PATHS_APART" = yes ]; then
    mkdir disk && mount -t tmpfs -o size=100k none disk
    wanted "export, a disk that has room for some shards" 1 $dpgen export ck --hf disk/to --shard 20kB
    umount disk && rmdir disk
fi
for option in --export --gradients --trace --dump-arena; do
    for round in 1 2 3; do
        call train $option both >first 2>&1 & one=$!
        expect "$option of two jobs at once: the second" call train $option both
        wait $one
        expect "$option of two jobs at once: the first" test $? = 0
        rm -r both*
    done
done
# Each ends well, or with a line that says what the other does, and no part is left
[ -z "${SLOW:-}" ] || grep -e output -e folder -e published -e by_stage -e checkpoints "$tmp/table" >"$tmp/written"
for gap in ${SLOW:+0 0.1 1}; do
    while read -r command option kind; do
        case $option in --offload-dir) mkdir both ;; esac
        call $command $option both >first 2>&1 & one=$!
        sleep $gap
        call $command $option both >second 2>&1
        here=$?
        wait $one
        there=$?
        for end in "$here second" "$there first"; do
            case $end in
            0\ *) pass ;;
            124\ *) fault "$command $option, two at once, $gap s apart: no end" ;;
            *) expect "$command $option, two at once, $gap s apart: $end" \
                grep -q -e "another" -e "already" -e resume ${end#* } ;;
            esac
        done
        left=$(find . -name '*.part*' -o -name '*.bench' -o -name '*.old-*')
        expect "$command $option, two at once: what is left" test -z "$left"
        rm -rf both* net.cpu.profile
    done <"$tmp/written"
done

cd "$root" || exit 2
finish
