"""Blood, bile and saline as a film on organs: `film.py` has the state and the step."""
