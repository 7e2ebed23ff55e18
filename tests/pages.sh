#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Pages and event files.  report.html and the page of compare: tags are balanced, nothing comes from elsewhere, the figures are
# those of plan.json and trace.json; the lives and addresses that the script has add up to the arena's lower bound and share no
# byte.  A joint trace of a job is shown by dpgen report, and what others wrote into it is escaped.  dpgen metrics: the frame of
# each record and every number, read back by a reader of its own.
. "$(dirname "$0")/lib.sh"
need dpgen build/emitted build/librt.a

# balanced PAGE: every tag is closed by its own; void elements are not; scripts and styles are skipped
balanced() {
    sed '/^<style>/,/^<\/style>/d; /^<script/,/^<\/script>/d; s/<!--[^>]*-->//g' "$1" | tr '\n' ' ' | sed 's/</\n</g' | awk '
    /^<!DOCTYPE/ || /^<meta / || !/^</ { next }
    /^<[^>]*\/>/ { next }
    /^<\// { tag = $0; sub(/^<\//, "", tag); sub(/>.*/, "", tag)
             if (n == 0 || open[n] != tag) { print "</" tag "> closes " open[n]; bad = 1; exit }
             n--; next }
    { tag = $0; sub(/^</, "", tag); sub(/[ >].*/, "", tag); if ($0 !~ />/) { print "no end: " $0; bad = 1; exit }
      open[++n] = tag; seen++ }
    END { if (!bad && n) { print "<" open[n] "> is open"; bad = 1 } exit bad || seen < 20 }'
}
# alone PAGE: nothing is fetched; a name space of XML is a name
alone() {
    ! sed 's|"http://www.w3.org/2000/svg"||; s|url(#tip)||' "$1" |
        grep -n -i -e 'http' -e ' src=' -e ' href=' -e 'url(' -e '@import'
}
field() { sed -n "s/.*\"$2\": \([0-9]*\)[,}].*/\1/p" "$1"; }

./dpgen $models/tiny-gpt.yaml --estimate --stages 2 --schedule 1f1b -o "$tmp/gpt" >"$tmp/said" 2>&1 ||
    fault "tiny-gpt: $(tail -n 1 "$tmp/said")"
page=$tmp/gpt/report.html plan=$tmp/gpt/plan.json
expect "tags of the report" balanced "$page"
expect "the report is alone" alone "$page"
sed 's|</h2>||' "$page" >"$tmp/broken"
if balanced "$tmp/broken" >"$tmp/said"; then fault "a page without its ends is balanced"; else pass; fi
echo '<img src="x">' >"$tmp/broken"
if alone "$tmp/broken" >"$tmp/said"; then fault "a picture from elsewhere"; else pass; fi

# ---- its figures -----------------------------------------------------------------------------------------------------------
expect "the step" grep -q "<dd>$(field "$plan" step_ns | awk '{ printf "%.3f ms", $1 / 1e6 }')<" "$page"
hash=$(sha256sum <"$plan" | cut -c 1-64)
expect "the plan" grep -q "<meta name=\"plan\" content=\"$hash\">" "$page"
n='\([0-9]*\)'
sed -n 's/^ *{"name": "\([^"]*\)", "bytes": '$n', "offset": '$n', "slots": [0-9]*, "stride": '$n', .*/\1 \2 \3 \4/p' "$plan" |
    sort >"$tmp/want"
sed -n 's/^\["\([^"]*\)",[0-5],\([0-9]*\),\([0-9]*\),\([0-9]*\),[0-9]*\].*/\1 \2 \3 \4/p' "$page" | sort >"$tmp/got"
expect "buffers" cmp "$tmp/want" "$tmp/got"
[ "$(wc -l <"$tmp/got")" -gt 100 ] && pass || fault "the page has $(wc -l <"$tmp/got") buffers"
for kind in forward backward; do
    want=$(grep -c "\"name\": \"$kind" "$tmp/gpt/trace.json")
    [ "$(grep -c "<title>$kind" "$page")" = "$want" ] && [ "$want" = 8 ] && pass ||
        fault "$kind: not the $want boxes of the trace"
done

