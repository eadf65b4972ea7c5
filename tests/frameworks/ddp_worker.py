"""One of the two processes of the data-parallel test. Writes what it trained to $OUT."""

import os

import torch
from scripted import Registrar
from test_torch_loop import Numbered
from torch import distributed, nn

from traingov_client.frameworks import torch_loop

registrar = Registrar()
registrar.advice = {2: 8}
torch_loop.register = registrar  # type: ignore[assignment]
torch.set_num_threads(1)
torch.manual_seed(0)
distributed.init_process_group("gloo")
rank = distributed.get_rank()
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loop = torch_loop.GovernedLoop(Numbered(), model, optimizer, "w", [4, 8], every=2, accumulate=2, epochs=2)
rows, sizes = [], []
with loop:
    for _ in loop.epochs():
        for index, inputs, targets in loop:
            with loop.step():
                loop.backward(nn.functional.mse_loss(model(inputs), targets))
            rows += index.tolist()
            sizes.append(loop.batch_size)
torch.save(
    {
        "rows": rows, "sizes": sizes, "jobs": len(registrar.jobs), "samples_done": loop.samples_done,
        "registered": registrar.jobs[0].batch_sizes if registrar.jobs else [],
        "reported": [n for n, _, _ in registrar.jobs[0].steps] if registrar.jobs else [],
        "weights": [p.detach().clone() for p in model.parameters()],
    },
    os.environ["OUT"],
)  # fmt: skip
distributed.destroy_process_group()
