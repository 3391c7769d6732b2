"""Libraries that are opened at run time and have the prefixed archive in them."""
import os
import re
import shutil
import subprocess

import pytest

from files import ROOT, run

COUNT = 30  # more than the places that an allocator tries for its window

PLUGIN = """
#include <hakmem_prefixed.h>
#include <pthread.h>
#include <string.h>

static void *work(void *unused)
{
    char *blocks[500];
    for (int index = 0; index < 500; index++)
        if ((blocks[index] = hk_malloc((size_t)index * 10 + 1)) != NULL)
            memset(blocks[index], index, (size_t)index * 10 + 1);
    for (int index = 0; index < 500; index++) {
        if (blocks[index] == NULL || blocks[index][index * 10] != (char)index)
            return "a block has lost what was written";
        blocks[index] = hk_realloc(blocks[index], 20000);
        hk_free(blocks[index]);
    }
    return unused;
}

const char *work_in_threads(void)
{
    void *problem = work(NULL), *other = NULL;
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, &other) != 0)
        return "no thread";
    hakmem_heap_t *heap = hakmem_heap_new();
    void *block = hakmem_heap_malloc(heap, 100);
    if (!hakmem_owns(block))
        return "another allocator has answered";
    hk_free(block);
    hakmem_heap_destroy(heap);
    return problem != NULL ? problem : other;
}
"""
HOST = """
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **names)
{
    for (int index = 1; index < count; index++) {
        void *library = dlopen(names[index], RTLD_NOW | RTLD_LOCAL);
        const char *(*work)(void) = NULL;
        if (library != NULL) *(void **)&work = dlsym(library, "work_in_threads");
        const char *problem = work != NULL ? work() : dlerror();
        if (problem != NULL)
            return printf("%s\\n", problem), 1;
    }
    return 0;
}
"""


def open_copies(place, archive):
    """Opens copies of a library with the archive in it, one after the other, in one process: in
    one on the C library's malloc, and in one on HAKMEM."""
    place.mkdir()
    (place / "plugin.c").write_text(PLUGIN)
    (place / "host.c").write_text(HOST)
    first = place / "plugin0.so"
    run("cc", "-shared", "-fPIC", "-O1", f"-I{ROOT / 'include'}", place / "plugin.c", archive,
        "-pthread", "-Wl,--exclude-libs,ALL,-z,nodelete,-z,defs", "-o", first)
    run("cc", place / "host.c", "-ldl", "-o", place / "host")
    copies = [shutil.copy(first, place / f"plugin{number}.so") for number in range(1, COUNT)]
    return [subprocess.run([place / "host", first, *copies], capture_output=True, text=True,
                           check=False, timeout=120, env={**os.environ, **more})
            for more in ({}, {"LD_PRELOAD": os.environ["TESTED_LIBRARY"]})]


def test_the_library_takes_little_static_tls(built):
    """glibc has some 1,600 bytes for libraries that are opened later. Where one of them has the
    archive in it, others need a third of that. The bins of 112 classes take 896."""
    if built.name == "checked":
        pytest.skip("this build records the locks that a thread holds, too")
    headers = subprocess.run(["readelf", "-lW", built / "libhakmem.so"], capture_output=True,
                             text=True, check=True, timeout=60).stdout
    found = re.search(r"^ +TLS +(?:0x\w+ +){4}0x(\w+)", headers, re.MULTILINE)
    assert found and int(found[1], 16) <= 1024


def test_many_libraries_with_an_allocator_of_their_own_are_opened(built, tmp_path):
    run("cmake", "-S", ROOT, "-B", tmp_path / "build", "-DHAKMEM_LIBRARY_ONLY=ON",
        "-DHAKMEM_DYNAMIC_TLS=ON")
    run("cmake", "--build", tmp_path / "build", "--target", "hakmem_archive", "-j2")
    for done in open_copies(tmp_path / "dynamic", tmp_path / "build/libhakmem_prefixed.a"):
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    usual = open_copies(tmp_path / "usual", built / "libhakmem_prefixed.a")
    assert "static TLS" in usual[0].stdout, "the option is of no use here"
