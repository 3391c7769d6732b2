"""Policies: options and site rules from a file, whom they are for, and what is refused."""
import json
import os
import re
import shutil
import subprocess
import sys
from bisect import bisect_right

import pytest
from conftest import TESTS, output, succeeds

sys.path.insert(0, str(TESTS.parent / "python"))
from hakmem import pprof, uses  # noqa: E402

HEAD = "hakmem policy 1\n"


SITED = ("-fno-optimize-sibling-calls", "-Wl,--build-id=sha1")


@pytest.fixture(scope="session")
def program(build):
    return build("sited.c", *SITED)


@pytest.fixture(scope="session")
def asker(build):
    """Prints the values of the options that are its arguments."""
    return build("asked.c", "-Wl,--build-id=sha1")


def build_id(program):
    return re.search(r"Build ID: (\w+)", output("readelf", "-n", program))[1]


def sites_of(program):
    """function -> place in the file behind its call of an allocating function."""
    found, function, behind = {}, "", False
    for line in output("objdump", "-d", "--no-show-raw-insn", program).splitlines():
        if head := re.match(r"[0-9a-f]+ <(\w+)>:", line):
            function = head[1]
        elif place := re.match(r"\s+([0-9a-f]+):\s+(.*)", line):
            if behind:
                found[function] = int(place[1], 16)
            behind = bool(re.search(r"call.*<(malloc|calloc)", place[2]))
    return found


@pytest.fixture(scope="session")
def sites(program):
    return sites_of(program)


@pytest.fixture
def policy(tmp_path):
    def write(text, name="a.policy"):
        path = tmp_path / name
        path.write_text(HEAD + text)
        return path

    return write


def test_options_come_from_the_policy_and_the_environment_overrides_them(run, asker, policy):
    path = policy("option purge_delay_ms 123\noption price lean\n")
    assert succeeds(run(asker, "purge_delay_ms", "price", HAKMEM_POLICY=path)) == "123\n3500\n"
    assert succeeds(run(asker, "purge_delay_ms", "price", HAKMEM_POLICY=path,
                        HAKMEM_PRICE="fast")) == "123\n70\n"
    assert succeeds(run(asker, "junk", HAKMEM_POLICY=path, HAKMEM_MODE="debug")) == "1\n"


def test_a_policy_takes_back_no_check_of_the_mode(run, asker, policy):
    path = policy("option check_frees off\noption junk off\noption price lean\n")
    asked = ("check_frees", "junk", "price")
    assert succeeds(run(asker, *asked, HAKMEM_POLICY=path, HAKMEM_MODE="debug",
                        HAKMEM_LEAK_REPORT=0)) == "1\n1\n3500\n"
    assert succeeds(run(asker, *asked, HAKMEM_POLICY=path, HAKMEM_MODE="debug",
                        HAKMEM_LEAK_REPORT=0, HAKMEM_JUNK=0)) == "1\n0\n3500\n"
    assert succeeds(run(asker, *asked, HAKMEM_POLICY=path)) == "0\n0\n3500\n"


def test_a_policy_is_for_the_program_that_it_names(run, asker, policy):
    ours = policy(f"program {build_id(asker)}\noption price lean\n")
    assert succeeds(run(asker, "price", HAKMEM_POLICY=ours)) == "3500\n"
    other = policy(f"program {'0' * 40}\noption price lean\n")
    assert succeeds(run(asker, "price", HAKMEM_POLICY=other)) == "700\n"


def test_a_folder_has_one_for_each_program(run, asker, policy, tmp_path):
    policy("option price lean\n", f"{build_id(asker)}.policy")
    assert succeeds(run(asker, "price", HAKMEM_POLICY=tmp_path)) == "3500\n"
    assert succeeds(run("true", HAKMEM_POLICY=tmp_path)) == ""


@pytest.mark.parametrize(("text", "said"), [
    ("option purge_delay_ms 123\noption price 0\n", "line 3: the option does not take this value"),
    ("site x\n",
     "line 2: expected: site BUILD-ID PLACE SIZE group NUMBER [caller BYTES BUILD-ID PLACE]"),
    ("# " + "x" * 140000 + "\n", "it is too long"),
])
def test_a_wrong_policy_is_refused_as_a_whole(run, asker, policy, text, said):
    result = run(asker, "price", "purge_delay_ms", HAKMEM_POLICY=policy(text))
    assert result.stdout == "700\n500\n"
    assert f": HAKMEM_POLICY is ignored: {said} (" in result.stderr


