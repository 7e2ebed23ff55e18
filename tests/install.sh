#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dpgen as an installed tool: what make install puts where, with which modes, and that uninstall takes all of it and nothing
# else, in folders of any name; make installcheck; dpgen new; devices by name; --version.  Options are the same set in the code,
# in --help, in the manual page and in both completions.  Then packages.sh: make dist; SLOW=1: Debian's package.
. "$(dirname "$0")/lib.sh"
need dpgen
[ -n "$SLOW" ] || use_ready
version=$(sed -n 's/.*DPGEN_VERSION "\(.*\)"/\1/p' gen/version.h)

# ---- one version, one set of options
expect "one place has the version" test "$(grep -rl "\"$version\"" gen Makefile | tr '\n' ' ')" = "gen/version.h "
expect "CITATION.cff has it" grep -qx "version: $version" CITATION.cff
expect "NEWS opens with it" sh -c "sed -n 3p NEWS | grep -q '^$version ('"
./dpgen --version >"$tmp/version"
expect "--version: number" grep -qx "dpgen $version" "$tmp/version"
expect "--version: licence" grep -q "Apache-2.0" "$tmp/version"
expect "--version: libyaml" grep -q "^libyaml [0-9]" "$tmp/version"
expect "--version: compiler" grep -q "^compiler .*[0-9]" "$tmp/version"
if [ -e .git ] && git log -1 >/dev/null 2>&1; then
    commit=$(sed -n 's/^commit \([0-9a-f]*\).*/\1/p' "$tmp/version")
    expect "--version: commit" test "$(git rev-parse "$commit^0")" = "$(git rev-parse HEAD)"
else
    skip "this is no checkout"
fi
./dpgen --help >"$tmp/help" && ./dpgen -h >"$tmp/h"
expect "-h is --help" cmp "$tmp/help" "$tmp/h"
if [ -w /dev/full ]; then
    for option in --help --version "new $tmp/full"; do
        ./dpgen $option >/dev/full 2>"$tmp/said"
        expect "$option on a full disk" test $? = 1
    done
fi
cat gen/options.c gen/front/override.c gen/pack/file.c gen/tokens/tokens.c gen/hf/export.c gen/hf/import.c |
    grep -o '"--*[a-zA-Z][a-z-]*"' | tr -d '"' | sort -u >"$tmp/code"
grep -o -E '(^|[ (])-(-[a-z][a-z-]*|[A-Za-z])' "$tmp/help" | tr -d ' (' | sort -u >"$tmp/of.help"
sed -n 's/^\.It Fl \(.*\)/\1/p' docs/man/dpgen.1 | awk '{
    print $1
    for (i = 2; i < NF; i++) if ($i == ",") print $(i + 1)
}' | sed 's/\\-/-/g; s/^/-/' | sort -u >"$tmp/of.man"
expect "more than thirty options" test "$(wc -l <"$tmp/code")" -gt 30
same() {
    if diff "$tmp/code" "$tmp/of.$1" >"$tmp/diff"; then pass
    else fault "options of the code < and of $1 >: $(grep '^[<>]' "$tmp/diff" | tr '\n' ' ')"; fi
}
same help
same man
if command -v bash >/dev/null 2>&1; then
    complete() {        # WORD...: what bash makes of the last one
        bash -c '. completion/dpgen.bash; COMP_WORDS=(./dpgen "$@") COMP_CWORD=$#; _dpgen ./dpgen
            printf "%s\n" "${COMPREPLY[@]}"' bash "$@" | sort -u
    }
    complete - >"$tmp/of.bash"
    same bash
    expect "bash completes pl" test "$(complete pl)" = plan
    expect "bash completes --schedule zb-h" test "$(complete --schedule zb-h | tr '\n' ' ')" = 'zb-h1 zb-h2 '
    expect "bash completes --devices h1" test "$(complete --devices h1)" = h100
else
    skip "no bash" 4
fi
if command -v zsh >/dev/null 2>&1; then
    sed '$d' completion/_dpgen >"$tmp/zsh"
    zsh -f -c "compadd() { print -l -- \$@ | grep -v '^--\$' }; . $tmp/zsh; words=(./dpgen -) CURRENT=2; _dpgen" |
        sort -u >"$tmp/of.zsh"
    same zsh
else
    skip "no zsh"
fi

# ---- dpgen new
here=$PWD
cd "$tmp" || exit 2
expect "dpgen new" "$here/dpgen" new
expect "what it wrote is right" "$here/dpgen" check model.yaml
sum=$(sha256sum <model.yaml)
refuse "a second dpgen new" 2 "model.yaml is there already.*dpgen new NAME" "$here/dpgen" new
expect "the first stays" test "$sum" = "$(sha256sum <model.yaml)"
expect "dpgen new NAME" "$here/dpgen" new my-net_2.yaml
expect "its name" grep -qx "  name: my-net_2" my-net_2.yaml
for name in 7 'a b' '' -x 'a;b' "$(printf '%064d' 0 | tr 0 a)"; do
    refuse "dpgen new '$name'" 2 "write dpgen new .NAME." "$here/dpgen" new "$name"
