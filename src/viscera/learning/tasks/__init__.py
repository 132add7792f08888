"""The tasks there are: every file here has one, called `TASK`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from viscera.errors import InputError
from viscera.learning.task import Task
from viscera.world.settings import closest_names


@cache
def catalogue() -> dict[str, Task]:
    """All of them by name, in the order of the alphabet."""
    modules = [importlib.import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__)]
    tasks: list[Task] = [module.TASK for module in modules]
    return {task.name: task for task in sorted(tasks, key=lambda task: task.name)}


def find_task(name: str) -> Task:
    tasks = catalogue()
    if name not in tasks:
        raise InputError(f"task {name!r} is not known.", closest_names(name, tasks))
    return tasks[name]
