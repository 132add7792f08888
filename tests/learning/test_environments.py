"""Environments as gymnasium defines them: spaces, seeds, endings, rewards by features, many worlds at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from viscera import learning
from viscera.errors import InputError
from viscera.learning.lane import Choice, Lane
from viscera.session.catalogue import find, list_recordings
from viscera.session.replay import replay_report

IDS = {"Coagulate", "Dissect", "Palpate", "PatternCut", "Reach", "Retract", "StopBleeding"}
SMALL: dict[str, Any] = {"detail": 0.1, "picture": (32, 24), "points": 64}


def make(name: str, **choice: Any) -> learning.SurgeryEnv:
    made = gymnasium.make(f"viscera/{name}-v0", **choice).unwrapped
    assert isinstance(made, learning.SurgeryEnv)
    return made


@pytest.fixture(scope="module")
def reach() -> Iterator[learning.SurgeryEnv]:
    env = make("Reach", **SMALL)
    yield env
    env.close()


@pytest.fixture(scope="module")
def palpate() -> Iterator[learning.SurgeryEnv]:
    env = make("Palpate", randomise=True, observe=("state", "goal", "force", "truth"), detail=0.1)
    yield env
    env.close()


def checked(env: learning.SurgeryEnv) -> None:
    """Gymnasium's checker has nothing to say, not even a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=True)


def play(env: learning.SurgeryEnv, seed: int, actions: int) -> tuple[list[Any], str]:
    """What an agent perceives, and the world that it leaves behind."""
    rng = np.random.default_rng(7)
    seen, _ = env.reset(seed=seed)
    rows: list[Any] = [seen]
    for _ in range(actions):
        action = rng.uniform(-1.0, 1.0, env.action_space.shape).astype(np.float32)
        seen, reward, terminated, truncated, _ = env.step(action)
        rows.append((seen, reward))
        if terminated or truncated:
            break
    return rows, env.world.state_hash()


def test_every_task_is_registered() -> None:
    assert set(learning.catalogue()) == IDS
    assert {f"viscera/{name}-v0" for name in IDS} <= set(gymnasium.registry)
    for task in learning.catalogue().values():
        assert task.features.keys() == task.weights.keys(), task.name


def test_gymnasiums_checker_passes(reach: learning.SurgeryEnv, palpate: learning.SurgeryEnv) -> None:
    checked(reach)
    checked(palpate)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(IDS))
def test_both_checkers_pass_for_every_id(name: str) -> None:
    """As agents make it, and as Stable-Baselines3 wants it where that is installed."""
    env = make(name)
    checked(env)
    try:
        from stable_baselines3.common.env_checker import (  # pyright: ignore[reportMissingImports]
            check_env as check_for_baselines,
        )
    except ImportError:
        pytest.skip("gymnasium's passes; Stable-Baselines3 is not installed")
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_for_baselines(env, warn=True)
    finally:
        env.close()


def test_a_seed_decides_all_of_an_episode(palpate: learning.SurgeryEnv) -> None:
    """The world, what is randomised and what is felt, to the last bit; and another seed gives another."""
    first, left = play(palpate, 3, 12)
    settings = palpate.lane.drawn
    other, other_left = play(palpate, 4, 12)
    again, left_again = play(palpate, 3, 12)
    np.testing.assert_equal(again, first)
    assert left_again == left
    assert palpate.lane.drawn == settings
    assert other_left != left
    assert not np.array_equal(other[0], first[0])


def test_what_is_randomised_is_in_force(palpate: learning.SurgeryEnv) -> None:
    palpate.reset(seed=5)
    drawn, world = palpate.lane.drawn, palpate.world
    assert set(drawn) == {"stiffness", "friction"}
    assert world.organs[0].tissue.young == pytest.approx(1000.0 * drawn["stiffness"])
    assert world.contact._pushes[0].friction == drawn["friction"]
    palpate.reset(seed=6)
    assert palpate.lane.drawn["stiffness"] != drawn["stiffness"]


def test_the_reward_is_the_weighted_sum_of_the_features(reach: learning.SurgeryEnv) -> None:
    reach.reset(seed=0)
    weights = reach.lane.task.weights
    for _ in range(5):
        _, reward, _, _, info = reach.step(np.array([1.0, -1.0, 0.0, 0.3], dtype=np.float32))
        assert reward == pytest.approx(sum(weights[name] * value for name, value in info["features"].items()))
        assert info["features"]["time"] == 1.0