def test_a_policy_that_is_not_there_is_told(run, asker, tmp_path):
    result = run(asker, "price", HAKMEM_POLICY=tmp_path / "none")
    assert "is ignored: it cannot be read, is empty, or is no regular file" in result.stderr


def test_a_program_may_have_its_policy_in_its_own_file(run, build, policy):
    program = build("asked.c", '-DPOLICY="option price lean\\n" "option purge_delay_ms 123\\n"',
                    name="noted")
    options = ("price", "purge_delay_ms")
    assert succeeds(run(program, *options)) == "3500\n123\n"
    assert succeeds(run(program, *options, HAKMEM_PRICE="fast")) == "70\n123\n"
    assert succeeds(run(program, *options, HAKMEM_POLICY="none")) == "700\n500\n"
    other = policy("option price fast\n")  # instead of it, and not besides
    assert succeeds(run(program, *options, HAKMEM_POLICY=other)) == "70\n5000\n"
    assert succeeds(run(program, preload=None)) == ""


@pytest.mark.parametrize(("note", "said"), [
    ('"option price lean\\noption price 0\\n"', "line 3: the option does not take this value"),
    (f'"program {"0" * 40}\\noption price lean\\n"', "it is for another build")])
def test_a_wrong_policy_in_a_program_is_refused_as_a_whole(run, build, note, said):
    result = run(build("asked.c", f"-DPOLICY={note}", name=f"wrong-{said[:4]}"), "price")
    assert result.stdout == "700\n"
    assert f"the policy in the program is ignored: {said}" in result.stderr


@pytest.mark.parametrize("how", [("-static",), ("-static-pie",), ("-no-pie",)], ids=" ".join)
def test_a_linked_program_has_its_policy_too(run, build, archive, how):
    how = (*how, "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive")
    program = build("asked.c", *how, '-DPOLICY="option price lean\\n"', name="noted" + how[0])
    assert succeeds(run(program, "price", preload=None)) == "3500\n"
    without = build("asked.c", *how, name="asked" + how[0])
    assert succeeds(run(without, "price", preload=None)) == "700\n"


