"""One server for all tests of a session: its start takes longer than what it is asked."""

import pytest

from tests.vllm.serving import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.kill()
