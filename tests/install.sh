#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dpgen as an installed tool: what make install puts where, with which modes, and that uninstall takes all of it and nothing
# else, in folders of any name; make installcheck; dpgen new; devices by name; --version.  Options are the same set in the code,
# in --help, in the manual page and in both completions.  Then packages.sh: make dist; SLOW=1: Debian's package.
. "$(dirname "$0")/lib.sh"
need dpgen dpgen-verify
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
cat gen/options.c gen/config/override.c gen/pack/file.c gen/tokens/tokens.c gen/huggingface/export.c gen/huggingface/import.c |
    grep -o '"--*[a-zA-Z][a-z-]*"' | tr -d '"' | sort -u >"$tmp/code"
expect "more than thirty options" test "$(wc -l <"$tmp/code")" -gt 30
options_of() { grep -o -E '^  (-[-a-zA-Z]+(, )?)+' "$1" | tr -d ' ' | tr ',' '\n'; }
same() {
    if diff "$tmp/code" "$tmp/of.$1" >"$tmp/diff"; then pass
    else fault "options of the code < and of $1 >: $(grep '^[<>]' "$tmp/diff" | tr '\n' ' ')"; fi
}
# The table: each command has a page of its own, and the pages together have every option of the code
commands=$(sed -n 's/^VERB("\([a-z]*\)".*/\1/p' gen/options.def)
expect "thirteen commands" test "$(echo $commands | wc -w)" = 13
for command in $commands; do
    ./dpgen "$command" --help >"$tmp/help.$command"
    expect "$command --help: its name" grep -q "^dpgen $command " "$tmp/help.$command"
    expect "$command --help: no other" test "$(grep -c '^dpgen' "$tmp/help.$command")" = 1
    grep -q "^dpgen $command " "$tmp/help" && pass || fault "--help has no $command"
done
expect "export --help" test "$(options_of "$tmp/help.export" | tr '\n' ' ')" = \
    '--hf --adapter --shard --like -h --help --version '
for line in "plan --json" "compare --planners" "import --loss" "profile -o" "check --parameters" "schedules --csv"; do
    grep -q "^  ${line#* } " "$tmp/help.${line% *}" && pass || fault "${line% *} --help has no ${line#* }"
done
for line in "plan -o" "plan --hf" "compare --planner" "profile --estimate" "report --stages" "explain --json"; do
    grep -q "^  ${line#* } " "$tmp/help.${line% *}" && fault "${line% *} --help has ${line#* }" || pass
    ./dpgen ${line% *} x.yaml y ${line#* } 1 >"$tmp/said" 2>&1
    expect "${line% *} refuses ${line#* }" test $? = 2
done
expect "no line of --help is wider than 100" awk 'length > 100 { exit 1 }' "$tmp/help" "$tmp"/help.*
for page in "$tmp/help" "$tmp"/help.*; do options_of "$page"; done | sort -u >"$tmp/of.help"
same help
# The manual page is made of that table; schedules are those that --schedule ? lists
make -s build/options.1
sed -n 's/^\.It Fl \(.*\)/\1/p' build/options.1 | awk '{
    print $1
    for (i = 2; i < NF; i++) if ($i == ",") print $(i + 1)
}' | sed 's/\\-/-/g; s/^/-/' | sort -u >"$tmp/of.man"
same man
sed 's/\\-/-/g' build/options.1 >"$tmp/man"
./dpgen --schedule '?' | cut -d ' ' -f 1 >"$tmp/schedules"
sed -n '/^.It Fl -schedule/{n;p;}' "$tmp/man" | tr -s ' ,' '\n\n' | sed 's/[.]$//' | grep -F -x -f "$tmp/schedules" |
    sort -u >"$tmp/named"
expect "the manual page names every schedule" sh -c 'sort "$1" | cmp - "$2"' - "$tmp/schedules" "$tmp/named"
for command in $commands; do
    for macro in Cm 'It Cm'; do
        grep -q "^\.$macro $command\$" "$tmp/man" && pass || fault "the manual page has no .$macro $command"
    done
