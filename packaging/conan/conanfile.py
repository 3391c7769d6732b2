"""HAKMEM for Conan 2: conan create . --build=missing"""
import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import get, rm, rmdir


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
        library = os.path.join(self.package_folder, "lib")
        rmdir(self, os.path.join(library, "cmake"))  # Conan writes its own
        rmdir(self, os.path.join(library, "pkgconfig"))
        if not self.options.shared:  # what is linked then: the linker prefers a shared library
            rm(self, "libhakmem.so*", library)
            rm(self, "hakmem", os.path.join(self.package_folder, "bin"))  # needs the shared one

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "hakmem")
        self.cpp_info.set_property("pkg_config_name", "hakmem")
        self.cpp_info.libs = ["hakmem"]
        if self.options.shared:
            self.cpp_info.set_property("cmake_target_name", "hakmem::hakmem")
        else:
            self.cpp_info.set_property("cmake_target_name", "hakmem::static")
            self.cpp_info.system_libs = ["pthread", "dl"]
