"""How well a trial went: numbers from what the hands did and what the world measured. NumPy alone; nothing here knows
of worlds, sessions or pages.

`trial.py` is what is scored, `motion.py` and `force.py` the formulas, `table.py` the score as people read it,
`learning.py` how scores change from trial to trial.
"""

from viscera.scores.table import Row, Score, score
from viscera.scores.trial import HandTrace, Trial, Wanted

__all__ = ["HandTrace", "Row", "Score", "Trial", "Wanted", "score"]
