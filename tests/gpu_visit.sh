#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The kit for a machine with a GPU, without one: pack.sh over a toolkit whose compiler and libraries are doubles, then the visit
# in a place that has no toolkit, make and compiler.  A program that hangs, one that crashes, one that says another hash once, a
# library that is missing, no nvidia-smi, little time: every step that ended stands in summary and logs, and the sum is right.
# Here four programs are packed, one of them runs, and imitated ones are visited; SLOW=1: those of the kit over the doubles, and
# a second visit.
. "$(dirname "$0")/lib.sh"
. tests/cuda.sh
have_cuda nccl.h && have_cuda cublasLt.h && have_cuda cudnn.h || { skip "no headers of CUDA: $cuda_remedy" 10; finish; }
need dpgen build/compare
need_double

# ---- the toolkit: nvcc gives the kernels that tests/simt runs, and counts its calls; what a library would be is a script of
# the linker, and a library in truth that has nothing in it
double=$root/build/double/bf16
toolkit=$tmp/toolkit wheels=$tmp/site/nvidia
mkdir -p "$toolkit/bin" "$toolkit/lib64" "$wheels/cu13/lib" "$wheels/cudnn/lib"
ln -s "$cuda/include" "$toolkit/include"
cat >"$toolkit/bin/nvcc" <<NVCC
#!/bin/sh
kernels=$root/build/kernels.o own=$root/build/double/f32
case " \$* " in *' -DREAL_BF16 '*) kernels=$root/build/kernels_bf16.o own=$double ;; esac
echo "\$*" >>"$tmp/calls"
while [ "\$1" != -o ]; do shift; done
exec ld -r -o "\$2" \$kernels $root/build/simt.o \$own/simt.own
NVCC
chmod +x "$toolkit/bin/nvcc"
for name in cudart.13:cu13:"$double.a -lpthread -lm -lstdc++" cublasLt.13:cu13:"$double/cublaslt.own" \
    cudnn.9:cudnn:"$double/cudnn.own"; do
    file=lib${name%%.*}.so.$(echo "$name" | sed 's/^[^.]*\.\([0-9]*\):.*/\1/') at=$wheels/$(echo "$name" | cut -d: -f2)/lib
    echo | $own_cc -x c -shared -fPIC -Wl,-soname,"$file" -o "$at/$file" -
    echo "INPUT($(echo "$name" | cut -d: -f3) $at/$file)" >"$toolkit/lib64/${file%.so*}.so"
done
use_ready -O0
export PACK_MAKE="LDFLAGS=-Wl,--no-as-needed" DOUBLE_OPEN=1
few="bits.bf16.1 chunked.bf16.1 product unit.products.bf16"     # two have the same kernels, and other calls
[ -z "$SLOW" ] || few=                                          # all
CUDA_HOME=$toolkit tests/gpu/pack.sh -s -o "$few" "$tmp/gpu" >"$tmp/said" 2>&1 ||
    { fault "pack: $(tail -n 2 "$tmp/said")"; finish; }
