#!/usr/bin/env bash
# Builds torch-scatter, an optional backend of the propagation, against the torch that .venv already has.
# It is in no extra because its build must see that torch; expect about five minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
prepare_environment
python -m pip install --no-build-isolation torch-scatter
python -c "import torch_scatter; print('torch-scatter', torch_scatter.__version__)"
