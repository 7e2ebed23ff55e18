#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Plans that a checker must refuse.  Each is the text of a good plan with one thing changed that would change a bit, read
# past a buffer, or hang; dpgen --from must end with status 3 and write nothing.
cd "$(dirname "$0")/.." || exit 2
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0

base() {        # MODEL OPTIONS: the plan to damage
    model=tests/models/$1.yaml
    shift
    options=$*
    ./dpgen "$model" $options -d a >"$tmp/good" || exit 1
    if ! ./dpgen "$model" $options --from "$tmp/good" -o "$tmp/out" >"$tmp/said" 2>&1; then
        echo "wrongplan: $model $options: the undamaged plan is refused" >&2
        cat "$tmp/said" >&2
        failed=$((failed + 1))
    fi
    rm -rf "$tmp/out"
}

wrong() {       # WHAT AWK: refuse the plan that awk makes of the good one
    awk "$2" "$tmp/good" >"$tmp/bad"
    ./dpgen "$model" $options --from "$tmp/bad" -o "$tmp/out" >"$tmp/said" 2>&1
    status=$?
    if cmp -s "$tmp/good" "$tmp/bad"; then
        echo "wrongplan: $1: nothing was changed in $model" >&2
    elif [ "$status" != 3 ] || [ -e "$tmp/out" ]; then
        echo "wrongplan: $1: status $status for $model $options" >&2
        tail -n 2 "$tmp/said" >&2
    else
        passed=$((passed + 1))
        return
    fi
    rm -rf "$tmp/out"
    failed=$((failed + 1))
}

once='!done && '        # change the first line that fits

base mlp
wrong 'an accumulate flag dropped'      "$once"'/^action 0 kind=B .*acc=1/ { sub(/ acc=1/, ""); done = 1 } 1'
wrong 'every buffer one byte'           '/^buf/ { sub(/ bytes=[0-9]+/, " bytes=1") } 1'
wrong 'a state buffer too small'        "$once"'/^buf 0:fc2.weight / { sub(/ bytes=64/, " bytes=60"); done = 1 } 1'
wrong 'the wrong input loaded'          "$once"'/^action 0 kind=load/ { sub(/ input=0/, " input=1"); done = 1 } 1'
wrong 'a handle that was not opened'    "$once"'/^call 0:chunk0_forward .*handle=0/ {
    sub(/handle=0/, "handle=99"); done = 1 } 1'
wrong 'a result over its operand'       "$once"'/^buf 0:d.act / { sub(/ offset=[0-9]+/, " offset=" at); done = 1 }
    /^buf 0:act_r / { match($0, / offset=[0-9]+/); at = substr($0, RSTART + 8, RLENGTH - 8) } 1'
wrong 'a result over an operand that ends there' "$once"'/^buf 0:d.fc1.t2 / { sub(/ offset=[0-9]+/, " offset=" at); done = 1 }
    /^buf 0:d.act / { match($0, / offset=[0-9]+/); at = substr($0, RSTART + 8, RLENGTH - 8) } 1'
wrong 'a buffer outside the arena'      "$once"'/^buf 0:act / { sub(/ offset=[0-9]+/, " offset=99999999"); done = 1 } 1'
wrong 'a buffer over a parameter'       "$once"'/^buf 0:act / { sub(/ offset=[0-9]+/, " offset=128"); done = 1 } 1'
wrong 'a slot of another micro-batch'   "$once"'/^action 0 kind=F chunk=0 mb=1 / {
    sub(/ slots=[0-9,]+/, " slots=0,0,0"); done = 1 } 1'
