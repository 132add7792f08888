"""What a blade has cut meets before its pieces have landed, as it does afterwards."""

from __future__ import annotations

import numpy as np
from meeting_reference import Reference
from test_crossing import Cut, body_of, stroke_through
from test_meeting import whole_springs

from viscera.tissue.cutting import cut_springs
from viscera.tissue.meeting_kernels import PARTNERS


def test_what_was_cut_a_moment_ago_meets_as_the_reference_says_of_what_has_landed() -> None:
    """Against float64, pair by pair: a block cut level, upright and half way, its masses and their speeds shaken."""
    cut = Cut(body_of("block"), viscous_time=0.0, lands=False)
    for way in ((2, 0.5, 1.0, -0.2, 0.0, False), (0, 0.4, 0.6, 0.5, 0.3, False)):
        cut.stroke(stroke_through(cut.body, *way))
    tissue, meeting, h = cut.tissue, cut.meeting, cut.body.spacing
    shape, rng = (len(cut.body.nodes), 3), np.random.default_rng(3)
    u, v = rng.normal(size=shape) * 0.08 * h, rng.normal(size=shape) * 0.1
    tissue.set_motion(u, v)
    meeting.find_partners()
    meet, count = meeting.meet, int(meeting.meet.fresh_count.numpy()[0])
    node = {int(slot): n for n, slot in enumerate(tissue.layout.slot_of_node)}
    mass = [node[int(slot)] for slot in meet.place.numpy()[:count]]
    partners, partner = meet.partners.numpy(), meet.partner.numpy().reshape(-1, PARTNERS)
    found = {(mass[c], mass[int(d)]) for c in range(count) for d in partner[c, : partners[c]]}
    meeting.push_apart(tissue_buffer=0)
    x, w = tissue.rest_positions() + tissue.displacement(), tissue.velocities()
    # The same once all has landed.
    tissue.set_motion(u, v)
    meeting.pieces[0].hang(whole_springs(tissue))
    meeting.land()
    known = Reference(meeting)
    pairs = known.pairs()
    assert found == {(int(known.mass[c]), int(known.mass[d])) for c, d in pairs}
    assert len(found) > 300
    right_x, right_v = known.push(pairs, friction=0.2)
    assert np.abs(right_v - known.v).max() > 0.05
    assert np.allclose(w[known.mass], right_v, atol=1e-5)
    assert np.allclose(x[known.mass], right_x, atol=1e-8)


def test_when_it_was_found_changes_no_bit() -> None:
    """One forgets in the middle of each stroke what it has found since the last landing, as one does that is loaded."""
    ways = [(2, 0.4, 1.0, 0.25, 0.4, False), (0, 0.5, 1.0, 0.0, -0.7, True), (1, 0.25, 0.73, 0.0, 0.0, False)]
    cuts = [Cut(body_of("gall bladder")) for _ in range(2)]
    for way in ways:
        path = stroke_through(cuts[0].body, *way)
        for part in (path[:12], path[11:19], path[18:]):
            for cut in cuts:
                cut.stroke(part)
            known = cuts[0].meeting.pieces[0].landing.known[:, cuts[0].tissue.layout.slot_of_node] != 0
            assert (cut_springs(cuts[0].tissue) & ~known).any()
            cuts[1].meeting._put()
    for _ in range(20):
        for cut in cuts:
            cut.tick()
    assert np.array_equal(cuts[0].tissue.displacement(), cuts[1].tissue.displacement())
    assert np.array_equal(cuts[0].tissue.velocities(), cuts[1].tissue.velocities())
