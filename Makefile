# fastproc: build, run, test and measure. `make help` lists the targets.

CARGO ?= cargo
# Where cargo builds.
TARGET = $(shell $(CARGO) metadata --format-version 1 --no-deps --offline | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
# Arguments for `make run`, as in: make run ARGS="exits --for 10s"
ARGS ?= ps --top 20
# Where `make install` installs; DESTDIR comes before it in a package.
PREFIX ?= /usr/local
# libbpf, which cargo builds by make, would be installed there too.
unexport DESTDIR PREFIX
MAKEOVERRIDES =

.PHONY: help build run install check test test-live lint check-unsafe bench deb man screenshots clean
help:
	@sed -n 's/^##  *//p' $(MAKEFILE_LIST)

## make build          builds the command and the exporter, optimized
build:
	scripts/setup build
	$(CARGO) build --release --locked -p fastproc-cli -p fastproc-exporter

## make run            builds quickly, without much optimization, and shows the twenty busiest processes; ARGS="top" runs another command
run:
	scripts/setup build
	$(CARGO) build --profile quick --locked -p fastproc-cli
	@"$(TARGET)/quick/fastproc" $(ARGS)
	@echo; echo "this was $(TARGET)/quick/fastproc; make install builds a faster one and installs it"

## make install        builds and installs all but the libraries for C and Python, into PREFIX=/usr/local, by sudo if need be; DESTDIR comes before it
install: man procps
	packaging/stage "$(TARGET)/release" "$(TARGET)/stage"
	@strip "$(TARGET)"/stage/bin/*
	@to="$(DESTDIR)$(PREFIX)"; until [ -e "$$to" ]; do to=$$(dirname "$$to"); done; \
	[ -w "$$to" ] || sudo=sudo; $$sudo env DESTDIR="$(DESTDIR)" "$(TARGET)/stage/install" "$(PREFIX)"

## make golden         writes the golden files of fixtures/ again: what the commands print for a frozen machine
.PHONY: golden
golden:
	UPDATE_GOLDEN=1 $(CARGO) test --locked -p fastproc-cli -p fastproc-exporter --test all -- golden

## make check          before every commit: formatting, lints, documentation, unit tests, golden files, and texts compared with the kernel's own; needs no root
check: lint
	scripts/run-tests fixed

## make test           make check, all tests on the running machine, and the short storms; run it as root, or it skips what needs root
test:
	@scripts/tests-ran begin
	$(MAKE) check
	$(MAKE) test-live
	scripts/tests-ran

## make nightly        as root: what takes long or rarely fails, some hours; docs/dev/nightly.md has the last result of each part; ONLY="dist oldest"
.PHONY: nightly doc
nightly:
	scripts/nightly $(ONLY)

## make doc            the documentation of the library, in doc of the target folder; fails on a warning
doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --quiet

# The tests that make check leaves out.
test-live:
	scripts/setup build c exporter
	scripts/run-tests live
	scripts/storms

## make test-storms    ten minutes of storms: compares every field and text with the kernel's own, by code that shares nothing with fastproc
STORM_SECONDS ?= 600
STORM_COMPARISONS ?= 1000000
.PHONY: test-storms
test-storms: build
	tools/checker/check "$(TARGET)/release/fastproc" \
		--seconds $(STORM_SECONDS) --at-least $(STORM_COMPARISONS) $(STORM_ARGS)

## make test-scale     100,000 processes and threads: checks that everything works, measures it, and writes the tables of docs/dev/scale.md; as root, some minutes
.PHONY: test-scale
test-scale:
	scripts/setup build
	$(CARGO) build --release --locked -p fastproc-cli -p fastproc-exporter -p fastproc-bench
	@"$(TARGET)/release/fastproc" bench scale --output docs/dev/scale.json
	python3 tools/bench/page.py

## make test-storms-short   a tenth of test-storms in some minutes, with every source
.PHONY: test-storms-short
test-storms-short:
	scripts/setup build
	$(CARGO) build --locked -p fastproc-cli
	scripts/storms

## make flakes         runs tests N=20 times on a loaded machine: TESTS='test(walks::)'; tools/flakes/README.md
.PHONY: flakes
N ?= 20
LOAD ?= 10
TESTS ?= all()
flakes:
	scripts/setup build c exporter
	@python3 tools/flakes/flakes.py $(LOAD) scripts/run-tests all '$(TESTS)' --stress-count $(N)

## make mutants        seeds faults and checks that the tests catch each: ONLY=NAME; tools/mutants/README.md
.PHONY: mutants
MUTANTS_ARGS ?=
mutants:
	scripts/setup build
	@PYTHONPATH=tools/mutants python3 -m mutants --only "$(ONLY)" $(MUTANTS_ARGS)

## make test-random    the tests with another random seed, which it prints, and 10,000 damaged files; SEED=n repeats one
.PHONY: test-random
test-random:
	scripts/setup build
	@seed="$(SEED)"; seed="$${seed:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"; \
	echo "PROPTEST_RNG_SEED=$$seed"; \
	FASTPROC_DAMAGE_CASES=10000 PROPTEST_RNG_SEED=$$seed $(CARGO) test --locked --workspace --no-fail-fast || { \
		echo "failed with PROPTEST_RNG_SEED=$$seed" >&2; exit 1; }

lint:
	scripts/setup build
	scripts/lint-python
	scripts/lint-words
	scripts/lint-rooms
	scripts/lint-links
	scripts/lint-lines
	scripts/lint-rust
	python3 tools/bench/page.py --check
	packaging/grafana/make --check
	scripts/lint-go
	PYTHONPATH=tools/mutants python3 -m mutants --check

## make procps         the substitute for procps's library, which fastproc run uses
.PHONY: procps
PROCPS ?= $(wildcard /usr/lib/*/libproc2.so.[01] /usr/lib64/libproc2.so.[01])
procps: build
	$(CARGO) rustc --profile library --locked -p fastproc-procps --crate-type cdylib
	@for real in $(PROCPS); do crates/fastproc-procps/shim/build "$$real" "$(TARGET)/release/procps"; done
	install -m 755 "$(TARGET)/library/libfastproc_procps.so" "$(TARGET)/release/procps/"
	strip --strip-unneeded "$(TARGET)/release/procps/"*

