#!/usr/bin/env bash
# Fuzzes the readers of topology and graph files with libFuzzer and the address and undefined-behaviour sanitizers.
#
#   fuzz/run.sh [SECONDS]   time for all readers, which run side by side; default 60
#
# Seeds: tests/topology/corpus, and the files of real machines if TESSERA_SHARED names their folder. What is found lies in build-fuzz.
set -euo pipefail
seconds=${1:-60}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$root/build-fuzz
cxx=${FUZZ_CXX:-clang++-14}
cache=$(command -v ccache || true)
flags=(-std=c++20 -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined
       -fno-sanitize-recover=undefined -I"$root/src" -I"$root/include")
topology=$root/src/topology
sources=("$root"/src/base/{error_text,file,status,format_instance}.cpp
         "$topology"/{cpu_set,graph_xml,machine,merge,merge_identity,nccl_form,text,xml_source}.cpp
         "$topology"/nccl_xml_*.cpp)
for source in "$topology"/hwloc_*.cpp; do  # of documents only
  [ "$source" = "$topology/hwloc_discover.cpp" ] || sources+=("$source")
done

mkdir -p "$out/obj" "$out/found"
objects=()
for source in "${sources[@]}"; do
  object=$out/obj/$(basename "$source" .cpp).o
  $cache "$cxx" "${flags[@]}" -c "$source" -o "$object"
  objects+=("$object")
done

seeds=("$root/tests/topology/corpus")
for folder in "${TESSERA_SHARED:-$root/../shared}"/topologies; do
  [ -d "$folder" ] && seeds+=("$folder")
done

fuzz() {
  local reader=$1
  shift
  "$out/${reader}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -dict="$root/fuzz/xml.dict" -artifact_prefix="$out/found/$reader-" "$@" \
    "$out/corpus/$reader" "${seeds[@]}" >"$out/$reader.log" 2>&1
}

running=()
for reader in nccl_xml graph_xml hwloc_xml; do
  $cache "$cxx" "${flags[@]}" -c "$root/fuzz/${reader}_fuzz.cpp" -o "$out/obj/${reader}_fuzz.o"
  "$cxx" "${flags[@]}" -fsanitize=fuzzer "${objects[@]}" "$out/obj/${reader}_fuzz.o" -lpugixml -lhwloc -o "$out/${reader}_fuzz"
  mkdir -p "$out/corpus/$reader"
done
fuzz nccl_xml -max_len=20000 & running+=($!)
fuzz graph_xml -max_len=20000 & running+=($!)
# hwloc itself does not free everything of a document that it refuses half-way.
echo leak:libhwloc.so >"$out/leaks_of_hwloc"
LSAN_OPTIONS=suppressions=$out/leaks_of_hwloc:print_suppressions=0 fuzz hwloc_xml -max_len=65536 & running+=($!)
status=0
for pid in "${running[@]}"; do wait "$pid" || status=1; done
for reader in nccl_xml graph_xml hwloc_xml; do
  grep -E '^(stat::number_of_executed_units|SUMMARY)|ERROR' "$out/$reader.log" | sed "s/^/$reader: /"
done
exit $status
