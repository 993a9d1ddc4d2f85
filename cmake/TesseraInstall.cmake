# What `cmake --install` lays out: libnccl.so.2, the headers, find_package(tessera) and two pkg-config files. `nccl.pc` carries the
# version of the NCCL that the library stands in for, so that `pkg-config "nccl >= 2.28"` of an unchanged build file holds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(NOT TARGET nccl)
  return()
endif()
if(NOT TARGET tessera::nccl)
  add_library(tessera::nccl ALIAS nccl)
endif()

# The source tree is no place for an installed target to look into; INCLUDES DESTINATION below says where it looks.
set_target_properties(
  nccl PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
set(libraries nccl)
if(TARGET tessera_gemm)
  list(APPEND libraries tessera_gemm)
endif()
install(TARGETS ${libraries} EXPORT tesseraTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION ${package_dir})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tesseraConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/package/tesseraConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/tesseraConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/tesseraConfig.cmake
              ${PROJECT_BINARY_DIR}/package/tesseraConfigVersion.cmake
        DESTINATION ${package_dir})

# Paths in the .pc files are relative to the file, so that an installed tree may be moved.
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
set(pc_name tessera)
set(pc_version ${PROJECT_VERSION})
configure_file(${CMAKE_CURRENT_LIST_DIR}/nccl.pc.in ${PROJECT_BINARY_DIR}/package/tessera.pc @ONLY)
set(pc_name nccl)
set(pc_version ${TESSERA_NCCL_VERSION})
configure_file(${CMAKE_CURRENT_LIST_DIR}/nccl.pc.in ${PROJECT_BINARY_DIR}/package/nccl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/tessera.pc ${PROJECT_BINARY_DIR}/package/nccl.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
