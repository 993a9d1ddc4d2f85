// The files that a run writes besides its table: CSV, plot, JSON report. Only process 0 writes them.
#pragma once

#include <string>

#include "common/json_report.h"
#include "common/report.h"

namespace tessera::perf {

// Why one of the files cannot be written, known before anything is measured; empty: nothing stands
// against it. Leaves existing files as they are, and no new ones.
std::string check_files(const Options& options);

// False: one of them could not be written after all; its name was printed. `json` may be null.
bool write_files(const Options& options, const std::string& program, int ranks,
                 const Report& report, JsonReport* json);

}  // namespace tessera::perf