wrong 'a computation too many'          "$once"'/^action 0 kind=F chunk=0 mb=0/ { print; done = 1 } 1'
wrong 'a computation too few'           "$once"'/^action 0 kind=B chunk=0 mb=1/ { done = 1; next } 1'
wrong 'an update left out'              "$once"'/^action 0 kind=U .*part=4/ { done = 1; next } 1'
wrong 'partial norms not gathered'      '/^action 0 kind=gather/ { next } 1'
wrong 'the clip factor not sent'        '/state=clip/ && /^action/ { next } 1'
wrong 'a wait left out'                 "$once"'/^action 0 kind=wait .*of=recv tensor=d.skip/ { done = 1; next } 1'
wrong 'a receive waited for too late'   '/^action 0 kind=wait mb=0 of=recv tensor=d.skip/ { held = $0; next }
    { print } /^action 0 kind=B chunk=0 mb=0/ { print held }'
wrong 'another tag'                     "$once"'/^action 0 kind=send .*tag=0/ { sub(/tag=0/, "tag=7"); done = 1 } 1'
wrong 'a call left out'                 "$once"'/^call 0:chunk0_forward op=F:act/ { done = 1; next } 1'
wrong 'calls in another order'          '/^call 0:chunk0_backward op=I:fc2 / { held = $0; next } { print }
    /^call 0:chunk0_backward op=I:act / { print held; held = "" }'
wrong 'a message for the wrong micro-batch' "$once"'/^action 0 kind=send mb=1/ { sub(/mb=1/, "mb=0"); done = 1 } 1'
wrong 'a buffer where the call wants none' "$once"'/^call 0:chunk0_forward op=F:act / { sub(/,-$/, ",0:x"); done = 1 } 1'
wrong 'calls that nobody counted'       "$once"'/^device 0 / { sub(/ ticks=[0-9]+/, " ticks=0"); done = 1 } 1'
wrong 'a number that no call wants'     "$once"'/^routine 0:chunk0_forward / { $0 = $0 " mb=1"; done = 1 } 1'
wrong 'slots that no call uses'         "$once"'/^routine 0:chunk0_forward / { sub(/ pool=/, " pool=0:gb,"); done = 1 } 1'
wrong 'a routine without slots'         "$once"'/^action 0 kind=F / { sub(/ slots=[0-9,]+/, ""); done = 1 } 1'
wrong 'a wait for nobody'               "$once"'/^action 0 kind=wait .*of=recv/ { sub(/ peer=[0-9]+/, ""); done = 1 } 1'
wrong 'a wait for another message'      "$once"'/^action 0 kind=wait .*of=send/ { sub(/ of=send/, " of=recv"); done = 1 } 1'
wrong 'the handle of another product'   "$once"'/^call 0:chunk0_backward op=W:fc2 / { sub(/handle=2/, "handle=1"); done = 1 } 1'
wrong 'a tensor that lives for ever'    "$once"'/^buf 0:act / { sub(/ birth=F/, " birth=always"); done = 1 } 1'
wrong 'a norm on the wrong stage'       "$once"'/^place U:fc2.weight$/ { sub(/$/, " chunk=1"); done = 1 } 1'

wrong 'a time that does not follow'     "$once"'/^action 0 kind=F / { sub(/ to=[0-9]+/, " to=1"); done = 1 } 1'
wrong 'an arrival before it was sent'   "$once"'/^action 1 kind=wait .*of=recv/ { sub(/ to=[0-9]+/, " to=600"); done = 1 } 1'

base mlp --schedule 2bw
wrong 'slots of a state, and none'      "$once"'/^pool 0:values / { sub(/ count=[0-9]+/, ""); done = 1 } 1'
wrong 'slots left out of a prologue' "$once"'/^action 0 kind=F .*prologue/ { sub(/ slots=[0-9,]+/, ""); done = 1 } 1'
wrong 'another slot of an evaluation'   "$once"'/^eval 0 kind=F / { sub(/ slots=0/, " slots=1"); done = 1 } 1'

base scalar --schedule spectrain --stages 2 --set train.batch.micro=2 --set train.batch.global=2
wrong 'a receive waited for in another slot' "$once"'/^action 0 kind=wait .*of=recv/ { sub(/ slot=0/, " slot=1"); done = 1 } 1'

