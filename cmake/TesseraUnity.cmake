# Several sources as one: half the work from scratch, more of it after a change. A header that a source forgets to include may go
# unnoticed, and names in unnamed namespaces may meet; builds without it (preset tsan) compile each source as it stands.
option(TESSERA_UNITY "Compile several sources of a library layer or test program at once" OFF)

# tessera_unite(target [source...]): all sources of the target but those named.
function(tessera_unite target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TESSERA_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
