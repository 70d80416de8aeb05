# What each target does stands in its help line; the work is in scripts/.
# Every target does its own set-up and needs no terminal.

.DEFAULT_GOAL := help
.PHONY: help demo test install uninstall cluster bench regress soak torture kernels arm64 package release tutorial miri fuzz fuzz-corpus mutants fmt setup-demo setup-test setup-bench setup-kernels setup-arm64 setup-package setup-release

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: setup-demo ## build whit, record a real program, print its report, write its page
	@scripts/demo.sh

test: setup-test ## everything that is checked: format, lints, tests, fuzz smoke runs, licences
	@scripts/test.sh

install: setup-demo ## build whit and install it below PREFIX=/usr/local (DESTDIR= for packages)
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install.sh install

uninstall: ## remove what make install has installed below PREFIX=/usr/local
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install.sh uninstall

# Outside of `make test`: it fetches Spark, of 460 MB.
cluster: setup-bench ## ask Spark, DuckDB and DataFusion twelve questions over three hosts, compare, and time them (ROUNDS=, RUNS=)
	@scripts/cluster.sh

bench: setup-bench ## compare whit with its peers: readers (SIZES=50M,500M,2G), recorders (TABLES=loss,..)
	@scripts/bench.sh

# Outside of `make test`: it builds two revisions.
regress: setup-demo ## compare whit with its revision BASE=: builds both, runs the main jobs in turn (RUNS=5, LIMIT=5%, PROFILE=release)
	@RUNS='$(RUNS)' LIMIT='$(LIMIT)' PROFILE='$(PROFILE)' scripts/regress.sh $(BASE)

soak: setup-bench ## record at the highest rate for MINUTES=10; fails if memory grows
	@scripts/soak.sh

# Outside of `make test`: it takes some fifty minutes, thirty of them for the soak of `whit watch`.
torture: setup-bench ## attack whit: damaged recordings, killed, stopped and starved recorders, full disks, storms, hostile binaries and paths, a soak of `whit watch` (EFFORT=100, SEED=, SOAK=1800 seconds)
	@$(MAKE) -s -C bench/workloads storm sleeper
	@cargo build --quiet --release --locked -p whit -p whit-watch -p whit-torture
	@target/release/whit-torture --effort $(or $(EFFORT),100) $(if $(SEED),--seed $(SEED)) $(if $(SOAK),--soak $(SOAK)) $(ATTACKS)

# Outside of `make test`: it takes minutes for each, and fetches kernels.
kernels: setup-kernels ## run the BPF programs on other kernels in QEMU (KERNELS='vmlinuz ..', else those of apt)
	@scripts/kernels.sh $(KERNELS)

# Outside of `make test`: it fetches a compiler and a kernel, and an emulated machine takes its time.
arm64: setup-arm64 ## build for arm64, and run it in QEMU: reports, recordings, an emulated PMU (GOALS='build user guest')
	@scripts/arm64.sh $(GOALS)

# Outside of `make test`: it builds twice, and fetches minimal systems to install in.
package: setup-package ## build the .deb, a static tarball, `cargo install` and the public crates, and try each in a clean root (PACKAGES='deb ..')
	@scripts/package.sh $(PACKAGES)

# Outside of `make test`: it builds twice, and four times with TWICE=1.
release: setup-release ## build all files of a release into dist/, from the commit alone (TWICE=1: in two folders, compared)
	@scripts/release.sh $(if $(TWICE),twice)

# Outside of `make test`: it builds a package, and fetches a minimal system and a compiler to install in it.
tutorial: setup-package ## follow the tutorials of the book in a clean root that has the .deb alone
	@scripts/tutorial.sh

# Outside of `make test`: it takes minutes, and comes with some nightly toolchains only.
miri: ## run whit-pmu's tests in Miri (rustup component add --toolchain nightly miri rust-src)
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p whit-pmu --lib --quiet -- \
		--skip exhaustive --skip explore

fuzz: setup-demo ## fuzz each target for MINUTES=10 (TARGETS='perf_data profile', else all)
	@scripts/fuzz.sh campaign

fuzz-corpus: setup-demo ## add what `make fuzz` found to fuzz/corpus, minimized
	@scripts/fuzz.sh minimize

# Outside of `make test`: a mutant takes some ten seconds, and a crate has a thousand.
mutants: ## change the code of CRATE=whit-perfdata and see its tests fail (SHARD=0/12: a sample; FILES='crates/..')
	@scripts/mutants.sh

fmt: ## format the sources
	@cargo fmt --all
	@rustfmt --edition 2024 guest/main.rs

# A static pattern: make looks for no implicit rule of a phony target.
setup-demo setup-test setup-bench setup-kernels setup-arm64 setup-package setup-release: setup-%:
	@scripts/setup.sh $*