# ---- what a person must find ------------------------------------------------------------------------------------------------
# reachable PAGE: each table scrolls in a region that the keyboard reaches and fades where it goes on; pictures have a name
reachable() {
    awk '/<table>/ { n += gsub(/<table>/, "&")
                     k += gsub(/<div class="wide" tabindex="0" role="region" aria-label="[^"]+"><table>/, "&") }
         /<svg class="(time|bytes|pack)"/ { s++; t += /tabindex="0" role="group" aria-label="[^"]+"/ }
         /linear-gradient.* local,/ { fade = 1 } END { exit !(n > 0 && n == k && s + 0 == t + 0 && fade) }' "$1"
}
expect "tables and pictures are reachable" reachable "$page"
sed 's/ role="group"//' "$page" >"$tmp/broken"
if reachable "$tmp/broken"; then fault "a picture without a name is reachable"; else pass; fi
expect "buttons have labels" grep -q 'button.setAttribute("aria-label", title' "$page"
expect "arrow keys" test "$(grep -c 'addEventListener("keydown"' "$page")" = 2
# The peak: a line and a dot at its time, its height and its label, by plan.json and the script's table
for stage in 0 1; do
    sed -n "/id=\"bytes$stage\"/,/<\/svg><\/div>/p" "$page" | grep 'class="peak"' >"$tmp/peak"
    awk -v stage=$stage '/^{"t":/ { if (now++ == stage) { gsub(/[^0-9,]/, ""); n = split($0, t, ",") } } END {
        for (i = 1; i <= n; i++) print sum += t[i] }' "$page" >"$tmp/times"
    call=$(sed -n 's/.*Most is alive at call \([0-9]*\) of.*/\1/p' "$page" | sed -n $((stage + 1))p)
    want=$(sed -n $((call + 1))p "$tmp/times" | awk '{ printf "%.2f", $1 / 10000 }')
    expect "the peak of stage $stage is marked at $want %" awk -v want="$want" '{ match($0, /line x1="[0-9.]*/)
        x = substr($0, RSTART + 9, RLENGTH - 9); if (x - want < .011 && want - x < .011 && /<circle [^>]* r="3"/) good = 1 }
        END { exit !good }' "$tmp/peak"
    bound=$(sed -n 's/.*"bound_bytes": \([0-9]*\),.*/\1/p' "$plan" | sed -n $((stage + 1))p)
    expect "its label" grep -q ">peak $(awk -v n="$bound" 'BEGIN { printf "%.2f KiB", n / 1024 }')<" "$tmp/peak"
done
# Waits name who is waited for; messages are arrows, one for each send of the list; an update is named
./dpgen plan $models/tiny-gpt.yaml --estimate --stages 2 --schedule 1f1b -d a >"$tmp/lists" 2>&1
sends=$(grep -c '^action.* kind=send ' "$tmp/lists")
expect "$sends arrows" test "$(grep -c '<line class="m" ' "$page")" = "$sends"
expect "arrows have tips" grep -q '<marker id="tip"' "$page"
expect "waits name their partner" grep -q '<line class="z" .*<title>waits for stage 1: d.h' "$page"
expect "no box of a wait" test "$(grep -c '<rect class="z' "$page")" = 0
expect "updates are named" sh -c "tr '\\n' ' ' <'$page' |
    grep -q '<title>update: [^<]*</title></rect><text class=.n[ t]*.[^>]*>u<'"
for word in 'u: update' waiting message; do expect "legend: $word" grep -q "</i>$word<" "$page"; done
expect "each panel has a text of its own" test "$(grep -o 'class="panel calls".*' "$page" | sort -u | wc -l)" = \
    "$(grep -c 'class="panel calls"' "$page")"
expect "what calls are" grep -q '"Calls, predicted times"' "$page"
if grep -q "above the picture" "$page"; then fault "a limit above the picture"; else pass; fi
expect "a far limit" grep -q "limit 64.00 MiB, beyond the top of the picture" "$page"
expect "labels end in dots" grep -q '^.tree span {.*text-overflow: ellipsis' "$page"
for class in f b w r u o i l e; do
    here=$(sed -n "s/.*--$class: \(#[0-9a-f]*\);.*/\1/p" templates/report.css | head -n 1)
    expect "colour $class" grep -q "\.$class { fill: $here; }" templates/lists.css
done

