"""What a training script imports to be governed by traingov. Standard library only, Python 3.6+.

    import traingov_client

    with traingov_client.register(workload="resnet18", batch_sizes=[8, 16, 32], sync=torch.cuda.synchronize) as job:
        loader, optimizer = build(job.batch_size, job.scale_lr(5e-4))
        ...
            if job.safe_point():       # the batch size changed
                loader, optimizer = build(job.batch_size, job.scale_lr(5e-4))
            ...                        # one training step
            job.step()

Training never waits for the daemon and never fails because of it: without one, all of this does nothing.
"""

from .job import Job
from .registering import DEFAULT_SOCKET, register
from .version import VERSION

__version__ = VERSION

__all__ = ["DEFAULT_SOCKET", "Job", "__version__", "register"]
