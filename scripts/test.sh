#!/usr/bin/env bash
# Runs everything that must hold: style, types, layer order, dependencies, tests. Arguments go to pytest:
#   bash scripts/test.sh                    all but the tests marked slow
#   bash scripts/test.sh -m slow            those
#   bash scripts/test.sh tests/select -k quota
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
prepare_environment

if [[ -z ${ENVSCHED_TESTDATA:-} ]]; then
    echo "ENVSCHED_TESTDATA is not set: tests on real environments and rollouts are skipped, and say so." >&2
fi
if (($# == 0)); then
    ruff check .
    ruff format --check .
    pyright --level error
    lint-imports
    deptry .
    set -- -m "not slow"
fi
exec python -m pytest -n "${ENVSCHED_TEST_WORKERS:-2}" --dist worksteal "$@"
