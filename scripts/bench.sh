#!/usr/bin/env bash
# Speed, side by side with others in one run. Machines differ and are busy: read the ratios.
#
#   scripts/bench.sh               all of it (sets up PyTorch: 2.7 GB)
#   scripts/bench.sh --no-torch    without PyTorch
#   scripts/bench.sh engine        the engine alone, beside DVC, Snakemake, doit and b3sum, against its targets
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Of the whole workspace, whose libraries are compiled: those of one package alone would be compiled again, with fewer features.
bench() { cargo bench --quiet --profile release --workspace --bench "$1" -- "${@:2}"; }

echo "== engine"
scripts/setup.sh rivals
.deps/rivals/bin/python scripts/bench_engine.py
[ "${1:-}" != engine ] || exit 0

scripts/setup.sh oracle
echo "== simulation: environment steps a second of processor time, beside PyBullet"
.deps/oracle/bin/python scripts/bench_pybullet.py 2>/dev/null | grep -v '^argv'
for robot in hopper walker2d half-cheetah ant; do
    bench lanes "$robot" 16 64 256
done
bench memory

echo "== inference"
bench inference --quick 2>/dev/null | grep -E 'time:|thrpt:|^[a-z]'

echo "== 64 small policies, together beside one by one"
cat >"$scratch/policies.toml" <<TOML
format = 1
[pipeline]
name = "policies"
[axes]
seed = [$(seq -s, 1 64)]
[stages.demos]
kind = "collect"
params = { env = "hopper", expert = "expert.parquet", samples = 20_000 }
[stages.policy]
kind = "train"
inputs = { demos = "demos" }
params = { method = "bc", hidden = [64, 64, 64], epochs = 5, device = "cpu", seed = "\${seed}" }
TOML
# A time limit keeps cells apart.
sed 's/kind = "train"/&\ntimeout = "1h"/' "$scratch/policies.toml" >"$scratch/apart.toml"
cp pipelines/experts/hopper.parquet "$scratch/expert.parquet"
provenir=$PWD/target/release/provenir
"$provenir" run --quiet --cache "$scratch/policies" --only demos "$scratch/policies.toml"
cp -r "$scratch/policies" "$scratch/apart"
measured() {
    local start end
    start=$(date +%s.%N)
    "$provenir" run --quiet --cache "$2" ${4:+--jobs "$4"} "$3"
    end=$(date +%s.%N)
    awk -v s="$start" -v e="$end" -v n="$1" 'BEGIN { printf "%-40s %8.2f s wall\n", n, e - s }'
}
measured "one by one" "$scratch/apart" "$scratch/apart.toml" 1
measured "together" "$scratch/policies" "$scratch/policies.toml"

echo "== training step, one thread, beside PyTorch"
cargo build --release --quiet --workspace --example step --example updates
target/release/examples/step
if [ "${1:-}" != --no-torch ]; then
    scripts/setup.sh torch
    .deps/torch/bin/python scripts/bench_torch.py
    echo "== updates of expert, one thread, beside Stable-Baselines3"
    .deps/torch/bin/python scripts/bench_sac.py
fi
