# How everything is compiled: language, visibility, warnings, sanitizers. `tessera_options` carries it to every target.
include(TesseraNeed)

# A misspelt sanitizer would be found by the compiler, in a check that names something else.
foreach(sanitizer IN LISTS TESSERA_SANITIZE)
  if(NOT sanitizer MATCHES "^(address|undefined|thread|leak)$")
    message(FATAL_ERROR "TESSERA_SANITIZE has \"${sanitizer}\"; it is a list, separated by semicolons, of address, undefined, "
                        "thread, leak")
  endif()
endforeach()
if("thread" IN_LIST TESSERA_SANITIZE AND TESSERA_SANITIZE MATCHES "address|leak")
  message(FATAL_ERROR "TESSERA_SANITIZE is \"${TESSERA_SANITIZE}\": thread goes with neither address nor leak")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Build type "Sanitizer": assertions on, fast to compile, stacks readable.
set(CMAKE_C_FLAGS_SANITIZER "-O1 -g1 -fno-omit-frame-pointer")
set(CMAKE_CXX_FLAGS_SANITIZER "-O1 -g1 -fno-omit-frame-pointer")

find_package(Threads REQUIRED)
tessera_need(fmt libfmt-dev)
tessera_need(nlohmann_json nlohmann-json3-dev)
tessera_need(PkgConfig pkg-config)
tessera_need_module(HWY libhwy libhwy-dev)
tessera_need_module(HWLOC hwloc libhwloc-dev)
tessera_need(pugixml libpugixml-dev)

add_library(tessera_options INTERFACE)
target_include_directories(
  tessera_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                            ${PROJECT_SOURCE_DIR})
# What gcc 12 reports wrongly: -Wno-tsan, its thread sanitizer does not model fences (src/sync says where one is used); -Wno-restrict,
# "text" + std::string (gcc PR 105329).
target_compile_options(tessera_options INTERFACE -Wall -Wextra)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tessera_options INTERFACE -Wno-tsan -Wno-restrict)
endif()
# Of fmt, the headers only: src/base/format_instance.cpp compiles the rest, once, so that the library needs no libfmt.
target_link_libraries(tessera_options INTERFACE Threads::Threads)

# For tests' own sources: they are compiled more often than run.
add_library(tessera_test_options INTERFACE)
target_compile_options(tessera_test_options INTERFACE $<$<CONFIG:Release>:-O1>)

# tessera_quick_main(source): for a program's main.cpp that reads its arguments with CLI11, whose headers hold all its code.
function(tessera_quick_main source)
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O1>")
endfunction()

if(TESSERA_SANITIZE)
  string(REPLACE ";" "," sanitizers "${TESSERA_SANITIZE}")
  # For every target, C examples included: a process is either sanitized as a whole or not at all.
  add_compile_options(-fsanitize=${sanitizers})
  add_link_options(-fsanitize=${sanitizers})
  if("address" IN_LIST TESSERA_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Checks are calls, which compile in half the time that code in place takes.
    add_compile_options("SHELL:--param asan-instrumentation-with-call-threshold=0")
  endif()
  if("undefined" IN_LIST TESSERA_SANITIZE)
    # The vptr check looks at memory through a pipe and reports falsely where a test has taken all descriptors. Null pointers, and most
    # of what object-size finds, the address sanitizer finds, too.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=vptr,null,object-size,return)
    target_compile_options(tessera_test_options INTERFACE -fno-sanitize=undefined)
  endif()
endif()
