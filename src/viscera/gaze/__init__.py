"""Where somebody looks: sources of gaze behind one interface, and what to do when it is lost.

A source gives a `Sample` for a time. Places are 0 to 1 from the top left of the view. Sources: `trace` (a CSV file),
`scanpath` (a seeded model of fixations and saccades), `lsl` (Lab Streaming Layer), `makers` (Tobii, Pupil Labs); in the
page, its pointer.
"""

from viscera.gaze.attention import Attention, Sample, Source
from viscera.gaze.scanpath import ScanPath
from viscera.gaze.trace import Trace, read_trace, write_trace

__all__ = ["Attention", "Sample", "ScanPath", "Source", "Trace", "read_trace", "write_trace"]
