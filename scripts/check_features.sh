#!/usr/bin/env bash
# Whether `cargo build` and `cargo test` compile the libraries that both need with the same features: where they do not, a fresh
# machine compiles them, and all that stands on them, twice. What differs is to be named in testing/Cargo.toml.
set -euo pipefail
cd "$(dirname "$0")/.."
features() {
    cargo tree --offline --workspace --edges "$1" --format '{p} {f}' --prefix none | sed 's/ (\*)$//' | sort -u
}
differing=$(comm -23 <(features normal,build) <(features normal,build,dev))
if [ -n "$differing" ]; then
    echo "the tests' libraries turn on further features in:" >&2
    echo "$differing" >&2
    exit 1
fi
