#!/usr/bin/env bash
# The main job, small: GRPO-trains a tiny tool-using policy on the bundled pool with scheduled tasks, on a CPU.
# Arguments go to train.py:
#   bash scripts/demo.sh
#   bash scripts/demo.sh --scheduler random --max-steps 20
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
prepare_environment

run_dir="runs/demo-$(date +%Y%m%d-%H%M%S)"
exec python train.py --config configs/cpu.yaml --run-dir "$run_dir" "$@"