## make test-hostile   attacks of a hostile user on the service, and what other users notice of them; as root; part of make test
.PHONY: test-hostile
test-hostile:
	scripts/setup build
	$(CARGO) test --locked -p fastproc-service --no-fail-fast --test all hostile

## make test-procps    procps's tools with both libraries: every column, fifty command lines, procps's own tests; builds nothing after make test
.PHONY: test-procps
# Debian's releases whose procps is compared besides the one that is installed; sid has the library's next version.
RELEASES ?= trixie sid
test-procps:
	scripts/setup build procps
	$(CARGO) test --locked --workspace --no-run --quiet
	@tools/procps/check "$(TARGET)/debug" $(RELEASES)

## make c-library      libfastproc.so for C, with its header, pkg-config file and man page; docs/c.md
.PHONY: c-library c-header
c-library:
	scripts/setup build
	$(CARGO) rustc --profile library --locked -p fastproc-c --crate-type staticlib
	crates/fastproc-c/link "$(TARGET)/library/libfastproc_c.a" "$(TARGET)/release/c" --strip

## make c-header       writes its header again, after a change of bpf/record.h or of a function
c-header:
	scripts/setup build
	FASTPROC_WRITE_HEADER=1 $(CARGO) test --locked -p fastproc-c --test all header::

