# Headers that nearly every source includes, compiled once per build where TESSERA_PRECOMPILE is on (the sanitizer presets): these
# builds are made to be run once, and take half the time. The other presets compile each source as it stands, so that a header that a
# source forgets to include is still found missing.
option(TESSERA_PRECOMPILE "Precompile common headers" OFF)

# tessera_precompile(target kind): `kind` names a set of headers.
set(TESSERA_HEADERS_library <algorithm> <chrono> <cstdint> <functional> <map> <memory> <mutex> <optional> <string> <thread>
                            <unordered_map> <vector> <fmt/format.h>)
set(TESSERA_HEADERS_test ${TESSERA_HEADERS_library} <gmock/gmock.h> <gtest/gtest.h>)
if(TESSERA_PRECOMPILE AND TESSERA_BUILD_TESTS AND NOT TARGET tessera_headers_library)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/headers.cpp CONTENT "int main() {}\n")
  add_library(tessera_headers_library OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/headers.cpp)
  # a program, since it must be compiled as programs are
  add_executable(tessera_headers_test EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/headers.cpp)
  find_package(GTest REQUIRED)  # its settings must be the tests'
  target_link_libraries(tessera_headers_test PRIVATE GTest::gmock)
  foreach(kind library test)
    target_link_libraries(tessera_headers_${kind} PRIVATE tessera_options)
    target_precompile_headers(tessera_headers_${kind} PRIVATE ${TESSERA_HEADERS_${kind}})
  endforeach()
endif()

function(tessera_precompile target kind)
  if(TARGET tessera_headers_library)
    target_precompile_headers(${target} REUSE_FROM tessera_headers_${kind})
  endif()
endfunction()
