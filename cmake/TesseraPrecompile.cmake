# Headers that nearly every test includes, compiled once per build. The library is compiled without, so that a header that a source
# forgets to include is found missing.
set(TESSERA_TEST_HEADERS <algorithm> <chrono> <cstdint> <functional> <map> <memory> <mutex> <optional> <string> <thread>
                         <unordered_map> <vector> <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h>)
if(TESSERA_BUILD_TESTS AND NOT TARGET tessera_test_headers)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/headers.cpp CONTENT "int main() {}\n")
  # a program, since it must be compiled as programs are
  add_executable(tessera_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/headers.cpp)
  tessera_need(GTest "libgtest-dev libgmock-dev")  # its settings must be the tests'
  target_link_libraries(tessera_test_headers PRIVATE tessera_options tessera_test_options GTest::gmock)
  target_precompile_headers(tessera_test_headers PRIVATE ${TESSERA_TEST_HEADERS})
endif()

# tessera_precompile(target): for a test program.
function(tessera_precompile target)
  target_link_libraries(${target} PRIVATE tessera_test_options)  # what uses precompiled headers is compiled as they are
  target_precompile_headers(${target} REUSE_FROM tessera_test_headers)
endfunction()
