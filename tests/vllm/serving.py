"""vLLM's own server in a process group of its own, so that a test can kill it as a machine's end would."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.train.killing import ROOT

MODEL = "tiny"
PORT = 8127
# Far more than the policy was made for: the questions of `topology llm` are long. Its table of positions must be as long. Were only the
# limit raised (VLLM_ALLOW_LONG_MAX_MODEL_LEN), keys of later positions would be made of what lies behind the table, and a NaN in a block of
# the key-value cache goes into the answers of all who get that block later.
CONTEXT = 4096
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
COMMAND = [
    *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
    *("--model", str(ROOT / "models/tiny-policy"), "--served-model-name", MODEL, "--port", str(PORT)),
    *("--dtype", "float32", "--enforce-eager"),
    *("--block-size", "32"),  # the prefix cache holds whole blocks, and the tiny policy's prompts are shorter than the usual 128 tokens
    *("--max-model-len", str(CONTEXT), "--hf-overrides", json.dumps({"max_position_embeddings": CONTEXT})),
    *("--worker-extension-cls", "envsched.train.reload.ReloadingWorker"),
    *("--logprobs-mode", "processed_logprobs", "--max-logprobs", "-1"),
    # An untrained model may choose white space for ever where a schema allows it.
    *("--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}'),
]


class Server:
    """Started when first asked for, and again after a kill."""

    url = f"http://127.0.0.1:{PORT}"

    def __init__(self, folder: Path) -> None:
        self._folder, self._starts = folder, 0
        self._process: subprocess.Popen | None = None

    def begin(self) -> None:
        """Start it unless it runs; does not wait."""
        if self._process is not None:
            return
        environment = {**ENVIRONMENT, "VLLM_SERVER_DEV_MODE": "1"}
        self._starts += 1
        with self._log.open("w") as log:
            self._process = subprocess.Popen(COMMAND, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)

    def ready(self) -> "Server":
        """Start it if need be and wait until it answers."""
        self.begin()
        deadline = time.monotonic() + 1500
        while not self._answers():
            assert self._process.poll() is None, self._log.read_text()[-5000:]
            assert time.monotonic() < deadline, "the server did not come up"
            time.sleep(2)
        return self

    def kill(self) -> None:
        """SIGKILL to all of its processes."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def requests_done(self) -> int:
        """Completions that this start has finished."""
        text = urllib.request.urlopen(f"{self.url}/metrics", timeout=60).read().decode()
        counts = [line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith("vllm:request_success_total")]
        return round(sum(map(float, counts)))

    @property
    def _log(self) -> Path:
        return self._folder / f"server-{self._starts}.log"

    def _answers(self) -> bool:
        try:
            return urllib.request.urlopen(f"{self.url}/health", timeout=2).status == 200
        except (urllib.error.URLError, OSError):
            return False
