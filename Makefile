# Set-up, demo and tests, each from a fresh clone. PYTHON=path/to/python uses an environment that has
# PyTorch already, instead of making .venv.

VENV    := .venv
BUILD   := build/dev
PY      := $(if $(PYTHON),$(PYTHON),$(VENV)/bin/python)
# The base interpreter for .venv: the CUDA build of PyTorch that is used here exists for 3.11.
BASE    := $(shell command -v python3.11 || command -v python3)
TORCH   := torch==2.14.1
CLANG   := clang
# What the libraries of the tests must not replace, as constraints for pip.
define KEEP
from importlib.metadata import distributions
for d in distributions():
    if d.metadata["Name"] in ("torch", "transformers", "numpy"):
        print(d.metadata["Name"] + "==" + d.version)
endef
export KEEP
# Processes that the Python tests share; each may run PyTorch twice, about 2 GiB.
WORKERS := $(shell n=$$(nproc); echo $$((n < 4 ? n : 4)))
# Build tools from the environment come first on PATH.
RUN     := PATH="$(dir $(abspath $(PY))):$$PATH"
SOURCES := $(shell find preload -type f) pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-c test-python test-mutants test-sanitize test-torch-matrix fuzz check gen clean
.PHONY: bench-startup
.PHONY: bench bench-waste bench-speed bench-fit bench-paper bench-flat check-gpu

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

setup: $(BUILD)/.installed ## make .venv: PyTorch (CUDA build), transformers, this project

$(BUILD)/.environment:
	@mkdir -p $(BUILD)
ifndef PYTHON
	@test -x $(PY) || "$(BASE)" -m venv $(VENV)
	@$(PY) -c 'import torch, transformers' 2>/dev/null || { \
	  echo "setup: installs $(TORCH) with its CUDA libraries and transformers into $(VENV):"; \
	  echo "setup: about 3 GB to download, 6 GB on disk. PYTHON=... uses an environment of yours instead."; \
	  $(PY) -m pip install --quiet --disable-pip-version-check $(TORCH) transformers numpy; }
endif
	@$(PY) -c 'import torch' || { echo "setup: no torch in $(PY): install it there, or leave PYTHON= out"; exit 1; }
	@$(PY) -m pip install --quiet --disable-pip-version-check 'scikit-build-core>=0.10' 'cmake>=3.20' ninja
	@touch $@

$(BUILD)/.installed: $(BUILD)/.environment $(SOURCES)
	@echo "setup: builds the native libraries and installs gml-run into $(dir $(PY))"
	@$(PY) -c "$$KEEP" > $(BUILD)/keep.txt
	@$(RUN) $(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation -c $(BUILD)/keep.txt \
	  -e '.[test]' \
	  -C build-dir=$(BUILD) -C cmake.define.GML_TESTS=ON -C cmake.define.GML_WERROR=$(if $(CI),ON,OFF)
	@touch $@

demo: setup ## run a real training script under gml-run, on a GPU or else on the simulated one
	@$(RUN) bash docs/examples/demo.sh

test: setup test-c test-sanitize test-python test-mutants ## run every test

test-c: setup
	@$(RUN) ninja -C $(BUILD) --quiet
	@$(RUN) ctest --test-dir $(BUILD) --output-on-failure -j 2

test-python: setup
	@$(RUN) $(PY) -m pytest -n $(WORKERS) tests

test-mutants: setup ## plant bugs in the allocator; each must make its test fail
	@$(RUN) $(PY) tests/mutants/run.py --build $(BUILD)

# Random runs are shorter here; every error path is taken all the same.
COMMA := ,
SANITIZE = $(RUN) cmake -S preload -B build/$(1) -G Ninja -DGML_TESTS=ON -DGML_SANITIZE=$(subst +,$(COMMA),$(2)) >/dev/null
test-sanitize: setup ## the allocator under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer
	@$(call SANITIZE,sanitize-address,address+undefined)
	@$(call SANITIZE,sanitize-thread,thread)
	@$(RUN) ninja -C build/sanitize-address --quiet gml_pure_tests
	@$(RUN) ninja -C build/sanitize-thread --quiet core_threads
	@$(RUN) STEPS=400 SEEDS=6 ctest --test-dir build/sanitize-address --output-on-failure -j 2 -L pure
	@$(RUN) ctest --test-dir build/sanitize-thread --output-on-failure -R '^core/threads'

# libFuzzer looks for calls that break the allocator; inputs that it finds interesting stay in build/fuzz. With
# smaller limits between the kinds of arena, an input is done in milliseconds.
FUZZ_SECONDS := 300
fuzz: ## search for call sequences that break the allocator (needs clang; FUZZ_SECONDS=300)
	@command -v $(CLANG) >/dev/null || { echo "fuzz: needs clang with libFuzzer: apt-get install clang, or CLANG=clang-14"; exit 1; }
	@mkdir -p build/fuzz/corpus
	@$(CLANG) -g -O1 -std=gnu11 -fsanitize=fuzzer,address,undefined -DGML_LIBFUZZER -Ipreload -Itests/c \
	  '-DGML_COARSE_BYTES=((uint64_t)16<<20)' '-DGML_MEDIUM_BYTES=((uint64_t)4<<20)' \
	  tests/c/core/fuzz.c preload/base/*.c preload/os/*.c preload/core/*.c preload/device/model*.c preload/device/fault.c \
	  -o build/fuzz/fuzz
	@cd build/fuzz && ./fuzz -max_len=1024 -len_control=0 -timeout=60 -max_total_time=$(FUZZ_SECONDS) corpus

test-torch-matrix: setup ## the simulated GPU under older PyTorch releases (about 6 GB to download)
	@$(RUN) $(PY) tests/torch_matrix.py

check: setup ## lint and type checks
	@$(PY) -m ruff check gml_run tests
	@$(PY) -m mypy gml_run

gen: setup ## write the files that are generated from the C lists
	@$(BUILD)/tools/gen_abi abi > gml_run/_abi.py
	@$(BUILD)/tools/gen_abi profiles > gml_run/_profiles.py
	@$(BUILD)/tools/gen_abi hooks > docs/reference/hooked-symbols.md
	@$(PY) docs/reference/make_options.py > docs/reference/options.md

bench: bench-speed bench-waste bench-fit bench-paper bench-flat ## measure every table of docs/benchmarks.md

PUBLISH := $(RUN) $(PY) tests/bench/publish.py $(if $(BENCH_WRITE),--write)

bench-speed: setup ## time of an allocation and its free (needs a CUDA toolkit's headers)
	@$(PUBLISH) speed

bench-waste: setup ## waste and driver cost under every allocator
	@$(PUBLISH) waste

bench-fit: setup ## the smallest device on which each script finishes
	@$(PUBLISH) fit

bench-paper: setup ## the matrix of GMLake's evaluation
	@$(PUBLISH) paper

bench-flat: setup ## instructions per call by the number of live blocks (needs valgrind)
	@$(PUBLISH) flat

check-gpu: ## on a machine with a GPU: prove what only a GPU can, into docs/gpu-results
	@"$(BASE)" tests/gpu/find_gpu.py
	@$(MAKE) --no-print-directory setup
	@$(RUN) $(PY) tests/gpu/check_gpu.py

bench-startup: setup ## measure what gml-run adds to a program that never calls CUDA
	@$(RUN) $(PY) tests/bench/startup.py

clean: ## remove what was built; .venv stays
	rm -rf build
