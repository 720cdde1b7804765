#!/usr/bin/env bash
# The standards' own validators read what the tests of the engine left behind.
set -euo pipefail
cd "$(dirname "$0")/.."
.deps/test/bin/python scripts/check_exports.py target/tmp/exports ../shared/data/standards