done
# Completion: one part for both shells, and what it makes of the last word
make -s build/dpgen.bash build/_dpgen
mkdir -p "$tmp/c/out/rt" && cp $models/mlp.yaml "$tmp/c/net.yaml" && : >"$tmp/c/log.jsonl" && : >"$tmp/c/out/plan.json"
printf '%s\n' '#!/bin/sh' 'echo "  --steps N   stop"' 'echo "  --data PATH...  files"' 'echo "  --help"' >"$tmp/c/out/train"
mkdir "$tmp/c/foreign" && sed 's/--steps/--rm-rf/' "$tmp/c/out/train" >"$tmp/c/foreign/train"
chmod +x "$tmp/c/out/train" "$tmp/c/foreign/train"
ln -s "$PWD/dpgen" "$tmp/c/dpgen"
in_bash() {
    (cd "$tmp/c" && bash -c '. "$0"; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _dpgen "$1"
        printf "%s\n" "${COMPREPLY[@]}"' "$root/build/dpgen.bash" "$@") | sort -u
}
# Files are what its own _files would look for
in_zsh() {
    (cd "$tmp/c" && sed '$d' "$root/build/_dpgen" >../zsh && zsh -f -c 'compadd() { shift; print -l -- $@ }
        _files() { case $1 in -g) print -l -- ${~2}(N) *(/N) ;; -/) print -l -- *(/N) ;; *) print -l -- *(N) ;; esac }
        . ../zsh; words=("$@") CURRENT=$#; _dpgen' zsh "$@" |
        awk -v word="$(eval "echo \"\${$#}\"")" 'index($0, word) == 1' | sort -u)
}
completes() {       # WHAT WORD...
    what=$1
    shift
    "in_$shell" "$@" | grep . | tr '\n' ' ' >"$tmp/said"
    [ "$(cat "$tmp/said")" = "$what" ] && pass || fault "$shell: $* <TAB>: $(cat "$tmp/said")and not $what"
}
for shell in bash zsh; do
    command -v $shell >/dev/null 2>&1 || { skip "no $shell" 12; continue; }
    completes 'plan ' ./dpgen pl
    completes "$(options_of "$tmp/help.export" | sort | tr '\n' ' ')" ./dpgen export -
    completes 'zb-h1 zb-h2 ' ./dpgen plan --schedule zb-h
    completes 'h100 ' ./dpgen --devices h1
    completes 'foreign net.yaml out ' ./dpgen plan ''
    completes 'foreign out ' ./dpgen report ''
    completes 'dpgen foreign log.jsonl net.yaml out ' ./dpgen metrics ''
    completes '' ./dpgen plan net.yaml --stages ''
    completes 'fc1 fc1.bias fc1.weight ' ./dpgen explain net.yaml fc1
    completes 'fc2.bias ' ./dpgen explain net.yaml fc1 fc2.b
    completes '--steps ' out/train --st
    completes '--data --help --steps ' out/train --
    completes 'dpgen foreign log.jsonl net.yaml out ' out/train --data ''
done
command -v bash >/dev/null 2>&1 && shell=bash completes '' foreign/train --

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
expect "make install" sh -c 'umask 077; make -s install DESTDIR="$1" PREFIX="$2"' - "$tmp/a dest's" $prefix
mv "$tmp/a dest's" "$tmp/dest"
expect "folders are 755" test -z "$(find "$tmp/dest/opt" -type d ! -perm 755)"
expect "programs are 755" test "$(find "$root" -type f -perm 755 | sort | tr '\n' ' ')" = \
    "$root/bin/dpgen $root/bin/dpgen-verify "
expect "files are 644" test -z "$(find "$root" -type f ! -path '*/bin/*' ! -perm 644)"
for file in bin/dpgen bin/dpgen-verify share/man/man1/dpgen.1 share/man/man1/dpgen-verify.1 share/man/man3/dpgen-library.3 \
    share/man/man5/dpgen-model.5 share/dpgen/examples/library/xor.yaml share/dpgen/examples/library/board/board.c \
    share/bash-completion/completions/dpgen \
    share/zsh/site-functions/_dpgen share/dpgen/devices/h100.yaml share/dpgen/examples/bytes-gpt.yaml \
    share/dpgen/examples/corpus/train.txt share/doc/dpgen/LICENSE share/doc/dpgen/docs/running.md; do
    expect "$file" test -s "$root/$file"
done
expect "no mark is left in the manual" test -z "$(grep '@[A-Z]*@' "$root"/share/man/*/*)"
expect "the manual has the version" grep -q "^.Os dpgen $version" "$root/share/man/man1/dpgen.1"
expect "the manual names the folder" grep -q "$prefix/share/dpgen/examples" "$root/share/man/man1/dpgen.1"
./dpgen-verify --help >"$tmp/verify.help"
grep -o -E '^  --[a-z]+' "$tmp/verify.help" | tr -d ' ' | sort -u >"$tmp/code"
sed -n 's/^\.It Fl \\-\([a-z]*\)$/--\1/p' "$root/share/man/man1/dpgen-verify.1" | sort -u >"$tmp/of.man"
expect "dpgen-verify(1) has its options" diff "$tmp/code" "$tmp/of.man"
for status in $(sed -n 's/^| \([0-9]\) |.*/\1/p' docs/verify.md); do
    grep -q "^.It $status\$" "$root/share/man/man1/dpgen-verify.1" && pass || fault "dpgen-verify(1) has no status $status"
