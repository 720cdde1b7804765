#!/usr/bin/env bash
# What a GPU is worth to `train`: correctness against the processor, speed, and the workload W256, within six minutes.
#
#   benches/gpu.sh pack          where there is a compiler: build, strip, and collect what a machine with a GPU needs in
#                                benches/gpu-kit (the program holds the library of CUDA graphs; LibTorch stays behind)
#   benches/gpu.sh run [ARG…]    where there is a GPU: find LibTorch 2.11.0 with CUDA, by $LIBTORCH or else by the Python that
#                                has PyTorch, and run. Needs no network. ARG: --device cuda|cpu, --tiny, --seconds N (of the
#                                program alone; what is left of six minutes where that is not given)
#
# `benches/gpu.sh run --device cpu --tiny` runs the same program on a processor in about a minute. Exits with 0 where all
# checks pass, 1 where one fails, 3 where something is missing.
set -euo pipefail
# Counted by the shell from here on, whatever the environment says.
SECONDS=0
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kit=$here/gpu-kit
version=2.11.0
most=$((64 << 20))
# Of the whole, in seconds.
limit=360
# What the program may need beyond its time, which it looks at when it asks for a step: LibTorch is loaded before it counts; the
# last group's data sets are loaded however little is left, and the GPU then does the steps that it was asked for, an epoch's at
# most, each under a second; the driver takes back what the process had. Several times that, for a machine that is not at leisure.
reserve=10
# Not local to `run`: the trap that reads them comes after it.
watcher=
readings=

fail() {
    echo "benches/gpu.sh: $*" >&2
    exit 3
}

clean() {
    if [ -n "$watcher" ]; then
        kill "$watcher" 2>/dev/null || true
        wait "$watcher" 2>/dev/null || true
    fi
    [ -z "$readings" ] || rm -f "$readings"
}

pack() {
    cd "$here/.."
    # The whole workspace: the features of shared crates, and so their builds, are those of every other build.
    cargo build --release --workspace --example gpu
    rm -rf "$kit"
    mkdir -p "$kit"
    strip -o "$kit/gpu" target/release/examples/gpu
    if ! "$kit/gpu" --self-check; then
        rm -rf "$kit"
        fail "there is no kit: what was built is of no use to a GPU"
    fi
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
    else
        command -v python3 >/dev/null || fail "neither \$LIBTORCH nor python3 leads to LibTorch $version"
        # Not imported, which takes longer than anything else here on a machine that has not done it yet.
        torch=$(python3 -c 'import importlib.util, os; print(os.path.dirname(importlib.util.find_spec("torch").origin))' 2>/dev/null) ||
            fail "python3 has no PyTorch; install torch==$version, or set \$LIBTORCH to a LibTorch $version with CUDA"
    fi
    found=$(cat "$torch/build-version" 2>/dev/null || sed -n "s/^__version__ = '\(.*\)'/\1/p" "$torch/version.py" 2>/dev/null || true)
    case $found in
        "$version" | "$version"+*) ;;
        *) fail "\`$torch\` is LibTorch ${found:-of unknown version}; this program is built for $version" ;;
    esac
    echo "LibTorch $found in $torch" >&2
    echo "$torch/lib"
}

# Says what the GPU is, and notes from then on how much of its memory is taken.
watch_gpu() {
    [ -e "$1/libtorch_cuda.so" ] || fail "\`$1\` is the edition without CUDA (it has no libtorch_cuda.so)"
    command -v nvidia-smi >/dev/null || fail "there is no nvidia-smi, hence no driver"
    # Also has LibTorch read from the disk, which is then not on the program's time.
    "$kit/gpu" --self-check || fail "$kit/gpu is of no use to a GPU"
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
    readings=$(mktemp)
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -lms 250 >"$readings" &
    watcher=$!
}

run() {
    [ -x "$kit/gpu" ] || fail "there is no $kit/gpu: make it by \`benches/gpu.sh pack\` where there is a compiler"
    local device=cuda seconds='' lib missing code=0
    local arguments=("$@")
    while [ $# -gt 0 ]; do
        case $1 in
            --device) device=${2:-} ;;
            --seconds) seconds=${2:-} ;;
        esac
        shift
    done
    lib=$(libraries)
    export LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    missing=$(ldd "$kit/gpu" | grep -E 'not found' || true)
    [ -z "$missing" ] || fail "libraries are missing:"$'\n'"$missing"
    echo "program built from commit $(cat "$kit/commit" 2>/dev/null || echo unknown)"
    if [ "$device" = cuda ]; then
        watch_gpu "$lib"
    fi
    if [ -z "$seconds" ]; then
        seconds=$((limit - reserve - SECONDS))
        [ "$seconds" -gt 0 ] || fail "$SECONDS of $limit s were over before the program began"
        arguments+=(--seconds "$seconds")
    fi
    "$kit/gpu" "${arguments[@]}" || code=$?
    if [ -n "$readings" ]; then
        echo "peak GPU memory: $(sort -n "$readings" | tail -1) MiB (all that the driver counts, what LibTorch keeps for later included)"
    fi
    return "$code"
}

trap clean EXIT
case ${1:-} in
    pack) pack ;;
    run)
        shift
        run "$@"
        ;;
    *)
        sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 2
        ;;
esac
