#!/usr/bin/env bash
# Fetches the named needs that this machine lacks, and nothing when it lacks nothing:
# from apt when root, else from PyPI into the local virtual environment .venv. What can be had from
# neither is an error only where nothing works without it; else one line says what is skipped.
# out/setup.log has what apt and pip have said.
# setup.sh --has NEED... installs nothing and succeeds when nothing is missing.
# setup.sh --must NEED... takes each of them as one without which nothing works.
set -euo pipefail
cd "$(dirname "$0")/.."

aarch64="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
programs=$(sed 's/ *#.*//' tests/programs/packages.txt | xargs)

cli="pyelftools protobuf"
cli_modules="elftools google.protobuf"
words="click rich" # what the command of the laboratory is made of
lab="$cli $words numpy scipy jinja2"
lab_modules="$cli_modules $words numpy scipy jinja2"
cli_from_apt=$(printf 'python3-%s ' $cli)
words_from_apt=$(printf 'python3-%s ' $words)
lab_from_apt=$(printf 'python3-%s ' $lab)
site="sphinx myst-parser furo breathe" # of one time, not those of the distribution
site_modules="sphinx myst_parser furo breathe"
wait_s=600 # for another apt, which a machine just started may run
deb="build-essential debhelper lintian cmake ninja-build systemtap-sdt-dev"

# need        how to see it is there                   apt packages                       PyPI
table="
cmake         cmake_is_new_enough                      cmake                              cmake
ninja         command -v ninja                         ninja-build                        ninja
c++           command -v c++                           g++                                -
pip           has_modules pip                          python3-pip                        pip
pytest        has_modules pytest                       python3-pytest                     pytest
hypothesis    has_modules hypothesis                   python3-hypothesis                 hypothesis
cli           has_modules $cli_modules                 $cli_from_apt                      $cli
words         has_modules $words                       $words_from_apt                    $words
lab           has_modules $lab_modules                 $lab_from_apt                      $lab
plots         has_modules matplotlib                   python3-matplotlib                 matplotlib
metrics       has_modules prometheus_client            python3-prometheus-client  prometheus-client
mypy          has_modules mypy                         mypy                               mypy
strace        command -v strace                        strace                             -
bwrap         command -v bwrap                         bubblewrap                         -
sdt           has_sdt                                  systemtap-sdt-dev                  -
valgrind      command -v valgrind                      valgrind                           -
gdb           command -v gdb                           gdb                                -
spin          command -v spin                          spin                               -
aarch64       has_aarch64                              $aarch64                           -
fuzzer        has_fuzzer                               clang libclang-rt-dev              -
recipes       command -v rpmbuild && command -v conan  rpm                                conan
musl          command -v musl-gcc                      musl-tools                         -
cargo         command -v cargo                         cargo                              -
abi           command -v abidw && command -v abidiff   abigail-tools                      -
debian        has_build_packages                       $deb                                -
site          has_modules $site_modules                -                                  $site
doxygen       command -v doxygen && command -v mandoc  doxygen mandoc                     -
browser       has_browser                              chromium chromium-driver           selenium
mmdebstrap    command -v mmdebstrap                    mmdebstrap                         -
peers         command -v cargo && command -v c++       cargo g++                          -
programs      dpkg -s $programs                        $programs                          -
"

# need        what is skipped without it; nothing works without the others
skipped="
c++           tests in C++ are skipped
hypothesis    files that chance has damaged are not tried on the tools
metrics       statistics as metrics for Prometheus are not tested
mypy          the types of the laboratory are not checked
strace        tests that trace system calls are skipped
bwrap         tests in sandboxes of bubblewrap are skipped
sdt           the library has no static probes
valgrind      tests with Valgrind are skipped; calls for locks are not counted
gdb           what a debugger knows of the library is not tested
spin          the models of tests/concurrency are not checked
aarch64       tests on 64-bit Arm are skipped, and its packages are not built
recipes       packages of RPM and Conan are not tried
musl          tests on the C library of Alpine Linux are skipped, and its wheel is not built
fuzzer        the fuzzers, which need clang and libFuzzer, are skipped
cargo         the crate is not tried
abi           the binary interface is not compared with the recorded one
debian        packages for Debian and Ubuntu are not tried
doxygen       the site shows headers and manual pages as they are
site          the documentation site is not built
browser       pages of the site are not opened in a browser
ninja         make builds, which takes longer
peers         allocators that are built from source are skipped
programs      tests of programs that are not here are skipped
"

cmake_is_new_enough() {
    local version
    version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')
    [ -n "$version" ] && printf '3.21\n%s\n' "$version" | sort -C -V
}

has_modules() { # sees without importing, which would take a second
    python3 -c 'import sys; from importlib.util import find_spec
sys.exit(not all(map(find_spec, sys.argv[1:])))' "$@"
}

has_sdt() {
    cc -xc -fsyntax-only - <<< '#include <sys/sdt.h>'
}

has_aarch64() {
    command -v qemu-aarch64 && aarch64-linux-gnu-gcc -xc -fsyntax-only - <<< '#include <stdlib.h>'
}

