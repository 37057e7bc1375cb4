# An overlay port of this tree: vcpkg install cfp --overlay-ports=examples/packages/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DCFP_BUILD_EXAMPLES=OFF -DCFP_BUILD_TESTS=OFF -DCFP_KERNELS=OFF -DCFP_WITH_CUDA=OFF)
vcpkg_cmake_install()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug")  # headers alone: there is nothing to debug
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
