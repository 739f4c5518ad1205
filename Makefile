# fastproc: build, run, test and measure. `make help` lists the targets.

CARGO ?= cargo
# Arguments for `make run`, as in: make run ARGS="ps --top 10"
ARGS ?= ps

.PHONY: help build run test lint check-unsafe bench deb clean
help:
	@sed -n 's/^##  *//p' $(MAKEFILE_LIST)

## make build          builds the command, in release mode
build:
	scripts/setup build
	$(CARGO) build --release --locked -p fastproc-cli

## make run            the process table, sorted by CPU
run: build
	@target=$$($(CARGO) metadata --format-version 1 --no-deps --offline | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'); \
	"$$target/release/fastproc" $(ARGS)

## make test           formatting, lints, documentation, every test
test: lint
	scripts/setup exporter
	$(CARGO) test --locked --workspace
	scripts/tests-ran

lint:
	scripts/setup build
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --quiet

## make bench          every benchmark, as one Markdown table in docs/bench.md
bench: build
	@target=$$($(CARGO) metadata --format-version 1 --no-deps --offline | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'); \
	"$$target/release/fastproc" bench all --output docs/bench.md
	@echo "written: docs/bench.md"

## make deb            a Debian package with the service, in target/debian; wants cargo-deb (cargo install cargo-deb)
deb: build
	@$(CARGO) deb --version >/dev/null 2>&1 || { echo "missing: cargo-deb; cargo install cargo-deb" >&2; exit 1; }
	$(CARGO) deb --locked --no-build --strip -p fastproc-cli

## make check-unsafe   sanitizers, Miri and fuzzing of the unsafe code, with what is installed
check-unsafe:
	scripts/check-seqtext.sh

## make clean          removes what was built
clean:
	$(CARGO) clean

## make test-kernels   the same proofs on other kernels, in an emulator; kernels/kernels.mk says more
include kernels/kernels.mk
