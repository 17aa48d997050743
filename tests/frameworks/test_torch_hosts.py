"""ringlet.torch over two hosts, which are network namespaces: training has the bits of one host."""

from __future__ import annotations

import subprocess
import sys

from tests.frameworks.libraries import library
from tests.hosts.simulated_hosts import REQUIRES_HOSTS

library("torch")
pytestmark = REQUIRES_HOSTS

PROGRAM = """
import hashlib, torch, ringlet.torch
from torch import distributed, nn
distributed.init_process_group("ringlet")
rank, size = distributed.get_rank(), distributed.get_world_size()
torch.manual_seed(rank)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 300), nn.ReLU(), nn.Linear(300, 10)))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(8, 64)), torch.arange(8)).backward()
    optimizer.step()
everyone = distributed.new_group(list(range(size)))
found = [None] * size
distributed.all_gather_object(found, rank, group=everyone)
digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()
received = []
for count in (1, 200_000):  # to the next rank
    tensor = torch.empty(count)
    sent = distributed.isend(torch.full([count], float(rank)), (rank + 1) % size)
    distributed.irecv(tensor, (rank - 1) % size).wait()
    sent.wait()
    received.append(int(tensor[-1]))
mesh = distributed.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("outer", "inner"))
sums = []
for name in ("outer", "inner"):  # the first spans hosts
    sums.append(torch.tensor(float(rank)))
    distributed.all_reduce(sums[-1], group=mesh[name].get_group())
print(f"digest {digest} {found} {[int(each) for each in sums]} {received}", flush=True)
distributed.destroy_process_group()
"""


def lines_of(command, program):
    words = [sys.executable, "-m", "ringlet", "run", *command, str(program)]
    found = subprocess.run(words, capture_output=True, text=True, timeout=100, check=True)
    return [line.partition("digest ")[2] for line in found.stdout.splitlines()]


def test_training_over_hosts_has_the_bits_of_one_host(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    over_hosts, here = lines_of(["--simulate-hosts", "2x2"], program), lines_of(["-n", "4"], program)
    assert len(over_hosts) == 4
    assert sorted(over_hosts) == sorted(here)
    assert sorted(line[-6:] for line in here) == [f"[{rank}, {rank}]" for rank in range(4)], "from the rank before"
