# nix-build: the library and the command. A flake or an overlay calls it with its own packages.
{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "hakmem";
  version = "@VERSION@";
  src = pkgs.fetchurl {
    url = "@URL@";
    sha256 = "@SHA256@";
  };
  nativeBuildInputs = [ pkgs.cmake pkgs.ninja ];
  postPatch = "patchShebangs tools";
  cmakeFlags = [ "-DHAKMEM_LIBRARY_ONLY=ON" ];
  meta = {
    description = "General-purpose memory allocator that replaces malloc";
    homepage = "@HOMEPAGE@";
    license = pkgs.lib.licenses.mit;
    mainProgram = "hakmem";
    platforms = [ "x86_64-linux" "aarch64-linux" ];
  };
}
