"""Settings of the program as keywords: ``step_size=0.1`` is ``--step-size 0.1``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from reprior import _lib

#: Settings that are flags without a value.
_BARE = ("no_shuffle", "no_metropolis")


def to_flags(settings: Mapping[str, Any], function: str) -> list[str]:
    """The flags of keywords; those that are None are left out.

    Raises TypeError for a keyword that is no setting, and for a value of a kind that none has.
    """
    known = _lib.setting_names()
    flags = []
    for name, value in settings.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; is `{near[0]}` meant?" if near else ""
            raise TypeError(f"{function} got an unexpected keyword argument `{name}`{hint}")
        if value is None:
            continue
        flag = "--" + name.replace("_", "-")
        if name in _BARE:
            if not isinstance(value, bool):
                raise TypeError(f"`{name}` is {value!r}: it must be True or False")
            flags.extend([flag] if value else [])
            continue
        flags.append(f"{flag}={_text(name, value)}")
    return flags


def _text(name: str, value: Any) -> str:
    if isinstance(value, (list, tuple)) and value:
        return ",".join(_text(name, one) for one in value)
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    kind = type(value).__name__
    raise TypeError(f"`{name}` is of type {kind}: it must be a number, text, or a list of them")
