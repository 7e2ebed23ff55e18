#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Portable jobs have one SHA-256 of all parameters wherever they are built: gcc and clang, glibc and musl, x86-64, and under
# qemu-user aarch64, riscv64, s390x, and x86 and ARM of 32 bits, each with the folder's own Makefile.  s390x is big endian: its
# files are those of this machine, byte for byte, and each goes on from the other's.  A bare root that debootstrap makes, with
# gcc and make alone, builds an archived folder and verifies it.  In roots of Debian 11, 12, 13 and testing, and of 32 bits,
# dpgen is built without a warning and writes the same MANIFEST.  SLOW=1 alone; what is not installed is skipped by name.  The
# table is printed, for README.  ROOTS=DIR: where roots stay for the next time.
. "$(dirname "$0")/lib.sh"
[ -n "$SLOW" ] || { skip "SLOW=1 alone: other processors"; finish; }
need dpgen
job="tests/models/tiny-gpt.yaml --stages 2 --set train.steps=20 --set data.train.files=text --estimate"
set -- "f32 " "bf16 --set train.precision.compute=bf16"
for kind; do
    ./dpgen $job ${kind#* } -o "$tmp/job.${kind%% *}" >"$tmp/said" 2>&1 || fault "$kind: $(head -n 1 "$tmp/said")"
    cp LICENSE "$tmp/job.${kind%% *}/text"
done

# row NAME EMULATOR MAKE-ARGUMENT...: both jobs so built; a line of the table
row() {
    name=$1 emulator=$2
    shift 2
    for kind in f32 bf16; do
        d=$tmp/try
        rm -rf "$d"
        cp -R "$tmp/job.$kind" "$d"
        if ! make -s -j"$cores" -C "$d" "$@" >"$tmp/said" 2>&1; then
            fault "$name, $kind: $(grep -m 1 -i error "$tmp/said")"
            continue
        fi
        said=$(cd "$d" && timeout 600 $emulator ./train --quiet --no-checkpoint --hash 2>&1 | sed 's/^sha256 //')
        eval "want=\$want_$kind"
        [ -n "$want" ] || { want=$said; eval "want_$kind=\$said"; }
        if [ "${#said}" = 64 ] && [ "$said" = "$want" ]; then pass; else fault "$name, $kind: $said, not $want"; fi
        printf '%-34s %-5s %.16s\n' "$name" $kind "$said"
    done
}
# have NAME PROGRAM...: all of them, or a skipped row
have() {
    name=$1
    shift
    for program; do command -v "$program" >/dev/null 2>&1 || { skip "$name: no $program" 2; return 1; }; done
}

row "$(uname -m), cc, this processor" ""
if [ "$(uname -m)" = x86_64 ]; then
    row "x86-64, gcc, glibc" "" CC=gcc ISA=-march=x86-64
    ! have "x86-64, clang" clang || row "x86-64, clang, glibc" "" CC=clang ISA=-march=x86-64
    ! have "x86-64, musl" musl-gcc || row "x86-64, gcc, musl, static" "" CC=musl-gcc ISA=-march=x86-64-v2 LINK=static
fi
for arch in aarch64 riscv64; do
    cross=$arch-linux-gnu-gcc qemu=qemu-$arch-static
    command -v $qemu >/dev/null 2>&1 || qemu=qemu-$arch
    ! have "$arch, gcc" $cross $qemu || row "$arch, gcc, glibc, static, qemu" $qemu CC=$cross ISA= LINK=static
    ! have "$arch, clang" clang $cross $qemu ||
        row "$arch, clang, glibc, static, qemu" $qemu CC="clang --target=$arch-linux-gnu" ISA= LINK=static
done

if have "32-bit x86" i686-linux-gnu-gcc qemu-i386-static; then
    refuse "387" 2 "float must be evaluated as float: on 32-bit x86 add -msse2" make -s -C "$tmp/job.f32" ISA= \
        CC=i686-linux-gnu-gcc
    make -s -C "$tmp/job.f32" clean
    row "x86, 32 bits, gcc, static, qemu" qemu-i386-static CC='i686-linux-gnu-gcc -msse2 -mfpmath=sse' ISA= LINK=static
fi
! have "armhf" arm-linux-gnueabihf-gcc qemu-arm-static ||
    row "armhf, 32 bits, gcc, static, qemu" qemu-arm-static CC=arm-linux-gnueabihf-gcc ISA= LINK=static
big="s390x-linux-gnu-gcc -fexcess-precision=fast"
# turns WHAT COMMAND...: both machines in turn, $1 and $2 of COMMAND: the emulator and the job of one, those of the other; what
# one said is what the other says, and so are files in the folders of that name
turns() {
    what=$1
    shift
    for at in here there; do
        rm -rf "$tmp/$at"
        mkdir "$tmp/$at"
        emulator=
        [ $at = here ] || emulator=qemu-s390x
        (cd "$tmp/$at" && sh -c "$1" - "$emulator" "$tmp/$2.$at") >"$tmp/$at/said" 2>&1 ||
            fault "$what, $at: $(tail -n 1 "$tmp/$at/said")"
    done
    if [ -s "$tmp/here/said" ] && diff -r "$tmp/here" "$tmp/there" >"$tmp/said" 2>&1; then pass
    else fault "$what: $(head -n 1 "$tmp/said")"; fi
}
# both NAME MODEL OPTION...: $tmp/NAME.here and $tmp/NAME.there
both() {
    name=$1
    shift
    ./dpgen "$@" --estimate -o "$tmp/$name.here" >"$tmp/said" 2>&1 || fault "$name: $(head -n 1 "$tmp/said")"
    rm -rf "$tmp/$name.there"
    cp -R "$tmp/$name.here" "$tmp/$name.there"
    make -s -j"$cores" -C "$tmp/$name.here" >"$tmp/said" 2>&1 &&
        make -s -j"$cores" -C "$tmp/$name.there" CC="$big" ISA= LINK=static >"$tmp/said" 2>&1 ||
        fault "$name: $(grep -m 1 -i error "$tmp/said")"
}
if have "s390x" s390x-linux-gnu-gcc qemu-s390x; then
    refuse "excess precision" 2 "on s390x -fexcess-precision=fast" make -s -C "$tmp/job.f32" CC=s390x-linux-gnu-gcc ISA=
    make -s -C "$tmp/job.f32" clean
    row "s390x, big endian, gcc, static, qemu" qemu-s390x CC="$big" ISA= LINK=static
    data="--set data.train.files=$root/LICENSE --set data.eval.files=$root/LICENSE"
    for type in f32 bf16; do
        async=$([ $type = f32 ] || echo "--set checkpoint.async=true")
        both $type tests/models/tiny-gpt.yaml --stages 2 $data --set train.precision.compute=$type $async
        turns "$type: files of six steps" '$1 "$2/train" --quiet --steps 6 --checkpoint run --export out --gradients g \
            --record' $type
        mv "$tmp/here/run" "$tmp/here/out" "$tmp"
        for at in here there; do
            with=
            [ $at = here ] || with="CC='$big' ISA= LINK=static"
            eval make -s -j"$cores" -C "$tmp/$type.$at" $with sample >"$tmp/said" 2>&1 ||
                fault "sample: $(head -n 1 "$tmp/said")"
        done
        turns "$type: published weights" '$1 "$2/train" --quiet --steps 2 --no-checkpoint --hash --weights '"$tmp/out" $type
        turns "$type: text" '$1 "$2/sample" --prompt "The " --tokens 9 --weights '"$tmp/run" $type
        turns "$type: the run goes on" "cp -R $tmp/run ."' && $1 "$2/train" --quiet --steps 9 --checkpoint run \
            --resume --hash' $type
        rm -rf "$tmp/run" "$tmp/out"
    done
    sed 's/name: head, out: C}/name: head, out: C, as: scores}/' tests/models/images.yaml >"$tmp/images.yaml"
    both images "$tmp/images.yaml" --stages 2 --schedule gpipe
    both serve "$tmp/images.yaml" --stages 2 --mode infer --set model.outputs=scores
    cc -O1 -o "$tmp/npy" tests/npy.c
    turns "numbers of files" "$tmp/npy image.npy f4 -1 1 40 12 11 3 && $tmp/npy labels.npy i4 0 5 40"' &&
        $1 "$2/train" --quiet --steps 4 --hash --checkpoint run' images
    mv "$tmp/here/run" "$tmp/run"
    turns "results" "$tmp/npy image.npy f4 -1 1 40 12 11 3"' && $1 "$2/serve" --in image.npy --out scores.f32 --quiet \
        --weights '"$tmp/run && wc -c scores.f32" serve
    ./dpgen tests/models/images.yaml --library --prefix images --planner even --estimate -o "$tmp/library" >"$tmp/said" 2>&1 ||
        fault "library: $(head -n 1 "$tmp/said")"
    for at in here there; do
        with=cc
        [ $at = here ] || with="$big -static"
        $with -std=c11 -O1 -ffp-contract=off -DJOB=images -DSAVED='"saved"' -include "$tmp/library/images.h" -Irt \
            tests/library_any.c "$tmp/library/images.c" -lm -o "$tmp/any.$at" >"$tmp/said" 2>&1 ||
            fault "library, $at: $(grep -m 1 error "$tmp/said")"
    done
    turns "a library" "$tmp/npy image.npy f4 -1 1 40 12 11 3 && $tmp/npy labels.npy i4 0 5 40"' &&
        $1 "$2" 4 16 image.npy labels.npy' any
    refuse "dpgen, big endian" 1 "this machine is big endian" s390x-linux-gnu-gcc -std=c11 -D_POSIX_C_SOURCE=200809L -I. -Igen \
        -Irt -fsyntax-only gen/base/mem.c
fi

# ---- roots that debootstrap makes ----------------------------------------------------------------------------------------
# make_root NAME PACKAGES OPTION...: $at
make_root() {
    at=${ROOTS:-$tmp/roots}/$1 packages=$2
    shift 2
    [ ! -x "$at/usr/bin/make" ] || return 0
    mirror=${MIRROR:-$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -m 1 '^http')}
    mkdir -p "${at%/*}"
    debootstrap --variant=minbase --include="$packages" "$@" "$at" $mirror >"$tmp/said" 2>&1
}
# drop: what a suite put there; the root too, unless it stays
drop() {
    rm -rf --one-file-system "$at/job" "$at/src"
    [ -n "$ROOTS" ] || rm -rf --one-file-system "$at"
}

