# The commands of this repository; `make help` lists them. All work in .venv, which is made on first use.

PYTHON ?= python3
PROFILE ?= demo
# Which notebooks, e.g. "00_quickstart 01_main_results"; empty means all.
NOTEBOOKS ?=
# Further parameters, e.g. PARAMS="-p seed 1 -p group_size 2"; what a notebook or the configuration knows.
PARAMS ?=
# Folder above the profile's; empty means results/.
RESULTS ?=

RUN := .venv/bin/python -m
NOTEBOOK_FILES := $(wildcard notebooks/*.ipynb)

.DEFAULT_GOAL := help
.PHONY: help reproduce figures test test-slow lint format serve appworld lab notebooks notebooks-strip clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' Makefile
	@echo 'Variables: PROFILE=$(PROFILE) NOTEBOOKS="01_main_results ..." PARAMS="-p name value ..." RESULTS=folder PYTHON=$(PYTHON)'

reproduce: .venv/.installed-run ## run the notebooks into results/PROFILE/
	@$(RUN) skill_evolution.runs.notebooks --profile "$(PROFILE)" $(if $(RESULTS),--results "$(RESULTS)") $(PARAMS) $(NOTEBOOKS)

figures: .venv/.installed-run ## redraw every figure from results/PROFILE/tables alone
	@$(RUN) skill_evolution.analysis.gallery "$(or $(RESULTS),results)/$(basename $(notdir $(PROFILE)))"

# loadfile: the cells of a notebook and the tests of a module stay in one process. SAGE's notebooks train for minutes;
# tests/sage/test_sage_notebooks.py runs them with a few steps.
test: .venv/.installed-dev ## run the tests, and the notebooks as tests
	@$(RUN) pytest -n 2 --dist loadfile --nbval-lax --nbval-current-env --nbval-cell-timeout 600 tests $(filter-out notebooks/07_sage% notebooks/08_sage%,$(NOTEBOOK_FILES))

test-slow: .venv/.installed-dev ## run the tests that take long
	@$(RUN) pytest -m slow tests

lint: .venv/.installed-dev ## check style and types
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) pyright
	@.venv/bin/lint-imports

format: .venv/.installed-dev ## format the code
	@$(RUN) ruff format .

serve: .venv/.installed-run ## serve a profile's model with vLLM until Ctrl-C: PROFILE=cpu (default) or paper
	@$(RUN) skill_evolution.cli serve --profile "$(if $(filter file,$(origin PROFILE)),cpu,$(PROFILE))"

appworld: .venv/.installed-run ## make AppWorld's environment in .venv-appworld, and say whether its data are there
	@$(RUN) skill_evolution.sage.appworld.environment

lab: .venv/.installed-run ## open the notebooks in JupyterLab
	@$(RUN) jupyterlab notebooks

notebooks: ## run the notebooks with the demo profile and take their outputs over into notebooks/, for a commit
	@$(MAKE) --no-print-directory reproduce PROFILE=demo PARAMS= RESULTS=
	@cp $(foreach name,$(or $(NOTEBOOKS),$(basename $(notdir $(NOTEBOOK_FILES)))),results/demo/$(name).ipynb) notebooks/
	@$(RUN) skill_evolution.runs.notebooks --strip

notebooks-strip: .venv/.installed-run ## clean the notebooks' metadata for a commit, outputs stay
	@$(RUN) skill_evolution.runs.notebooks --strip

clean: ## remove .venv and caches; results stay
	@rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist lib/*.egg-info
	@find lib tests notebooks -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

.venv/.created:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
		echo 'Python 3.11, 3.12 or 3.13 is needed; "$(PYTHON)" is' \
			"$$($(PYTHON) --version 2>&1 | head -n 1)." 'Name another one: make PYTHON=/path/to/python3.12 ...' >&2; exit 1; }
	@echo 'Creating .venv ...'
	@$(PYTHON) -m venv .venv || { echo 'No .venv could be made: on Debian and Ubuntu, install python3-venv.' >&2; exit 1; }
	@touch $@

.venv/.installed-run: pyproject.toml .venv/.created
	@echo 'Installing skill-evolution into .venv (one or two minutes) ...'
	@$(RUN) pip install -qq --disable-pip-version-check -e '.[sage]'
	@touch $@

.venv/.installed-dev: pyproject.toml .venv/.created
	@echo 'Installing skill-evolution and its development tools into .venv (one or two minutes) ...'
	@$(RUN) pip install -qq --disable-pip-version-check -e '.[dev,sage]'
	@touch $@ .venv/.installed-run
