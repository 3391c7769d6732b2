# An overlay port: vcpkg install hakmem --overlay-ports=FOLDER. It has the shared and the static library.
set(VCPKG_POLICY_DLLS_IN_STATIC_LIBRARY enabled)
@VCPKG_ARCHIVE@
vcpkg_extract_source_archive(source ARCHIVE "${archive}")
vcpkg_cmake_configure(SOURCE_PATH "${source}" OPTIONS -DHAKMEM_LIBRARY_ONLY=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME hakmem CONFIG_PATH lib/cmake/hakmem)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
     "${CURRENT_PACKAGES_DIR}/share/hakmem/python" "${CURRENT_PACKAGES_DIR}/share/man"
     "${CURRENT_PACKAGES_DIR}/bin" "${CURRENT_PACKAGES_DIR}/debug/bin")
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE")