def test_an_agent_that_goes_to_the_target_reaches_it_and_the_episode_ends(reach: learning.SurgeryEnv) -> None:
    """`closer` adds up to the way that was gone, to the centimetre that the last one counts in."""
    lane = reach.lane
    reach.reset(seed=2)
    space = lane.arm.space
    start = np.asarray(reach.world.hands[0].instrument.home)
    target = space.at(cast(Any, lane._episode).truth())
    total, over, info = 0.0, False, {}
    while not over:
        pan, tilt, _, depth = lane.arm.pose
        tip, lane.arm.tip[:] = lane.arm.tip.copy(), target
        wanted = lane.arm.pose
        lane.arm.tip[:] = tip
        way = np.array([wanted[0] - pan, wanted[1] - tilt, 0.0, wanted[3] - depth])
        most = 0.001 * lane.ticks * np.array([lane.arm.limits.pan, lane.arm.limits.pan, 1.0, lane.arm.limits.depth])
        _, _, terminated, truncated, info = reach.step(np.clip(way / most, -1.0, 1.0).astype(np.float32))
        total, over = total + info["features"]["closer"], terminated or truncated
        assert not truncated
    assert info["is_success"]
    tip = np.asarray(reach.world.tools[0].position)
    gone = np.linalg.norm(target - space.clamped(start)) - np.linalg.norm(target - tip)
    assert total == pytest.approx(100.0 * gone, abs=1e-6)
    with pytest.raises(InputError, match="reset first"):
        reach.step(np.zeros(4, dtype=np.float32))


def test_an_episode_is_truncated_when_it_has_had_its_actions() -> None:
    lane = Lane(learning.find_task("Reach"), Choice(most_actions=3, detail=0.1, ticks=4))
    lane.begin(np.random.default_rng(0))
    ended = [(done.terminated, done.truncated) for done in (lane.act(np.zeros(4)) for _ in range(3))]
    assert ended == [(False, False), (False, False), (False, True)]
    lane.close()


def test_the_force_that_is_told_is_what_the_probe_feels(palpate: learning.SurgeryEnv) -> None:
    """Mean, peak and last of an action, as the world had them tick by tick."""
    palpate.reset(seed=1)
    felt: list[Any] = []
    palpate.lane.watch = lambda world: felt.append([*world.tools[0].force, *world.tools[0].torque])
    seen: Any = None
    for _ in range(12):
        felt.clear()
        seen, *_ = palpate.step(np.array([0.1, 0.0, 0.0, 1.0, -1.0], dtype=np.float32))
    palpate.lane.watch = None
    rows = np.array(felt)
    assert np.abs(rows[:, 2]).max() > 0.05, "the probe does not touch"
    peak = rows[np.argmax(np.linalg.norm(rows[:, :3], axis=1))]
    span = np.tile(np.repeat([0.5, 0.005], 3), 3)
    told = seen[8 + 31 : 8 + 31 + 18] * span
    np.testing.assert_allclose(told, np.concatenate([rows.mean(axis=0), peak, rows[-1]]), rtol=1e-5, atol=1e-7)


def test_here_it_is_ends_palpation_and_counts_where_the_nodule_is(palpate: learning.SurgeryEnv) -> None:
    lane = palpate.lane
    for beside, right in ((0.0, True), (0.025, False)):
        palpate.reset(seed=8)
        middle = cast(Any, lane._episode)._middle
        x = middle[0] + (beside if middle[0] <= 0.0 else -beside)
        lane.arm.tip[:] = (x, middle[1], lane.arm.space.low[2])
        info: dict[str, Any] = {}
        for _ in range(20):
            *_, info = palpate.step(np.array([0.0, 0.0, 0.0, 0.0, -1.0], dtype=np.float32))
        assert info["features"]["found"] == info["features"]["wrong"] == 0.0
        _, _, terminated, _, info = palpate.step(np.array([0.0, 0.0, 0.0, 0.0, 1.0], dtype=np.float32))
        assert terminated
        assert info["is_success"] is right
        assert info["features"]["found"] == float(right)


def test_many_worlds_are_the_same_as_each_alone_and_begin_again_by_themselves(reach: learning.SurgeryEnv) -> None:
    worlds = gymnasium.make_vec("viscera/Reach-v0", num_envs=2, most_actions=4, **SMALL)
    assert worlds.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    seen, _ = worlds.reset(seed=11)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1.0, 1.0, (6, 2, 4)).astype(np.float32)
    rows = [worlds.step(action) for action in actions]
    alone, _ = reach.reset(seed=12)
    np.testing.assert_array_equal(seen[1], alone)
    for row, action in zip(rows[:4], actions[:4], strict=True):
        alone, reward, *_ = reach.step(action[1])
        np.testing.assert_array_equal(row[0][1], alone)
        assert row[1][1] == reward
    assert [bool(row[3][1]) for row in rows] == [False, False, False, True, False, False]
    # The step after an end is the beginning of another episode: no reward, no action.
    assert rows[4][1].tolist() == [0.0, 0.0]
    assert rows[4][4]["acted"].tolist() == [False, False]
    np.testing.assert_array_equal(rows[4][0][1], reach.reset()[0])
    worlds.close()


