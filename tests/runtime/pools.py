"""Small pools made from source, for the tests of this folder."""

from envsched.pool import Pool
from envsched.types import Check, Environment, Task


def tool(name: str, *required: str, **types: str) -> dict:
    """An OpenAI function schema; parameters are strings unless ``types`` says otherwise."""
    properties = {key: {"type": types.get(key, "string")} for key in (*required, *types)}
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(required)}},
    }


def one_task_pool(source: str, tools: list[dict], checks: list[str], state: dict | None = None, class_name: str = "Box") -> Pool:
    """One environment with one task, key ``task``."""
    environment = Environment(key="environment", tools=tuple(tools), class_name=class_name, source=source)
    task = Task(key="task", environment="environment", initial_state=state or {}, checks=tuple(Check("", source) for source in checks))
    return Pool([environment], [task])


COUNTER = """
import datetime, random, uuid

class Counter:
    def __init__(self, config):
        self.count = 0
        self.marks = []

    def add(self, amount):
        self.count += amount
        return {"count": self.count}

    def mark(self):
        self.marks.append([str(uuid.uuid4()), datetime.datetime.now().isoformat(), random.random()])
        return self.marks[-1]

    def fail(self, words):
        raise ValueError(words)

    def spin(self):
        while True:
            pass

    def linger(self):
        import select
        select.select([], [], [], 0.2)
        return "waited"

    def vanish(self):
        import os
        os._exit(3)

    def talk(self, length):
        return "x" * length

    def _secret(self):
        return "hidden"
"""
COUNTER_TOOLS = [
    tool("add", "amount", amount="integer"),
    tool("mark"),
    tool("fail", "words"),
    tool("spin"),
    tool("linger"),
    tool("vanish"),
    tool("talk", "length", length="integer"),
]
COUNTER_CHECKS = [
    "def check_func(final_state):\n    return final_state['count'] >= 3",
    "def check_func(final_state):\n    return final_state['count'] > initial_state['count']",
    "def check_func(final_state):\n    return final_state['count']",
    "def check_func(final_state):\n    return final_state['nothing'] == 1",
]


def counter_pool(checks: list[str] = COUNTER_CHECKS, tools: list[dict] = COUNTER_TOOLS) -> Pool:
    """An environment that counts; its four checks: two good ones, one without a boolean, one that raises."""
    return one_task_pool(COUNTER, tools, checks, {"count": 1}, "Counter")
