# Every target sets up what it needs in .venv; only Python >= 3.10 and a Rust toolchain must be there.
# README, pre-commit and CI call these targets and nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYO3_PYTHON := $(abspath $(BIN)/python)

RUST_SOURCES := $(shell find rust -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
STAMPS := $(VENV)/.stamps

.DEFAULT_GOAL := help
.PHONY: help demo build test test-rust test-python lint bench wheel docs supply-chain clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMPS)/build ## The main job on built-in data: a synthetic table and a report
	$(BIN)/python -m chicle.demo

build: $(STAMPS)/build ## Compile the core and install chicle into .venv

test: test-rust test-python lint ## Everything: Rust tests, Python tests, lint

test-rust: $(STAMPS)/venv
	cargo test --workspace --locked

test-python: $(STAMPS)/dev
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: $(STAMPS)/dev ## Formatting, clippy, ruff, types, stubs
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- --deny warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest chicle._core

bench: $(STAMPS)/bench ## Kernels (criterion), then side by side with other tools; JSON in benches/records
	cargo bench --workspace --locked
	for part in compare consistency gum descent pgm mechanisms evaluate page; do $(BIN)/python benches/$$part.py || exit 1; done

docs: $(STAMPS)/dev ## The site in site/: start, how to, reference, how it works, how good
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open site/index.html"

# On Linux the wheel runs with glibc 2.28 and newer (2018: Debian 10, RHEL 8): zig brings the old symbols.
wheel: ZIG := $(if $(filter Linux,$(shell uname)),--zig --compatibility manylinux_2_28)
wheel: $(STAMPS)/venv ## A wheel in dist/ that installs without Rust, tried in clean environments (PYTHONS="python3.10 ...")
	$(BIN)/python -m pip install --quiet 'maturin[zig]>=1.9,<2'
	rm -rf dist
	PATH="$(abspath $(BIN)):$$PATH" maturin build --release --locked $(ZIG) --out dist
	$(BIN)/python .ci/smoke.py dist/*.whl $(PYTHONS)

# Advisories come from databases on the network, which may be out of reach, and change from day to day: the same commit
# can pass today and fail tomorrow. So this is no part of `make test`. The tools live beside .venv's packages, not among them.
TOOLS := $(VENV)/.tools
supply-chain: $(STAMPS)/build ## Advisories, licences and sources of all dependencies; bills of materials in dist/ (needs the network)
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet 'pip-audit>=2.9,<3' 'cyclonedx-bom>=7,<8'
	cargo install --quiet --locked --root $(TOOLS) cargo-deny cargo-cyclonedx
	mkdir -p dist
	$(TOOLS)/bin/cyclonedx-py environment $(BIN)/python --output-file dist/sbom-python.cdx.json
	PATH="$(abspath $(TOOLS)/bin):$$PATH" cargo cyclonedx --manifest-path rust/bindings/Cargo.toml --format json --override-filename sbom-rust.cdx
	find rust -name sbom-rust.cdx.json -path '*bindings*' -exec mv {} dist/ \; ; find rust -name sbom-rust.cdx.json -delete
	PATH="$(abspath $(TOOLS)/bin):$$PATH" cargo deny --all-features check
	$(BIN)/python -m pip freeze --exclude-editable > dist/requirements.txt
	$(TOOLS)/bin/pip-audit --strict --no-deps --disable-pip --requirement dist/requirements.txt

clean: ## Remove everything that was built
	rm -rf $(VENV) target dist site

# setuptools and wheel: pyspark comes as source, and builds without isolation like chicle itself.
$(STAMPS)/venv:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip 'maturin>=1.9,<2' setuptools wheel
	@mkdir -p $(STAMPS) && touch $@

# build: what chicle itself needs; dev and bench: that and the extra of the same name.
$(STAMPS)/build: EXTRA :=
$(STAMPS)/dev $(STAMPS)/bench: EXTRA = [$(@F)]
$(STAMPS)/build $(STAMPS)/dev $(STAMPS)/bench: $(STAMPS)/venv $(RUST_SOURCES) pyproject.toml
	@echo "installing chicle$(EXTRA) into $(VENV) (the first time compiles the core: a minute or two)"
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.$(EXTRA)'
	@touch $@
