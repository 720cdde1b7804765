#!/usr/bin/env bash
# The examples run as they ship, with the Python of the tests, and give what other code computes from their inputs.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/.deps/test/bin/python
"$python" -c 'import pandas, pyarrow' # what the examples need; set up by `scripts/setup.sh test`
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r pipelines/examples pipelines/experts "$folder"
run() { PATH=$(dirname "$python"):$PATH target/release/provenir "$@" "$folder/examples/pandas.toml" --profile smoke --cache "$folder/cache"; }
run run
"$python" scripts/check_examples.py "$(run path 'demos[env=hopper].episodes')" "$(run path 'demos[env=ant].episodes')" "$(run path table)"
second=$(run run 2>&1)
grep -q '^nothing to run' <<<"$second" || { echo "the second run was to find everything: $second" >&2; exit 1; }
test -s "$folder/examples/figures/pandas.svg"