@pytest.mark.slow
def test_pictures_depth_parts_and_points_are_of_one_scene() -> None:
    """A cloud's points are seen by the camera at their depth, and lie on the tissue or the probe."""
    env = make("Reach", observe=("state", "points", "depth", "segmentation", "rgb"), **SMALL)
    checked(env)
    seen, _ = env.reset(seed=0)
    assert isinstance(seen, dict)
    assert {name: part.shape for name, part in seen.items()} == {
        "state": (8,), "points": (64, 3), "depth": (24, 32, 1), "segmentation": (24, 32, 1), "rgb": (24, 32, 3),
    }  # fmt: skip
    tissue = seen["segmentation"][..., 0] == 1
    assert 0.05 < tissue.mean() < 0.95
    camera = env.world.contents.camera
    points = env.lane.arm.space.at(seen["points"].astype(np.float64))
    low, high = (np.asarray(corner) for corner in env.world.contents.bounds)
    assert (points > low).all()
    assert (points < high).all()
    ahead = np.subtract(camera.target, camera.position) / np.linalg.norm(np.subtract(camera.target, camera.position))
    deep = (points - camera.position) @ ahead
    near, far = seen["depth"].min(), seen["depth"][seen["depth"] < 2.0].max()
    assert near - 1e-4 <= deep.min()
    assert deep.max() <= far + 1e-4
    assert seen["rgb"].std() > 5.0
    env.close()


def test_looking_changes_nothing(reach: learning.SurgeryEnv) -> None:
    eyes = make("Reach", observe=("rgb",), **SMALL)
    _, seeing = play(eyes, 5, 6)
    _, blind = play(reach, 5, 6)
    assert seeing == blind
    eyes.close()


def test_an_episode_is_an_ordinary_recording(palpate: learning.SurgeryEnv, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="friction"):
        learning.record_episode(palpate, lambda seen: rng.uniform(-1.0, 1.0, 5), tmp_path)
    env = make("Palpate", randomise={"stiffness": (2.0, 4.0)}, detail=0.1, most_actions=6)
    env.reset(seed=1)  # the world has run before, with another seed
    env.step(np.ones(5, dtype=np.float32))
    file, _ = learning.record_episode(env, lambda seen: rng.uniform(-1.0, 0.4, 5), tmp_path, seed=2)
    done = replay_report(file, "cpu")
    assert done.same
    assert done.recording.tick > 0
    done.world.close()
    # The page's list of recordings has it, and opens it by its name.
    (listed,) = list_recordings(tmp_path)
    assert (listed.name, listed.scenario, listed.complete) == (file.name, "palpation", True)
    assert listed.seconds == pytest.approx(0.001 * done.recording.tick)
    assert find(tmp_path, listed.name) == file
    env.close()


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"observe": ("smell",)}, "state, goal, force"),
        ({"control": "polar"}, "trocar, cartesian"),
        ({"weights": {"joy": 1.0}}, "closer, reached"),
        ({"randomise": {"stiffness": (1.0, 99.0)}}, "Allowed are"),
        ({"randomise": {"colour": (0.0, 1.0)}}, "There are"),
        ({"ticks": 0}, "from 1"),
    ],
)
def test_what_cannot_be_is_refused(choice: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Lane(learning.find_task("Reach"), Choice(**{"detail": 0.1, **choice}))


def test_the_documents_have_the_table_of_environments() -> None:
    from viscera.learning.__main__ import table

    page = (Path(__file__).parents[2] / "docs" / "learning.md").read_text()
    assert table() in page, "put what `python -m viscera.learning` prints into docs/learning.md"


def test_a_policy_is_saved_and_played_without_the_library_that_trained_it(tmp_path: Path) -> None:
    """Against the same layers by hand; and what does not fit is refused."""
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(8, 6)), rng.normal(size=8)), (rng.normal(size=(4, 8)), rng.normal(size=4))]
    file = learning.save_policy(tmp_path / "one", layers, task="Reach", control="cartesian", observe=("goal",))
    saved = learning.load_policy(file)
    env = saved.make(**SMALL)
    seen, _ = env.reset(seed=1)
    assert isinstance(seen, np.ndarray)
    first = layers[0][0] @ seen + layers[0][1]
    expected = np.clip(layers[1][0] @ np.tanh(first) + layers[1][1], -1.0, 1.0)
    np.testing.assert_allclose(saved(seen), expected, atol=1e-5)
    env.step(saved(seen))
    env.close()
    with pytest.raises(InputError, match="layer 1"):
        learning.save_policy(tmp_path / "two", [layers[0], layers[0]], task="Reach", control="cartesian", observe=())
    with pytest.raises(InputError, match="no saved policy"):
        learning.load_policy(tmp_path / "nothing.npz")
    other = learning.save_policy(tmp_path / "two", layers, task="Palpate", control="cartesian", observe=("goal",))
    with pytest.raises(InputError, match="takes 6 numbers"):
        learning.load_policy(other).make(**SMALL)
