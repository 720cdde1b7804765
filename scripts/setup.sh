#!/usr/bin/env bash
# Lays down what the build needs, says what it does, and skips what is there.
#
#   scripts/setup.sh build     Debian packages, Rust, LibTorch
#   scripts/setup.sh test      the Python environment that reads our Parquet files and PDF figures and validates our exports in the tests
#   scripts/setup.sh lint      cargo-deny
#   scripts/setup.sh oracle    PyBullet, for `make oracle` and `make bench`
#   scripts/setup.sh torch     PyTorch and Stable-Baselines3 (2.7 GB to download, 4.7 GB on disk), for the same
#   scripts/setup.sh rivals    DVC, Snakemake, doit and b3sum, for `make bench-engine`
#   scripts/setup.sh fuzz      cargo-fuzz, for `make fuzz`
#
# Everything that is not a Debian package goes below .deps/, which may be deleted at any time.
set -euo pipefail
cd "$(dirname "$0")/.."
deps=$PWD/.deps

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: error: %s\n' "$*" >&2; exit 3; }

debian_packages() {
    local missing=()
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
    done
    if [ ${#missing[@]} -eq 0 ]; then
        say "Debian packages: all there"
        return
    fi
    say "installing Debian packages: ${missing[*]}"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "these Debian packages are missing and neither root nor sudo is at hand: ${missing[*]}"
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

rust() {
    [ -x "$HOME/.cargo/bin/cargo" ] && export PATH="$HOME/.cargo/bin:$PATH"
    if command -v cargo >/dev/null; then
        return
    fi
    say "installing Rust with rustup, for this user"
    debian_packages curl ca-certificates
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --quiet --profile minimal --no-modify-path
}

# Wheels for the Python that LibTorch's are made for, into .deps/download.
fetch() {
    local platforms=(--platform manylinux2014_x86_64)
    for minor in 5 12 17 24 25 26 27 28; do platforms+=(--platform "manylinux_2_${minor}_x86_64"); done
    python3 -m pip download -q --no-deps --only-binary=:all: --python-version 3.11 --implementation cp "${platforms[@]}" \
        --disable-pip-version-check -d "$deps/download" "$@"
}

# LibTorch 2.11.0, the one version that tch 0.24 binds. Its libraries and headers are taken out of the PyTorch wheel; the
# processor needs five files of it, which find CUDA at run time where a full installation lies beside them.
libtorch() {
    if [ -n "${LIBTORCH:-}" ]; then
        [ -e "$LIBTORCH/lib/libtorch_cpu.so" ] || fail "LIBTORCH is set to $LIBTORCH, which holds no lib/libtorch_cpu.so"
        say "using the LibTorch at $LIBTORCH"
        return
    fi
    if [ "$(cat "$deps/libtorch/build-version" 2>/dev/null)" = 2.11.0 ]; then
        say "LibTorch 2.11.0: there, in .deps/libtorch"
        return
    fi
    [ "$(uname -sm)" = "Linux x86_64" ] || fail "only Linux on x86-64 is set up by this script; set LIBTORCH to a LibTorch 2.11.0"
    say "fetching LibTorch 2.11.0 into .deps/libtorch (0.55 GB to download, of which 0.4 GB are kept)"
    rm -rf "$deps/download" "$deps/libtorch.new"
    mkdir -p "$deps/download" "$deps/libtorch.new/lib"
    fetch torch==2.11.0
    # The processor's library is linked against these two of NVIDIA's.
    fetch nvidia-cuda-runtime==13.0.96
    fetch nvidia-cuda-cupti==13.0.85
    (
        cd "$deps/download"
        unzip -q torch-*.whl 'torch/lib/libtorch_cpu.so' 'torch/lib/libc10.so' 'torch/lib/libgomp.so.1' 'torch/include/*'
        unzip -q nvidia_cuda_runtime-*.whl 'nvidia/cu13/lib/libcudart.so.13'
        unzip -q nvidia_cuda_cupti-*.whl 'nvidia/cu13/lib/libcupti.so.13'
        mv torch/lib/* nvidia/cu13/lib/* ../libtorch.new/lib/
        mv torch/include ../libtorch.new/include
    )
    # torch-sys links `-ltorch`; the wheel's own libtorch.so would ask for CUDA.
    echo 'INPUT(libtorch_cpu.so)' >"$deps/libtorch.new/lib/libtorch.so"
    strip --strip-unneeded "$deps/libtorch.new/lib/libtorch_cpu.so"
    echo 2.11.0 >"$deps/libtorch.new/build-version"
    rm -rf "$deps/download" "$deps/libtorch"
    mv "$deps/libtorch.new" "$deps/libtorch"
    say "LibTorch 2.11.0: ready"
}

# CUDA's headers, from which the build makes what lets a GPU repeat a step; nothing of CUDA is needed to run.
cuda_headers() {
    [ -z "${LIBTORCH:-}" ] && [ ! -e "$deps/libtorch/include/cuda_runtime_api.h" ] || return 0
    say "fetching CUDA's headers into .deps/libtorch/include (3 MB)"
    rm -rf "$deps/download"
    mkdir -p "$deps/download"
    fetch nvidia-cuda-runtime==13.0.96
    fetch nvidia-cuda-crt==13.0.88
    (
        cd "$deps/download"
        unzip -q nvidia_cuda_runtime-*.whl 'nvidia/cu13/include/*'
        unzip -q nvidia_cuda_crt-*.whl 'nvidia/cu13/include/*'
        # The file that is looked for comes last, so that an interrupted copy is made again.
        mv nvidia/cu13/include/cuda_runtime_api.h .
        cp -r nvidia/cu13/include/. ../libtorch/include/
        mv cuda_runtime_api.h ../libtorch/include/
    )
    rm -rf "$deps/download"
}

# A virtual environment below .deps/ with exactly the packages of a requirements file.
python_environment() {
    local name=$1 requirements=scripts/requirements-$1.txt
    if cmp -s "$requirements" "$deps/$name/requirements.txt"; then
        return
    fi
    say "setting up the Python environment .deps/$name ($(grep -vc '^#' "$requirements") packages)"
    rm -rf "${deps:?}/$name"
    python3 -m venv "$deps/$name"
    "$deps/$name/bin/python" -m pip install -q --disable-pip-version-check -r "$requirements"
    cp "$requirements" "$deps/$name/requirements.txt"
}

# A program of Rust, below .deps/.
cargo_program() {
    local name=$1 version=$2
    if [ "$(cat "$deps/$name/version" 2>/dev/null)" = "$version" ]; then
        return
    fi
    rust
    say "building $name $version into .deps/$name"
    rm -rf "${deps:?}/$name"
    cargo install --quiet --locked --version "$version" --root "$deps/$name" "$name"
    echo "$version" >"$deps/$name/version"
}

build_packages=(build-essential libbullet-dev pkg-config python3 python3-pip unzip git ca-certificates)
# A Python from elsewhere on the path serves as well as Debian's.
if command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1; then
    build_packages=(build-essential libbullet-dev pkg-config unzip git ca-certificates)
fi

case "${1:-}" in
build)
    debian_packages "${build_packages[@]}"
    rust
    libtorch
    cuda_headers
    ;;
test | lint | oracle | torch)
    python3 -c 'import ensurepip, venv' 2>/dev/null || debian_packages python3-venv
    [ "$1" != oracle ] || debian_packages python3-dev
    python_environment "$1"
    ;;
rivals)
    python3 -c 'import ensurepip, venv' 2>/dev/null || debian_packages python3-venv
    python_environment rivals
    cargo_program b3sum 1.8.2
    ;;
fuzz)
    cargo_program cargo-fuzz 0.13.1
    ;;
*)
    fail "usage: scripts/setup.sh build|test|lint|oracle|torch|rivals|fuzz"
    ;;
esac
