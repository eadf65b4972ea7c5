"""A training process for the machine: steps on the emulated GPU, governed; its number of steps goes to a file.

python3 governed_job.py BOARD_SOCKET STEPS_FILE
"""

import sys
import time
from pathlib import Path

import traingov_client
from traingov_sim.gpu import EmulatedGpu


def main() -> None:
    count, shown_s, file = 0, 0.0, Path(sys.argv[2])
    with EmulatedGpu(sys.argv[1]) as gpu, traingov_client.register(
        workload="resnet18", batch_sizes=[32], sync=gpu.synchronize
    ) as job:  # fmt: skip
        while True:
            job.safe_point()
            gpu.submit("resnet18", job.batch_size)
            job.step()
            count += 1
            if time.monotonic() - shown_s > 0.2:
                shown_s = time.monotonic()
                file.write_text(str(count))


if __name__ == "__main__":
    main()
