# SPDX-License-Identifier: Apache-2.0
#
# packages.sh: read by install.sh under SLOW=1.  A Debian package is built, unpacked and run.
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
