"""Sources of gaze: a model within the ranges of the literature, traces, trackers; and gaze that is lost."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from viscera.errors import InputError
from viscera.gaze import Attention, Sample, ScanPath, Trace, read_trace, write_trace
from viscera.gaze.makers import PupilLabs, Tobii
from viscera.gaze.scanpath import HEIGHT_DEGREES


def test_the_model_fixates_and_jumps_as_people_do() -> None:
    """Henderson 2003: scenes are fixated for 330 ms on average; Bahill et al. 1975: the main sequence."""
    path = ScanPath(3)
    times = np.arange(0.0, 120.0, 0.002)
    places = np.array([(s.x * 16.0 / 9.0, s.y) for s in (path.sample(float(t)) for t in times)]) * HEIGHT_DEGREES
    fixations = np.asarray(path.fixations)
    assert 0.28 < fixations.mean() < 0.38
    assert fixations.min() > 0.099
    assert fixations.max() < 1.001
    speed = np.linalg.norm(np.diff(places, axis=0), axis=1) / 0.002
    fast = speed > 30.0  # the usual threshold between fixation and saccade [°/s]
    assert 0.05 < fast.mean() < 0.25, "a tenth of the time is saccades"
    assert np.median(speed[~fast]) < 10.0
    starts = np.concatenate(
        [[0.0], np.cumsum([f + d for f, (_, d) in zip(path.fixations, path.saccades, strict=True)])]
    )
    for k, (angle, lasts) in enumerate(path.saccades[:200]):
        assert lasts == pytest.approx(0.021 + 0.0022 * angle)
        if angle < 5.0:
            continue
        begins = starts[k] + path.fixations[k]
        peak = speed[(times[1:] > begins) & (times[1:] < begins + lasts)].max()
        # 5° go at some 200 to 350 °/s, 20° at 450 to 650.
        assert 120.0 + 12.0 * angle < peak < 300.0 + 22.0 * angle


def test_the_same_seed_looks_the_same_way_however_often_it_is_asked() -> None:
    seldom, often, other = ScanPath(5), ScanPath(5), ScanPath(6)
    for _ in (often.sample(t) for t in np.arange(0.0, 3.0, 0.001)):
        pass
    late = [seldom.sample(t) for t in np.arange(0.0, 3.05, 0.05)][-1]
    assert late == often.sample(3.0)
    assert late != other.sample(3.0)


def test_a_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    path, file = ScanPath(1), tmp_path / "gaze.csv"
    times = [0.1 * k for k in range(50)]
    samples = [path.sample(t) for t in times]
    samples[20] = Sample(0.5, 0.5, valid=False)
    write_trace(file, times, samples)
    again = read_trace(file)
    assert [again.sample(t) for t in times] == samples
    assert again.sample(-1.0) is None
    assert again.sample(0.17) == samples[1]
    lost = again.sample(99.0)
    assert lost is not None
    assert not lost.valid


@pytest.mark.parametrize("text", ["time,x\n1,2\n", "time,x,y\n0,a,1\n", "time,x,y\n1,0,0\n0,0,0\n", "time,x,y\n"])
def test_a_trace_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(InputError):
        read_trace(file)


def test_a_lost_gaze_stays_for_a_while_and_then_is_gone() -> None:
    attention = Attention(hold=0.5)
    assert attention.place(0.0) is None
    attention.update(1.0, Sample(0.2, 0.3))
    attention.update(1.2, Sample(0.9, 0.9, valid=False))
    attention.update(1.3, None)
    attention.update(1.4, Sample(math.nan, 0.5))
    assert attention.place(1.45) == (0.2, 0.3)
    assert attention.place(1.6) is None
    attention.update(2.0, Sample(0.7, 0.7))
    assert attention.place(2.0) == (0.7, 0.7)


def test_tobii_gives_the_mean_of_the_eyes_it_sees() -> None:
    """Against a fake of `tobii_research`."""
    held: dict[str, Any] = {}
    tracker = SimpleNamespace(
        subscribe_to=lambda kind, take, as_dictionary: held.update(kind=kind, take=take, plain=as_dictionary),
        unsubscribe_from=lambda kind, take: held.update(closed=(kind, take)),
    )
    source = Tobii(SimpleNamespace(find_all_eyetrackers=lambda: [tracker], EYETRACKER_GAZE_DATA="gaze"))
    assert source.sample(0.0) is None
    assert held["plain"]

    def give(left: tuple[float, float], right: tuple[float, float], seen: tuple[int, int]) -> Sample | None:
        held["take"]({
            "left_gaze_point_on_display_area": left, "left_gaze_point_validity": seen[0],
            "right_gaze_point_on_display_area": right, "right_gaze_point_validity": seen[1],
        })  # fmt: skip
        return source.sample(0.0)

    both = give((0.25, 0.5), (0.75, 0.25), (1, 1))
    assert both == Sample(0.5, 0.375)
    assert give((0.1, 0.1), (math.nan, math.nan), (1, 1)) == Sample(0.1, 0.1)
    assert give((0.9, 0.9), (0.9, 0.9), (0, 0)) == Sample(0.1, 0.1, valid=False)
    source.close()
    assert held["closed"][0] == "gaze"
    with pytest.raises(InputError, match="no Tobii"):
        Tobii(SimpleNamespace(find_all_eyetrackers=list))


def test_pupil_labs_gives_shares_of_its_picture() -> None:
    """Against a fake of `pupil_labs.realtime_api.simple`."""
    data = [SimpleNamespace(x=400.0, y=900.0, worn=True), None, SimpleNamespace(x=0.0, y=0.0, worn=False)]
    closed: list[bool] = []
    device = SimpleNamespace(
        receive_gaze_datum=lambda timeout_seconds: data.pop(0) if data else None, close=lambda: closed.append(True)
    )
    source = PupilLabs(SimpleNamespace(discover_one_device=lambda max_search_duration_seconds: device))
    assert source.sample(0.0) == Sample(0.25, 0.75)
    assert source.sample(0.1) == Sample(0.25, 0.75)
    assert source.sample(0.2) == Sample(0.0, 0.0, valid=False)
    source.close()
    assert closed
    with pytest.raises(InputError, match="no Pupil"):
        PupilLabs(SimpleNamespace(discover_one_device=lambda max_search_duration_seconds: None))


def test_makers_that_are_not_installed_say_how_to_install_them() -> None:
    with pytest.raises(InputError, match="not installed"):
        Tobii()


def test_a_real_stream_of_the_lab_streaming_layer_arrives() -> None:
    pylsl = pytest.importorskip("pylsl")
    import time

    from viscera.gaze.lsl import StreamingLayer

    name = f"viscera-test-{time.time_ns()}"
    outlet = pylsl.StreamOutlet(pylsl.StreamInfo(name, "Gaze", 3, 0, "float32", name))
    source = StreamingLayer(name, wait=10.0)
    found, until = None, time.monotonic() + 10.0
    while (found is None or found.x != 0.25) and time.monotonic() < until:
        outlet.push_sample([0.25, 0.75, 1.0])
        time.sleep(0.02)
        found = source.sample(0.0)
    assert found == Sample(0.25, 0.75)
    until = time.monotonic() + 10.0
    while found is not None and found.valid and time.monotonic() < until:
        outlet.push_sample([math.nan, math.nan, 0.0])
        time.sleep(0.02)
        found = source.sample(0.0)
    assert found is not None
    assert not found.valid
    source.close()


def test_a_trace_without_order_is_refused() -> None:
    with pytest.raises(InputError, match="go back"):
        Trace([1.0, 0.0], [Sample(0, 0), Sample(0, 0)])
