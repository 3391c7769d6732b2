"""Which route serves which call: the checked build counts them, and others are skipped."""
import re

import pytest

CALLS = 100_000
BLOCKS = 50 * 4000  # from producer to consumer
MAGAZINES = BLOCKS // 124
SLACK = 40
DETOURS = [f"{call}_{where}" for call in ("malloc", "free") for where in ("large", "huge", "libc")]


@pytest.fixture(scope="session")
def routes_of(run, build):
    """routes_of("hot_loop", …): by route, the calls beyond those of a program that does nothing."""
    def counts(scenario, **settings):
        result = run(build("routes.c"), scenario, HAKMEM_FREE_ROUTE_TRACE=1, **settings)
        if "needs a diagnostic build" in result.stderr:
            pytest.skip("this build does not count routes")
        assert result.returncode == 0, result
        found = re.findall(r"\]: route (\w+) +(\d+)$", result.stderr, re.MULTILINE)
        assert found, result
        return {route: int(count) for route, count in found}

    def beyond_nothing(scenario, **settings):
        idle, seen = counts("nothing", **settings), counts(scenario, **settings)
        assert seen.keys() == idle.keys()
        return {route: count - idle[route] for route, count in seen.items()}

    return beyond_nothing


def in_all(routes, call):
    return sum(count for route, count in routes.items() if route.startswith(f"{call}_"))


@pytest.mark.parametrize("scenario", ["hot_loop", "hot_calloc", "blocks_of_32_kib"])
def test_a_hot_loop_is_served_by_the_bin(routes_of, scenario):
    routes = routes_of(scenario)
    assert abs(routes["malloc_bin"] - CALLS) <= SLACK and abs(routes["free_bin"] - CALLS) <= SLACK
    assert all(routes[each] == 0 for each in DETOURS), routes


@pytest.mark.parametrize("scenario,calls", [
    ("hot_loop", CALLS), ("blocks_of_32_kib", CALLS), ("small_of_all_sizes", CALLS),
    ("aligned_small", CALLS), ("blocks_of_32_mib", 1000)])
def test_each_call_is_counted_once(routes_of, scenario, calls):
    routes = routes_of(scenario)
    assert in_all(routes, "malloc") == in_all(routes, "free") == calls


@pytest.mark.parametrize("scenario,absent", [
    ("small_of_all_sizes", [*DETOURS, "malloc_uncached", "free_uncached"]),
    ("aligned_small", DETOURS)])
def test_no_small_block_takes_a_detour(routes_of, scenario, absent):
    routes = routes_of(scenario)
    assert all(routes[each] == 0 for each in absent), routes


def test_from_producer_to_consumer_it_goes_by_the_depot(routes_of):
    routes = routes_of("producer_and_consumer")
    for call in ("malloc", "free"):
        assert routes[f"{call}_depot"] > MAGAZINES * 3 / 4
        assert routes[f"{call}_bin"] > BLOCKS * 95 / 100
    assert routes["malloc_slabs"] < MAGAZINES / 10
    assert all(routes[each] == 0 for each in DETOURS), routes


@pytest.mark.parametrize("scenario,kind,other,calls", [
    ("blocks_above_32_kib", "large", "huge", 1100), ("blocks_of_32_mib", "huge", "large", 1000)])
def test_blocks_above_32_kib_are_large_or_huge(routes_of, scenario, kind, other, calls):
    routes = routes_of(scenario)
    assert routes[f"malloc_{kind}"] == routes[f"free_{kind}"] == calls
    assert routes[f"malloc_{other}"] == routes[f"free_{other}"] == 0


def test_a_free_of_null_is_no_call(routes_of):
    assert in_all(routes_of("free_of_null"), "free") == 0


def test_in_debug_mode_every_small_call_is_uncached(routes_of):
    routes = routes_of("small_and_large", HAKMEM_MODE="debug")
    assert routes["malloc_uncached"] == routes["free_uncached"] == 2000
    assert all(routes[f"{call}_{where}"] == 0 for call in ("malloc", "free")
               for where in ("bin", "spare", "depot")), routes
    assert routes["malloc_large"] == routes["malloc_huge"] == 1000


def test_in_safe_mode_the_c_library_serves_everything(routes_of):
    routes = routes_of("small_and_large", HAKMEM_LD_SAFE=1)
    for call in ("malloc", "free"):
        assert routes[f"{call}_libc"] == in_all(routes, call) == 4000
