"""traingov: the service. Thin I/O around the pure decisions of traingov_policies."""

import os

__version__ = "0.1.0"

# The matrices here have a dozen rows. BLAS threads cost more than they save (seconds, on a busy machine, against
# milliseconds), and the cores belong to the training. It has to be said before NumPy is loaded.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