## make fields         writes docs/dev/fields.md from bpf/record.h, and docs/history-tables.md
.PHONY: fields
fields:
	scripts/setup build
	FASTPROC_WRITE_FIELDS=1 $(CARGO) test --locked -p fastproc --test all field_table::
	FASTPROC_WRITE_FIELDS=1 $(CARGO) test --locked -p fastproc-history --test all page::

## make api            writes the lists of the public API of the published crates again
.PHONY: api
api:
	scripts/setup build
	FASTPROC_WRITE_API=1 $(CARGO) test --locked -p fastproc --test all public_api::

# What is built for arm64 on another machine: the toolchain is unpacked into the cache of make test-kernels, not installed.
ARM64 = aarch64-unknown-linux-gnu
CROSS = python3 tools/kernels/main.py cross

## make build-arm64    make build for arm64, with a toolchain of its own; in target/aarch64-unknown-linux-gnu/release
.PHONY: build-arm64 c-library-arm64 test-arm64 go-arm64
build-arm64:
	scripts/setup build arm64
	$(CROSS) $(CARGO) build --release --locked --target $(ARM64) -p fastproc-cli -p fastproc-exporter

## make c-library-arm64   make c-library for arm64; in target/aarch64-unknown-linux-gnu/release/c
c-library-arm64:
	scripts/setup build arm64
	$(CROSS) $(CARGO) rustc --profile library --locked --target $(ARM64) -p fastproc-c --crate-type staticlib
	$(CROSS) sh -c 'CC=$$FASTPROC_CROSS_CC exec "$$@"' sh \
		crates/fastproc-c/link "$(TARGET)/$(ARM64)/library/libfastproc_c.a" "$(TARGET)/$(ARM64)/release/c" --strip

## make test-arm64     seqtext's tests as arm64 programs, by an emulator of user mode
test-arm64:
	scripts/setup build arm64
	$(CROSS) $(CARGO) test --locked --target $(ARM64) -p seqtext --lib --tests

## make go-arm64       compiles the Go client for arm64, and runs its tests that need no service by an emulator of user mode
go-arm64:
	scripts/setup build go arm64
	cd go && GOARCH=arm64 go vet ./... && GOARCH=arm64 go test -exec qemu-aarch64 -count=1 ./...

## make bench          runs every benchmark, and writes the tables and plots of docs/performance.md and of the README
bench: procps
	scripts/setup build bench
	$(CARGO) build --release --locked -p fastproc-cli -p fastproc-exporter -p fastproc-bench
	python3 tools/bench/page.py --measure "$(TARGET)/release/fastproc"

## make man            writes man pages and completions of bash, zsh and fish into packaging/generated
man: build
	@"$(TARGET)/release/fastproc" generate packaging/generated
	@echo "written: packaging/generated"

## make screenshots    makes the pictures of fastproc top in the README and docs/top.md, on a machine that looks busy; as root, with tmux
screenshots: build
	scripts/setup screenshots
	mkdir -p "$(TARGET)/pictures/fastproc"
	echo 'exited = true' >"$(TARGET)/pictures/fastproc/top.toml"
	XDG_CONFIG_HOME="$(TARGET)/pictures" scripts/busy-machine scripts/screenshot docs/images/top.svg 9 "$(TARGET)/release/fastproc" top \
		-o pid,container_name,user,state,pcpu,pmem,rss,time,cmdline --filter 'user != root && user != nobody'
	echo 'group = "container-name"' >"$(TARGET)/pictures/fastproc/top.toml"
	XDG_CONFIG_HOME="$(TARGET)/pictures" scripts/busy-machine scripts/screenshot docs/images/top-groups.svg 9 "$(TARGET)/release/fastproc" top

## make deb            a Debian package with the service, the C library and the substitute for procps's library, in target/debian; needs cargo-deb (cargo install cargo-deb)
# The substitute for either version of procps's library, where Debian has it, whichever is installed here.
deb: PROCPS = $(addprefix /usr/lib/$(shell $(CC) -print-multiarch)/libproc2.so.,0 1)
deb: build man c-library procps
	scripts/setup deb
	@$(CARGO) deb --version >/dev/null 2>&1 || { echo "missing: cargo-deb; cargo install cargo-deb" >&2; exit 1; }
	scripts/check-deb "$$($(CARGO) deb --locked --no-build --strip -p fastproc-cli)"

