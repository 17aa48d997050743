"""A network between two simulated hosts that delays, loses or reorders frames: a thread forwards between TAP devices.

It needs no kernel module for traffic control. Without offloads, the kernel computes checksums and cuts packets itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import itertools
import os
import random
import select
import struct
import subprocess
import threading
import time
from collections.abc import Sequence

TUN = "/dev/net/tun"
# <linux/if_tun.h>
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
_MOST_BYTES = 1 << 16  # of a frame
_MOST_READINGS = 64  # from one device before the other is read


class DisturbedNetwork:
    """Replaces the network devices of two namespaces, until `close`.

    Each frame is lost with probability `loss`; of the others, each is delayed by `delay_seconds`, or with probability
    `overtaking` forwarded at once.
    """

    def __init__(
        self,
        names: Sequence[str],
        addresses: Sequence[str],
        *,
        delay_seconds: float = 0.0,
        loss: float = 0.0,
        overtaking: float = 0.0,
    ) -> None:
        self._delay_seconds, self._loss, self._overtaking = delay_seconds, loss, overtaking
        self.num_forwarded = self.num_lost = 0
        self._taps: list[int] = []
        self._stop_reader, self._stop_writer = os.pipe()
        self._thread = threading.Thread(target=self._forward, daemon=True)
        for name, address in zip(names, addresses, strict=True):
            self._taps.append(os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
            device = f"rl{os.getpid()}t{len(self._taps)}"
            fcntl.ioctl(self._taps[-1], _TUNSETIFF, struct.pack("16sH22x", device.encode(), _IFF_TAP | _IFF_NO_PI))
            for arguments in (
                f"-n {name} link del net",
                f"link set dev {device} netns {name} name net",
                f"-n {name} addr add {address}/24 dev net",
                f"-n {name} link set net up",
            ):
                subprocess.run(["ip", *arguments.split()], check=True)
        self._thread.start()

    def close(self) -> None:
        """Stop forwarding, and remove the devices."""
        os.close(self._stop_writer)
        self._thread.join()
        for descriptor in (self._stop_reader, *self._taps):
            os.close(descriptor)

    def _forward(self) -> None:
        chance, order = random.Random(1), itertools.count()
        waiting: list[tuple[float, int, int, bytes]] = []  # heap of: time, order, device, frame
        while True:
            seconds = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
            ready, _, _ = select.select([*self._taps, self._stop_reader], [], [], seconds)
            if self._stop_reader in ready:
                return
            now = time.monotonic()
            for tap in ready:
                other = self._taps[1 - self._taps.index(tap)]
                with contextlib.suppress(BlockingIOError):
                    for _ in range(_MOST_READINGS):
                        frame = os.read(tap, _MOST_BYTES)
                        if chance.random() < self._loss:
                            self.num_lost += 1
                        else:
                            delay = 0.0 if chance.random() < self._overtaking else self._delay_seconds
                            heapq.heappush(waiting, (now + delay, next(order), other, frame))
            while waiting and waiting[0][0] <= now:
                _, _, tap, frame = heapq.heappop(waiting)
                with contextlib.suppress(OSError):  # the device is down
                    os.write(tap, frame)
                    self.num_forwarded += 1
