# Sourced by the other scripts: makes .venv once, then only activates it.
#
#   ENVSCHED_TORCH_INDEX   wheel index for torch, for example one with CPU builds; without it pip's own configuration decides
#   ENVSCHED_PYTHON        interpreter to build .venv from (3.11 or 3.12); without it the first one found

ENVSCHED_EXTRAS="cpu,train,embed,topology,figures,dev"
TORCH_VERSION="2.13.0"

find_python() {
    local name
    for name in ${ENVSCHED_PYTHON:-python3.11 python3.12 python3}; do
        if "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    echo "envsched needs Python 3.11 or 3.12; none found. Install one, or name it: ENVSCHED_PYTHON=/path/to/python3.11" >&2
    return 1
}

install_into_venv() {
    local pip=(.venv/bin/python -m pip install --quiet --disable-pip-version-check)
    echo "Installing envsched into .venv (once; some minutes). First torch $TORCH_VERSION, the largest part ..." >&2
    "${pip[@]}" ${ENVSCHED_TORCH_INDEX:+--index-url "$ENVSCHED_TORCH_INDEX"} "torch==$TORCH_VERSION"
    echo "... then everything else ..." >&2
    "${pip[@]}" -c scripts/constraints.txt "setuptools>=77" wheel
    "${pip[@]}" -c scripts/constraints.txt --no-build-isolation -e ".[$ENVSCHED_EXTRAS]" "torch==$TORCH_VERSION"
}

warn_of_cuda_build() {
    .venv/bin/python - <<'PYTHON' >&2
import torch

if torch.version.cuda and not torch.cuda.is_available():
    print(
        f"Note: torch {torch.__version__} is a CUDA build, but no GPU is usable here. It works, only larger. "
        "For a CPU build: remove .venv and set ENVSCHED_TORCH_INDEX to an index of CPU wheels."
    )
PYTHON
}

prepare_environment() {
    local python stamp wanted
    python=$(find_python)
    stamp=.venv/envsched-installed
    wanted=$(cat pyproject.toml setup.py scripts/constraints.txt scripts/environment.sh; find . -path './kernels/*' \( -name '*.cpp' -o -name '*.h' -o -name build.py \) -type f | sort | xargs -r cat)
    wanted=$(printf '%s' "$wanted" | sha256sum | cut -d' ' -f1)
    if [[ ! -f $stamp || $(<"$stamp") != "$wanted" ]]; then
        [[ -x .venv/bin/python ]] || "$python" -m venv .venv
        install_into_venv
        warn_of_cuda_build
        echo "$wanted" > "$stamp"
    fi
    # shellcheck disable=SC1091
    source .venv/bin/activate
    export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}" HF_HUB_OFFLINE="${HF_HUB_OFFLINE:-1}" TOKENIZERS_PARALLELISM=false
    export HF_HUB_DISABLE_PROGRESS_BARS="${HF_HUB_DISABLE_PROGRESS_BARS:-1}"  # models here load in no time; their bars only break up the run's own
}