@pytest.mark.parametrize("compiler", ["cc", "c++", "clang"])
def test_a_policy_in_a_program_brings_no_warning(run, compiler, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    source = tmp_path / ("a.cc" if compiler == "c++" else "a.c")
    source.write_text('#include "hakmem.h"\n'
                      'HAKMEM_POLICY_NOTE("option price lean\\n" "option junk off\\n")\n'
                      "int main(void) { return 0; }\n")
    subprocess.run([compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-flto",
                    "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-I",
                    str(TESTS.parent / "include"), "-o", str(tmp_path / "a"), str(source)],
                   check=True)
    assert "hakmem" in output("readelf", "-n", tmp_path / "a")


def test_sites_of_a_policy_in_a_program_are_found(run, build):
    """Its build ID is chosen, and the place has the same length in both builds."""
    own = "0123456789abcdef0123456789abcdef01234567"

    def noted(place):
        return build("sited.c", "-fno-optimize-sibling-calls", f"-Wl,--build-id=0x{own}",
                     f'-DPOLICY="site {own} {place:08x} 48 group 1\\n"', name=f"noted-{place:x}")

    place = sites_of(noted(0))["by_malloc"]
    assert succeeds(run(noted(0))) == "CCCCC\n"
    assert succeeds(run(noted(place))) == "aCCCe\n"


def test_blocks_of_a_site_stand_apart(run, program, policy, sites):
    """The letters: of by_malloc, by_calloc, by_another, another size, and the first, grown."""
    assert succeeds(run(program)) == "CCCCC\n"
    own = build_id(program)
    rule = f"site {own} {{:x}} {{}} group {{}}\n"
    one = policy(rule.format(sites["by_malloc"], 48, 1))
    assert succeeds(run(program, HAKMEM_POLICY=one)) == "aCCCe\n"
    for mode in "checked", "debug":
        assert succeeds(run(program, HAKMEM_POLICY=one, HAKMEM_MODE=mode,
                            HAKMEM_LEAK_REPORT=0)) == "aCCCe\n"
    two = policy(rule.format(sites["by_malloc"], 48, 1) + rule.format(sites["by_calloc"], 33, 2) +
                 rule.format(sites["of_another_size"], 200, 1))
    assert succeeds(run(program, HAKMEM_POLICY=two)) == "abCde\n"
    none = policy(f"site {'0' * 40} {sites['by_malloc']:x} 48 group 1\n" +
                  rule.format(sites["by_malloc"], 64, 1))
    assert succeeds(run(program, HAKMEM_POLICY=none)) == "CCCCC\n"


def test_of_rules_for_sizes_of_a_class_the_first_counts(run, program, policy, sites, tmp_path):
    """The others take no size class either."""
    site = f"site {build_id(program)} {sites['by_malloc']:x}"
    path = policy(f"{site} 48 group 1\n{site} 33 group 2\n{site} 40 group 3\n")
    told = tmp_path / "told"
    assert succeeds(run(program, HAKMEM_POLICY=path, HAKMEM_STATS=told)) == "aCCCe\n"
    found = json.loads(told.read_text())
    assert set(found["groups"]) == {"1"}
    assert found["policy"] == {"state": "in_force", "rules": 3, "rules_found": 3}


@pytest.mark.parametrize("text,state,rules", [
    ("", "none", 0), ("program " + "0" * 40, "for_another_build", 0), ("nonsense", "refused", 0),
    ("option price lean", "in_force", 0), (f"site {'0' * 40} 1 48 group 1", "in_force", 1)])
def test_statistics_say_whether_a_policy_is_in_force(run, program, policy, tmp_path, text, state,
                                                     rules):
    told = tmp_path / "told"
    named = policy(text + "\n") if text else "none"
    run(program, HAKMEM_POLICY=named, HAKMEM_STATS=told)
    assert json.loads(told.read_text())["policy"] == {
        "state": state, "rules": rules, "rules_found": 0}


def test_a_profile_and_rules_hold_together(run, program, policy, sites, tmp_path):
    path = policy(f"site {build_id(program)} {sites['by_malloc']:x} 48 group 1\n")
    assert succeeds(run(program, HAKMEM_POLICY=path, HAKMEM_PROFILE=tmp_path / "p",
                        HAKMEM_PROFILE_MEAN_KB=1)) == "aCCCe\n"
    assert os.path.getsize(tmp_path / "p") > 100


def test_code_that_is_mapped_twice_takes_no_more_places_than_there_are(run, program, library,
                                                                       policy, tmp_path):
    """With as many sites as a policy may have there are more callers than places."""
    (tmp_path / "many.c").write_text("int many(int x) { return x; }\n" + "".join(
        f"int more{number}(int x) {{ return x * {number}; }}\n" for number in range(128)))
    many = tmp_path / "many.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", many,
                    tmp_path / "many.c"], check=True)
    copy = shutil.copy(many, tmp_path / "again.so")
    place = int(re.search(r"^(\w+) T many$", output("nm", many), re.MULTILINE)[1], 16)
    path = policy("".join(f"site {build_id(many)} {place + number:x} 48 group 1\n"
                          for number in range(128)))
    assert len(succeeds(run(program, preload=f"{library}:{many}:{copy}",
                            HAKMEM_POLICY=path)).split()) == 1


# ---- sites with callers ----

WRAPPED = ("-O2", "-Wl,--build-id=sha1")
WRAPPERS = ("plain", "zeroed", "made", "array", "nothrow", "framed", "deep", "padded", "far",
            "varying")


def functions_of(program):
    """(where each function begins, its name), in order."""
    return sorted((int(place, 16), name) for place, name in
                  re.findall(r"^(\w+) [tT] (\w+)$", output("nm", program), re.MULTILINE))


def callers_of(run, program, path, **preload):
    """name of a wrapper -> the words of a site behind its number for blocks that stay; by a
    profile. Every function is compiled with the name that it has in the file."""
    succeeds(run(program, HAKMEM_PROFILE=path, HAKMEM_PROFILE_MEAN_KB=1, **preload))
    functions, found = functions_of(program), {}
    starts = [start for start, _ in functions]
    for part in uses.parts_of([pprof.read(path)], [1.0]):
        site = part.site(3)
        for depth, caller in enumerate(site.callers if site else (), 1):
            name = functions[max(bisect_right(starts, caller.place) - 1, 0)][1]
            if name.endswith("_stays"):
                place = f"site {site.build_id} {site.place:x} {site.size} group {{}}"
                found[name.removesuffix("_stays")] = place + "".join(map(str, site.callers[:depth]))
    return found