# Graphs likewise
base mlp
./dpgen $model -d f >"$tmp/good"
wrong 'an input that the model has not' '/^tensor labels / { sub(/ input=1/, " input=65") } 1'
wrong 'an input of another type'        '/^tensor labels / { sub(/ input=1/, " input=0") } 1'
wrong 'targets that the model has not'  '/^count 0 / { sub(/ input=1/, " input=65") } 1'
wrong 'groups without micro-batches'    '/^graph / { sub(/ groups=1/, " groups=4611686018427387904") } 1'

base tiny-gpt --stages 2 --set train.batch.global=16 --set train.batch.groups=4
wrong 'a fold into another slot'        "$once"'/^action 0 kind=fold .*into=1/ { sub(/ into=1/, ""); done = 1 } 1'
wrong 'a fold left out'                 "$once"'/^action 0 kind=fold/ { done = 1; next } 1'
wrong 'a chain in another accumulator'  "$once"'/^action 0 kind=B .*group=1/ { sub(/ group=1/, ""); done = 1 } 1'

base tiny-gpt --stages 2 --widths 1,2 --set train.batch.global=16 --set train.batch.groups=2
wrong 'a device that no width has'      "$once"'/^plan / { sub(/ devices=3/, " devices=4"); done = 1 } 1'
wrong 'a copy that nobody has'          '/^chunk 1 / { sub(/ device=2/, " device=1") } 1'
options="$options --set train.batch.micro=auto"
wrong 'a micro-batch that is left open' '{ print } END { print "# a remark" }'

base tiny-gpt --stages 2 --map 0,1,0,1 --schedule 1f1b --set train.batch.global=16
wrong 'a chunk on another device'       '/^chunk 2$/ { print $0 " device=1"; next } 1'
wrong 'a device without a chunk'        '/^chunk / { sub(/ device=1/, " device=0") } 1'
wrong 'receives in another order'       '/^action 1 kind=recv mb=2/ && !done { held = $0; next } { print }
    held && /^action 1 kind=recv/ { print held; held = ""; done = 1 }'
wrong 'one chunk not updated'           "$once"'/^action 0 kind=U chunk=0 .*part=4/ { done = 1; next } 1'
wrong 'the chunks of a device swapped'  '/^action 0 kind=F chunk=0 mb=1/ { sub(/chunk=0/, "chunk=2") } 1'

base tiny-gpt --stages 2 --replicas 2 --schedule 1f1b --set train.batch.global=16 --set train.batch.groups=2
wrong 'a merge left out'                "$once"'/^action 1 kind=merge/ { done = 1; next } 1'
wrong 'every merge of a replica left out' '/^(action|order) [23] kind=merge/ { next } 1'
wrong 'the buffer of another gradient'  "$once"'/^action 1 kind=merge/ {
    sub(/state=[^ ]*/, "state=wpe.weight.grad.0"); done = 1 } 1'
wrong 'a gradient added before it came' '/^action 1 kind=wait .*of=recv state=.*grad/ && !done { held = $0; done = 1; next }
    { print } held && /^action 1 kind=merge/ { print held; held = "" }'
wrong 'a gradient sent while it is changed' '/^action 1 kind=wait .*of=send state=.*grad/ && !done { held = $0; done = 1; next }
    { print } held && /^action 1 kind=merge/ { print held; held = "" }'
wrong 'micro-batches of another replica' '/^(action|order) 2 kind=[FB] chunk=0 mb=4/ { sub(/mb=4/, "mb=3") } 1'
wrong 'the loss of a replica not begun' "$once"'/^action 3 kind=F chunk=1 mb=4/ { sub(/mb=4/, "mb=4 acc=1"); done = 1 } 1'
wrong 'three replicas'                  '/^plan / { sub(/replicas=2/, "replicas=3") } 1'
base tiny-gpt --stages 1 --replicas 4 --set train.batch.global=16 --set train.batch.groups=4
wrong 'levels of the tree in another order' '/^order . kind=merge/ {
    if (/part=1/) sub(/ part=1/, ""); else $0 = $0 " part=1" } 1'
