#!/usr/bin/env bash
# The index tests with faiss-gpu, in an environment of its own. Needs no GPU: faiss-gpu imports and searches with none, and
# every GPU symbol that the wrapper calls is checked to exist. ENVSCHED_TORCH_INDEX may name an index of CPU wheels of torch.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
environment=.venv-faiss-gpu
python=${PYTHON:-python3}

if [[ ! -x $environment/bin/python ]]; then
    "$python" -m venv "$environment"
    if [[ -n ${ENVSCHED_TORCH_INDEX:-} ]]; then
        "$environment/bin/pip" install --quiet torch --index-url "$ENVSCHED_TORCH_INDEX"
    fi
    "$environment/bin/pip" install --quiet -e ".[cuda]" pytest pytest-timeout hypothesis
fi

export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
"$environment/bin/python" - <<'PYTHON'
from envsched.graph.index import installed_distributions, load_faiss, num_gpus

names = installed_distributions()
assert names and all(name.startswith("faiss-gpu") for name in names), f"expected faiss-gpu alone, found {names}"
faiss = load_faiss()
absent = [name for name in ("StandardGpuResources", "get_num_gpus", "knn_gpu", "METRIC_INNER_PRODUCT", "index_cpu_to_gpu", "GpuClonerOptions") if not hasattr(faiss, name)]
assert not absent, f"faiss-gpu {faiss.__version__} lacks what the wrapper calls: {absent}"
print(f"{names[0]}: faiss {faiss.__version__}, {num_gpus()} GPU(s)")
PYTHON
"$environment/bin/python" -m pytest tests/graph tests/maintained/test_cross_build.py -q
