#!/usr/bin/env bash
# Other programs read the PDF figures that the tests of `stages/plot` left behind.
set -euo pipefail
cd "$(dirname "$0")/.."
.deps/test/bin/python scripts/check_figures.py target/tmp/figures
