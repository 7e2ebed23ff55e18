# SPDX-License-Identifier: Apache-2.0
#
# packages.sh: read by install.sh.  The archive of make dist: the same bytes from two checkouts, changes refused, the whole
# recipe without git.  SLOW=1: it is built and checked; a Debian package is built, unpacked and run.
archive=$tmp/one/build/dist/dpgen-$version.tar.gz
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git clone -q . "$tmp/one" && git clone -q --no-local --depth 1 "file://$PWD" "$tmp/other"
    (cd "$tmp/one" && umask 022 && make -s dist) >"$tmp/sum" 2>&1 || fault "make dist: $(tail -n 1 "$tmp/sum")"
    (cd "$tmp/other" && umask 077 && touch README.md && TZ=Asia/Kathmandu LC_ALL=C make -s dist) >"$tmp/sum.other" 2>&1
    expect "make dist twice" cmp "$archive" "$tmp/other/build/dist/dpgen-$version.tar.gz"
    expect "SHA256SUMS" sh -c "cd '$tmp/one/build/dist' && sha256sum -c SHA256SUMS"
    rm -rf "$tmp/other"
    echo more >>"$tmp/one/README.md"
    refuse "a changed checkout" 2 "not committed: *M README.md" make -s -C "$tmp/one" dist
    tar xzf "$archive" -C "$tmp" || fault "tar"
    expect "one folder" test -s "$tmp/dpgen-$version/Makefile"
    expect "plain owner and modes" test -z "$(tar tvzf "$archive" |
        awk '$1 !~ /^(drwxr-xr-x|-rwxr-xr-x|-rw-r--r--)$/ || $2 != "root/root"')"
    refuse "dist of an archive" 2 "this is no checkout" make -s -C "$tmp/dpgen-$version" dist
    # Every file that the recipes name is there
    for part in "$tmp/one" "$tmp/dpgen-$version"; do
        make -n -C "$part" dpgen 2>&1 | grep -v -e COMMIT -e build/commit -e 'make.*directory'
    done >"$tmp/recipe"
    expect "make without git: the same recipe" sh -c "sort '$tmp/recipe' | uniq -c | awk '\$1 % 2 { exit 1 }'"
    expect "it has the compiler's lines" test "$(grep -c -e ' -c -o gen/' "$tmp/recipe")" -gt 300
    [ -z "$SLOW" ] || expect "make without git" make -s -j"$cores" -C "$tmp/dpgen-$version" dpgen
    [ -z "$SLOW" ] || refuse "its version" 0 "^dpgen $version" "$tmp/dpgen-$version/dpgen" --version
else
    skip "this is no checkout: make dist" 10
fi
[ -n "$SLOW" ] || return 0
if command -v dpkg-buildpackage >/dev/null 2>&1 && command -v dh >/dev/null 2>&1; then
    expect "packaging/deb" packaging/deb "$tmp/deb"
    package=$(ls "$tmp"/deb/dpgen_"$version"-1_*.deb)
    expect "the package unpacks" dpkg-deb -x "$package" "$tmp/unpacked"
    expect "its program runs" "$tmp/unpacked/usr/bin/dpgen" --version
    share=$tmp/unpacked/usr/share
    expect "its example plans" "$tmp/unpacked/usr/bin/dpgen" plan "$share/dpgen/examples/bytes-gpt.yaml" --estimate
    expect "its manual" test -s "$share/man/man5/dpgen-model.5.gz"
    dpkg-deb -f "$package" Depends >"$tmp/depends"
    expect "it needs libyaml" grep -q 'libyaml-0-2' "$tmp/depends"
else
    skip "no dpkg-buildpackage, no debhelper" 6
fi
if command -v python3 >/dev/null 2>&1; then
    expect "packaging/spack" python3 -m py_compile packaging/spack/package.py
    rm -rf packaging/spack/__pycache__
else
    skip "no python3 for the syntax of packaging/spack"
fi