wrong 'replicas that change places'     '/^chunk 0 device=2/ { sub(/device=2/, "device=3") }
    /^chunk 0 device=3 replica=3/ { sub(/device=3/, "device=2") } 1'
wrong 'a replica without a device'      "$once"'/^chunk 0 device=3/ { done = 1; next } 1'
wrong 'two replicas on one device'      "$once"'/^chunk 0 device=3/ { sub(/device=3/, "device=2"); done = 1 } 1'
wrong 'levels not shared'               '/^order . kind=share .*part=1/ { next } 1'
wrong 'shared up the tree'              '/^order . kind=share/ { if (/part=1/) sub(/ part=1/, ""); else $0 = $0 " part=1" } 1'
wrong 'the half of the other row'       "$once"'/^action 1 kind=merge .* at=/ { sub(/ at=[0-9]+/, ""); done = 1 } 1'
wrong 'a half from elsewhere'           "$once"'/^action 0 kind=send .*grad.* at=/ { sub(/ at=[0-9]+/, ""); done = 1 } 1'
wrong 'a part put elsewhere'            "$once"'/^action 0 kind=recv .*grad.* at=.* back/ { sub(/ at=[0-9]+/, ""); done = 1 } 1'
wrong 'a part that does not come back'  '/^action [0-3] kind=(send|recv|wait) .*state=wpe.weight.grad.0 .* back/ { next } 1'
wrong 'another partner'                 '/^order 0 kind=merge/ { sub(/from_device=1/, "from_device=3") } 1'
wrong 'one replica with itself'         "$once"'/^order 0 kind=merge/ { sub(/from_device=1/, "from_device=0"); done = 1 } 1'
wrong 'exchanges in another order'      "$once"'/^action 0 kind=merge .*part=1/ { held = $0; done = 1; next } { print }
    held && /kind=merge/ { print held; held = "" }'

base tiny-gpt --stages 2 --replicas 2 --schedule 1f1b --set train.batch.global=16 --set train.batch.groups=2 \
    --set train.shard=optimizer --set train.precision.compute=bf16
wrong 'a merge of no gradient'          "$once"'/^action 1 kind=merge .*state=h.1.mlp.c_fc.bias.grad.0 / {
    sub(/ state=[^ ]*/, ""); done = 1 } 1'
wrong 'parameters not shared'           '/^(action|order) . kind=.* group=1/ { next } 1'
wrong 'parameters shared before the update' '/^order 0 kind=U .*part=4/ { held = held $0 "\n"; next } { print }
    /^order 0 kind=share .*group=1/ { printf "%s", held; held = "" }'
wrong 'a part of a parameter not sent'  '/^action [0-3] kind=(send|recv|wait) .*state=wpe.weight .* back/ { next } 1'
wrong 'blocks not merged'               '/^(action|order) . kind=.* state=norm.blocks/ { next } 1'
wrong 'sums before the blocks are there' '/^order 0 kind=U .*part=2/ { held = held $0 "\n"; next }
    /^order 0 kind=U / && held { print; printf "%s", held; held = ""; next } { print }'
wrong 'moments of the other part'       "$once"'/^buf 0:h.0.mlp.c_fc.bias.m / { sub(/bytes=[0-9]+/, "bytes=128"); done = 1 } 1'
wrong 'a copy left out'                 "$once"'/^call 0:copies op=U:wpe.weight/ { done = 1; next } 1'
wrong 'a part updated twice'            "$once"'/^call 0:update op=U:wpe.weight/ { print; done = 1 } 1'
wrong 'squares added away from home'    "$once"'/^place U:wte.weight#[0-9]* *$/ { sub(/$/, " chunk=1"); done = 1 } 1'

base branches --stages 2
wrong 'a tied weight not sent back'     '/^action [01] kind=(send|recv|wait).* state=[a-z_.0-9]*weight / { next } 1'
wrong 'the first use added first'       '/^call 0:gather op=U:table.weight / { held = $0; next } { print }
    held && /op=U:table.weight#2 / { print held; held = "" }'

