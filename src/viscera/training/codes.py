"""Codes of trainees: made to be read out and typed, kept as a hash alone.

A hash is scrypt (RFC 7914) with n = 2¹⁴, r = 8, p = 1 and a salt of its own, 16 MiB and some 50 ms for each guess:
people may choose a code themselves, and those are short.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from viscera.errors import InputError

ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without those that look alike."""
GROUPS, LETTERS = 3, 4
"""Of a code that is made here: 12 of 31 letters, 59 bits."""
SHORTEST, LONGEST = 6, 200
"""Of a code that somebody chooses [characters]."""
WORK = {"n": 2**14, "r": 8, "p": 1}
MARK = "scrypt"


def new_code() -> str:
    return "-".join("".join(secrets.choice(ALPHABET) for _ in range(LETTERS)) for _ in range(GROUPS))


def check_code(code: str) -> str:
    """One that somebody chose; refuses what is too short. It is not repeated in what is said."""
    code = code.strip()
    if not SHORTEST <= len(code) <= LONGEST:
        raise InputError(
            f"a code of {len(code)} characters is not allowed.",
            f"Use {SHORTEST} to {LONGEST}, or leave it empty and get one.",
        )
    return code


def hashed(code: str) -> str:
    salt = secrets.token_bytes(16)
    return f"{MARK}:{salt.hex()}:{_scrypt(code, salt)}"


def same(code: str, kept: str) -> bool:
    """Whether this is the code of which the hash was kept."""
    mark, _, rest = kept.partition(":")
    if mark != MARK:  # of the second schema: 128 random bits, one round of SHA-256
        return bool(kept) and hmac.compare_digest(kept, hashlib.sha256(code.encode()).hexdigest())
    salt, _, value = rest.partition(":")
    return hmac.compare_digest(value, _scrypt(code.strip()[:LONGEST], bytes.fromhex(salt)))


def _scrypt(code: str, salt: bytes) -> str:
    return hashlib.scrypt(code.encode(), salt=salt, dklen=32, **WORK).hex()
