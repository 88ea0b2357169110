"""What the policy is told at the start of an episode; the tools' schemas are added by the chat template."""

from typing import Literal

from envsched.types import Environment, Task


def messages_of(
    environment: Environment, task: Task, system_prompt: Literal["environment", "none"] = "environment"
) -> list[dict[str, str]]:
    """Chat messages of one task: the environment's description and rules (if wanted), then the task."""
    user = {"role": "user", "content": task.prompt}
    if system_prompt == "none":
        return [user]
    rules = "\n".join(f"- {rule}" for rule in environment.rules)
    parts = (environment.description or environment.summary, f"Rules:\n{rules}" if rules else "")
    content = "\n\n".join(part for part in parts if part)
    return [{"role": "system", "content": content}, user] if content else [user]