# A link so fast that copies do not wait for each other.
base tiny-gpt --stages 2 --schedule 1f1b --set train.batch.global=16 --set links.cpu-host.rate=4GB/s \
    --set links.cpu-host.latency=1ns --offload '[h.*]'
is() { echo "/^action 0 kind=$1 .*mb=3 .*$2tensor=h.1.ln_2 /"; }
out=$(is out) sent=$(is wait of=out\ ) in=$(is in) back=$(is wait of=in\ )
wrong 'an offload left out'             "$out { next } 1"
wrong 'the end of an offload left out'  "$sent { next } 1"
wrong 'a fetch left out'                "$in { next } 1"
wrong 'the end of a fetch left out'     "$back { next } 1"
wrong 'a tensor that stays there'       "$in || $back { next } 1"
wrong 'an offload of too few bytes'     "$out"'{ sub(/ bytes=[0-9]+/, " bytes=64") } 1'
wrong 'a fetch before the end of the offload' "$sent { held = \$0; next } { print } $in { print held }"
wrong 'a fetch that ends behind its first reader' "function tick(by) {
        match(\$0, / tick=[0-9]+/); now = substr(\$0, RSTART + 6, RLENGTH - 6)
        sub(/ tick=[0-9]+/, \" tick=\" now + by) }
    $back { held = \$0; next } held != \"\" { tick(-1) } { print }
    held != \"\" && /^action 0 kind=B .*mb=3/ { \$0 = held; sub(/ tick=[0-9]+/, \" tick=\" now); print; held = \"\" }"
wrong 'an offload of another micro-batch' "$out"'{ sub(/ mb=3/, " mb=2") } 1'
wrong 'a fetch of another tensor'       "$in"'{ sub(/h\.1\.ln_2 /, "h.0.ln_2 ") } 1'
wrong 'a slot of the host that is taken' '/^action 0 .* host=0:h.1.ln_2_host host_slot=1/ { sub(/ host_slot=1/, "") } 1'
wrong 'a fetch from another slot'       "$in"'{ if (!sub(/ host_slot=1/, "")) sub(/_host /, "_host host_slot=1 ") } 1'
wrong 'two owners of one byte of the host' "$once"'/^host 0:h.1.ln_2_host/ { sub(/ offset=[0-9]+/, " offset=16"); done = 1 } 1'
wrong 'a host arena too small'          "$once"'/^device 0/ { sub(/ host=[0-9]+/, " host=64"); done = 1 } 1'
wrong 'a fetch over a parameter'        "$once"'/^buf 0:h.1.ln_2_back / { sub(/ offset=[0-9]+/, " offset=128"); done = 1 } 1'
wrong 'a fetch into what forward made'  "$in"'{ sub(/ln_2_back/, "ln_2") } 1'
wrong 'a copy under a number in use'    "$once"'/^action 0 kind=out .* request=1 / {
    sub(/ request=1/, " request=0"); done = 1 } 1'
wrong 'more copies than the device has' '/^device 0/ { sub(/ copies=[0-9]+/, " copies=1") } 1'
wrong 'a piece left out'                "$once"'/^action 0 kind=F .*mb=2 .*first=4/ { done = 1; next } 1'
wrong 'a piece twice'                   "$once"'/^action 0 kind=F .*mb=2 .*first=4/ { print; done = 1 } 1'
wrong 'the last piece left out'         "$once"'/^action 0 kind=F .*mb=2 .*first=19/ { done = 1; next } 1'
wrong 'pieces in another order'         '/^action 0 kind=F .*mb=2 .*first=4/ { held = $0; next } { print }
    /^action 0 kind=F .*mb=2 .*first=5/ { print held }'
wrong 'a piece that ends too early'     "$once"'/^action 0 kind=F .*mb=2 .*first=4/ {
    sub(/ until=[0-9]+/, " until=4"); done = 1 } 1'
wrong 'a tensor that is kept after all' '/^fate h.1.ln_2 / { next } 1'
wrong 'a copy at another time'          "$out"'{ sub(/ wire_to=[0-9]+/, " wire_to=5") } 1'
wrong 'a fetch that has come too early' "$back"'{ sub(/ to=[0-9]+/, " to=5") } 1'

