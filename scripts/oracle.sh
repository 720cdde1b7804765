#!/usr/bin/env bash
# Compares the simulator live with PyBullet 3.2.7: observations (float32 bits), rewards (float64 bits), `done`, raw joint
# states; several seeds, resets, out-of-range actions. Any difference fails.
set -euo pipefail
cd "$(dirname "$0")/.."
recordings=$(mktemp -d)
trap 'rm -rf "$recordings"' EXIT
for environment in hopper; do
    for seed in 1 2 3; do
        echo "oracle: $environment, seed $seed: 8 episodes of 500 steps"
        .deps/oracle/bin/python scripts/record_pybullet.py "$environment" "$recordings/$environment-$seed.csv" --episodes 8 --steps 500 --seed "$seed"
        cargo run --release --quiet -p provenir-sim --example compare_pybullet -- "$environment" "$recordings/$environment-$seed.csv"
    done
done