# An archived folder, where there is no dpgen
bare() {
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
    make_root bare gcc,libc6-dev,make "$release" || { skip "a bare root: debootstrap: $(tail -n 1 "$tmp/said")" 2; return; }
    d=$tmp/job.f32
    expect "the record" make -s -j"$cores" -C "$d" expected ISA=-march=native
    make -s -C "$d" clean
    cp -R "$d" "$at/job"
    expect "a bare root builds and verifies it" chroot "$at" make -s -C /job verify
    drop
}
# debian NAME OPTION...: dpgen itself
debian() {
    name=$1
    make_root "$@" || { skip "$name: debootstrap: $(tail -n 1 "$tmp/said")" 3; return; }
    mkdir "$at/src"
    git ls-files -z | tar cf - --null -T - | tar xf - -C "$at/src"
    expect "$name: dpgen without a warning" chroot "$at" make -s -j"$cores" -C /src WERROR=-Werror dpgen
    chroot "$at" sh -c "cd /src && ./dpgen $job -o job && cp LICENSE job/text && make -s -j$cores -C job $float &&
        cd job && ./train --quiet --no-checkpoint --hash" >"$tmp/said" 2>&1
    hash=$(sed -n 's/^sha256 //p' "$tmp/said")
    if [ "$hash" = "$want_f32" ]; then pass; else fault "$name: $(tail -n 1 "$tmp/said")"; fi
    expect "$name: MANIFEST" cmp "$at/src/job/MANIFEST" "$tmp/job.f32/MANIFEST"
    printf '%-34s %-5s %.16s\n' "$name, $(chroot "$at" gcc -dumpfullversion)" f32 "$hash"
    drop
}
if ! have "roots" debootstrap chroot || [ "$(id -u)" != 0 ]; then
    skip "roots: only root makes one" 15
    finish
fi
bare
float=
for release in bullseye bookworm trixie testing; do debian $release gcc,libc6-dev,make,libyaml-dev $release; done
case $(uname -m) in x86_64)
    float="CC='gcc -msse2 -mfpmath=sse' ISA="
    debian i386 gcc,libc6-dev,make,libyaml-dev --arch=i386 bookworm ;;
esac
finish
