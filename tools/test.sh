#!/usr/bin/env bash
# Builds the named variants, or all that this machine can build, and tests them in one ctest run,
# so that one summary ends the output. The first argument says which tests: those that take seconds
# (quick), those that take longer (slow), or a few that say soon whether a change holds (check).
# Each build is a test as well, which those of its own wait for (register_test in CMakeLists.txt):
# one variant is built while tests of another run.
set -euo pipefail
cd "$(dirname "$0")/.."

kind=$1
shift
builds=("$@")
case $kind in
quick) choice=(-LE slow) ;;
slow) choice=(-L slow) ;;
check)
    preload='preload/test_(first_call|loading)'
    choice=(-LE slow -R
        "^(checked/unit/|release/(api/.*/preloaded|$preload|tidy|shape/(calls|fast_path))\$)")
    builds=(release:hakmem,interface_tests checked:unit_tests) # of each build what these tests need
    ;;
esac
if [ ${#builds[@]} = 0 ]; then
    builds=(release checked sanitised tsan)
    for need in aarch64 musl fuzzer; do
        if tools/setup.sh --has $need; then
            builds+=("${need/fuzzer/fuzz}")
        fi
    done
fi

tools/build.sh --configure "${builds[@]}"
processors=$(nproc)
{
    echo "subdirs(${builds[*]%%:*})"
    jobs=$processors after='' # The first has nothing beside it.
    for word in "${builds[@]}"; do # a preset, or some targets of one, as tools/build.sh takes them
        build=${word%%:*}
        echo "add_test($build/build \"$PWD/tools/build.sh\" \"$word\")
            set_tests_properties($build/build PROPERTIES FIXTURES_SETUP $build DEPENDS \"$after\"
                ENVIRONMENT CMAKE_BUILD_PARALLEL_LEVEL=$jobs PROCESSORS $jobs TIMEOUT 3600)"
        jobs=$(((processors + 1) / 2)) after=$build/build
    done
} > out/CTestTestfile.cmake
# Many tests sleep, and a processor more than there is has one of them.
ended=0
RELEASE_IS_BUILT=yes ctest --test-dir out --output-on-failure --no-tests=error \
    -j $((processors + 1)) "${choice[@]}" || ended=$?
grep '^/[^ ]*: warning:' out/Testing/Temporary/LastTest.log | sort -u || true
exit $ended
