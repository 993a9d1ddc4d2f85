#!/usr/bin/env bash
# Fuzzes the readers of topology and graph files with libFuzzer and the address and undefined-behaviour sanitizers.
#
#   fuzz/run.sh [SECONDS]   time per reader; default 60
#
# Seeds: tests/topology/corpus, and the files of real machines if TESSERA_SHARED names their folder. What is found lies in build-fuzz.
set -euo pipefail
seconds=${1:-60}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$root/build-fuzz
cxx=${FUZZ_CXX:-clang++-14}
cache=$(command -v ccache || true)
flags=(-std=c++20 -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined
       -fno-sanitize-recover=undefined -I"$root/src" -I"$root/include" -DFMT_HEADER_ONLY)
sources=("$root"/src/base/status.cpp
         "$root"/src/topology/{cpu_set,graph_xml,machine,merge,merge_identity,text,xml_source}.cpp
         "$root"/src/topology/nccl_xml_{check,element,read,save,write}.cpp)

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

status=0
for reader in nccl_xml graph_xml; do
  program=$out/${reader}_fuzz
  $cache "$cxx" "${flags[@]}" -c "$root/fuzz/${reader}_fuzz.cpp" -o "$out/obj/${reader}_fuzz.o"
  "$cxx" "${flags[@]}" -fsanitize=fuzzer "${objects[@]}" "$out/obj/${reader}_fuzz.o" -lpugixml -o "$program"
  mkdir -p "$out/corpus/$reader"
  "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=20000 -print_final_stats=1 \
    -dict="$root/fuzz/xml.dict" -artifact_prefix="$out/found/$reader-" \
    "$out/corpus/$reader" "${seeds[@]}" >"$out/$reader.log" 2>&1 || status=1
  grep -E '^(stat::number_of_executed_units|SUMMARY)|ERROR' "$out/$reader.log" | sed "s/^/$reader: /"
done
exit $status
