"""`python -m viscera.learning`: the table of environments, as docs/learning.md has it."""

from __future__ import annotations

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


if __name__ == "__main__":
    print(table())
