#!/usr/bin/env bash
# Another program reads what the tests of `stages/table` left behind.
set -euo pipefail
cd "$(dirname "$0")/.."
.deps/test/bin/python scripts/check_parquet.py target/tmp/sample.parquet
