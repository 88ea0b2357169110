import pytest


@pytest.fixture(scope="session")
def random_policy(tmp_path_factory):
    """Folder of a policy that knows nothing."""
    from tests.train.policies import save_random_policy

    return save_random_policy(tmp_path_factory.mktemp("policy"), ["add one and two", "post a letter", "read it again"])
