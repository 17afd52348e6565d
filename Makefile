# There is one target for each task. CI runs `make test` only. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# The profile `dev` builds in minutes. `make demo PROFILE=release` builds longer and runs faster (docs/adr/0001-build-profiles.md).
PROFILE ?= dev
# `make install` installs files below PREFIX. A package build sets DESTDIR, which is prepended to PREFIX.
PREFIX ?= /usr/local
DESTDIR ?=
# The program to install: the one that `make release` built, or with PROFILE=dev the one that `make demo` built.
PROGRAM ?= $(or $(CARGO_TARGET_DIR),target)/$(if $(filter file,$(origin PROFILE)),dist,$(PROFILE:dev=debug))/alluvium
AGENT := --package alluvium --no-default-features --features agent
# The crates of the collector. None of them may depend on the store.
COLLECTOR := $(patsubst src/%/Cargo.toml,--package alluvium-%,$(wildcard src/*/Cargo.toml))
# Integration tests that measure. They run alone, because they would get too little CPU time beside other tests.
ALONE := clustering:: ebpf:: oracle:: shares::
# Runs a step and prints its duration.
STEP = @step() { echo "== $$*"; local start=$$SECONDS; "$$@"; echo "== $$((SECONDS - start)) s: $$*"; }; eval "$$(.ci/tools env)";

.PHONY: help demo test compiled check tools check-agent check-fuzz fmt lint deny advisories ui ui-test bench bench-all figures reloads kernels fuzz-smoke fuzz-store release sbom sums install uninstall deb chart images kills cuts faults flips

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## build and run server and collector in one process, which profiles itself: http://localhost:4040
	cargo run --locked --profile $(PROFILE) -- demo $(ARGS)

# The checks and the compiler do not need the tools. So the tools are installed at the same time, which saves minutes of the first run.
test: ## install the tools of the tests, then run every check that CI runs
	@set -m; log=$$(mktemp); { step_start=$$SECONDS; .ci/tools; \
		echo "== $$((SECONDS - step_start)) s: .ci/tools, in parallel with the compiler"; } >"$$log" 2>&1 & tools=$$!; \
		trap 'kill -- "-$$tools" 2>/dev/null || true; rm -f "$$log"' EXIT; \
		$(MAKE) --no-print-directory compiled; \
		wait "$$tools" || { cat "$$log"; echo "test: .ci/tools failed" >&2; exit 1; }; cat "$$log"
	$(STEP) step cargo test --locked --lib --bins
	$(STEP) step cargo test --locked --test integration -- $(ALONE:%=--skip %)
	$(STEP) step cargo test --locked --test integration -- --test-threads 1 $(ALONE)
	$(STEP) step cargo test --locked --doc
	$(STEP) step $(MAKE) --no-print-directory deny
	$(STEP) step $(MAKE) --no-print-directory ui-test

compiled: ## the first part of `make test`: check the format, run the lints, and compile everything
	$(STEP) step cargo fmt --check
	$(STEP) step cargo clippy --locked --all-targets -- -D warnings
	$(STEP) step $(MAKE) --no-print-directory check-fuzz
	$(STEP) step $(MAKE) --no-print-directory check-agent
	$(STEP) step cargo test --locked --lib --bins --tests --no-run

check: ## check format, clippy, unit tests and the tidy rules, as for each commit on main; T=FILTER also runs these integration tests
	$(STEP) step cargo fmt --check
	$(STEP) step cargo clippy --locked --all-targets -- -D warnings
	$(STEP) step cargo test --locked --lib --bins
	$(STEP) step cargo test --locked --test integration -- tidy:: $(T)

tools: ## install the tools of the tests: Debian packages, and the others into the cache folder outside the clone
	@.ci/tools

check-agent: ## check that the program without the server has no warnings, and that the collector contains no Arrow, Parquet, Delta or DataFusion
	$(STEP) step cargo clippy --locked $(AGENT) --lib --bins -- -D warnings
	@tree=$$(cargo tree --locked $(AGENT) --edges normal,build --prefix none; \
		cargo tree --locked $(COLLECTOR) --edges normal,build,dev --prefix none); \
		if grep -E '^(arrow|parquet|datafusion|delta_kernel|object_store)' <<< "$$tree"; \
		then echo "check-agent: the collector depends on the store" >&2; exit 1; fi

check-fuzz: ## compile the fuzz targets
	cargo clippy --locked --package alluvium-fuzz --features server -- -D warnings

fmt: ## format the Rust sources
	cargo fmt

lint: ## run clippy on everything; warnings are errors
	cargo clippy --locked --all-targets -- -D warnings

deny: ## check licences, bans and sources of all dependencies (advisories need a network, which CI does not have)
	$(STEP) cargo deny --locked check --hide-inclusion-graph licenses bans sources

advisories: ## check all dependencies against the public advisory database, or with DB=FOLDER against a clone of it
	$(STEP) $(if $(DB),export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0='url.file://$(abspath $(DB)).insteadOf' \
		GIT_CONFIG_VALUE_0=https://github.com/RustSec/advisory-db;) step cargo deny --locked check --hide-inclusion-graph advisories

ui: ## build the page into ui/dist, which is committed and embedded
	$(STEP) cd ui; step npm ci --no-audit --no-fund; step npm run build

ui-test: ui ## check the types of the page and that ui/dist is up to date; run its unit tests, and the page in a real browser against a fake server and a demo
	@changed=$$(git status --porcelain -- ui/dist); if [ -n "$$changed" ]; then echo "$$changed"; \
		echo "ui-test: ui/dist differs from the build of its sources: commit the files that 'make ui' has just written" >&2; exit 1; fi
	$(STEP) cd ui; step npm test; step npm run browser; step npm run --silent real

bench: ## measure the hot paths: decode, merge, flame graph
	cargo bench --locked --bench alluvium $(ARGS)

bench-all: ## run all benchmarks in one night and write docs/benchmarks; results from the last day are kept (docs/benchmarks.md)
	@eval "$$(.ci/tools env)"; benches/figures.py all

figures: ## write the tables in docs/benchmarks*.md and docs/scale.md from docs/benchmarks/*.json
	@benches/figures.py tables

bench-%: ## run one benchmark: bench-server, -peer, -small, -wide, -disk, -growth, -sql, -page, -soak, -engine, -pods, -hot, -files, -builds, -dist, -profiler, -perf, -slowdown, -mixed, -churn; with ARGS it only prints the results
	@eval "$$(.ci/tools env)"; benches/figures.py run $* $(ARGS)

kernels: ## boot other kernels and 64-bit Arm under qemu and test the eBPF profiler there (docs/benchmarks-ebpf.md); takes minutes for each kernel
	benches/kernels.py $(ARGS)

reloads: ## reload the collector ten thousand times at random while profiles flow; `make test` does it 500 times
	$(STEP) ALLUVIUM_RELOADS=$(or $(N),10000) cargo test --locked --package alluvium-components --lib reloads_at_random -- --nocapture

kills: ## kill the store a thousand times at disk operations of flushes, merges, retention, deletions and others; `make test` does it 100 times
	$(STEP) ALLUVIUM_KILLS=$(or $(N),1000) cargo test --locked --test integration kills_at_places -- --nocapture

cuts: ## simulate ten thousand power failures of a store, and 500 of a queue, on a disk that keeps only synced data; `make test` does 1,000 and 50
	$(STEP) ALLUVIUM_POWER_CUTS=$(or $(N),10000) cargo test --locked --test integration unsynced -- --nocapture --test-threads 1

flips: ## flip ten thousand bits anywhere in a data folder; the store must return the right result or an error that names the file; `make test` does 120
	$(STEP) ALLUVIUM_FLIPS=$(or $(N),10000) cargo test --locked --test integration flips -- --nocapture

faults: ## let every write of every maintenance job fail in turn; `make test` does only every third or seventh of some jobs
	$(STEP) ALLUVIUM_ALL_FAULTS=1 cargo test --locked --package alluvium --lib a_failure_at_any -- --nocapture

fuzz-smoke: ## fuzz every target for a minute (without sanitizer: the code is safe Rust, and ASan does not support jemalloc)
	@command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked
	$(STEP) for target in $$(cargo fuzz list); do \
		if [ "$$target" = store_flush ]; then \
			step fuzz/store.sh fuzz/corpus/store_flush -max_len=16384 -max_total_time=60; \
		elif [ "$$target" = pgwire ]; then \
			step env TARGET=pgwire fuzz/store.sh fuzz/corpus/pgwire -max_total_time=60; \
		else step env RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none "$$target" -- -max_total_time=60; fi; done

fuzz-store: ## send a million mutated profiles through store, flush and start, without coverage feedback; `make test` sends a thousand
	$(STEP) ALLUVIUM_STORE_FUZZ=$(or $(N),1000000) cargo test --locked --release --test integration any_profile_is_refused_or_stored -- --nocapture

# Folders of this machine and their names in the program, so that builds in other folders are equal (docs/install.md).
PLACES := $(CURDIR)=/alluvium $(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo $(abspath $(or $(CARGO_TARGET_DIR),target))=/target

release: ## build the optimised program for a release
	RUSTC_WRAPPER='$(CURDIR)/.ci/rustc' RUSTFLAGS='$(RUSTFLAGS) $(PLACES:%=--remap-path-prefix=%)' \
		CFLAGS='$(CFLAGS) $(PLACES:%=-ffile-prefix-map=%)' cargo build --locked --profile dist --bin alluvium

sbom: ## write bills of materials of the program and of the page as CycloneDX to target/sbom; installs cargo-cyclonedx if it is missing
	@cargo cyclonedx --version >/dev/null 2>&1 || cargo install cargo-cyclonedx --version 0.5.9 --locked
	@mkdir -p target/sbom
	$(STEP) step cargo cyclonedx --quiet --format json --override-filename alluvium.cdx; rm -f fuzz/alluvium.cdx.json src/*/alluvium.cdx.json; \
		mv alluvium.cdx.json target/sbom/program.cdx.json; \
		(cd ui && npm sbom --package-lock-only --omit dev --sbom-format cyclonedx) >target/sbom/page.cdx.json; ls -l target/sbom

sums: ## write checksums of the files of `make release`, `make deb` and `make sbom` to target/release.sums; KEY=FILE signs them with ssh-keygen
	@cd target; files=$$(ls dist/alluvium debian/*.deb sbom/*.json 2>/dev/null); sha256sum $$files >release.sums; cat release.sums
	@if [ -n '$(KEY)' ]; then rm -f target/release.sums.sig; ssh-keygen -Y sign -n alluvium -f '$(KEY)' target/release.sums; fi

install: ## install the program with completions, manual pages and systemd units, after `make release`, as root or with PREFIX=~/.local; PROFILE=dev installs the build of `make demo`
	@PROGRAM='$(PROGRAM)' PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' deploy/install

uninstall: ## remove the installed files; data stays
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' deploy/install --remove

deb: ## build a package for Debian and its derivatives in target/debian from the build of `make release`
	@PROGRAM='$(PROGRAM)' deploy/debian/build

chart: ## render the plain manifests for Kubernetes (deploy/kubernetes/base) from the chart
	@eval "$$(.ci/tools env)"; text=$$(helm template alluvium deploy/helm/alluvium --namespace alluvium); \
		printf '# Rendered from deploy/helm/alluvium by `make chart`: edit that.\n%s\n' "$$text" | \
		sed -e '/^# Source: /d' -e 's/by: Helm$$/by: kustomize/' >$(or $(TO),deploy/kubernetes/base/alluvium.yaml)

images: ## take the screenshots in docs/images; BASE_URL=http://localhost:4040 takes them from a running demo
	$(STEP) cd ui && UPDATE_IMAGES=1 npm run browser
