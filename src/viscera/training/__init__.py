"""Trainees and their trials: a database, learning curves, exports and reports. Needs `viscera[training]`.

`database.py` opens it, `store.py` is what is kept and how it is asked for, `export.py` and `report.py` are ways out.
"""