## make check-kubernetes  checks the manifest and the chart in packaging/kubernetes with the Go types of Kubernetes and with helm, which it builds once
.PHONY: check-kubernetes
check-kubernetes:
	scripts/check-kubernetes

## make test-containers   as root: runs the pods of packaging/kubernetes by crun, with containerd's seccomp profile, beside a container that they watch
.PHONY: test-containers
test-containers:
	scripts/setup build
	$(CARGO) test --locked --workspace --no-run --quiet
	scripts/test-containers

## make test-go        tests the Go client: its layout, its unit tests, and with a service
.PHONY: test-go bench-go
test-go:
	scripts/setup build go
	# As make test builds the program, so that after it nothing is compiled again.
	$(CARGO) test --locked --workspace --no-run --quiet
	@cd go && go vet ./... && FASTPROC_PROGRAM="$(TARGET)/debug/fastproc" go test -count=1 -timeout 30m ./...

## make bench-go       compares a snapshot of all processes in Go, by the service that runs and by gopsutil
bench-go:
	cd go/benchmark && go test -bench . -benchtime 3s -count 5

## make wheel          the Python package, dist/fastproc-*.whl
.PHONY: wheel test-python
wheel:
	scripts/setup build python
	scripts/wheel dist

## make test-python    tests the Python package: its wheel in an empty environment, the README's lines, every test
PYTEST_ARGS ?=
test-python:
	scripts/setup build python
	scripts/test-python $(PYTEST_ARGS)

## make python-pictures makes the pictures of docs/python.md, by python/examples/pictures.py, after make test-python; as root
.PHONY: python-pictures
python-pictures:
	scripts/python-pictures docs/images

## make bench-fleet    asks DuckDB about 50 made hosts, after make test-python: docs/history.md, Fleets; builds the release
.PHONY: bench-fleet
bench-fleet:
	$(CARGO) build --release --locked -p fastproc-cli
	$(CARGO) build --release --locked -p fastproc-history --example fleet
	"$$(scripts/venv python/requirements.txt)/bin/python" -B python/tests/fleet.py --programs "$(TARGET)/release"

## make test-oldest    the tests of data frames with the oldest pandas, after make test-python
.PHONY: test-oldest
test-oldest:
	scripts/test-oldest

## make test-psutil    psutil's own test suite against fastproc.psutil, after make test-python
.PHONY: test-psutil
test-psutil:
	scripts/test-psutil

## make test-install   as root: installs, uses and removes an archive of debug builds in another user land; builds nothing after make test
.PHONY: test-install
test-install:
	scripts/setup build
	$(CARGO) test --locked --workspace --no-run --quiet
	scripts/test-install "$(TARGET)/debug"

## make dist           makes a release of what is committed, in dist/: archives, packages, wheels, image, SBOM, sums; SOURCE=URL CONTACT=ADDRESS
.PHONY: dist check-dist
SOURCE ?=
CONTACT ?=
dist:
	SOURCE="$(SOURCE)" CONTACT="$(CONTACT)" tools/dist/make

## make check-dist     makes the release again in another folder, and checks that the files are the same as in dist/
check-dist:
	SOURCE="$(SOURCE)" CONTACT="$(CONTACT)" tools/dist/compare

## make check-unsafe   runs sanitizers, Miri and fuzzers on the unsafe code, as far as they are installed
check-unsafe:
	scripts/check-seqtext.sh

## make clean          removes what was built
clean:
	$(CARGO) clean

## make test-kernels   checks values on other kernels, in an emulator; the head of kernels/kernels.mk explains its variables
include kernels/kernels.mk
