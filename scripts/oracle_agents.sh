#!/usr/bin/env bash
# Compares agents of PPO, A2C, SAC, TQC, TD3 and DDPG with Stable-Baselines3 and sb3-contrib, which write them here, and policies
# as safetensors with the format's own library: actions on random observations to 1e-6.
set -euo pipefail
cd "$(dirname "$0")/.."
agents=$(mktemp -d)
trap 'rm -rf "$agents"' EXIT
.deps/torch/bin/python scripts/record_agents.py "$agents"
cargo build --release --quiet --workspace --example compare_agents
target/release/examples/compare_agents "$agents"
.deps/torch/bin/python scripts/check_safetensors.py "$agents"
