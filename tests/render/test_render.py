"""Pictures without a browser against closed forms: a ball, a plane, a bar, their depths, outlines and parts."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from viscera import render
from viscera.device import Device, open_device
from viscera.errors import InputError
from viscera.instruments.effects import Pushes
from viscera.instruments.instrument import Instrument
from viscera.render.looks import burn_strip, grain
from viscera.render.renderer import Renderer
from viscera.view import Camera, Frame, Markers, Particles, Scene, Surface, Texture, ToolState

WIDTH, HEIGHT = 160, 90
FIELD = 40.0
AWAY = 0.2
"""From the eye to the plane [m]."""
CAMERA = Camera((0.0, 0.0, AWAY), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), FIELD)
FOCAL = 0.5 * HEIGHT / math.tan(math.radians(0.5 * FIELD))
HALF = 0.03
"""Half the side of the square [m]."""
BALL = np.array([0.02, 0.01, 0.03])
RADIUS = 0.008
PROBE = Instrument("probe", (Pushes(0.004, offset=0.004),))
TOOL = np.array([-0.03, -0.01, 0.02])


def scene() -> Scene:
    corners = np.array([[-HALF, -HALF, 0], [HALF, -HALF, 0], [HALF, HALF, 0], [-HALF, HALF, 0]], dtype=np.float32)
    triangles = np.array([[0, 1, 2], [0, 2, 3]], dtype=np.int32)
    uv = ((corners[triangles][:, :, :2] + HALF) / (2 * HALF)).astype(np.float32)
    return Scene(
        "test", "Test", "", "", 0, ((-HALF, -HALF, 0.0), (HALF, HALF, 0.1)), CAMERA,
        surfaces=(Surface("square", "tissue", triangles, "square", 4, rest=corners, uv=uv),),
        instruments=(PROBE,),
        textures=(Texture("square.film", "square", "film", 32, 32), Texture("square.burn", "square", "burn", 32, 32)),
        particles=(Particles("drops", "blood", RADIUS, 4),),
        markers=(Markers("hidden", "target", 0.01, 1),),
    )  # fmt: skip


def frame(drops: int = 0, tool: bool = False, **more: Any) -> Frame:
    tools = [ToolState(0, position=tuple(TOOL.tolist()), active=tool)]
    return Frame(tick=0, time=0.0, tools=tools, parameters={}, counts={"drops": drops}, **more)


def draws(device: Device, half: bool = False) -> Renderer:
    eye = render.make(scene(), device=device, width=WIDTH, height=HEIGHT, cloth=False, half=half)
    eye.arrays["square"][:] = np.asarray(scene().surfaces[0].rest)
    eye.arrays["drops"][0, :3] = BALL
    return eye


@pytest.fixture(scope="module")
def eye() -> Renderer:
    return draws(open_device("cpu", 1))


def rays() -> NDArray[Any]:
    """Of the middles of the pixels, the first row at the top: x, y and 1 ahead; (HEIGHT, WIDTH, 3)."""
    x = (np.arange(WIDTH) + 0.5 - 0.5 * WIDTH) / FOCAL
    y = (0.5 * HEIGHT - np.arange(HEIGHT) - 0.5) / FOCAL
    return np.dstack([*np.meshgrid(x, y), np.ones((HEIGHT, WIDTH))])


def ball_depths(centre: NDArray[np.float64], radius: float) -> NDArray[Any]:
    """Of a ball whose centre is given in the eye's frame, infinite where it is missed: |t d − c|² = r²."""
    d = rays()
    square, along = (d * d).sum(axis=2), d @ centre
    under = along**2 - square * (centre @ centre - radius**2)
    return np.where(under >= 0.0, (along - np.sqrt(np.maximum(under, 0.0))) / square, np.inf)


def seen(point: NDArray[np.float64]) -> NDArray[np.float64]:
    """The camera of these tests looks down along z."""
    return np.array([point[0], point[1], AWAY - point[2]])