done
refuse "dpgen new in no folder" 1 "cannot write nowhere/x.yaml: No such file" "$here/dpgen" new nowhere/x
refuse "new behind an option" 2 "new comes first" "$here/dpgen" --estimate new
expect "it generates" "$here/dpgen" model.yaml --estimate -D L=1 -o new.out
expect "it builds" make_quickly new.out
expect "it learns" new.out/train --steps 12 --log new.log
less=$(sed -n 's/.*"step":\(1\|12\),"loss":\([0-9.]*\).*/\2/p' new.log | tr '\n' ' ' | awk '{print ($2 + 0 < $1 - 0.5)}')
expect "its loss falls by more than half" test "$less" = 1

# ---- devices by name
"$here/dpgen" plan model.yaml --estimate --devices h100 >named 2>&1
"$here/dpgen" plan model.yaml --estimate --devices "$here/devices/h100.yaml" >filed 2>&1
expect "a name is its file" cmp named filed
refuse "nearly a name" 2 "did you mean a100-40gb" "$here/dpgen" plan model.yaml --estimate --devices a100-40g
expect "a file of that name comes first" cp "$here/devices/cpu.yaml" h100
"$here/dpgen" plan model.yaml --estimate --devices h100 >named 2>&1
expect "and is another machine" test "$(cmp -s named filed; echo $?)" = 1
cd "$here" || exit 2
ls devices | sed 's/\.yaml$//' >"$tmp/names"
./dpgen --devices '?' >"$tmp/listed"
expect "--devices ? lists devices/" cmp "$tmp/names" "$tmp/listed"

# ---- make install, uninstall
prefix=/opt/tools
root=$tmp/dest$prefix
expect "make install" sh -c "umask 077; make -s install DESTDIR='$tmp/dest' PREFIX=$prefix"
expect "folders are 755" test -z "$(find "$tmp/dest/opt" -type d ! -perm 755)"
expect "the program is 755" test "$(find "$root" -type f -perm 755)" = "$root/bin/dpgen"
expect "files are 644" test -z "$(find "$root" -type f ! -path '*/bin/*' ! -perm 644)"
for file in bin/dpgen share/man/man1/dpgen.1 share/man/man5/dpgen-model.5 share/bash-completion/completions/dpgen \
    share/zsh/site-functions/_dpgen share/dpgen/devices/h100.yaml share/dpgen/examples/bytes-gpt.yaml \
    share/dpgen/examples/corpus/train.txt share/doc/dpgen/LICENSE share/doc/dpgen/running.md; do
    expect "$file" test -s "$root/$file"
done
expect "no mark is left in the manual" test -z "$(grep '@[A-Z]*@' "$root"/share/man/*/*)"
expect "the manual has the version" grep -q "^.Os dpgen $version" "$root/share/man/man1/dpgen.1"
expect "the manual names the folder" grep -q "$prefix/share/dpgen/examples" "$root/share/man/man1/dpgen.1"
keys=$(sed -n 's/^| `\([a-z_]*\)`.*/\1/p' docs/model.md | sort -u)
expect "keys of the model file" test "$(echo "$keys" | wc -l)" -gt 50
for key in $keys; do grep -q "^.It .*fB$key.fR" "$root/share/man/man5/dpgen-model.5" || echo "$key"; done >"$tmp/lost"
expect "dpgen-model(5) has every key" test ! -s "$tmp/lost"
if command -v mandoc >/dev/null 2>&1; then
    mandoc -T lint -W error "$root"/share/man/man1/dpgen.1 "$root"/share/man/man5/dpgen-model.5 >"$tmp/said" 2>&1
    expect "mandoc" test ! -s "$tmp/said"
else
    skip "no mandoc"
fi
expect "the examples plan where they lie" "$root/bin/dpgen" plan "$root/share/dpgen/examples/bytes-gpt.yaml" --estimate
mkdir -p "$root/share/man/man1" && echo mine >"$root/share/man/man1/other.1"
expect "make uninstall" make -s uninstall DESTDIR="$tmp/dest" PREFIX=$prefix
expect "nothing else goes, nothing stays" test "$(find "$root" -type f)" = "$root/share/man/man1/other.1"
# Words with blanks, quotes and what sed reads are one word
odd="$tmp/a b'c" prefix='/opt/x &|y'
expect "make install, odd words" make -s install DESTDIR="$odd" PREFIX="$prefix"
expect "nothing beside it" test "$(cd "$odd" && ls -A . opt | tr '\n' ' ')" = '.: opt  opt: x &|y ' -a ! -e "$tmp/a"
expect "the manual names the odd folder" grep -qF "$prefix/share/dpgen/examples" "$odd$prefix/share/man/man1/dpgen.1"
refuse "make installcheck" 0 "^installcheck: .*sha256 [0-9a-f]\{64\}$" make -s installcheck DESTDIR="$odd" PREFIX="$prefix"
refuse "another prefix" 2 "there is no .*make install, with the same PREFIX" make -s installcheck DESTDIR="$odd" PREFIX=/usr
expect "make uninstall, odd words" make -s uninstall DESTDIR="$odd" PREFIX="$prefix"
expect "nothing odd stays" test -z "$(find "$odd" -type f)"

. tests/packages.sh
finish
