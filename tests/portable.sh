#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Portable jobs have one SHA-256 of all parameters wherever they are built: gcc and clang, glibc and musl, x86-64, and under
# qemu-user aarch64 and riscv64, each with the folder's own Makefile.  A bare root that debootstrap makes, with gcc and make
# alone, builds an archived folder and verifies it.  SLOW=1 alone; what is not installed is skipped by name.  The table is
# printed, for README.
. "$(dirname "$0")/lib.sh"
[ -n "$SLOW" ] || { skip "SLOW=1 alone: other processors"; finish; }
need dpgen
steps=3
set -- "f32 " "bf16 --set train.precision.compute=bf16"
for kind; do
    ./dpgen "$models/tiny-gpt.yaml" --stages 2 --set train.steps=$steps --set data.train.files=text --estimate ${kind#* } \
        -o "$tmp/job.${kind%% *}" >"$tmp/said" 2>&1 || fault "$kind: $(head -n 1 "$tmp/said")"
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

# ---- an archived folder in a bare root -----------------------------------------------------------------------------------
bare() {
    have "a bare root" debootstrap chroot || return
    [ "$(id -u)" = 0 ] || { skip "a bare root: only root makes one" 2; return; }
    mirror=${MIRROR:-$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -m 1 '^http')}
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
    if ! debootstrap --variant=minbase --include=gcc,libc6-dev,make "$release" "$tmp/bare" $mirror >"$tmp/said" 2>&1; then
        skip "a bare root: debootstrap: $(tail -n 1 "$tmp/said")" 2
        return
    fi
    d=$tmp/job.f32
    expect "the record" make -s -j"$cores" -C "$d" expected ISA=-march=native
    make -s -C "$d" clean
    cp -R "$d" "$tmp/bare/job"
    expect "a bare root builds and verifies it" chroot "$tmp/bare" make -s -C /job verify
    expect "its hash is that of all" grep -qx "sha256 $want_f32" "$tmp/bare/job/expected"
    rm -rf --one-file-system "$tmp/bare"
}
bare
finish
