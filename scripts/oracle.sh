#!/usr/bin/env bash
# Compares the simulator live with PyBullet 3.2.7, all four robots: raw joint states (float64 bits), observations (float32
# bits), rewards (float64 bits), `done`; 12,000 steps each in 24 episodes, resets out of whatever state the one before ended
# in, actions within and beyond ±1. Any difference fails.
#
#   scripts/oracle.sh             all robots
#   scripts/oracle.sh ant         one of them
set -euo pipefail
cd "$(dirname "$0")/.."
recordings=$(mktemp -d)
trap 'rm -rf "$recordings"' EXIT
[ $# -gt 0 ] || set -- hopper walker2d half-cheetah ant
cargo build --release --quiet --workspace --example compare_pybullet
for environment; do
    for seed in 1 2 3; do
        recording=$recordings/$environment-$seed.csv
        echo "oracle: $environment, seed $seed: 8 episodes of 500 steps"
        # PyBullet greets on the standard output.
        .deps/oracle/bin/python scripts/record_pybullet.py "$environment" "$recording" \
            --episodes 8 --steps 500 --joint-steps 500 --seed "$seed" >/dev/null
        target/release/examples/compare_pybullet "$environment" "$recording"
        rm "$recording"
    done
done
