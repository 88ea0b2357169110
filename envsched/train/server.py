"""A vLLM server as seen from training: a request is answered, or it ends the run with a reason in bounded time.

TRL asks again for about a minute where a connection fails, and waits for ever where one is open and nothing comes. Here a request is
given up once the server's ``/health`` has not answered for ``silent_seconds``; an answer itself may take as long as it takes.
"""

import tempfile
import time
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar
from urllib.request import urlopen

import torch
from safetensors.torch import save_file
from trl.generation.vllm_client import VLLMClient

from envsched.errors import ServerError

Answer = TypeVar("Answer")

POLL_SECONDS = 5.0  # between two looks at a server that is at work


class ServerClient(VLLMClient):
    """TRL's client.

    Args:
        silent_seconds: a server that answers no health check for so long is taken to be gone.

    Raises:
        ServerError: there is no server, it went away, or it refuses what it is asked.
    """

    def __init__(self, *args: Any, silent_seconds: float, **kwargs: Any) -> None:
        self._silent_seconds = silent_seconds
        super().__init__(*args, **kwargs)

    def check_server(self, total_timeout: float = 0.0, retry_interval: float = 2.0) -> None:
        try:
            super().check_server(total_timeout, retry_interval)
        except OSError:
            remedy = "start it, or set vllm.host and vllm.port to where it is"
            raise ServerError(f"no vLLM server answers at {self.base_url} within {total_timeout:g} seconds; {remedy}") from None

    def reset_prefix_cache(self) -> None:
        self._watched(super().reset_prefix_cache)

    def read_metrics(self) -> str:
        """The server's counters as Prometheus has them."""
        return self._watched(self.session.get, f"{self.base_url}/metrics").text

    def _get(self, url: str, **kwargs: Any) -> dict:
        return self._watched(super()._get, url, **kwargs)

    def _post(self, url: str, **kwargs: Any) -> dict:
        return self._watched(super()._post, url, **kwargs)

    def _watched(self, send: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        """What ``send`` returns. It works in a thread that is left behind where the server falls silent."""
        ends: SimpleQueue[tuple[Any, Exception | None]] = SimpleQueue()

        def ask() -> None:
            try:
                ends.put((send(*args, **kwargs), None))
            except Exception as error:
                ends.put((None, error))

        Thread(target=ask, daemon=True).start()
        heard = time.monotonic()
        while True:
            try:
                answer, error = ends.get(timeout=POLL_SECONDS)
            except Empty:
                heard = time.monotonic() if self._is_healthy() else heard
                if time.monotonic() - heard > self._silent_seconds:
                    raise self._gone(f"no answer to a health check for {self._silent_seconds:g} seconds") from None
                continue
            if error is None:
                return answer
            if type(error) is Exception:  # TRL's own, for a status other than 200; it says which, and what the server wrote
                raise ServerError(f"the vLLM server at {self.base_url} refused: {error}; mend it, then --resume goes on") from None
            if isinstance(error, ServerError) or not isinstance(error, OSError):  # the root of whatever requests raises
                raise error
            raise self._gone(str(getattr(error.args[0] if error.args else error, "reason", error))) from None

    def _is_healthy(self) -> bool:
        try:
            with urlopen(f"{self.base_url}/health", timeout=POLL_SECONDS) as response:
                return response.status == 200
        except OSError:
            return False

    def _gone(self, reason: str) -> ServerError:
        return ServerError(
            f"the vLLM server at {self.base_url} went away: {reason}; start it again, then give the same command with --resume: "
            "the run goes on from its last checkpoint, and the server gets its weights anew"
        )


class FileClient(ServerClient):
    """Pushes weights to a vLLM server on the same file system, which needs no NCCL: a saved file, read by ``ReloadingWorker``."""

    def init_communicator(self, device: Any = 0) -> None:
        """Nothing to connect."""

    def update_named_params(self, metadata: list[tuple[str, str, list[int]]], params: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Save the parameters and let every worker of the server read them."""
        with tempfile.TemporaryDirectory(prefix="envsched-weights-") as folder:
            tensors = {name: value.detach().cpu().contiguous() for name, value in params}
            save_file(tensors, f"{folder}/model.safetensors", metadata={"format": "pt"})
            self._post(f"{self.base_url}/collective_rpc", json={"method": "reload_policy", "kwargs": {"folder": folder}})