made=$(ls "$tmp/gpu/kit/bin" | wc -l)
if [ "$made" -ge "${SLOW:+45}" ] 2>/dev/null || [ "$made" = 4 ]; then pass; else fault "$made programs in the kit"; fi
[ "$(wc -c <"$tmp/gpu/kit.tar.xz")" -lt $((${SLOW:+10000000 + }10000000)) ] && pass || fault "the archive is too large"
# kernels are compiled once for each list of them and type; all of them in two units more
for folder in "$tmp"/gpu/folders/*; do
    echo "$(sha256sum <"$folder/kernels.cu")" "$(grep -m 1 -o -e -DREAL_BF16 "$folder/Makefile")"
done | sort -u >"$tmp/distinct"
if [ "$(wc -l <"$tmp/calls")" = $(($(wc -l <"$tmp/distinct") + ${SLOW:+2} + 0)) ]; then pass
else fault "$(wc -l <"$tmp/calls") calls of nvcc for $(wc -l <"$tmp/distinct") kinds of kernels"; fi
# what a GPU alone compiles is another text: two of the three
for number in 1 2 2; do
    printf 'int b;\n#ifdef __CUDA_ARCH__\nint a%s;\n#endif\n' "$number" >"$tmp/arch.cu"
    tests/gpu/once "$tmp" "$toolkit/bin/nvcc" -c -o "$tmp/arch.o" "$tmp/arch.cu"
done
if [ "$(grep -c arch.cu "$tmp/calls")" = 2 ]; then pass; else fault "code for a GPU: $(grep -c arch.cu "$tmp/calls") calls"; fi

# ---- the place: no toolkit, no make, no compiler; python3 knows the libraries; a GPU that says what it does ------------------
stand=$tmp/stand
mkdir -p "$stand/bin" "$tmp/empty"
cat >"$stand/bin/nvidia-smi" <<SMI
#!/bin/sh
case "\$*" in *lms*) ;; *) echo "\$(cat "$stand/card"), 580.00, 143771 MiB"; exit ;; esac
while sleep 0.1; do if [ -e "$stand/busy" ]; then echo "1755, 412.50, 20000"; else echo "345, 90.25, 500"; fi; done
SMI
# Nsight Compute: two steps of three kernels, and what runs once before them
cat >"$stand/bin/ncu" <<NCU
#!/bin/sh
echo '==PROF== Connected'
echo '"ID","Kernel Name","gpu__time_duration.sum"'
echo '"","","ns"'
for kernel in once two:2 one:1 two:2 two:3 one:4 two:5; do
    echo "\"0\",\"\${kernel%:*}(int)\",\"\${kernel#*:},000,000\"" | sed 's/once,/9,/'
done
NCU
chmod +x "$stand/bin/nvidia-smi" "$stand/bin/ncu"
echo "NVIDIA H200" >"$stand/card"
apart="unshare -m" hidden="make cc gcc c++ g++ clang tcc nvcc ld as"
unshare -m true 2>/dev/null || apart="unshare -rm"
$apart true 2>/dev/null || { skip "no namespaces of mounts"; apart=sh hidden=; }
cat >"$tmp/place" <<'PLACE'
for program in $hidden; do
    at=$(readlink -f "$(command -v $program)") && [ -f "$at" ] && mount --bind /dev/null "$at"
done
for folder in /usr/local/cuda /opt/cuda; do
    [ -z "$hidden" ] || [ ! -d "$folder" ] || mount --bind "$empty" "$folder"
done
echo $$ >"$pid"
exec "$@"
PLACE
# visit KIT OPTION...: into $tmp/out; $with: set for it.  As on a GPU, where nobody says SLOW
visit() {
    from=$1
    shift
    rm -rf "$tmp/out"
    env -u CUDA_HOME -u LD_LIBRARY_PATH -u SLOW PATH="${smi-$stand/bin:}${READY_PATH:-$PATH}" PYTHONPATH="$tmp/site" \
        hidden="$hidden" empty="$tmp/empty" pid="$tmp/pid" $with timeout -k 5 900 $apart sh "$tmp/place" "$from/visit.sh" \
        -o "$tmp/out" "$@" >"$tmp/said" 2>&1
    got=$?
    rm -rf "$tmp/seen" "$stand/busy"
    mkdir "$tmp/seen"
    tar -C "$tmp/seen" -xzf "$tmp/out/logs.tar.gz" || fault "no archive of logs"
}
# held WHAT NAME...: these ended, each with its log in the archive, and the summary there is that beside it
held() {
    what=$1
    shift
    for step; do
        if grep -q "^ *[0-9]* s  $step  *\(pass\|FAILED\)" "$tmp/seen/logs/summary" && [ -e "$tmp/seen/logs/$step" ]; then pass
        else fault "$what: $step is not in the archive: $(grep " $step " "$tmp/out/summary" | cut -c 1-200)"; fi
    done
    tail -n +1 "$tmp/seen/logs/summary" | cmp -s - "$tmp/out/summary" && pass || fault "$what: the summaries differ"
}
# says WHAT PATTERN NAME: of that step's line
says() {
    if grep "^ *[0-9]* s  $3 " "$tmp/out/summary" | grep -q "$2"; then pass
    else fault "$1: $3 is $(grep "^ *[0-9]* s  $3 " "$tmp/out/summary" | cut -c 1-200); $(
        grep -m 4 ' FAILED: ' "$tmp/out/summary" | cut -c 1-200)"; fi
}

# ---- over the doubles ----------------------------------------------------------------------------------------------------
if [ -n "$SLOW" ]; then
    with="PATIENCE=1000"
    all="sync.f32 sync.bf16 selftest.bits.bf16.1 selftest.bits.f32.1 gpt2-most gpt2-most.graph product bits.bf16.1 bits.bf16.3
        bits.bf16.1.graph bits.bf16.3.again5 bits.f32.1"
    visit "$tmp/gpu/kit" -t 3000
    all="$all gpt2-auto $(cd "$tmp/gpu/kit/bin" && ls | grep -e '^bits' -e '^chunked' -e '^unit') $(cd "$tmp/gpu/kit/bin" &&
        ls own.* | sed 's/^/selftest./')"
    held "all" $all
    says "all" " 0 failed" visit
    visit "$tmp/gpu/kit" -t 3000 second
    held "second" profile.sign profile.kernels profile.messages passes resnet50.204MiB resnet50.512MiB resnet50.bytes gpt2-1558m
    says "second" " 0 failed" visit
    visit "$tmp/gpu/kit" -t 120
    says "little time" " skipped: .* s, and .* are left" bits.bf16.2
    ended=$(sed -n 's/^ *\([0-9]*\) s  visit .*/\1/p' "$tmp/out/summary")
    if [ "$ended" -le 125 ]; then pass; else fault "little time: $ended s"; fi
    says "the card" "NVIDIA H200, 580.00" gpt2-most