def test_a_plane_has_its_depth_its_border_and_its_part(eye: Renderer) -> None:
    picture = eye.render(frame())
    d = rays()
    inside = (np.abs(d[:, :, 0]) * AWAY < HALF) & (np.abs(d[:, :, 1]) * AWAY < HALF)
    assert (np.isfinite(picture.depth) == inside).all()
    assert picture.depth[inside] == pytest.approx(AWAY, rel=1e-6)  # a few units of float32
    assert (picture.part == np.where(inside, 1, 0)).all()
    assert eye.parts[0] == "square"
    assert (picture.colour[inside] > 0).any(axis=1).all(), "it is lit"


def test_a_ball_hides_the_plane_and_has_the_depth_of_a_ball(eye: Renderer) -> None:
    picture = eye.render(frame(drops=1))
    truth = ball_depths(seen(BALL), RADIUS)
    ball = picture.part == 1 + eye.parts.index("drops")
    # At a rim the ray grazes: what is within a thousandth of a radius of it may be told either way.
    clear = np.isfinite(ball_depths(seen(BALL), RADIUS * 1.001)) == np.isfinite(ball_depths(seen(BALL), RADIUS * 0.999))
    assert (ball == np.isfinite(truth))[clear].all()
    assert picture.depth[ball & clear] == pytest.approx(truth[ball & clear], abs=3e-6)
    area = math.pi * (FOCAL * RADIUS / seen(BALL)[2]) ** 2
    assert ball.sum() == pytest.approx(area, rel=0.05)


def test_an_instrument_is_where_its_tip_is_and_gone_when_it_leaves(eye: Renderer) -> None:
    inside, outside = eye.render(frame(tool=True)), eye.render(frame())
    number = 1 + eye.parts.index("probe")
    assert not (outside.part == number).any()
    truth = ball_depths(seen(TOOL + np.array([0.0, 0.0, 0.004])), 0.004)
    ball = np.isfinite(truth) & (inside.part == number)
    assert ball.sum() > 20
    assert (inside.depth[ball] <= truth[ball] + 1e-5).all(), "the shaft comes towards the eye, before the ball"
    assert (np.abs(inside.depth[ball] - truth[ball]) < 1e-5).any(), "beside the shaft the ball is seen"