# The trace: kinds, counters that reach the bound, and flow events in pairs, no end before its begin
flows() {       # FILE: `N pairs, N alone, N backwards`
    tr -d ' ' <"$1" | awk '/"ph":"[sf]"/ {
        match($0, /"id":[0-9]*/); id = substr($0, RSTART + 5, RLENGTH - 5)
        match($0, /"ts":[-0-9.]*/); at = substr($0, RSTART + 5, RLENGTH - 5) + 0
        match($0, /"pid":[0-9]*/); id = substr($0, RSTART, RLENGTH) " " id
        if (/"ph":"s"/) { begins[id]++; from[id] = at } else { ends[id]++; to[id] = at; if (/"bp":"e"/) enclosed++ } }
        END { for (id in begins) { if (begins[id] == 1 && ends[id] == 1) { n++; late += to[id] < from[id] } else alone++ }
              for (id in ends) alone += !(id in begins)
              printf "%d pairs, %d alone, %d backwards", n, alone, late; exit enclosed != n }'
}
trace=$tmp/gpt/trace.json
expect "flows of trace.json" test "$(flows "$trace")" = "$sends pairs, 0 alone, 0 backwards"
expect "each event has a kind" test "$(grep -c '"ph": "X"' "$trace")" = "$(grep -c '"ph": "X".*"cat": "[a-z]*"' "$trace")"
expect "the order of processes" grep -q '"name": "process_sort_index"' "$trace"
sed -n 's/.*"bound_bytes": \([0-9]*\),.*/\1/p' "$plan" >"$tmp/want"
for stage in 0 1; do
    sed -n "s/.*\"ph\": \"C\".*\"arena of stage $stage\", .*{\"bytes\": \([0-9]*\)}.*/\1/p" "$trace" | sort -n | tail -n 1
done >"$tmp/got"
expect "counters reach the lower bound" cmp "$tmp/want" "$tmp/got"

# The script's table of a stage: what lives at a call adds up to the bound at the worst one, and no two lives share bytes.
lives() {       # PAGE STAGE BOUND
    sed -n '/^"stages":/,/^<\/script>/p' "$1" | awk -v stage="$2" -v bound="$3" '
    /^{"t":/ { now++ }
    now == stage + 1 && /^\["/ { gsub(/^\["[^"]*",|\].*/, ""); split($0, x, ","); size[nb + 0] = x[2]; at[nb + 0] = x[3]
                                 step[nb + 0] = x[4]; always[nb++] = x[5] }
    now == stage + 1 && /^"lives":/ { gsub(/[^0-9,]/, ""); n = split($0, l, ",") }
    function align(b) { return int((b + 63) / 64) * 64 }
    END {
        for (b = 0; b < nb; b++) states += always[b] * align(size[b])
        for (i = 1; i < n; i += 5) { change[l[i + 3]] += align(size[l[i]]); change[l[i + 4] + 1] -= align(size[l[i]])
                                     if (l[i + 4] > last) last = l[i + 4] }
        for (t = 0; t <= last; t++) { sum += change[t]; if (sum > most) most = sum }
        for (i = 1; i < n; i += 5) for (j = 1; j < i; j += 5) {
            a = at[l[i]] + l[i + 2] * step[l[i]]; b = at[l[j]] + l[j + 2] * step[l[j]]
            if (l[i + 3] <= l[j + 4] && l[j + 3] <= l[i + 4] && a < b + size[l[j]] && b < a + size[l[i]]) shared++ }
        printf "%d lives, most %d of %d, %d share bytes\n", n / 5, states + most, bound, shared
        exit !(n > 500 && states + most == bound && !shared) }'
}
stage=0
for bound in $(sed -n 's/.*"bound_bytes": \([0-9]*\),.*/\1/p' "$plan"); do
    expect "lives of stage $stage" lives "$page" $stage "$bound"
    if lives "$page" $stage $((bound + 64)) >"$tmp/said"; then fault "a bound that is not"; else pass; fi
    stage=$((stage + 1))
done
for kind in "tiny-gpt.yaml --schedule gpipe --offload ['h.*']" "mlp.yaml --schedule 2bw" \
    "tiny-gpt.yaml --set plan.replicas=2 --set train.batch.groups=2"; do
    ./dpgen $models/$kind --estimate --stages 2 -o "$tmp/other" >"$tmp/said" 2>&1 || fault "$kind: $(cat "$tmp/said")"
    expect "tags, $kind" balanced "$tmp/other/report.html"
    if grep -q "model.yaml:0<" "$tmp/other/report.html"; then fault "$kind: a buffer comes from line 0"; else pass; fi
