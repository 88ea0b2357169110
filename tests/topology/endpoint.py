"""What must hold at any OpenAI-compatible endpoint, whatever its model knows."""

from envsched.pool import Pool
from envsched.topology import extract_static
from envsched.topology.llm import LLMConfig, extract_llm
from envsched.topology.schema import Part


def some_tasks(number: int) -> Pool:
    """Short tasks of the bundled pool."""
    pool = Pool.bundled()
    return Pool(pool.environments, pool.tasks[:: len(pool) // number][:number])


def check_endpoint(url, model, key, folder):
    """Ask for four tasks, twice; give the records."""
    pool, config = some_tasks(4), LLMConfig(model, folder / "cache", url)
    topologies, report = extract_llm(pool, config, key)
    assert list(topologies) == [task.key for task in pool.tasks]
    assert report.asked + len(report.failures) == len(pool)
    assert report.asked > 0, report.failures
    assert report.usage.output_tokens > 0
    static = extract_static(pool)
    for task, topology in topologies.items():
        if task in report.failures:
            assert topology.source == "fallback"
            assert Part.ANSWER in topology.unread
            assert topology.execution == static[task].execution
        else:
            assert topology.source == "llm"
            assert topology.reward.checks == len(pool.task(task).checks)
    again, second = extract_llm(pool, config, key)
    assert again == topologies
    assert (second.asked, second.cached) == (0, report.asked), "answers are known"
    return topologies
