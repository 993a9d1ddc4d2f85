# What has to be there. Where it is not, the error names the Debian package that brings it. Macros, since what is found must be seen by
# the caller.
function(tessera_missing what debian)
  message(FATAL_ERROR "${what} was not found. Debian has it in ${debian} (apt-get install ${debian}); scripts/packages.txt names "
                      "everything that is needed, and why.")
endfunction()

macro(tessera_need package debian)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    tessera_missing(${package} ${debian})
  endif()
endmacro()

# By pkg-config: PkgConfig::<prefix>.
macro(tessera_need_module prefix module debian)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${module})
  if(NOT ${prefix}_FOUND)
    tessera_missing(${module} ${debian})
  endif()
endmacro()
