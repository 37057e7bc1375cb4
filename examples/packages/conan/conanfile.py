"""The Conan recipe: `conan create examples/packages/conan`. The headers and the CMake package; what components beside
`core` need is looked for where the consumer is built, as the package file does everywhere."""
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load


class Cfp(ConanFile):
    name = "cfp"
    description = "communication-free partitions: splits the training of large models over devices"
    license = "BSL-1.0"
    topics = ("parallel-training", "sharding", "cuda", "nccl", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    @property
    def root(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self.root, "include", "cfp", "version.hpp"))
        self.version = ".".join(re.findall(r"CFP_VERSION_\w+ (\d+)", text))

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "include/*", "examples/models/*", "examples/machines/*", "examples/fleets/*"):
            copy(self, pattern, self.root, self.export_sources_folder)

    def package_id(self):
        self.info.clear()

    def generate(self):
        toolchain = CMakeToolchain(self)
        for option in ("CFP_BUILD_EXAMPLES", "CFP_BUILD_TESTS", "CFP_KERNELS", "CFP_WITH_CUDA"):
            toolchain.cache_variables[option] = False
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_find_mode", "none")  # find_package(cfp) finds our own package file
        self.cpp_info.builddirs = ["share/cmake/cfp"]
