"""The executable pool of docs/pools.md does what the page says."""

from pathlib import Path

from envsched.pool import Pool
from envsched.pool.executable import refuse_without_rollouts
from envsched.runtime import EnvironmentRuntime

PAGE = Path(__file__).parents[2] / "docs/pools.md"


def test_the_counter_of_the_page_stands_and_is_rewarded(tmp_path):
    (block,) = (part.partition("```")[0] for part in PAGE.read_text().split("```json\n")[1:] if "class_name" in part.partition("```")[0])
    (tmp_path / "pool.jsonl").write_text(block)
    pool = Pool.from_jsonl(tmp_path / "pool.jsonl")
    refuse_without_rollouts("the page's", pool)
    with EnvironmentRuntime(pool, num_workers=1) as runtime, runtime.start("counter-1", seed=0) as episode:
        assert episode.score().reward == 0
        assert episode.call("add", {"number": 3}).text == "3"
        assert episode.score().reward == 1
