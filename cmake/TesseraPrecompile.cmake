# Headers that nearly every source includes, compiled once per build: for tests, and for the library where TESSERA_PRECOMPILE is on
# (the sanitizer presets, which are made to be run once). The other presets compile each source of the library as it stands, so that
# a header that it forgets to include is still found missing.
option(TESSERA_PRECOMPILE "Precompile the library's common headers" OFF)

# tessera_precompile(target kind): `kind` names a set of headers.
set(TESSERA_HEADERS_library <algorithm> <chrono> <cstdint> <functional> <map> <memory> <mutex> <optional> <string> <thread>
                            <unordered_map> <vector> <fmt/format.h>)
set(TESSERA_HEADERS_test ${TESSERA_HEADERS_library} <gmock/gmock.h> <gtest/gtest.h>)
if(TESSERA_BUILD_TESTS AND NOT TARGET tessera_headers_library)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/headers.cpp CONTENT "int main() {}\n")
  add_library(tessera_headers_library OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/headers.cpp)
  # a program, since it must be compiled as programs are
  add_executable(tessera_headers_test EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/headers.cpp)
  tessera_need(GTest "libgtest-dev libgmock-dev")  # its settings must be the tests'
  target_link_libraries(tessera_headers_test PRIVATE tessera_test_options GTest::gmock)
  foreach(kind library test)
    target_link_libraries(tessera_headers_${kind} PRIVATE tessera_options)
    target_precompile_headers(tessera_headers_${kind} PRIVATE ${TESSERA_HEADERS_${kind}})
  endforeach()
endif()

function(tessera_precompile target kind)
  if(kind STREQUAL "test")  # precompiled headers and what uses them are compiled with the same options
    target_link_libraries(${target} PRIVATE tessera_test_options)
  endif()
  if(TARGET tessera_headers_library AND (TESSERA_PRECOMPILE OR kind STREQUAL "test"))
    target_precompile_headers(${target} REUSE_FROM tessera_headers_${kind})
  endif()
endfunction()
