# Every target makes its own virtual environment if there is none: python3 (>= 3.11), venv and make are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Installed as it lies here, the package compiles what it needs; only wheels carry kernels (hatch_build.py).
PIP    := STICTION_PREBUILT=0 $(BIN)/python -m pip install --quiet --disable-pip-version-check

comma  := ,

# Where two processes work side by side, each has one core: threads of its linear algebra would only wait for each other.
demo test test-all test-plain test-bounds test-bounds-all: export OPENBLAS_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help demo gallery test test-all test-plain test-bounds test-bounds-all bench docs lint clean

help:
	@echo "make demo      the same scenes by us and by MuJoCo, side by side: tables, films, plots, a replay (into demo/)"
	@echo "make gallery   the pictures and clips of README, gallery and viewer, from the scenes themselves"
	@echo "make test      lint, types, import layers, tests"
	@echo "make test-all  the same with the slow tests, a soak of 500,000 steps, and bounds checked everywhere"
	@echo "make bench     time and residual against other packages; renews docs/performance and benchmarks/results"
	@echo "make docs      the documentation, into site/"
	@echo "make lint      style, spelling, types, import layers"
	@echo "make clean     remove everything made by these targets"

# Tables in the terminal; films, plots and a replay in demo/. A film needs OpenGL; without it, a replay is made.
# From nothing, kernels are compiled by two processes; then films are made by two.
CAPSULE := pinched-capsule --seconds 8
RATIO   := mass-ratio --seconds 3
filmed   = $(BIN)/stiction compare $(2) --fps 12 --size 400x440 --record demo/$(1).mp4 --plot demo/$(1).svg || \
	$(BIN)/stiction compare $(2) --fps 12 --record demo/$(1).html --plot demo/$(1).svg

demo: $(VENV)/.demo
	@mkdir -p demo
	@$(BIN)/stiction compare $(CAPSULE)
	@echo
	@{ { $(call filmed,pinched-capsule,$(CAPSULE) --speed 4 --camera 96$(comma)-10); } > demo/log && $(BIN)/stiction run dominoes \
		--seconds 1 --quiet --plot demo/dominoes.svg --record demo/dominoes.html; } & \
	{ $(call filmed,mass-ratio,$(RATIO) --speed 1.5); } && echo && $(BIN)/python examples/pinched_capsule.py demo/creep.svg && \
		wait $$! && rm demo/log
	@echo "demo/ holds:" && ls demo

# Look at them before they are kept.
gallery: $(VENV)/.demo
	$(BIN)/python docs/scenes.py
	$(BIN)/python docs/gallery.py
	$(BIN)/stiction compare pinched-capsule --seconds 8 --speed 2 --fps 12 --size 300x330 --camera 96,-10 \
		--record docs/images/side-by-side.gif

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/typos
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# Everything on two cores: what is checked without compiled kernels or with kernels of its own, then all kernels once,
# then the tests. A file's tests stay together, because they share what is compiled for them alone.
test: $(VENV)/.dev
	@$(MAKE) --no-print-directory --jobs 2 --output-sync lint test-bounds test-plain
	$(BIN)/stiction warm
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-all: lint
	$(BIN)/stiction warm
	$(BIN)/python -m pytest -m "" -n 2 --dist loadfile
	@$(MAKE) --no-print-directory test-plain test-bounds-all

# Compiled code reads and writes behind an array in silence. As plain Python it raises, and lines are counted; compiled
# with bounds checked it raises too, in the code that is really run. Parts that need little compilation or time.
PLAIN  := $(addprefix tests/, problems/test_contact.py problems/test_islands.py problems/test_normal_form.py \
	problems/test_normal_form_trees.py problems/test_pyramid.py solutions/test_contact_certificate.py \
	bodies/collision/test_mend.py solvers/test_every_solver.py solvers/contact/test_one_contact.py stepping/test_soak.py)
BOUNDS := $(addprefix tests/, problems/test_islands.py problems/test_normal_form_trees.py stepping/test_soak.py)

test-plain: $(VENV)/.dev
	$(BIN)/python tests/kernel_coverage.py $(PLAIN)

test-bounds: $(VENV)/.dev
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -q -k "not event-driven" $(BOUNDS)

test-bounds-all: $(VENV)/.dev
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -m "" -n 2 --dist loadfile \
		tests/bodies tests/contacts tests/problems tests/scenes tests/solutions tests/solvers tests/stepping

bench: $(VENV)/.peers
	$(BIN)/python benchmarks/run.py --results benchmarks/results --into docs/performance \
		--overview docs/performance/index.md --readme README.md

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) demo site dist build .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of packages; a change of pyproject.toml installs anew.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[sim,viewer,plots]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.demo

$(VENV)/.peers: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[peers,plots,sim,files]'
	@for engine in drake pybullet dartpy; do \
		$(PIP) --only-binary :all: $$engine || echo "$$engine has no wheel for this Python: left out" >&2; done
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "stiction needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