def test_blood_is_red_char_black_and_heat_alone_is_not_seen(eye: Renderer) -> None:
    film, burn = eye.arrays["square.film"], eye.arrays["square.burn"]
    middle = (HEIGHT // 2 + 14, WIDTH // 2 + 14)  # aside of where the lamp is mirrored
    bare = eye.render(frame()).colour[middle].astype(int)
    burn[:, :, 0] = 200
    assert (eye.render(frame()).colour[middle] == bare).all()
    film[:] = 200, 255, 0, 0
    bloody = eye.render(frame()).colour[middle].astype(int)
    film[:] = 0
    burn[:] = 0, 255, 255, 0
    charred = eye.render(frame()).colour[middle].astype(int)
    burn[:] = 0
    assert bloody[1] < 0.5 * bare[1], "blood lets no green back"
    assert bloody[0] > 2 * bloody[1]
    assert charred.max() < 0.5 * bare.max()


def test_a_turn_of_camera_and_scene_together_changes_nothing(eye: Renderer) -> None:
    """Tolerance: a border pixel may fall on the other side of an edge."""
    angle = 0.7
    turn = np.array([[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1]])
    before = eye.render(frame(drops=1))
    rest = np.asarray(scene().surfaces[0].rest, dtype=np.float64)
    shift = np.array([0.3, -0.2, 0.1])
    eye.arrays["square"][:] = rest @ turn.T + shift
    eye.arrays["drops"][0, :3] = turn @ BALL + shift
    up = tuple((turn @ CAMERA.up).tolist())
    camera = Camera(
        tuple((turn @ CAMERA.position + shift).tolist()), tuple((turn @ CAMERA.target + shift).tolist()), up, FIELD
    )
    after = eye.render(frame(drops=1), camera)
    eye.arrays["square"][:], eye.arrays["drops"][0, :3] = rest, BALL
    assert (before.part != after.part).mean() < 0.005
    same = before.part == after.part
    seen_both = same & np.isfinite(before.depth)
    assert np.abs(before.depth[seen_both] - after.depth[seen_both]).max() < 1e-5


def test_what_is_behind_or_across_the_eye_is_no_harm(eye: Renderer) -> None:
    """A plane that goes through the eye's own plane: z = (AWAY − y)/… is seen below the horizon alone."""
    rest = np.asarray(scene().surfaces[0].rest, dtype=np.float64)
    eye.arrays["square"][:] = np.array([[-1, -0.02, -0.8], [1, -0.02, -0.8], [1, -0.02, 1.2], [-1, -0.02, 1.2]])
    picture = eye.render(frame())
    eye.arrays["square"][:] = rest
    y = rays()[:, :, 1]
    depth = np.where(y < 0.0, -0.02 / np.minimum(y, -1e-9), np.inf)
    there = (depth < 1.0) & (np.abs(rays()[:, :, 0]) * depth < 1.0)
    assert (np.isfinite(picture.depth) == there).mean() > 0.99
    both = np.isfinite(picture.depth) & there
    assert picture.depth[both] == pytest.approx(depth[both], rel=1e-4)


def test_the_hidden_is_seen_through_tissue_once_it_is_shown(eye: Renderer) -> None:
    bare = eye.render(frame()).colour
    eye.arrays["hidden"][0] = 0.0, 0.0, -0.01, 0.0, 0.0, 0.0, 1.0, 1.0
    shown = eye.render(frame()).colour
    eye.arrays["hidden"][0] = 0.0
    middle = (HEIGHT // 2, WIDTH // 2)
    assert shown[middle][1] > bare[middle][1] + 50
    assert (shown[0, 0] == bare[0, 0]).all()


def test_two_cores_and_two_times_give_the_same_bits(eye: Renderer) -> None:
    two = draws(open_device("cpu", 2))
    once, again, other = (one.render(frame(drops=1, tool=True)) for one in (eye, eye, two))
    for a, b in ((once, again), (once, other)):
        assert (a.colour == b.colour).all()
        assert (a.depth == b.depth).all()
        assert (a.part == b.part).all()
    two.device.close()


def test_half_of_the_light_is_nearly_the_same_picture(eye: Renderer) -> None:
    half = draws(eye.device, half=True)
    whole, some = eye.render(frame(drops=1, tool=True)), half.render(frame(drops=1, tool=True))
    assert (whole.depth == some.depth).all()
    assert (whole.part == some.part).all()
    error = np.abs(whole.colour.astype(int) - some.colour.astype(int)).max(axis=2)
    rows, columns = np.indices(error.shape)
    assert (error[(rows + columns) % 2 == 0] == 0).all(), "every second pixel is its own"
    assert 0 < error.mean() < 1.0
    assert (error > 24).mean() < 0.003, "highlights alone are softer"


@pytest.mark.cuda
def test_cuda_draws_the_same(eye: Renderer) -> None:
    here, there = eye.render(frame(drops=1, tool=True)), draws(open_device("cuda")).render(frame(drops=1, tool=True))
    assert (here.part != there.part).mean() < 0.002
    same = here.part == there.part
    assert np.abs(here.colour.astype(int) - there.colour.astype(int))[same].max() <= 3


def test_the_strip_of_burns_follows_the_table() -> None:
    from viscera.world.systems.burns import STAGES

    usual, coat = burn_strip(None, None, 256)
    told, _ = burn_strip(STAGES, STAGES.rows, 256)
    assert np.abs(usual - told).max() < 0.003  # a colour of the table has eight bits
    assert coat[0] == pytest.approx([0.35, 1.0], abs=0.01)
    red = [(0.0, float(255 << 16), 1.0, 0.5, 0.5)]
    assert burn_strip(STAGES, red, 4)[0] == pytest.approx(np.tile([1.0, 0.0, 0.0, 1.0], (4, 1)))


def test_grain_stays_in_its_range() -> None:
    found = grain(np.random.default_rng(0).uniform(-0.1, 0.1, (2_000, 3)))
    assert np.abs(found[:, 3]).max() <= 1.0
    assert found[:, 3].std() > 0.1


def test_a_snapshot_of_another_scene_and_a_size_that_is_none_are_refused(eye: Renderer) -> None:
    other: Any = SimpleNamespace(arrays={"liver": np.zeros((1, 3))})
    with pytest.raises(InputError, match="no array 'liver'"):
        eye.set(other)
    with pytest.raises(InputError, match="width = 0"):
        render.make(scene(), device=eye.device, width=0, height=90)
