#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/bench/run_bench.sh [options of uci_perftest]
#
# Install what is missing, build, and run build/tools/uci_perftest: plain UCX against UCX with UCI, in turns of
# milliseconds, and the table of their ratios. A measurement, not a test: a missed target is shown, and does not fail.
# Give it an idle machine of two cores or more. --help lists the options.
set -euo pipefail
# shellcheck source=tools/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/common.sh"

case ${1:-} in
-h|--help) usage_of "$0"; exec python3 "$uci_root/tools/uci_perftest.py" --help ;;
esac
"$uci_root/tools/install_deps.sh" build test
build_uci "$uci_root/build"
exec "$uci_root/build/tools/uci_perftest" "$@"
