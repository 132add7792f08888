"""The command line as a person or a script meets it: what is printed where, and which exit code comes back."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import warp as wp

from viscera import cli
from viscera.bench import registry
from viscera.bench.registry import Benchmark, Row
from viscera.device import Device
from viscera.geometry import atlas, icosphere
from viscera.session.archive import _seal
from viscera.session.recorder import Recorder, make_header

HEADLESS_KEYS = {
    "scenario", "device", "seed", "detail", "steps", "seconds", "real_time_factor", "stages", "peak_force",
    "state_hash",
}  # fmt: skip
ROW_KEYS = {"name", "case", "size", "device", "ms", "steps_per_s", "document", "goal", "floor_ratio"}


@dataclass
class Answer:
    code: int
    out: str
    err: str


Command = Callable[..., Answer]


@pytest.fixture
def viscera(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Calls the command in this process and says what came of it."""
    monkeypatch.delenv("VISCERA_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["viscera", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return Answer(int(ended.value.code or 0), printed.out, printed.err)

    return call


def headless(viscera: Command, *more: str, seconds: float = 0.064) -> dict:
    answer = viscera("run", "palpation", "--headless", "--device", "cpu", "--json", "--seconds", str(seconds), *more)
    assert answer.code == 0, answer.err
    return json.loads(answer.out)


def test_help_imports_neither_warp_nor_numpy() -> None:
    """What makes `--help` instant; a time would measure how busy this machine is."""
    code = """
import sys
from viscera.cli import main
sys.argv = ["viscera", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code
print([name for name in ("warp", "numpy", "starlette", "h5py", "matplotlib") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "doctor" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_shows_units_in_brackets(viscera: Command) -> None:
    shown = viscera("video", "--help").out
    assert "Of the pictures [pixel]." in shown
    assert "Where it begins [s]." in shown


def test_module_is_the_command_too() -> None:
    done = subprocess.run([sys.executable, "-m", "viscera", "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("viscera 0.")


def test_list_names_the_scenarios(viscera: Command) -> None:
    assert "palpation" in viscera("list").out
    entries = json.loads(viscera("list", "--json").out)
    assert {"name", "title", "summary"} <= set(entries[0])
    assert "palpation" in {entry["name"] for entry in entries}


def test_headless_json_is_exactly_one_line() -> None:
    """In a process of its own: native code must not print beside the result either."""
    command = [sys.executable, "-m", "viscera", "run", "palpation", "--headless", "--seconds", "0.1", "--json"]
    done = subprocess.run([*command, "--device", "cpu"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    result = json.loads(line)
    assert set(result) >= HEADLESS_KEYS
    assert result["steps"] == 100
    assert result["seconds"] == pytest.approx(0.1)
    assert result["real_time_factor"] > 0
    assert result["stages"]
    assert all(ms >= 0 for ms in result["stages"].values())


def test_seed_and_parameters_decide_the_hash(viscera: Command) -> None:
    first = headless(viscera, "--seed", "1")
    assert headless(viscera, "--seed", "1")["state_hash"] == first["state_hash"]
    assert headless(viscera, "--seed", "2")["state_hash"] != first["state_hash"]
    assert headless(viscera, "--seed", "1", "--cores", "1")["state_hash"] == first["state_hash"]


def test_the_scripted_hand_is_felt(viscera: Command) -> None:
    assert headless(viscera, seconds=1.0)["peak_force"] > 0


def test_headless_for_people_is_a_table(viscera: Command) -> None:
    answer = viscera("run", "palpation", "--headless", "--device", "cpu", "--seconds", "0.02")
    assert answer.code == 0, answer.err
    assert "real time factor" in answer.out
    assert "ms per frame" in answer.out


RUN = ("run", "palpation", "--headless", "--device", "cpu", "--seconds", "0.02")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("run", "palpatoin", "--headless"), 2, ["palpatoin", "palpation"]),
        (("run", "zzz", "--headless"), 2, ["zzz", "palpation"]),
        ((*RUN, "--set", "stifness=3"), 2, ["stifness"]),
        ((*RUN, "--set", "stiffness=1e9"), 2, ["stiffness", "1e+09"]),
        ((*RUN, "--set", "stiffness=nan"), 2, ["stiffness", "nan"]),
        ((*RUN, "--set", "stiffness=soft"), 2, ["stiffness", "soft"]),
        ((*RUN, "--set", "stiffness"), 2, ["KEY=VALUE"]),
        (("run", "palpation", "--headless", "--seconds", "-1"), 2, ["seconds", "-1"]),
        (("run", "palpation", "--headless", "--seconds", "nan"), 2, ["seconds", "nan"]),
        (("run", "palpation", "--headless", "--seconds", "1e12"), 2, ["seconds"]),
        (("run", "palpation", "--json"), 2, ["--headless"]),
        ((*RUN, "--detail", "0"), 2, ["detail", "0.1"]),
        ((*RUN, "--detail", "fine"), 2, ["detail", "fine"]),
        (("serve", "--detail", "1e9"), 2, ["detail", "1000"]),
        (("run", "palpation", "--headless", "--device", "abacus"), 3, ["abacus", "cpu"]),
        (("run", "palpation", "--headless", "--device", "cpu", "--cores", "0"), 3, ["cores", "0"]),
        ((*RUN, "--mesh", "no/such/organ.stl"), 2, ["organ.stl"]),
        (("replay", "no/such/file.h5"), 5, ["file.h5"]),
        (("bench", "no-such-benchmark"), 2, ["no-such-benchmark"]),
        (("bench", "--device", "abacus"), 3, ["abacus"]),
        (("dance",), 2, ["dance"]),
        (("serve", "palpatoin"), 2, ["palpatoin", "palpation"]),
        (("serve", "--device", "abacus"), 3, ["abacus"]),
        (("serve", "--port", "99999"), 2, ["--port"]),
        (("serve", "--port", "0", "--host", "no.such.host.invalid"), 2, ["no.such.host.invalid"]),
        (("run", "palpation", "--set", "stifness=3"), 2, ["stifness", "stiffness"]),
        (("run", "palpation", "--mesh", "no/such/organ.stl"), 2, ["organ.stl"]),
        (("run", "palpation", "--headless", "--seed", "many"), 2, ["--seed"]),
        (("serve", "--seed", "-1"), 2, ["seed", "-1"]),
        (("serve", "--seed", "1" + 20 * "0"), 2, ["seed"]),
        (("run", "palpation", "--device", "cpu", "--cores", "999"), 3, ["cores", "999"]),
        (("serve", "--device", "cpu", "--cores", "999"), 3, ["cores", "999"]),
        (("run", "river", "--headless", "--device", "cpu", "--mesh", "no/such/organ.stl"), 2, ["river", "--mesh"]),
        (("serve", "--haptics-file", "none.toml"), 2, ["--haptics NAME"]),
        (("run", "palpation", "--headless", "--haptics-file", "none.toml"), 2, ["--headless"]),
        (("mesh", "no/such/organ.stl"), 2, ["organ.stl"]),
        (("mesh", "organ.stl", "--simplify", "1000"), 2, ["--out"]),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_words_and_a_code(
    viscera: Command, arguments: tuple[str, ...], code: int, words: list[str]
) -> None:
    answer = viscera(*arguments)
    assert answer.code == code, answer.err
    assert answer.out == ""
    assert "Traceback" not in answer.err
    for word in words:
        assert word in answer.err


def test_a_mapping_file_with_a_table_of_no_device_is_refused(viscera: Command, tmp_path: Path) -> None:
    (tmp_path / "devices.toml").write_text("[tuoch]\ntool = 1\n")
    answer = viscera("haptics", "list", "--haptics-file", str(tmp_path / "devices.toml"))
    assert answer.code == 2
    assert "tuoch" in answer.err
    assert "touch" in answer.err


def test_a_mapping_file_without_an_end_is_refused(viscera: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "devices.toml")
    for file in (str(tmp_path / "devices.toml"), "/dev/zero"):
        answer = viscera("haptics", "list", "--haptics-file", file)
        assert answer.code == 2
        assert "is no file" in answer.err


@pytest.mark.slow
def test_a_kernel_cache_that_cannot_be_written_is_told(viscera: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*anything: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    environment = {**os.environ, "WARP_CACHE_PATH": "/dev/null/kernels"}
    command = [sys.executable, "-m", "viscera", *RUN]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert (done.returncode, "WARP_CACHE_PATH" in done.stderr) == (3, True), done.stderr
    monkeypatch.setattr(wp, "load_module", refuse)  # root may write everywhere
    answer = viscera(*RUN)
    assert (answer.code, "WARP_CACHE_PATH" in answer.err) == (3, True)


def test_a_mesh_is_looked_at_and_made_smaller(viscera: Command, tmp_path: Path) -> None:
    from viscera.geometry.mesh import load_mesh, save_stl

    save_stl(tmp_path / "organ.stl", icosphere(0.04, 5))
    answer = viscera("mesh", str(tmp_path / "organ.stl"), "--simplify", "3000", "--out", str(tmp_path / "small.stl"))
    assert answer.code == 0
    assert "closed" in answer.out
    assert "simplified from 20480" in answer.out
    small = load_mesh(tmp_path / "small.stl")
    assert len(small.triangles) <= 3000
    assert small.extent == pytest.approx(0.08, rel=0.02)


def test_a_port_in_use_is_named(viscera: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        answer = viscera("serve", "--port", port)
    assert answer.code == 6
    assert port in answer.err
    assert "--port" in answer.err


def test_an_unknown_key_is_answered_with_the_nearest(viscera: Command) -> None:
    assert "stiffness" in viscera(*RUN, "--set", "stifness=3").err


def test_debug_shows_the_traceback(viscera: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISCERA_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["viscera", "replay", "no/such/file.h5"])
    with pytest.raises(Exception, match=r"file\.h5"):
        cli.main()


def test_our_own_mistake_says_so(viscera: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a line of the package would: one of a user's own file is the user's."""
    ours: dict[str, Any] = {}
    exec(compile('def choose(names):\n    raise ZeroDivisionError("by [zero]")', registry.__file__, "exec"), ours)
    monkeypatch.setattr(registry, "choose", ours["choose"])
    answer = viscera("bench")
    assert answer.code == 70
    assert "ZeroDivisionError: by [zero]" in answer.err
    assert "VISCERA_DEBUG" in answer.err


def test_a_recorded_run_replays_to_the_same_hash(viscera: Command, tmp_path: Path) -> None:
    result = headless(viscera, "--out", str(tmp_path), seconds=0.3)
    assert json.loads((tmp_path / "result.json").read_text()) == result
    (recording,) = tmp_path.glob("*.h5")
    answer = viscera("replay", str(recording), "--json")
    assert answer.code == 0, answer.err
    replayed = json.loads(answer.out)
    assert replayed["same"] is True
    assert replayed["state_hash"] == result["state_hash"]
    assert replayed["steps"] == result["steps"]


def test_a_changed_recording_is_noticed(viscera: Command, tmp_path: Path) -> None:
    import h5py

    headless(viscera, "--out", str(tmp_path), seconds=0.05)
    (recording,) = tmp_path.glob("*.h5")
    with h5py.File(recording, "a") as file:
        file.attrs["seed"] = 99
    answer = viscera("replay", str(recording), "--json")
    assert (answer.code, answer.out) == (5, "")
    assert "digest" in answer.err
    with open(recording, "r+b") as sealed:  # as somebody would who wants to deceive us
        seal = _seal(sealed)
        sealed.seek(0)
        sealed.write(seal)
    answer = viscera("replay", str(recording), "--json")
    assert answer.code == 5
    assert json.loads(answer.out)["same"] is False


def test_a_flipped_bit_in_a_log_is_told_with_what_is_lost(viscera: Command, tmp_path: Path) -> None:
    recorder = Recorder.create(tmp_path, make_header("palpation", 0, "cpu"))
    recorder.flush(16)
    recorder.finish(32, "0" * 64)
    data = bytearray(recorder.path.read_bytes())
    data[-3] ^= 8
    recorder.path.write_bytes(data)
    answer = viscera("replay", str(recorder.path), "--json")
    assert answer.code == 5
    assert json.loads(answer.out)["same"] is None
    assert "are lost" in json.loads(answer.out)["note"]
    assert "damaged" in answer.err


def test_a_folder_that_cannot_be_written_is_refused(viscera: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    answer = viscera(*RUN, "--out", str(tmp_path / "file" / "below"))
    assert answer.code == 5
    assert str(tmp_path / "file") in answer.err


def test_doctor_tells_the_facts(viscera: Command) -> None:
    answer = viscera("doctor", "--json")
    assert answer.code == 0, answer.err
    facts = json.loads(answer.out)
    assert facts["can_run"] is True
    assert {"viscera", "python", "numpy", "warp"} <= set(facts["versions"])
    (chosen,) = [device for device in facts["devices"] if device["chosen"]]
    assert chosen["works"]
    assert chosen["reason"]
    assert facts["kernel_cache"]["writable"] is True
    assert facts["cores"] >= 1
    assert all(problem["what"] and problem["do"] for problem in facts["problems"])
    assert "kernel cache" in viscera("doctor").out


def test_doctor_fails_where_nothing_can_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    command = [sys.executable, "-m", "viscera", "doctor", "--json"]
    environment = {"WARP_CACHE_PATH": str(tmp_path / "file" / "cache"), "PATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 3, done.stderr
    facts = json.loads(done.stdout)
    assert facts["can_run"] is False
    assert facts["browser"] is None
    fatal = [problem for problem in facts["problems"] if problem["fatal"]]
    assert "WARP_CACHE_PATH" in fatal[0]["do"]


def test_doctor_names_an_old_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    from viscera import doctor
    from viscera.device import CudaState

    old = CudaState(False, "the NVIDIA driver supports CUDA 12.4, but 13.0 is needed", (12, 4))
    monkeypatch.setattr(doctor, "cuda_state", lambda: old)
    monkeypatch.setattr(doctor, "nvidia_driver", lambda: "550.54.15")
    facts = doctor.examine()
    assert facts.can_run
    assert any("550.54.15" in problem.what and "R580" in problem.do for problem in facts.problems)


def test_bench_prints_one_array_and_saves(viscera: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def toy(device: Device, quick: bool) -> Iterator[Row]:
        yield registry.timed("toy", "quick" if quick else "full", 7, device, 0.5, goal=100.0)

    registry.discover()
    made = Benchmark("toy", "A toy", toy, headline=lambda device: next(toy(device, quick=True)))
    monkeypatch.setattr(registry, "_registered", {"toy": made})
    answer = viscera("bench", "toy", "--quick", "--json", "--device", "cpu", "--out", str(tmp_path))
    assert answer.code == 0, answer.err
    (row,) = json.loads(answer.out)
    assert set(row) >= ROW_KEYS
    assert row["headline"] is True
    assert (row["case"], row["size"], row["steps_per_s"], row["goal"]) == ("quick", 7, 2000.0, 100.0)
    assert (tmp_path / "bench.json").is_file()
    assert (tmp_path / "bench.png").is_file()


@pytest.mark.slow
def test_serving_ends_well_with_ctrl_c(tmp_path: Path) -> None:
    """From the terminal: an address, an answer behind it, and after Ctrl-C a recording that replays."""
    command = [
        sys.executable,
        "-m",
        "viscera",
        "run",
        "palpation",
        "--no-open",
        "--port",
        "0",
        "--device",
        "cpu",
        "--detail",
        "1",
    ]
    command += ["--detail", "0.5"]
    with subprocess.Popen([*command, "--out", str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        assert found
        health: dict = {"tick": 0}
        for _ in range(600):
            with urllib.request.urlopen(f"{found.group()}api/health", timeout=10) as answer:
                health = json.load(answer)
            if health["tick"] > 50:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert health["state"] == "running"
    (recording,) = tmp_path.glob("*.h5")
    from viscera.session.replay import replay_report

    done = replay_report(recording)
    done.world.close()
    assert done.same is True
    assert done.recording.header.detail == done.world.detail == 0.5


@pytest.mark.slow
def test_a_mesh_with_overlapping_texture_coordinates_is_told(
    viscera: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atlas, "cache_folder", lambda: tmp_path)
    ball = icosphere(0.04, 2)
    lines = [f"v {x} {y} {z}" for x, y, z in ball.vertices.tolist()]
    # Seen from above, a little aslant: both halves of the ball lie on each other.
    lines += [f"vt {0.5 + 9.0 * x + z} {0.5 + 9.0 * y + z}" for x, y, z in ball.vertices.tolist()]
    lines += [f"f {a}/{a} {b}/{b} {c}/{c}" for a, b, c in (ball.triangles + 1).tolist()]
    path = tmp_path / "ball.obj"
    path.write_text("\n".join(lines))
    answer = viscera("run", "cautery", "--headless", "--device", "cpu", "--seconds", "0.016", "--mesh", str(path))
    assert answer.code == 0, answer.err
    assert "texture coordinates overlap" in answer.err
    assert "a second set was made" in answer.err
