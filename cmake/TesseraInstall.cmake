# What `cmake --install` lays out: libnccl.so.2, the headers, find_package(tessera) and pkg-config files, the examples. `nccl.pc` carries the
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
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera)
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
function(tessera_package_file name version library requires description)
  foreach(value name version library requires description)
    set(pc_${value} "${${value}}")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/package.pc.in ${PROJECT_BINARY_DIR}/package/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/package/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
set(about "tessera, a collective communication library with the API of NCCL ${TESSERA_NCCL_VERSION}")
tessera_package_file(tessera ${PROJECT_VERSION} nccl "" "${about}")
tessera_package_file(nccl ${TESSERA_NCCL_VERSION} nccl "" "${about}")
if(TARGET tessera_gemm)
  tessera_package_file(tessera-gemm ${PROJECT_VERSION} tessera_gemm tessera "matrix products fused with tessera's collectives")
endif()
