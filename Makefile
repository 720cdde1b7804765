# The two commands of a newcomer are `make quickstart` and `make test`; both set up whatever is missing and share one build.
SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:$(PATH)
PROVENIR := target/release/provenir
.DEFAULT_GOAL := help

.PHONY: quickstart test lint bench setup build oracle smoke help

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

quickstart: build ## set up, build, and run the quickstart pipeline: from demonstrations to a figure
	@$(PROVENIR) run pipelines/quickstart.toml

test: build ## set up, build, and run every test
	@scripts/setup.sh test
	@cargo test --release --workspace --no-run
	@cargo test --release --workspace --quiet
	@scripts/check_parquet.sh
	@scripts/check_figures.sh
	@scripts/check_exports.sh

lint: setup ## formatting, lints, documentation, licences
	@scripts/setup.sh lint
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps --quiet
	@scripts/check_features.sh
	.deps/lint/bin/cargo-deny --offline check licenses bans sources

bench: build ## criterion benches, and side-by-side comparisons with PyBullet and PyTorch
	@scripts/setup.sh oracle
	@scripts/bench.sh

setup: ## Debian packages, Rust, LibTorch
	@scripts/setup.sh build

build: setup ## set up and build
	@[ -e $(PROVENIR) ] || echo "building: about ten minutes on two idle cores the first time"
	@cargo build --release --workspace

smoke: build ## the quickstart at its smallest
	@$(PROVENIR) run pipelines/quickstart.toml --profile smoke

oracle: build ## compare live with PyBullet, Stable-Baselines3 and safetensors (installs them below .deps/)
	@scripts/setup.sh oracle
	@scripts/oracle.sh
	@scripts/setup.sh torch
	@scripts/oracle_agents.sh
