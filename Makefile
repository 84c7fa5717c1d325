# The tasks of working on svc, in the environment `.venv` if there is one. `make` lists them.

export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help setup hook check fix test rules generate cluster build release

help:
	@sed -n 's/^\([a-z]*\):.* # /\1\t/p' $(MAKEFILE_LIST)

setup: # make .venv with what the checks and the tests need
	python3 -m venv --upgrade-deps .venv
	pip install -q -c constraints.txt -e '.[test]'

hook: # have pre-commit check each commit
	pip install -q -c constraints.txt pre-commit
	pre-commit install

check: # format, lint, types, layers and sizes
	sh .ci/check

fix: # format, and correct what the linter can
	python -m ruff format .
	python -m ruff check --fix .

test: # all tests, but for those of a cluster
	python -m pytest -n 2 --dist worksteal

rules: # the rules that are tests
	python -m pytest tests/rules

generate: # make completions and manual pages again
	python -m svc_cli completion bash >completions/svc.bash
	python -m svc_cli completion zsh >completions/_svc
	python -m svc_cli completion fish >completions/svc.fish
	python -m svc_cli completion powershell >completions/svc.ps1
	python -m tests.rules.manuals

cluster: # the tests on real PostgreSQL, S3 and Milvus
	pip install -q -c constraints.txt -e '.[cluster-test]'
	python -m pytest tests/cluster --cluster

build: # all that a change must pass, on a clean checkout
	.ci/run

release: # the files of a release in dist/: wheel, sources, bill of materials, checksums
	.ci/release