has_fuzzer() { # clang with its libFuzzer
    clang -fsanitize=fuzzer -xc -o /dev/null - \
        <<< 'int LLVMFuzzerTestOneInput(const char *data, unsigned long size);
             int LLVMFuzzerTestOneInput(const char *data, unsigned long size)
             { return data == 0 && size != 0; }'
}

has_browser() {
    command -v chromium && command -v chromedriver && has_modules selenium
}

has_build_packages() { # what a package is built with comes from packages, not from PyPI
    command -v lintian && dpkg-checkbuilddeps packaging/debian/control
}

column() { # need, column number: columns are two or more spaces apart
    sed -n "s/^$1  */&/p" <<< "$table" | sed 's/   */\t/g' | cut -f "$2"
}

missing() { # the needs among "$@" that are not there
    local need
    for need in "$@"; do
        eval "$(column "$need" 2)" > /dev/null 2>&1 || printf '%s\n' "$need"
    done
}

from_apt() {
    local need package words packages=() python
    python=$(command -v python3 || echo /usr/bin/python3)
    for need in "$@"; do
        read -r -a words <<< "$(column "$need" 3)"
        [ "${words[0]}" != - ] || continue
        # A Python of the user's own does not see the modules of the distribution.
        if [[ ${words[0]} != python3-* || $python = /usr/bin/python3 ]]; then
            packages+=("${words[@]}")
        fi
    done
    [ ${#packages[@]} -gt 0 ] || return 0
    echo "setup: installing with apt: ${packages[*]}"
    apt_update
    apt_install "${packages[@]}" && return
    for package in "${packages[@]}"; do # Another release may lack one of them.
        apt_install "$package" || true
    done
}

apt_install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=$wait_s \
        --no-install-recommends "$@" >> "$log" 2>&1
}

apt_update() { # The option above is not for the lock of the lists.
    local deadline=$((SECONDS + wait_s)) said
    until said=$(LC_ALL=C apt-get update -qq 2>&1); do
        [[ $said == *'Could not get lock'* && $SECONDS -lt $deadline ]] || break
        sleep 1
    done
    printf '%s\n' "$said" >> "$log"
}

# Debian's bare python3 has no pip. Its wheel comes in a package that anyone may unpack.
pip_from_apt() {
    local place=.venv/apt
    tools/apt_unpack.sh python3-pip-whl "$place" \
        && .venv/bin/python3 "$(ls "$place"/usr/share/python-wheels/pip-*.whl)/pip" install -q pip \
        && rm -rf "$place"
}

new_environment() {
    python3 -m venv --system-site-packages --without-pip .venv || return
    if python3 -m ensurepip --version; then
        .venv/bin/python3 -m ensurepip
    else
        pip_from_apt
    fi
}

from_pypi() {
    local need words made= packages=()
    for need in "$@"; do
        read -r -a words <<< "$(column "$need" 4)"
        [ "${words[0]}" = - ] || packages+=("${words[@]}")
    done
    [ ${#packages[@]} -gt 0 ] || return 0
    echo "setup: installing from PyPI into .venv: ${packages[*]}"
    if [ ! -x .venv/bin/pip ]; then
        [ -e .venv ] || made=.venv
        if ! new_environment >> "$log" 2>&1; then
            rm -rf $made # half of one would hide the modules that apt brings later
            return
        fi
    fi
    # What is imported gets compiled then, into out/pycache.
    .venv/bin/python3 -m pip install -q --no-compile --retries 1 "${packages[@]}" >> "$log" 2>&1 \
        || true
}

how_to_install() { # need: by hand
    local packages modules
    packages=$(column "$1" 3)
    modules=$(column "$1" 4)
    [ "$packages" = - ] && packages= || packages="as root: apt install ${packages% }"
    [ "$modules" = - ] && modules= || modules="pip install $modules"
    echo "$packages${packages:+${modules:+; or: }}$modules"
}

export PATH="$PWD/.venv/bin:$PATH"
if [ "$1" = --has ]; then
    [ -z "$(missing "${@:2}")" ]
    exit
fi
must=
if [ "$1" = --must ]; then
    must=yes
    shift
fi
old=0
python3 -c 'import sys; sys.exit(9 * (sys.version_info < (3, 11)))' 2> /dev/null || old=$?
if [[ " $* " =~ \ (lab|pytest)\  ]] && [ "$old" = 9 ]; then
    echo "setup: the laboratory and the tests need Python 3.11, which Debian 12 and" \
        "Ubuntu 24.04 have; here is $(python3 --version 2>&1)" >&2
    exit 1
fi
mapfile -t needs < <(missing "$@")
[ ${#needs[@]} -gt 0 ] || exit 0

log=out/setup.log
mkdir -p out
: > "$log"
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    from_apt "${needs[@]}"
    mapfile -t needs < <(missing "$@")
fi
if [ ${#needs[@]} -gt 0 ]; then
    from_pypi "${needs[@]}"
fi
hash -r

for need in $(missing "$@"); do
    without=$(sed -n "s/^$need  *//p" <<< "$skipped")
    if [ -z "$without" ] || [ -n "$must" ]; then
        why=$([ ! -s "$log" ] || echo " (why: $log)")
        echo "setup: $need is missing and could not be installed$why;" \
            "$(how_to_install "$need")" >&2
        exit 1
    fi
    echo "setup: no $need here: $without"
done
