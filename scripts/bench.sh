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

echo "== 64 policies of 3x64, 20,000 samples, 10 epochs: together, on all cores, beside one by one, on one"
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
params = { method = "bc", hidden = [64, 64, 64], epochs = 10, device = "cpu", seed = "\${seed}" }
TOML
# A time limit keeps cells apart.
sed 's/kind = "train"/&\ntimeout = "1h"/' "$scratch/policies.toml" >"$scratch/apart.toml"
cp pipelines/experts/hopper.parquet "$scratch/expert.parquet"
provenir=$PWD/target/release/provenir
"$provenir" run --quiet --cache "$scratch/policies" --only demos "$scratch/policies.toml"
cp -r "$scratch/policies" "$scratch/apart"
cp -r "$scratch/policies" "$scratch/commands"
apart() { "$provenir" run --quiet --jobs 1 --cache "$scratch/$1" "$scratch/apart.toml" "${@:2}"; }
commands() { for seed in $(seq 64); do apart commands --axis seed="$seed"; done; }
together() { "$provenir" run --quiet --cache "$scratch/policies" "$scratch/policies.toml"; }
# What is said is heard where something fails.
quietly() { "$@" >"$scratch/said" 2>&1 || { cat "$scratch/said" >&2; return 1; }; }
seconds() {
    local start end
    start=$(date +%s.%N)
    quietly "$@"
    end=$(date +%s.%N)
    awk -v s="$start" -v e="$end" 'BEGIN { printf "%.2f\n", e - s }'
}
# The most memory of any one process that a command and its children had, in MiB.
peak() {
    python3 - "$@" <<'PY'
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
if done.returncode:
    sys.exit(done.stdout.decode())
print(round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024))
PY
}
beside() { awk -v n="$1" -v s="$2" -v t="$3" 'BEGIN { printf "%-56s %8.2f s, %.2f times together\n", n, s, s / t }'; }
cp -r "$scratch/policies" "$scratch/peak-together"
cp -r "$scratch/policies" "$scratch/peak-alone"
together=$(seconds together)
beside "together" "$together" "$together"
beside "one by one, in one command, LibTorch loaded once" "$(seconds apart apart)" "$together"
beside "one by one, a command each" "$(seconds commands)" "$together"
if [ "${1:-}" != --no-torch ]; then
    scripts/setup.sh torch
    torch=$(.deps/torch/bin/python scripts/bench_torch.py --policies 64 --widths 64 --samples 20000 --epochs 10)
    beside "one by one, PyTorch, its start not counted" "$torch" "$together"
fi
alone=$(peak "$provenir" run --quiet --jobs 1 --cache "$scratch/peak-alone" "$scratch/apart.toml" --axis seed=1)
group=$(peak "$provenir" run --quiet --cache "$scratch/peak-together" "$scratch/policies.toml")
echo "peak memory of a worker: $alone MiB with one policy, $group MiB with a group of them"

echo "== training step, one thread, beside PyTorch"
cargo build --release --quiet --workspace --example step --example updates
target/release/examples/step | tee "$scratch/ours"
if [ "${1:-}" != --no-torch ]; then
    .deps/torch/bin/python scripts/bench_torch.py | tee "$scratch/theirs"
    awk '/ bc / { sub(":", "", $3); if (NR == FNR) ours[$3] = $4; else printf "bc %s: %.2f of PyTorch'"'"'s time\n", $3, ours[$3] / $4 }' \
        "$scratch/ours" "$scratch/theirs"
    echo "== updates of expert, one thread, beside Stable-Baselines3"
    .deps/torch/bin/python scripts/bench_sac.py
fi
