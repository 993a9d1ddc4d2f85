#!/usr/bin/env bash
# Runs a program in the guest: prepares what that takes, measures this processor, boots.
#
#   run.sh FOLDER TSC_RATE PROGRAM [ARGUMENT...]    FOLDER: kept between runs; TSC_RATE: the program tsc_rate
#
# Exit status: the program's; 77: the guest cannot be had here.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
folder=$1 tsc_rate=$2
shift 2
"$here/prepare.sh" "$folder"
exec "$here/boot.sh" "$folder" "$("$tsc_rate")" "$here/job.sh" "$@"