fi

# one that has no memory but what a GPU sees, on a stream
with="PATIENCE=1000"
visit "$tmp/gpu/kit" -t 600 units
says "products" " pass: " unit.products.bf16

# ---- what goes wrong, with programs that imitate those of the kit -----------------------------------------------------------
# $stand/WHAT.NAME: it hangs, crashes, says another hash the third time, or takes a second for the steps that count
imitated=$tmp/imitated
mkdir -p "$imitated/bin"
cp tests/gpu/visit.sh "$imitated"
cp "$tmp/gpu/kit/arrays" "$tmp/gpu/kit/timed" "$imitated"
echo text >"$imitated/text"
echo "12 3" >"$imitated/profile"
printf 'gpt2-most H100 111.1 model\ngpt2-most H200 222.2 model\n' >"$imitated/predicted"
cat >"$imitated/bin/imitation" <<IMITATION
#!/bin/sh
name=\${0##*/} log= steps=0 stand=$stand
for word; do
    [ "\$was" != --log ] || log=\$word
    [ "\$was" != --steps ] || steps=\$word
    was=\$word
done
[ ! -e "\$stand/hang.\$name" ] || exec sleep 1000
[ ! -e "\$stand/crash.\$name" ] || kill -SEGV \$\$
step() {
    [ -z "\$log" ] || echo "{\"event\":\"step\",\"step\":\$1,\"loss\":1.5,\"ms\":40.5,\"time\":\$(date +%s.%N)}" >>"\$log"
}
i=0
while [ \$i -lt "\$steps" ]; do
    i=\$((i + 1))
    slow=
    [ ! -e "\$stand/slow.\$name" ] || slow=\$i
    [ "\$slow" != 5 ] || { sleep 0.5; touch "\$stand/busy"; sleep 0.5; date +%s.%N >"\$stand/began"; }
    step \$i
    [ "\$slow" != "\$steps" ] || { sleep 1; step \$i; date +%s.%N >"\$stand/ended"; rm "\$stand/busy"; }
done
echo x >>"\$stand/runs.\$name"
sum=\$(printf '%064d' 7)
[ ! -e "\$stand/differ.\$name" ] || [ "\$(wc -l <"\$stand/runs.\$name")" != 3 ] || sum=\$(printf '%064d' 8)
echo "sha256 \$sum"
echo "\$name: 3 passed, 0 failed"
IMITATION
chmod +x "$imitated/bin/imitation"
first="device version sync.f32 sync.bf16 selftest.bits.bf16.1 selftest.bits.f32.1 gpt2-most gpt2-auto gpt2-most.graph product
    torch.gpt2 bits.bf16.1 bits.bf16.2 bits.bf16.3 bits.bf16.4 bits.bf16.2offload bits.bf16.1.graph bits.bf16.3.again1
    bits.bf16.3.again2 bits.bf16.3.again3 bits.bf16.3.again4 bits.bf16.3.again5 bits.f32.1 bits.f32.3 unit.products.bf16
    unit.attention unit.conv unit.products.f32 unit.products.tf32 selftest.own.one"
for name in bits.f32.1 bits.f32.3 bits.bf16.1 bits.bf16.2 bits.bf16.3 bits.bf16.4 bits.bf16.2offload gpt2-most gpt2-auto \
    unit.products.bf16 unit.products.f32 unit.products.tf32 unit.attention unit.conv own.one device product; do
    ln "$imitated/bin/imitation" "$imitated/bin/$name"
done
rm "$imitated/bin/imitation"
# PyTorch: says when it runs, so that it can be seen to stand still
cat >"$imitated/torch_side.py" <<PYTHON
import os, sys, time
open(sys.argv[1] + "/ready", "w").close()
while not os.path.exists(sys.argv[1] + "/go"):
    print("runs", time.time(), flush=True)
    time.sleep(0.02)
print("step default 55.00 ms", flush=True)
PYTHON
without() { for left in $first; do case " $* " in *" $left "*) ;; *) echo "$left" ;; esac; done; }
faults() {
    rm -f "$stand"/hang.* "$stand"/crash.* "$stand"/differ.* "$stand"/slow.* "$stand"/runs.*
    for name; do touch "$stand/$name"; done
}

