# nix-build: the library and the command. A flake or an overlay calls it with its own packages.
{ pkgs ? import <nixpkgs> { } }:

let
  python = pkgs.python3.withPackages (modules: [
    modules.click
    modules.rich
    modules.pyelftools
    modules.protobuf
  ]);
in
pkgs.stdenv.mkDerivation {
  pname = "hakmem";
  version = "@VERSION@";
  src = @NIX_SOURCE@;
  nativeBuildInputs = [ pkgs.cmake pkgs.ninja ];
  postPatch = "patchShebangs tools";
  cmakeFlags = [ "-DHAKMEM_LIBRARY_ONLY=ON" ];
  # The command's own Python, and not that of the programs which it runs.
  postFixup = ''
    sed -i 's|python3 -|${python}/bin/python3 -|' $out/bin/hakmem
  '';
  meta = {
    description = "General-purpose memory allocator that replaces malloc";
    homepage = "@HOMEPAGE@";
    license = pkgs.lib.licenses.mit;
    mainProgram = "hakmem";
    platforms = [ "x86_64-linux" "aarch64-linux" ];
  };
}
