"""What a training script imports to be governed by traingov. Standard library only, Python 3.6+.

    import traingov_client

    with traingov_client.register(workload="resnet18", batch_sizes=[8, 16, 32], sync=torch.cuda.synchronize) as job:
        while not done():
            loader, lr = make_loader(job.batch_size), job.scale_lr(5e-4)
            for inputs, labels in loader:
                train_one_step(inputs, labels, lr)
                job.step(len(inputs))
                if job.safe_point():       # the batch size changed: a new loader, a new learning rate
                    break

Training never waits for the daemon and never fails because of it: without one, all of this does nothing.
"""

from .features import features_of, signature_of
from .job import Job
from .registering import DEFAULT_SOCKET, register
from .version import VERSION

__version__ = VERSION

__all__ = ["DEFAULT_SOCKET", "Job", "__version__", "features_of", "register", "signature_of"]
