"""Device strings: parsing of TensorFlow's forms, with a full form for programs and a short one for messages.

A device string is only a name: memory is host memory on every device. The full form is TensorFlow's,
``/job:localhost/replica:0/task:0/device:CPU:0``; the short form is ``CPU:0``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ringlet.errors import DuplicateDeviceError

# Device types that Ringlet supports.
DRIVEN_TYPES = frozenset({"CPU", "TPU"})

_log = logging.getLogger(__name__)

_PLACE = re.compile(r"(job):([A-Za-z0-9_]+)|(replica|task):(\d+|\*)", re.IGNORECASE)
_UNIT = re.compile(r"(?:device:)?(?!device\b)([A-Za-z][A-Za-z0-9_]*)(?::(\d+|\*))?", re.IGNORECASE)
_KNOWN_UNITS = ("CPU", "GPU", "TPU")
_MOST_LISTED = 16


@dataclass(frozen=True)
class Device:
    """A parsed device name with all parts of TensorFlow's naming scheme; `kind` is in upper case."""

    job: str = "localhost"
    replica: int = 0
    task: int = 0
    kind: str = "CPU"
    index: int = 0

    @classmethod
    def parse(cls, name: str) -> Device:
        """Parse a device string; missing parts and ``*`` default to those of the local ``CPU:0``."""
        if not isinstance(name, str):
            raise TypeError(f"a device must be a string such as 'CPU:0', got {name!r} of type {type(name).__name__}")
        fields: dict[str, str | int] = {}
        for part in filter(None, name.strip().split("/")):
            fields.update(_read_part(part, name, fields))
        return cls(**fields)  # type: ignore[arg-type]  # the regular expressions keep names and numbers apart

    @property
    def full(self) -> str:
        """TensorFlow's full form, for comparisons."""
        return f"/job:{self.job}/replica:{self.replica}/task:{self.task}/device:{self.kind}:{self.index}"

    @property
    def short(self) -> str:
        """The short form, for messages; hardware that Ringlet does not drive is marked."""
        unit = f"{self.kind}:{self.index}" + ("" if self.is_driven else " (host memory)")
        return unit if self.is_local else f"/job:{self.job}/task:{self.task} {unit}"

    @property
    def is_local(self) -> bool:
        """Whether the name refers to this process, not to a job of a cluster."""
        return self.job == "localhost"

    @property
    def is_driven(self) -> bool:
        """Whether Ringlet supports the type of the device; other devices are names for host memory."""
        return self.kind in DRIVEN_TYPES


def _read_part(part: str, name: str, before: Collection[str]) -> dict[str, str | int]:
    fields = _parse_part(part, name)
    if twice := [field for field in fields if field in before]:
        raise ValueError(
            f"{part!r} in the device string {name!r} specifies the {twice[0]} a second time, but a string names one "
            "device. Write ['CPU:0', 'CPU:1'] for two devices"
        )
    return fields


def _parse_part(part: str, name: str) -> dict[str, str | int]:
    place = _PLACE.fullmatch(part)
    if place and place[1]:
        return {"job": place[2]}
    if place:
        return {} if place[4] == "*" else {place[3].lower(): int(place[4])}
    unit = _UNIT.fullmatch(part)
    # Without the prefix "device:" only known kinds are accepted, to detect typing errors.
    if unit and (part.lower().startswith("device:") or unit[1].upper() in _KNOWN_UNITS):
        index = unit[2] if unit[2] not in (None, "*") else "0"
        return {"kind": unit[1].upper(), "index": int(index)}
    raise ValueError(
        f"{part!r} in the device string {name!r} is not valid: expected parts such as 'CPU:0', 'device:CPU:0', "
        "'job:worker', 'replica:0' or 'task:0', joined by '/'. For example, the first CPU device is 'CPU:0'"
    )


_warned_kinds: set[str] = set()


def canonicalize(name: str) -> str:
    """Return the full form of a device string; each kind of unsupported hardware is logged once at WARNING."""
    device = Device.parse(name)
    if not device.is_driven and device.kind not in _warned_kinds:
        _warned_kinds.add(device.kind)
        _log.warning(
            "%s is only a name: ringlet does not use %s hardware, and stores arrays in host memory", name, device.kind
        )
    return device.full


def short_name(name: str) -> str:
    """Return the short form of a device string."""
    return Device.parse(name).short


def short_list(names: Sequence[str]) -> str:
    """Return the short names as the text of a list; more than 16 are abbreviated to the first three and the last."""
    short = [repr(short_name(name)) for name in names]
    if len(short) > _MOST_LISTED:
        short[3:-1] = ["..."]
    return f"[{', '.join(short)}]"


def canonicalize_distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Return the full forms of device strings, in order; raise DuplicateDeviceError if two are equal."""
    given = list(names)
    full = tuple(canonicalize(name) for name in given)
    for name in full:
        if full.count(name) > 1:
            raise DuplicateDeviceError(
                f"No duplicates allowed in `devices` argument: {short_name(name)} occurs {full.count(name)} times in "
                f"{full}. Pass a different device for each replica, such as {[f'CPU:{i}' for i in range(len(full))]}"
            )
    return full
