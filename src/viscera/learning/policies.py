"""Policies as files that need no library to be played: a small network's weights, and what it was trained with.

    learning.save_policy(file, layers, task="Reach", control="cartesian", observe=("goal",))
    saved = learning.load_policy(file)
    env = saved.make()
    saved(seen)                                  # an action

`layers` are weights, shape (out, in), and biases, shape (out,), as torch's `Linear` has them; between them tanh, after
the last a clip to −1 … 1. A policy of Stable-Baselines3 stays that library's own file.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.errors import InputError
from viscera.learning.arm import CONTROLS, Control
from viscera.learning.env import SurgeryEnv
from viscera.learning.tasks import find_task

MOST_LAYERS = 32

Layer = tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class SavedPolicy:
    layers: tuple[Layer, ...]
    task: str
    control: Control
    observe: tuple[str, ...]

    def __call__(self, seen: Any) -> NDArray[np.float32]:
        row = np.asarray(seen, dtype=np.float32)
        for number, (weight, bias) in enumerate(self.layers):
            row = weight @ (np.tanh(row) if number else row) + bias
        return np.clip(row, -1.0, 1.0)

    def make(self, **choice: Any) -> SurgeryEnv:
        """The environment that it was trained in; `choice` has the other fields of `Choice`."""
        env = SurgeryEnv(find_task(self.task), control=self.control, observe=self.observe, **choice)
        sizes = (self.layers[0][0].shape[1], self.layers[-1][0].shape[0])
        wanted = (env.observation_space.shape or (0,))[0], (env.action_space.shape or (0,))[0]
        if sizes != wanted:
            env.close()
            raise InputError(
                f"the policy takes {sizes[0]} numbers and gives {sizes[1]}, {self.task} {wanted[0]} and {wanted[1]}.",
                "Save it with the task, control and observations that it was trained with.",
            )
        return env


def save_policy(
    path: Path,
    layers: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    task: str,
    control: Control,
    observe: Sequence[str],
) -> Path:
    """Writes a policy; gives its file, whose name ends in .npz."""
    found = _checked([(np.asarray(w, dtype=np.float32), np.asarray(b, dtype=np.float32)) for w, b in layers])
    find_task(task)
    file = path.with_suffix(".npz")
    kept: dict[str, Any] = {"task": task, "control": control, "observe": np.array(tuple(observe))}
    for number, (weight, bias) in enumerate(found):
        kept |= {f"w{number}": weight, f"b{number}": bias}
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, **kept)
    return file


def load_policy(path: Path) -> SavedPolicy:
    """From a file that `save_policy` wrote."""
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        count = sum(name.startswith("w") for name in arrays)
        layers = _checked([(arrays[f"w{number}"], arrays[f"b{number}"]) for number in range(count)])
        control, observe = str(arrays["control"]), tuple(arrays["observe"].tolist())
        task = str(arrays["task"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is no saved policy ({error}).", "Give a file of `learning.save_policy`.") from error
    for known in CONTROLS:
        if control == known:
            return SavedPolicy(tuple(layers), task, known, observe)
    raise InputError(f"control = {control!r} is not known.", f"There are: {', '.join(CONTROLS)}.")


def _checked(layers: list[Layer]) -> list[Layer]:
    if not 1 <= len(layers) <= MOST_LAYERS:
        raise InputError(f"a policy of {len(layers)} layers is not possible.", f"Give 1 to {MOST_LAYERS}.")
    width: int | None = None
    for number, (weight, bias) in enumerate(layers):
        fits = weight.ndim == 2 and bias.shape == weight.shape[:1] and width in (None, weight.shape[1])
        if not fits or not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise InputError(
                f"layer {number} has weights of shape {weight.shape} and biases of {bias.shape}, or is not finite.",
                "Give (out, in) and (out,), in as many as the layer before gives.",
            )
        width = weight.shape[0]
    return layers