with=
faults slow.gpt2-most
visit "$imitated"
held "all is well" $first
says "all is well" " 0 failed" visit
says "its state in the steps that count" "H200, 580.00, 143771 MiB; 1755 MHz, 412.50* W" gpt2-most
says "the prediction for this card" "predicted for an H200 222.2 ms (model), measured 0.18 of it" gpt2-most
says "a step by Nsight Compute" "3 kernels, 12.00 ms; two 8.00; one 4.00" ncu.gpt2-most
grep -q "8.000 ms    2 of   4000.0 us  two(int)" "$tmp/seen/logs/ncu.gpt2-most.kernels" && pass || fault "no table of kernels"
says "PyTorch" "step default 55.00 ms" torch.gpt2
# Limits of what follows go by what all those steps took: in place of 20 s half of that, many times a step
took=$(sed -n 's/^ *\([0-9]*\) s  visit .*/\1/p' "$tmp/out/summary")
patience=$((took * 5 / 2 > 10 ? took * 5 / 2 : 10))
limit_of() { echo $((($1 * patience + 99) / 100)); }
if grep -q "111.1" "$tmp/out/summary"; then fault "a prediction for another card"; else pass; fi
runs=$(awk -v from="$(cat "$stand/began")" -v to="$(cat "$stand/ended")" '$1 == "runs" && $2 > from && $2 < to' \
    "$tmp/seen/logs/torch.gpt2" | wc -l)
if [ "$(grep -c '^runs' "$tmp/seen/logs/torch.gpt2")" -gt 3 ] && [ "$runs" = 0 ]; then pass
else fault "PyTorch ran $runs times beside"; fi

faults crash.gpt2-auto differ.bits.bf16.3
smi= visit "$imitated" -t 300
held "one crashes, one differs, no nvidia-smi" $first
says "no card" "no prediction for this card.*no nvidia-smi; ? MHz, ? W" gpt2-most
says "one crashes" "FAILED: status 139" gpt2-auto
says "one differs" "FAILED: 000000000000, not 000000000000" bits.bf16.3.again2
says "both count" " 2 failed" visit
if [ "$got" != 0 ]; then pass; else fault "status 0 after failures"; fi

faults hang.bits.bf16.2
rm "$imitated/bin/bits.bf16.1"
cp "$tmp/gpu/kit/bin/bits.bf16.1" "$imitated/bin"
mv "$wheels/cudnn/lib" "$wheels/cudnn/away"
with="PATIENCE=$patience"
visit "$imitated" -t 300
mv "$wheels/cudnn/away" "$wheels/cudnn/lib"
held "one hangs, and a library is missing" $(without bits.bf16.2 bits.bf16.2offload bits.bf16.3 bits.bf16.3.again1 \
    bits.bf16.3.again2 bits.bf16.3.again3 bits.bf16.3.again4 bits.bf16.3.again5 bits.bf16.4 bits.f32.1 bits.f32.3) bits.bf16.2
says "it hangs" "FAILED: does not end in $(limit_of 20) s" bits.bf16.2
says "its kind" "skipped: bits.bf16.2 hung" bits.f32.3
says "it is named" "FAILED: not here: libcudnn.so.9 for 1 programs" libraries
says "who needs it" "FAILED: status 127: .*libcudnn.so.9" sync.bf16
says "who does not" "pass" sync.f32

with=
faults
[ -z "$SLOW" ] || { visit "$imitated" -t 120 && held "120 s" $first; }
patience=$((4 * patience))
with="PATIENCE=$patience"
visit "$imitated" -t "$(limit_of 15)"
held "$(limit_of 15) s" device
says "what does not fit" "skipped: $(limit_of 20) s, and [0-9]* are left" bits.bf16.2

faults hang.gpt2-auto
rm -f "$tmp/out/summary"
(
    while ! grep -q " gpt2-most " "$tmp/out/summary" 2>/dev/null; do sleep 0.1; done
    sleep 0.3
    kill -KILL "$(cat "$tmp/pid")"
) &
with="PATIENCE=20" visit "$imitated" -t 300
held "ended from outside" device version sync.f32 sync.bf16 selftest.bits.bf16.1 selftest.bits.f32.1 gpt2-most
finish