done

./dpgen examples/gpt2-124m.yaml --estimate --stages 4 --schedule 1f1b -D T=64 --set train.batch.micro=4 \
    --set train.batch.global=64 -o "$tmp/large" >"$tmp/said" 2>&1
bytes=$(wc -c <"$tmp/large/report.html")
[ "$bytes" -gt 200000 ] && [ "$bytes" -lt 2000000 ] && pass || fault "GPT-2 in 4 stages and 16 micro-batches: $bytes bytes"

# ---- measured beside predicted ---------------------------------------------------------------------------------------
use_portable
generate "$tmp/job" $models/tiny-gpt.yaml --stages 2 --schedule 1f1b >"$tmp/said" && compile "$tmp/job" >"$tmp/said" &&
    "$tmp/job/job" --no-checkpoint --quiet --data "$data" --steps 5 --trace "$tmp/trace.json" --log "$tmp/log" 2>"$tmp/said" ||
    fault "the job: $(cat "$tmp/said")"
"$tmp/job/job" --help >"$tmp/said"
expect "no line of its --help is wider than 100" awk 'length > 100 { exit 1 }' "$tmp/said"
expect "dpgen report" ./dpgen report "$tmp/job" --trace "$tmp/trace.json"
page=$tmp/job/measured.html
expect "tags of the measured page" balanced "$page"
expect "the measured page is alone" alone "$page"
expect "four of five steps" grep -q 'the median of 4 measured steps' "$page"
# of the median step, by the trace alone: from the first begin of any stage to the last end
median=$(awk '
function number(key) {
    match($0, "\"" key "\":[-0-9.]*")
    return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
}
!/"pid":2,"tid":[01],/ { next }
{ at = number("ts"); stage = number("tid") }
/"name":"begin"/ { b = ++begun[stage]; if (!(b in from) || at < from[b]) from[b] = at }
/"name":"end"/ { e = ++ended[stage]; at += number("dur"); if (at > to[e]) to[e] = at }
END { for (i = 2; i <= 5; i++) printf "%.3f\n", (to[i] - from[i]) / 1000 }' "$tmp/trace.json" | sort -n | sed -n 2p)
expect "the median step, $median ms" grep -q "The step took $median ms" "$page"
sed -n '/id="measured"/,/<\/svg>/p' "$page" >"$tmp/drawn"
expect "tables and pictures of the measured page are reachable" reachable "$page"
expect "its panels have texts of their own" test "$(grep -o 'class="panel calls".*' "$page" | sort -u | wc -l)" = 2
expect "the table stands before the picture" awk '/<th>recomputation/ { table = NR } /id="measured"/ { exit !table }' "$page"
expect "loads are drawn" grep -q 'data-measured.*<title>load ' "$tmp/drawn"
expect "measured waits name their partner" grep -q '<line class="z".*data-measured.*<title>waits for stage [01]: ' "$tmp/drawn"
sends=$(grep -c '"pid":2,.*"name":"send to ' "$tmp/trace.json")
expect "$sends sends in five steps: an arrow each in one" test "$((5 * $(grep -c '<line class="m"' "$tmp/drawn")))" = "$sends"
[ "$(grep -c '<title>backward' "$tmp/drawn")" = 16 ] &&
    [ "$(grep -c 'data-measured.*<title>backward' "$tmp/drawn")" = 8 ] && pass ||
    fault "the measured step has not 8 backward boxes beside 8"
sed '/<h2>Measured beside/,$d' "$page" | head -n -1 >"$tmp/front"
expect "the rest is the report" awk 'NR == FNR { has[$0] = 1; next } !($0 in has) { print; exit 1 }' \
    "$tmp/job/report.html" "$tmp/front"
sent=$(grep -c '"pid":2,.*"name":"send to ' "$tmp/trace.json")
expect "flows of a run: $(flows "$tmp/trace.json")" test "$(flows "$tmp/trace.json")" = "$sent pairs, 0 alone, 0 backwards"
expect "kinds of a run" test "$(grep -c '"ph":"X"' "$tmp/trace.json")" = \
    "$(grep -c '"ph":"X".*"cat":"[a-z]*"' "$tmp/trace.json")"
# An outlier: a forward that takes 50 ms leaves the rows of the plan as wide as before
awk '/"pid":2,/ && /"name":"forward/ && !/"ts":[0-9]*\.[0-9]*,"dur":0/ { sub(/"dur":/, "\"dur\":5") } { print }' \
    "$tmp/trace.json" >"$tmp/slow.json"
expect "a slow run" ./dpgen report "$tmp/job" --trace "$tmp/slow.json" -o "$tmp/slow.html"
expect "rows of the plan have their scale" grep -q "Rows of the plan have a scale of their own" "$tmp/slow.html"
last=$(sed -n '/id="measured"/,/<\/svg>/p' "$tmp/slow.html" | grep -v data-measured |
    sed -n 's/^<rect class="[a-z0-9 ]*" x="\([0-9.]*\)%".*/\1/p' | sort -n | tail -n 1)
expect "the plan ends at the right, $last %" awk -v x="${last:-0}" 'BEGIN { exit !(x > 80) }'
sed 's/"name":"forward, chunk/"name":"forward<b>\&\\"'"'"', chunk/' "$tmp/trace.json" >"$tmp/hostile.json"
expect "a hostile trace" ./dpgen report "$tmp/job" --trace "$tmp/hostile.json" -o "$tmp/hostile.html"
expect "is escaped" grep -q '<title>forward&lt;b&gt;&amp;&quot;&#39;, chunk' "$tmp/hostile.html"
expect "tags of that page" balanced "$tmp/hostile.html"
refuse "a prediction" 3 "names no plan" ./dpgen report "$tmp/job" --trace "$tmp/job/trace.json"
refuse "another plan" 5 "of another plan" ./dpgen report "$tmp/other" --trace "$tmp/trace.json"
head -c 5000 "$tmp/trace.json" >"$tmp/cut.json"
refuse "half a trace" 3 "cut.json:[0-9]*:[0-9]*: error" ./dpgen report "$tmp/gpt" --trace "$tmp/cut.json"
sed "s/, tie: wte//" $models/tiny-gpt.yaml >"$tmp/untied.yaml"
generate "$tmp/bw" "$tmp/untied.yaml" --stages 2 --schedule 2bw >"$tmp/said" && compile "$tmp/bw" >"$tmp/said" &&
    "$tmp/bw/job" --no-checkpoint --quiet --data "$data" --steps 5 --trace "$tmp/bw.json" 2>"$tmp/said" ||
    fault "the job of 2bw: $(cat "$tmp/said")"
refuse "steps that overlap" 3 "overlap none stands alone" ./dpgen report "$tmp/bw" --trace "$tmp/bw.json"
refuse "no trace" 2 "of which run?" ./dpgen report "$tmp/job"
refuse "no folder" 2 "report.html: No such file" ./dpgen report "$tmp/none" --trace "$tmp/trace.json"
refuse "an option of a plan" 2 "no use for an option of the plan" ./dpgen report "$tmp/job" --trace "$tmp/trace.json" --stages 2

# ---- event files ----------------------------------------------------------------------------------------------------
cc -std=c11 -Wall -Wextra -Werror -o "$tmp/tfread" tests/tfread.c 2>"$tmp/said" || fault "tests/tfread.c: $(cat "$tmp/said")"
expect "the check value of CRC-32C" "$tmp/tfread" --check
cat >"$tmp/fixed" <<'LOG'
{"event":"start","name":"x","stages":1,"library_by_stage":[1,2],"step":0,"time":1000.5}
{"event":"step","step":1,"loss":2.5,"norm":null,"lr":0.001,"tokens_per_s":10.0,"ms":4.25,"time":1001.5}
{"event":"eval","step":1,"loss":null,"top":5,"accuracy":0.75,"time":1002}
{"event":"checkpoint","step":1,"detail":"run/step-000001","time":1003}
{"event":"start","name":"x","step":1,"time":1004}
{"event":"step","step":2,"loss":-3e-2,"norm":0.5,"lr":0.002,"tokens_per_s":20.0,"ms":4.5}
LOG
cat >"$tmp/want" <<'READ'
1000.500 version brain.Event:2
1000.500 1 start
1001.500 1 train/loss 2.5
1001.500 1 train/lr 0.001
1001.500 1 train/tokens_per_s 10
1001.500 1 train/ms 4.25
1002.000 1 eval/loss nan
1002.000 1 eval/accuracy 0.75
1004.000 2 start
0.000 2 train/loss -0.03
0.000 2 train/norm 0.5
0.000 2 train/lr 0.002
0.000 2 train/tokens_per_s 20
0.000 2 train/ms 4.5
READ
expect "dpgen metrics" ./dpgen metrics "$tmp/fixed" --tensorboard "$tmp/tb"
"$tmp/tfread" "$tmp"/tb/*tfevents* >"$tmp/got" 2>&1
expect "what was read back: $(diff "$tmp/want" "$tmp/got" | head -n 3)" cmp "$tmp/want" "$tmp/got"
cp "$tmp"/tb/*tfevents* "$tmp/once"
./dpgen metrics "$tmp/fixed" --tensorboard "$tmp/tb" >"$tmp/said"
expect "the same bytes twice" cmp "$tmp/once" "$tmp"/tb/*tfevents*
printf '\001' | dd of="$tmp/once" bs=1 seek=60 conv=notrunc 2>"$tmp/said"
if "$tmp/tfread" "$tmp/once" >"$tmp/said" 2>&1; then fault "a damaged record is read"; else pass; fi
./dpgen metrics "$tmp/log" --tensorboard "$tmp/tb2" >"$tmp/said" 2>&1 && "$tmp/tfread" "$tmp"/tb2/*tfevents* >"$tmp/got"
sed -n 's/.*"step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$tmp/log" | awk '{ printf "%d %.6g\n", $1, $2 }' >"$tmp/want"
awk '$3 == "train/loss" { printf "%d %.6g\n", $2, $4 }' "$tmp/got" >"$tmp/read"
expect "losses of a job" cmp "$tmp/want" "$tmp/read"
[ "$(wc -l <"$tmp/read")" = 5 ] && [ "$(awk '$1 > 1700000000' "$tmp/got" | wc -l)" -gt 20 ] && pass ||
    fault "five steps with their times"
refuse "no log" 2 "cannot read" ./dpgen metrics "$tmp/none" --tensorboard "$tmp/tb3"
refuse "no folder for events" 2 "where to?" ./dpgen metrics "$tmp/fixed"
echo '{"event":"step","step":1,"loss":}' >"$tmp/bad"
refuse "a bad line" 3 "bad:1:33: warning: a number is expected: this line is left out" \
    ./dpgen metrics "$tmp/bad" --tensorboard "$tmp/tb3"
# A line that a full disk cut, what the next run appended to it, and the last one, which is still being written
{ sed -n '1,3p' "$tmp/log" && sed -n 4p "$tmp/log" | head -c 40 && cat "$tmp/log" && printf '{"event":"st'; } >"$tmp/torn"
./dpgen metrics "$tmp/torn" --tensorboard "$tmp/tb4" >"$tmp/told" 2>&1 && "$tmp/tfread" "$tmp"/tb4/*tfevents* >"$tmp/got"
expect "a torn log" test $? = 0
expect "its torn line" grep -q '/torn:4:[0-9]*: warning: .*left out' "$tmp/told"
expect "its last line" grep -q "/torn:$(($(wc -l <"$tmp/torn") + 1)):1: warning: the end of the line is missing" "$tmp/told"
awk '$3 == "train/loss" { print $2 }' "$tmp/got" >"$tmp/read"
{ sed -n '1,3p' "$tmp/log" && sed 1d "$tmp/log"; } | sed -n 's/.*"event":"step","step":\([0-9]*\),.*/\1/p' >"$tmp/want"
expect "all other lines" cmp "$tmp/want" "$tmp/read"
echo '{"event":"stop","step":1}' >"$tmp/bad"
refuse "no steps" 3 "no step and no evaluation" ./dpgen metrics "$tmp/bad" --tensorboard "$tmp/tb3"
[ ! -e "$tmp/tb3" ] && pass || fault "a folder of nothing"

# ---- compare --------------------------------------------------------------------------------------------------------
./dpgen compare $models/tiny-gpt.yaml --estimate --stages 2 --planners exact,even,pipedream:replicated --json \
    -o "$tmp/compare.html" >"$tmp/json" 2>"$tmp/said" || fault "compare: $(cat "$tmp/said")"
expect "tags of the comparison" balanced "$tmp/compare.html"
expect "the comparison is alone" alone "$tmp/compare.html"
expect "tables of the comparison are reachable" reachable "$tmp/compare.html"
sed -n 's/.*"planner": "\([^"]*\)".*"step_ns": \([0-9]*\),.*"largest_micro_batch": \([0-9]*\),.*/\1 \2 \3/p' "$tmp/json" |
    awk '{ printf "%s %.3f %d\n", $1, $2 / 1e6, $3 }' | sort -s -n -k 2,2 >"$tmp/want"
sed -n 's/.*<td>\([a-z:]*\)<\/td><td>\([0-9.]*\)<\/td><td>[-+0-9.]* %.*bytes<\/td><td>\([0-9]*\)<\/td>.*/\1 \2 \3/p' \
    "$tmp/compare.html" >"$tmp/got"
expect "its steps and b*" cmp "$tmp/want" "$tmp/got"
[ "$(wc -l <"$tmp/want")" = 3 ] && pass || fault "three planners: $(cat "$tmp/want")"
# A bar of memory: the largest arena fills it; the limit is a line where it is within, and a figure where it is not
largest=$(sed -n 's/.*"arena_bytes": \[\([0-9, ]*\)\].*/\1/p' "$tmp/json" | tr ',' '\n' | sort -n | tail -n 1)
sed -n '/Memory of each device/,/<\/table>/p' "$tmp/compare.html" >"$tmp/memory"
expect "the largest arena fills a bar" grep -q "<rect width=\"100.00%\" height=\"100%\"/></svg></td><td class=\"left\">$(
    awk -v n="$largest" 'BEGIN { m = n < 1048576; printf "%.2f %s", n / (m ? 1024 : 1048576), m ? "KiB" : "MiB" }')" \
    "$tmp/memory"