done
keys=$(sed -n 's/^| `\([a-z_]*\)`.*/\1/p' docs/model.md | sort -u)
expect "keys of the model file" test "$(echo "$keys" | wc -l)" -gt 50
for key in $keys; do grep -q "^.It .*fB$key.fR" "$root/share/man/man5/dpgen-model.5" || echo "$key"; done >"$tmp/lost"
expect "dpgen-model(5) has every key" test ! -s "$tmp/lost"
if command -v mandoc >/dev/null 2>&1; then
    mandoc -T lint -W error "$root"/share/man/man[135]/* >"$tmp/said" 2>&1
    expect "mandoc" test ! -s "$tmp/said"
else
    skip "no mandoc"
fi
expect "the examples plan where they lie" "$root/bin/dpgen" plan "$root/share/dpgen/examples/bytes-gpt.yaml" --estimate
# Links of installed pages lead to a file; the first example has its data wherever the job is started
(cd "$root/share/doc/dpgen" && find . -name '*.md' | while read -r page; do
    grep -o ']([^)]*)' "$page" | sed 's/^](//; s/)$//; s/#.*//' | grep -v -e '^http' -e '^$' | while read -r link; do
        echo "$page $link"
        [ -e "$(dirname "$page")/$link" ] || echo "$page: $link" >>"$tmp/lost.links"
    done
done) >"$tmp/links"
[ ! -e "$tmp/lost.links" ] && pass || fault "links of the installed pages: $(head -n 3 "$tmp/lost.links" | tr '\n' ' ')"
[ "$(wc -l <"$tmp/links")" -gt 80 ] && pass || fault "links: $(wc -l <"$tmp/links")"
make -s install PREFIX="$tmp/own" >"$tmp/said" 2>&1 || fault "make install into a home: $(cat "$tmp/said")"
mkdir "$tmp/elsewhere" && cd "$tmp/elsewhere" || exit 2
expect "the first example generates" "$tmp/own/bin/dpgen" "$tmp/own/share/dpgen/examples/bytes-gpt.yaml" --estimate \
    --planner even -D L=1 -D T=64 -o out
expect "it builds" make_quickly out
expect "it trains from another folder" out/train --no-checkpoint --steps 1
cd "$here" || exit 2
mkdir "$root/share/keep"
expect "make uninstall" make -s uninstall PREFIX="$tmp/own"
expect "no folder of ours stays" test ! -e "$tmp/own"
echo mine >"$root/share/man/man1/other.1"
make -s install DESTDIR="$tmp/dest" PREFIX=$prefix >"$tmp/said" 2>&1
expect "make uninstall" make -s uninstall DESTDIR="$tmp/dest" PREFIX=$prefix
expect "nothing else goes, nothing stays" test "$(cd "$root" && find . | sort | tr '\n' ' ')" = \
    ". ./share ./share/keep ./share/man ./share/man/man1 ./share/man/man1/other.1 "
# Words with blanks, quotes and what sed reads are one word
odd="$tmp/a b'c" prefix='/opt/x &|y'
expect "make install, odd words" make -s install DESTDIR="$odd" PREFIX="$prefix"
expect "nothing beside it" test "$(cd "$odd" && ls -A . opt | tr '\n' ' ')" = '.: opt  opt: x &|y ' -a ! -e "$tmp/a"
expect "the manual names the odd folder" grep -qF "$prefix/share/dpgen/examples" "$odd$prefix/share/man/man1/dpgen.1"
refuse "make installcheck" 0 "^installcheck: .*sha256 [0-9a-f]\{64\}$" make -s installcheck DESTDIR="$odd" PREFIX="$prefix"
refuse "another prefix" 2 "there is no .*make install, with the same PREFIX" make -s installcheck DESTDIR="$odd" PREFIX=/usr
expect "make uninstall, odd words" make -s uninstall DESTDIR="$odd" PREFIX="$prefix"
expect "nothing odd stays" test -z "$(find "$odd" -type f)"

# ---- a quiet make: a line a file, and commands with V=1
# (nothing is made here: other suites use dpgen)
make -n -W gen/main.c dpgen >"$tmp/made" 2>&1
expect "a line in place of the command" grep -q "^echo '  compile gen/main.c';.* gen/main.c" "$tmp/made"
expect "commands are silent" sh -c "make -n -p dpgen | grep -q '^\.SILENT:'"
expect "V=1 shows them" sh -c "make -n V=1 -W gen/main.c dpgen | grep -q -v '^echo.*-c -o gen/main.o'"
expect "and silences none" sh -c "! make -n -p V=1 dpgen | grep -q '^\.SILENT:'"

. tests/packages.sh
finish
