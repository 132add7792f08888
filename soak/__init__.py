"""Tries to break viscera from outside, without end: `make soak ARGS="--minutes 60"`.

An attack draws cases from a seed and makes an attempt with each (`attack.py`, `attacks/`). Attempts are made in
processes of their own (`worker.py`), so that a crash or a hang is a finding too. A finding is kept as a small file in
`tests/soak/found`, and from then on is a test. What is promised, and so what counts as broken, is in docs/security.md.
"""