if grep -q 'class="limit"' "$tmp/memory"; then fault "a limit far away is drawn"; else pass; fi
./dpgen compare $models/tiny-gpt.yaml --estimate --stages 2 --planners exact,pipedream:published,twobw,madpipe --quick --json \
    --limit $((largest * 21 / 20)) -o "$tmp/near.html" >"$tmp/json" 2>"$tmp/said"
expect "a limit that is near is a line" grep -q '<line class="limit" x1="100.00%"' "$tmp/near.html"
# No plan is no answer without a reason, in each form
for options in "$models/mlp.yaml --limit 1GiB" "$models/tiny-gpt.yaml --limit 300KiB" "examples/cifar.yaml" \
    "$models/tiny-gpt.yaml --schedule interleaved"; do
    ./dpgen compare $options --estimate --stages 2 --quick --json -o "$tmp/why.html" >"$tmp/json" 2>"$tmp/said"
    ./dpgen compare $options --estimate --stages 2 --quick >"$tmp/table" 2>"$tmp/said"
    none=$(grep -c '"fits": false' "$tmp/json")
    [ "$none" -gt 0 ] && [ "$(grep '"fits": false' "$tmp/json" | grep -c '"note": "no plan: .')" = "$none" ] && pass ||
        fault "$options: planners without a plan and without a reason, in JSON"
    [ "$(grep -c '<td class="no" colspan="7">no plan: [^<]' "$tmp/why.html")" = "$none" ] && pass ||
        fault "$options: no plan without a reason, in HTML"
    [ "$(grep -c '[a-z] *no plan: ' "$tmp/table")" -ge "$none" ] && pass || fault "$options: no plan without a reason, as text"
    awk '$2 ~ /^[0-9.]+$/ && $1 != "bound" { if ($2 + 0 < last) bad = 1; last = $2 + 0; n++ } END { exit bad }' "$tmp/table" &&
        pass || fault "$options: rows are not in the order of steps"
    case $options in *limit\ 300KiB)       # the device that dpgen plan names, and by how much
        lacks=$(./dpgen plan $options --estimate --stages 2 2>&1 |
            sed -n 's/^  stage \([0-9]\) needs .*: \([0-9.]* KiB\) too much$/no plan: stage \1 does not fit, by \2/p')
        [ -n "$lacks" ] && grep -q "^exact  *$lacks " "$tmp/table" && pass || fault "compare does not say: $lacks" ;;
    esac
done
expect "estimates are called so" grep -q "predictions from estimated times" "$tmp/compare.html"
finish
