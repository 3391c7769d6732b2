"""Libraries that register memory with a device hook munmap, madvise and mremap:
they see each range of blocks that loses its pages, and may allocate while they are called."""
import pytest
from conftest import succeeds

SETTINGS = [{}, {"HAKMEM_LIMIT_MB": 8}, {"HAKMEM_BACKGROUND": 1}, {"HAKMEM_BIGCACHE": 0},
            {"HAKMEM_MODE": "checked", "HAKMEM_LEAK_REPORT": 0}]


@pytest.mark.parametrize("way,settings", [("interposed", {})] + [("patched", each)
                                                                 for each in SETTINGS],
                         ids=lambda value: "".join(value) or "default")
@pytest.mark.parametrize("threads", [1, 4])
def test_each_page_that_goes_is_announced(build, run, threads, way, settings):
    flags = ("-rdynamic", "-DINTERPOSE") if way == "interposed" else ()
    result = run(build("hooked.c", *flags, name=way), threads, **settings)
    if result.returncode == 77:
        pytest.skip(result.stdout)
    assert succeeds(result).endswith("announcements\n")