@pytest.fixture(scope="session")
def wrapped(build):
    return build("wrapped.cc", *WRAPPED)


@pytest.fixture
def callers(run, wrapped, tmp_path):
    return callers_of(run, wrapped, tmp_path / "wrapped.pb")


def test_a_profile_says_where_return_addresses_stand(callers):
    """But not of functions whose frame is long, or is not always as long."""
    assert set(callers) == set(WRAPPERS) - {"far", "varying"}
    assert callers["deep"].count("caller") == 2 and callers["plain"].count("caller") == 1


def test_blocks_of_a_caller_stand_apart(run, wrapped, callers, policy):
    assert succeeds(run(wrapped)) == 2 * "CCCCCCCCCC\n"
    every = policy("".join(f"{site.format(1)}\n" for site in callers.values()))
    assert succeeds(run(wrapped, HAKMEM_POLICY=every)) == 2 * "AAAAAAAACC\n"
    for mode in "checked", "debug":
        assert succeeds(run(wrapped, HAKMEM_POLICY=every, HAKMEM_MODE=mode,
                            HAKMEM_LEAK_REPORT=0)) == 2 * "AAAAAAAACC\n"
    one = policy(callers["deep"].format(1) + "\n")
    assert succeeds(run(wrapped, HAKMEM_POLICY=one)) == 2 * "CCCCCCACCC\n"


def test_blocks_of_callers_stand_apart_while_a_profile_is_on(run, wrapped, callers, policy,
                                                             tmp_path):
    every = policy("".join(f"{site.format(1)}\n" for site in callers.values()))
    assert succeeds(run(wrapped, HAKMEM_POLICY=every, HAKMEM_PROFILE=tmp_path / "again.pb",
                        HAKMEM_PROFILE_MEAN_KB=64)) == 2 * "AAAAAAAACC\n"


def test_the_function_and_its_callers_may_have_groups(run, wrapped, callers, policy):
    """The more a rule says of a call, the more it counts."""
    of_all = callers["plain"].split(" caller ")[0]
    both = policy(f"{of_all.format(1)}\n{callers['plain'].format(2)}\n")
    assert succeeds(run(wrapped, HAKMEM_POLICY=both)) == 2 * "ACCCCCCCCC\n"
    same = policy(f"{of_all.format(2)}\n{callers['plain'].format(2)}\n")
    assert succeeds(run(wrapped, HAKMEM_POLICY=same)) == 2 * "CCCCCCCCCC\n"


def test_another_place_of_the_stack_says_nothing(run, wrapped, callers, policy):
    """Whatever stands there, up to the end of the stack and of what may be said."""
    for slot in (8, 64, 512, 1024):
        moved = re.sub(r"caller \d+", f"caller {slot}", callers["padded"]).format(1)
        assert succeeds(run(wrapped, HAKMEM_POLICY=policy(moved + "\n"))) == 2 * "CCCCCCCCCC\n"


def test_sizes_of_a_class_with_two_places_of_the_stack_are_one_rule(run, wrapped, callers, policy):
    site, wrong = callers["plain"].format(1), callers["plain"].format(1).replace(" 512 ", " 500 ")
    wrong = re.sub(r"caller \d+", "caller 1024", wrong)
    for text, letters in ((f"{site}\n{wrong}\n", "A"), (f"{wrong}\n{site}\n", "C")):
        assert succeeds(run(wrapped, HAKMEM_POLICY=policy(text))) == 2 * f"{letters}CCCCCCCCC\n"


@pytest.mark.parametrize("how", [("-static-pie",), ("-pie",)], ids=" ".join)
def test_a_linked_program_has_callers_too(run, build, archive, policy, tmp_path, how):
    program = build("wrapped.cc", *WRAPPED, *how, "-Wl,--whole-archive", archive,
                    "-Wl,--no-whole-archive", name="wrapped" + how[0])
    callers = callers_of(run, program, tmp_path / "linked.pb", preload=None)
    every = policy("".join(f"{site.format(1)}\n" for site in callers.values()))
    assert succeeds(run(program, HAKMEM_POLICY=every, preload=None)) == 2 * "AAAAAAAACC\n"
