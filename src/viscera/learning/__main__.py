"""`python -m viscera.learning`: the table of environments, as docs/learning.md has it; and saved policies at work.

python -m viscera.learning record POLICY.npz --out FOLDER       an episode of it, to be watched
viscera serve --out FOLDER                                      in the page's list of recordings
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from viscera.errors import VisceraError
from viscera.learning.tasks import catalogue


def table() -> str:
    """In Markdown: what each id asks for, how it acts, and what its reward is made of."""
    lines = ["| id | what to do | scenario | action | length | reward |", "| --- | --- | --- | --- | --- | --- |"]
    for task in catalogue().values():
        size = "4 + activation" if task.activates else "4"
        reward = "; ".join(f"`{name}` {weight:+g} × {task.features[name]}" for name, weight in task.weights.items())
        lines.append(
            f"| `viscera/{task.name}-v0` | {task.summary} | `{task.scenario}` | {size} | {task.ticks} ms, "
            f"at most {task.most_actions} | {reward} |"
        )
    return "\n".join(lines)


def record(told: argparse.Namespace) -> None:
    from viscera import learning

    policy = learning.load_policy(told.policy)
    env = policy.make(detail=told.detail)
    file, done = learning.record_episode(env, policy, told.out, told.seed)
    env.close()
    print(f"{policy.task}: {'done' if done else 'not done'}, in {file}. Watch it: viscera serve --out {told.out}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(title="commands")
    one = commands.add_parser("record", help="plays an episode of a saved policy into a recording")
    one.add_argument("policy", type=Path)
    one.add_argument("--out", type=Path, required=True, help="folder of recordings")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--detail", type=float, help="that of the task, unless told")
    one.set_defaults(run=record)
    told = parser.parse_args()
    if not hasattr(told, "run"):
        print(table())
        return 0
    try:
        told.run(told)
    except VisceraError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
