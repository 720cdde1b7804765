#!/usr/bin/env bash
# Speed, side by side with others in one run. Machines differ and are busy: read the ratios.
#
#   scripts/bench.sh               all of it (sets up PyTorch: 2.7 GB)
#   scripts/bench.sh --no-torch    without PyTorch
set -euo pipefail
cd "$(dirname "$0")/.."
noop=$PWD/target/release/provenir-noop
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Processor and wall-clock seconds of a command, the median of five runs, and its peak memory.
timed() {
    local name=$1
    shift
    .deps/oracle/bin/python - "$name" "$@" <<'PY'
import os, statistics, subprocess, sys, time

name, command = sys.argv[1], sys.argv[2:]
cpu, wall, peak = [], [], 0
for _ in range(5):
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall.append(time.perf_counter() - start)
    cpu.append(usage.ru_utime + usage.ru_stime)
    peak = max(peak, usage.ru_maxrss)
    if status:
        sys.exit(f"{name}: `{' '.join(command)}` failed")
print(f"{name:40} {1000 * statistics.median(cpu):8.1f} ms CPU {1000 * statistics.median(wall):8.1f} ms wall {peak / 1024:7.1f} MB")
PY
}

# A pipeline of B branches, each a chain of ten `noop` cells.
pipeline() {
    {
        printf 'format = 1\n[pipeline]\nname = "bench"\n[axes]\nbranch = ['
        seq -s, 1 "$2"
        printf ']\n[stages.s0]\nkind = "noop"\nparams = { value = "${branch}" }\n'
        for stage in $(seq 1 9); do
            printf '[stages.s%d]\nkind = "noop"\ninputs = { one = "s%d" }\nparams = { value = 1 }\n' "$stage" $((stage - 1))
        done
    } >"$1"
}

echo "== engine"
timed "start-up (--version)" "$noop" --version
for branches in 100 1000; do
    manifest=$scratch/$branches.toml
    pipeline "$manifest" "$branches"
    start=$(date +%s.%N)
    "$noop" run --quiet --cache "$scratch/cache-$branches" "$manifest"
    end=$(date +%s.%N)
    cells=$((branches * 10))
    awk -v s="$start" -v e="$end" -v n="$cells" 'BEGIN { printf "%-40s %8.2f ms wall a cell\n", "first run, " n " noop cells", 1000 * (e - s) / n }'
    timed "no-op, $cells noop cells" "$noop" run --quiet --cache "$scratch/cache-$branches" "$manifest"
done

echo "== simulation: environment steps a second of processor time, beside PyBullet"
.deps/oracle/bin/python scripts/bench_pybullet.py 2>/dev/null | grep -v '^argv'
for robot in hopper walker2d half-cheetah ant; do
    for lanes in 16 64 256; do
        cargo bench --quiet --profile release -p provenir-sim --bench lanes -- "$robot" "$lanes" $((16000 / lanes))
    done
done
cargo bench --quiet --profile release -p provenir-sim --bench memory

echo "== inference"
cargo bench --quiet --profile release -p provenir-policy --bench inference -- --quick 2>/dev/null | grep -E 'time:|thrpt:|^[a-z]'

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
cargo run --release --quiet -p provenir-train --example step
if [ "${1:-}" != --no-torch ]; then
    scripts/setup.sh torch
    .deps/torch/bin/python scripts/bench_torch.py
    echo "== updates of expert, one thread, beside Stable-Baselines3"
    cargo build --release --quiet -p provenir-expert --example updates
    .deps/torch/bin/python scripts/bench_sac.py
fi
