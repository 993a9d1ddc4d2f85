# `device_check`: compiles the shared interpreter, the tile interface and the GPU's example, where a compiler for a GPU is installed.
# Nothing else depends on it, nothing is linked, and no GPU is needed: the check says that the source stays valid device code.
set(TESSERA_CUDA_ARCH sm_90a CACHE STRING "Architecture that device_check compiles for with nvcc")
set(TESSERA_HIP_ARCH gfx90a CACHE STRING "Architecture that device_check compiles for with hipcc")
find_program(TESSERA_NVCC nvcc PATHS /usr/local/cuda/bin)
find_program(TESSERA_HIPCC hipcc PATHS /opt/rocm/bin)
mark_as_advanced(TESSERA_NVCC TESSERA_HIPCC)

set(device_check_dir ${PROJECT_SOURCE_DIR}/src/exec/device_check)
set(device_check_objects "")

# tessera_device_check(source compiler flags...): one object, rebuilt when a header it includes changes.
function(tessera_device_check source compiler)
  get_filename_component(name ${source} NAME)
  set(object ${PROJECT_BINARY_DIR}/device_check/${name}.o)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/device_check)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${compiler} -c -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}
            -I${PROJECT_SOURCE_DIR}/include ${ARGN} -MD -MF ${object}.d -o ${object} ${source}
    DEPENDS ${source}
    DEPFILE ${object}.d
    COMMENT "Compiling ${name} for a device"
    VERBATIM)
  set(device_check_objects ${device_check_objects} ${object} PARENT_SCOPE)
endfunction()

if(TESSERA_NVCC)
  tessera_device_check(${device_check_dir}/cuda_check.cu ${TESSERA_NVCC} -std=c++20 --expt-relaxed-constexpr
                       -arch=${TESSERA_CUDA_ARCH} -ccbin ${CMAKE_CXX_COMPILER})
  # As users compile it.
  tessera_device_check(${PROJECT_SOURCE_DIR}/examples/user_gemm.cu ${TESSERA_NVCC} -std=c++17 -arch=${TESSERA_CUDA_ARCH}
                       -ccbin ${CMAKE_CXX_COMPILER})
endif()
if(TESSERA_HIPCC)
  tessera_device_check(${device_check_dir}/hip_check.hip ${TESSERA_HIPCC} -x hip -std=c++20
                       --offload-arch=${TESSERA_HIP_ARCH})
endif()
if(device_check_objects)
  add_custom_target(device_check DEPENDS ${device_check_objects})
endif()
