#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tools/deps on a machine that lacks things, with an apt-get that only writes down what it is asked: it says what it installs
# and how before it does, NO_INSTALL=1 keeps it from it, and plain make never calls it.
. "$(dirname "$0")/lib.sh"
unset NO_INSTALL          # a check of somebody who sets it
mkdir "$tmp/bin"
program() { printf '#!/bin/sh\n%s\n' "$2" >"$tmp/bin/$1"; chmod +x "$tmp/bin/$1"; }
program id 'echo ${ID:-0}'
program sudo '[ "$2" = true ] && exit ${SUDO:-1}; shift; exec "$@"'
program apt-get "echo \"\$*\" >>$tmp/asked; grep -q installing $tmp/told"
PATH=$tmp/bin:$PATH

# deps STATUS ASKED VARIABLE=VALUE... -- ARGUMENT...: apt-get was asked so often
deps() {
    want=$1 calls=$2
    shift 2
    : >"$tmp/asked"
    env "$@" >"$tmp/told" 2>&1
    got=$?
    asked=$(wc -l <"$tmp/asked")
    if [ $got = "$want" ] && [ "$asked" = "$calls" ]; then pass
    else fault "$*: status $got, apt-get called $asked times, not $want and $calls: $(cat "$tmp/told")"; fi
}
says() { if grep -q -e "$1" "$tmp/told"; then pass; else fault "not said: $1: $(cat "$tmp/told")"; fi; }

deps 0 2 CC=no-such-compiler tools/deps
says "^deps: installing gcc libc6-dev libyaml-dev: apt-get install"
says "NO_INSTALL=1"
expect "it installs those" grep -q "install .* gcc libc6-dev libyaml-dev$" "$tmp/asked"
deps 0 2 CC=no-such-compiler ID=1000 SUDO=0 tools/deps
says ": sudo -n apt-get install"
deps 1 0 CC=no-such-compiler ID=1000 tools/deps
says "please install gcc libc6-dev libyaml-dev (names of Debian packages)"
deps 1 0 CC=no-such-compiler NO_INSTALL=1 tools/deps
says "please install gcc"
deps 0 0 CXX=no-such-compiler NO_INSTALL=1 tools/deps tests
says "not here:.* g++.*; tests that want them skip"
deps 0 2 CXX=no-such-compiler tools/deps tests
says "^deps: installing.* g++"

make -n -B dpgen >"$tmp/said" 2>&1
if grep -q tools/deps "$tmp/said"; then fault "make calls tools/deps"; else pass; fi
# A warning of a compiler that nobody here has seen does not stop who builds a release
strict() { env -u WERROR make -n -B dpgen "$@" | grep -v build/flags | grep -c -e -Werror; }
if [ "$(strict)" = 0 ] && [ "$(strict WERROR=1)" -gt 200 ]; then pass; else fault "-Werror: $(strict), $(strict WERROR=1)"; fi
deps 2 0 NO_INSTALL=1 make demo CC=no-such-compiler
says "please install gcc"
deps 2 0 make demo CC=no-such-compiler NO_INSTALL=1
says "please install gcc"
# What dpgen carries is made again for a file that is moved in, however old it is
mkdir "$tmp/copy" "$tmp/copy/build"
cp -Rp Makefile LICENSE gen rt templates devices tools verify "$tmp/copy"
cp -p build/embed build/mkcall "$tmp/copy/build"
for text in one other; do
    echo $text >"$tmp/moved" && touch -t 200101010000 "$tmp/moved" && mv "$tmp/moved" "$tmp/copy/templates/moved"
    make -s -C "$tmp/copy" build/embedded.c >"$tmp/said" 2>&1 || fault "embedded.c: $(head -n 1 "$tmp/said")"
    cp "$tmp/copy/build/embedded.c" "$tmp/$text"
done
if cmp -s "$tmp/one" "$tmp/other"; then fault "a file that is moved in with an old time is not carried"; else pass; fi
make -n deps >"$tmp/told" 2>&1
says "tools/deps tests"
finish
