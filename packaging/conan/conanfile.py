"""HAKMEM for Conan 2: conan create . --build=missing"""
import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rm, rmdir


class HakmemRecipe(ConanFile):
    name = "hakmem"
    version = "@VERSION@"
    description = "General-purpose memory allocator"
    license = "MIT"
    homepage = "@HOMEPAGE@"
    topics = ("malloc", "memory", "allocator")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": True}
    languages = "C"

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("HAKMEM runs on Linux")

    def layout(self):
        cmake_layout(self, src_folder="src")

    def source(self):
        get(self, "@URL@", sha256="@SHA256@", strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HAKMEM_LIBRARY_ONLY"] = True
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        library = os.path.join(self.package_folder, "lib")
        rmdir(self, os.path.join(library, "cmake"))  # Conan writes its own
        rmdir(self, os.path.join(library, "pkgconfig"))
        if not self.options.shared:  # what is linked then: the linker prefers a shared library
            rm(self, "libhakmem.so*", library)
            rm(self, "hakmem", os.path.join(self.package_folder, "bin"))  # needs the shared one
            rmdir(self, os.path.join(library, "hakmem"))  # which it preloads

    def package_info(self):
        """Names as those of the library's own package for CMake; each target by itself."""
        form = "hakmem" if self.options.shared else "static"
        self.cpp_info.set_property("cmake_file_name", "hakmem")
        self.cpp_info.set_property("cmake_target_name", "hakmem::all")
        self.cpp_info.set_property("pkg_config_name", "hakmem-all")
        for name, library in ((form, "hakmem"), ("prefixed", "hakmem_prefixed")):
            part = self.cpp_info.components[name]
            part.set_property("cmake_target_name", f"hakmem::{name}")
            part.set_property("pkg_config_name", library)
            part.libs = [library]
            if name != "hakmem":
                part.system_libs = ["pthread", "dl"]
            if name == "prefixed":  # a library with it in it shows none of its names
                part.sharedlinkflags = ["-Wl,--exclude-libs,libhakmem_prefixed.a"]
