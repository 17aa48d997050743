"""All-reduces whose results are checked until an error is raised; writes how it ended to a file of this rank."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from ringlet.collectives import init_process_group

folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
size = int(sys.argv[3]) if len(sys.argv) > 3 else 300_000
member = init_process_group(timeout_seconds=20)
(folder / f"begun{member.rank}.tmp").write_text(json.dumps({"pid": os.getpid()}))
(folder / f"begun{member.rank}.tmp").rename(folder / f"begun{member.rank}")
numbers = np.arange(size, dtype=np.float32) % 1000
until, count, wrong, error = time.monotonic() + seconds, 0, 0, None
try:
    while member.all_reduce(float(time.monotonic() < until)) == member.num_ranks:
        count += 1
        mine = numbers[: 3 if count % 2 else size]
        found = member.all_reduce(mine + (member.rank + count))
        expected = member.num_ranks * mine + sum(rank + count for rank in range(member.num_ranks))
        wrong += not bool((found == expected).all())
        if count % 2 == 0:
            (folder / f"whole{member.rank}").touch()  # an array of the given size has been reduced
    member.close()
except Exception as raised:
    error = raised
end = {"ended": time.time(), "count": count, "wrong": wrong, "error": type(error).__name__, "text": str(error)}
end["lost"] = getattr(error, "rank", None)
(folder / f"end{member.rank}.tmp").write_text(json.dumps(end))
(folder / f"end{member.rank}.tmp").rename(folder / f"end{member.rank}")
