"""Worlds for agents that learn: gymnasium environments, one id per task (docs/learning.md).

    import gymnasium
    import viscera.learning                      # registers the ids

    env = gymnasium.make("viscera/Reach-v0")
    worlds = gymnasium.make_vec("viscera/Reach-v0", num_envs=8)

Needs `pip install viscera[rl]`.
"""

from __future__ import annotations

from viscera.errors import InputError

try:
    import gymnasium
except ImportError as error:
    raise InputError("gymnasium is not installed.", "Install it with: pip install 'viscera[rl]'") from error

from viscera.learning.env import SurgeryEnv
from viscera.learning.evaluating import Scores, evaluate, random_policy, record_episode
from viscera.learning.lane import Choice
from viscera.learning.policies import SavedPolicy, load_policy, save_policy
from viscera.learning.task import Acted, Episode, Felt, Task, Verdict
from viscera.learning.tasks import catalogue, find_task
from viscera.learning.vector import Lanes, SingleWorlds, SurgeryVectorEnv, make_worlds

__all__ = [
    "Acted",
    "Choice",
    "Episode",
    "Felt",
    "Lanes",
    "SavedPolicy",
    "Scores",
    "SingleWorlds",
    "SurgeryEnv",
    "SurgeryVectorEnv",
    "Task",
    "Verdict",
    "catalogue",
    "evaluate",
    "find_task",
    "load_policy",
    "random_policy",
    "record_episode",
    "register",
    "save_policy",
]

NAMESPACE = "viscera"


def register(task: Task) -> str:
    """Makes a task known to gymnasium; gives its id. A task of your own needs this one call."""
    name = f"{NAMESPACE}/{task.name}-v0"
    gymnasium.register(
        id=name, entry_point=SurgeryEnv, vector_entry_point=make_worlds, kwargs={"task": task},
        disable_env_checker=False,
    )  # fmt: skip
    return name


for _task in catalogue().values():
    register(_task)
