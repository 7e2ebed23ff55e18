# SPDX-License-Identifier: Apache-2.0
# nix-build packaging/nix, in the source; or callPackage packaging/nix { } from a set of packages.
{ pkgs ? import <nixpkgs> { }, stdenv ? pkgs.stdenv, libyaml ? pkgs.libyaml, lib ? pkgs.lib }:

stdenv.mkDerivation {
  pname = "dpgen";
  version = "0.3.0";
  src = ../..;

  buildInputs = [ libyaml ];
  enableParallelBuilding = true;
  makeFlags = [ "PREFIX=$(out)" ];
  buildFlags = [ "all" ];
  doInstallCheck = true;
  installCheckTarget = "installcheck";

  meta = {
    description = "Compile pipeline-parallel training to plain C";
    license = lib.licenses.asl20;
    platforms = lib.platforms.linux;
  };
}