# Texts of one plan.fuse, read under another.  other WHAT FILE WHERE SAYS OPTION...: status 3, at the line of FILE that begins
# with WHERE, column 7 (0: anywhere), and a remedy
other() {
    what=$1 file=$2 where=$3 says=$4
    shift 4
    place=$(grep -n -m 1 "^$where" "$tmp/$file" | sed "s|\\([0-9]*\\):.*|^$tmp/$file:\\1:7: error|")
    [ "$where" != 0 ] || place=$tmp/$file
    ./dpgen tests/models/tiny-gpt.yaml --stages 2 --from "$tmp/$file" "$@" -o "$tmp/out" >"$tmp/said" 2>&1
    if [ $? = 3 ] && [ ! -e "$tmp/out" ] && grep -q "$place" "$tmp/said" && grep -q -e "$says" "$tmp/said"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "wrongplan: $what:" >&2
        cat "$tmp/said" >&2
    fi
    rm -rf "$tmp/out"
}
for fuse in auto none; do
    for letter in a f; do
        ./dpgen tests/models/tiny-gpt.yaml --stages 2 --fuse $fuse -d $letter >"$tmp/$fuse.$letter"
    done
done
other 'a plan of joined calls'          auto.a 'place F:h.0.add ' '[~^] joined then and not here? --fuse auto, or' --fuse none
other 'a plan of calls apart'           none.a 'place F:h.0.dropout$' '[~^] joined here and not then? --fuse none, or'
other 'a plan without a name in a list' auto.a 'place F:h.0.add ' '--fuse auto, or plan again' --recompute '[h.0.dropout]'
other 'a graph of joined calls'         auto.f 0 'dpgen MODEL.yaml --fuse none -d f writes' --fuse none
# Joined in backward alone, the gradient of a norm and its addition: no name says so.
sed '/layernorm\|rmsnorm/!s/ onto=r:[^ ]*/ onto=0/' "$tmp/auto.f" >"$tmp/back.f"
grep -q '^op F:.* onto=r:' "$tmp/back.f" && { echo 'wrongplan: forward still joined' >&2; failed=$((failed + 1)); }
other 'a graph joined in backward'      back.f 0 'plan.fuse none does not part' --set plan.fuse=none
sed 's/ with=/ group=/' "$tmp/auto.f" >"$tmp/old.f"
if ./dpgen plan tests/models/tiny-gpt.yaml --from "$tmp/none.f" --fuse none >"$tmp/said" 2>&1; then passed=$((passed + 1))
else failed=$((failed + 1)) && echo "wrongplan: calls apart, and --fuse none: $(head -n 1 "$tmp/said")" >&2; fi
# Calls and scratch are those of the devices; where the schedule is searched for, the text is of the plan that is found.
for chip in h100 a100-80gb; do
    ./dpgen tests/models/tiny-gpt.yaml --stages 2 --schedule auto --devices devices/$chip.yaml --estimate -d f >"$tmp/$chip.f"
done
gpus='and the devices here are sm_90: .* -d f writes one for them'
other 'a graph for GPUs'                h100.f 0 'for sm_90, and the devices here are processors: '
other 'a graph for processors'          auto.f 0 "for processors, $gpus" --devices devices/h100.yaml
other 'a graph for another chip'        a100-80gb.f 0 "for sm_80, $gpus" --devices devices/h100.yaml
if ./dpgen plan tests/models/tiny-gpt.yaml --devices devices/h100.yaml --from "$tmp/h100.f" >"$tmp/said" 2>&1; then
    passed=$((passed + 1))
else failed=$((failed + 1)) && echo "wrongplan: a graph for these GPUs: $(head -n 1 "$tmp/said")" >&2; fi
other 'a graph of before'               old.f 0 'by an older dpgen? -d writes it anew'

echo "wrongplan: $passed passed, $failed failed"
[ "$failed" = 0 ]
