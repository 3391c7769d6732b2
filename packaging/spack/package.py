"""HAKMEM for Spack: put this file into packages/hakmem/ of a repository of yours."""
from spack.package import *

try:  # from Spack 1.0 on; before, it is among the others
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass


class Hakmem(CMakePackage):
    """General-purpose memory allocator that replaces malloc by preloading or linking."""

    homepage = "@HOMEPAGE@"
    url = "@URL@"
    license("MIT")
    version("@VERSION@", sha256="@SHA256@")

    depends_on("c", type="build")
    depends_on("cmake@3.21:", type="build")
    variant("tools", default=True, description="What hakmem stat, why, leaks and so on run on")
    depends_on("python@3.10:", type="run", when="+tools")
    depends_on("py-click@8.1:", type="run", when="+tools")
    depends_on("py-rich@12:", type="run", when="+tools")
    depends_on("py-pyelftools@0.29:", type="run", when="+tools")
    depends_on("py-protobuf@3.20:", type="run", when="+tools")
    conflicts("platform=darwin", msg="HAKMEM runs on Linux")
    conflicts("platform=windows", msg="HAKMEM runs on Linux")

    def cmake_args(self):
        return [self.define("HAKMEM_LIBRARY_ONLY", True)]
