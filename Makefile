# The two commands of a newcomer are `make quickstart` and `make test`; both set up whatever is missing and share one build.
SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:$(PATH)
PROVENIR := target/release/provenir
.DEFAULT_GOAL := help

.PHONY: quickstart test soak lint bench bench-engine fuzz setup build oracle smoke help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

quickstart: build ## set up, build, and run the quickstart pipeline: from demonstrations to a figure
	@$(PROVENIR) run pipelines/quickstart.toml

test: build ## set up, build, and run every test
	@scripts/setup.sh test
	@cargo test --release --workspace --no-run
	@cargo test --release --workspace --quiet
	@scripts/check_parquet.sh
	@scripts/check_figures.sh
	@scripts/check_exports.sh
	@scripts/check_examples.sh

soak: build ## kill, and fail, at random system calls: make soak KILLS=500 SEED=1 (both may be left out)
	@cargo test --release --workspace --test engine --no-run
	@PROVENIR_SOAK=$(or $(KILLS),500) PROVENIR_SOAK_SEED=$(or $(SEED),1) \
		cargo test --release --workspace --test engine --quiet -- --nocapture soak:: sharing::

lint: setup ## formatting, lints, documentation, licences
	@scripts/setup.sh lint
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --release --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps --quiet
	@scripts/check_features.sh
	.deps/lint/bin/cargo-deny --offline check licenses bans sources

bench: build ## everything that is measured, side by side with other engines, PyBullet and PyTorch
	@scripts/bench.sh

bench-engine: build ## of that, the engine alone: targets, DVC, Snakemake, doit, b3sum
	@scripts/bench.sh engine

setup: ## Debian packages, Rust, LibTorch
	@scripts/setup.sh build

build: setup ## set up and build
	@[ -e $(PROVENIR) ] || echo "building: about ten minutes on two idle cores the first time"
	@cargo build --release --workspace

smoke: build ## the quickstart at its smallest
	@$(PROVENIR) run pipelines/quickstart.toml --profile smoke

fuzz: build ## fuzz targets, ten minutes of processor time each (FUZZ_SECONDS, FUZZ_RUNS)
	@scripts/setup.sh fuzz
	@python3 scripts/fuzz.py

oracle: build ## compare live with PyBullet, Stable-Baselines3 and safetensors (installs them below .deps/)
	@scripts/setup.sh oracle
	@scripts/oracle.sh
	@scripts/setup.sh torch
	@scripts/oracle_agents.sh
