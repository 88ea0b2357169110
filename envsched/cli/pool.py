"""``envsched pool``: what a pool holds."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("pool", help=_HELP)(pool)


_HELP = """Show what a pool holds: environments, tasks, tools, checks.

Examples:

  envsched pool bundled

  envsched pool data/envscaler --environments

  envsched pool data/envscaler --task TASK
"""


def pool(
    name: Annotated[str, typer.Argument(help="A folder in EnvScaler's format, bundled, or synthetic:MxT.", metavar="POOL")],
    environments: Annotated[bool, typer.Option("--environments", help="One line per environment.")] = False,
    task: Annotated[str | None, typer.Option("--task", help="Show one task.", metavar="KEY")] = None,
) -> None:
    from envsched.pool.opening import open_pool

    opened = open_pool(name)
    if task is not None:
        _show_task(opened, task)
        return
    sizes = [int(size) for size in opened.offsets[1:] - opened.offsets[:-1]]
    filled = [size for size in sizes if size]
    print(f"tasks         {len(opened)}")
    print(f"environments  {len(sizes)}, {len(filled)} with a task ({min(filled)} to {max(filled)} tasks each)")
    print(f"tools         {sum(len(environment.tools) for environment in opened.environments)}")
    print(f"checks        {sum(len(one.checks) for one in opened.tasks)}")
    print(f"fingerprint   {opened.fingerprint}")
    if environments:
        width = max(len(environment.key) for environment in opened.environments)
        for environment, size in zip(opened.environments, sizes, strict=True):
            print(f"{environment.key:{width}}  {size:4} tasks  {len(environment.tools):3} tools  {environment.summary}")


def _show_task(opened, key: str) -> None:
    task = opened.task(key)
    print(f"task         {task.key}")
    print(f"environment  {task.environment}")
    print(f"prompt       {task.prompt}")
    for check in task.checks:
        print(f"check        {check.text}")
