import json
import os

import pytest

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")


@pytest.fixture(scope="session")
def bundled():
    from envsched.pool import Pool

    return Pool.bundled()


@pytest.fixture(scope="session")
def random_policy(tmp_path_factory, bundled):
    """Folder of a policy that knows nothing."""
    from tests.train.policies import save_random_policy

    texts = [task.prompt for task in bundled.tasks] + [json.dumps(list(e.tools)) for e in bundled.environments]
    return save_random_policy(tmp_path_factory.mktemp("policy"), texts)
