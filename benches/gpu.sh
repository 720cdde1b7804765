#!/usr/bin/env bash
# What a GPU is worth to `train`: correctness against the processor, speed, and the workload W256, within six minutes.
#
#   benches/gpu.sh pack          where there is a compiler: build, strip, and collect what a machine with a GPU needs in
#                                benches/gpu-kit (the program holds the library of CUDA graphs; LibTorch stays behind)
#   benches/gpu.sh run [ARG…]    where there is a GPU: find LibTorch 2.11.0 with CUDA, by $LIBTORCH or else by the Python that
#                                has PyTorch, and run. Needs no network. ARG: --device cuda|cpu, --tiny, --seconds N
#
# `benches/gpu.sh run --device cpu --tiny` runs the same program on a processor in about a minute. Exits with 0 where all
# checks pass, 1 where one fails, 3 where something is missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kit=$here/gpu-kit
version=2.11.0
most=$((64 << 20))

fail() {
    echo "benches/gpu.sh: $*" >&2
    exit 3
}

pack() {
    cd "$here/.."
    # The whole workspace: the features of shared crates, and so their builds, are those of every other build.
    cargo build --release --workspace --example gpu
    rm -rf "$kit"
    mkdir -p "$kit"
    strip -o "$kit/gpu" target/release/examples/gpu
    git rev-parse HEAD >"$kit/commit" 2>/dev/null || echo unknown >"$kit/commit"
    local size
    size=$(du -sb "$kit" | cut -f1)
    echo "$kit: $(awk -v size="$size" 'BEGIN { printf "%.1f MiB", size / 1048576 }')"
    [ "$size" -le "$most" ] || fail "the kit holds more than 64 MiB"
}

# The folder of LibTorch's libraries, and a check of its version.
libraries() {
    local torch found
    if [ -n "${LIBTORCH:-}" ]; then
        torch=$LIBTORCH
        [ -d "$torch/lib" ] || fail "\$LIBTORCH is \`$torch\`, which has no folder \`lib\`"
        found=$(cat "$torch/build-version" 2>/dev/null || sed -n "s/^__version__ = '\(.*\)'/\1/p" "$torch/version.py" 2>/dev/null || true)
    else
        command -v python3 >/dev/null || fail "neither \$LIBTORCH nor python3 leads to LibTorch $version"
        torch=$(python3 -c 'import torch, os; print(os.path.dirname(torch.__file__))' 2>/dev/null) ||
            fail "python3 has no PyTorch; install torch==$version, or set \$LIBTORCH to a LibTorch $version with CUDA"
        found=$(python3 -c 'import torch; print(torch.__version__)')
    fi
    case $found in
        "$version" | "$version"+*) ;;
        *) fail "\`$torch\` is LibTorch ${found:-of unknown version}; this program is built for $version" ;;
    esac
    echo "LibTorch $found in $torch" >&2
    echo "$torch/lib"
}

run() {
    [ -x "$kit/gpu" ] || fail "there is no $kit/gpu: make it by \`benches/gpu.sh pack\` where there is a compiler"
    local device=cuda lib missing log=
    local arguments=("$@")
    while [ $# -gt 0 ]; do
        [ "$1" = --device ] && device=${2:-}
        shift
    done
    lib=$(libraries)
    export LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    missing=$(ldd "$kit/gpu" | grep -E 'not found' || true)
    [ -z "$missing" ] || fail "libraries are missing:"$'\n'"$missing"
    echo "program built from commit $(cat "$kit/commit" 2>/dev/null || echo unknown)"
    if [ "$device" = cuda ]; then
        [ -e "$lib/libtorch_cuda.so" ] || fail "\`$lib\` is the edition without CUDA (it has no libtorch_cuda.so)"
        command -v nvidia-smi >/dev/null || fail "there is no nvidia-smi, hence no driver"
        nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
        log=$(mktemp)
        nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -lms 250 >"$log" &
        watcher=$!
        trap 'kill "$watcher" 2>/dev/null || true; rm -f "$log"' EXIT
    fi
    local code=0
    "$kit/gpu" "${arguments[@]}" || code=$?
    if [ -n "$log" ]; then
        echo "peak GPU memory: $(sort -n "$log" | tail -1) MiB (all that the driver counts, what LibTorch keeps for later included)"
    fi
    return "$code"
}

case ${1:-} in
    pack) pack ;;
    run)
        shift
        run "$@"
        ;;
    *)
        sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 2
        ;;
esac
