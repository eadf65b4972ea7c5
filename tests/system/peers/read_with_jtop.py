"""Start the service of jetson-stats, unpatched, read the board through its client, and print each reading as JSON.

Runs with the Python of .venvs/peers, for which the virtual board is this machine (as_board.sh). With "meter" it is
traingov's own client of the service that reads.
"""

import json
import sys
import time

from jtop import jtop
from jtop.service import JtopServer


def with_jtop(count):
    with jtop(interval=0.5) as client:
        while count and client.ok():
            count -= 1
            gpus = {name: {"load": g["status"].get("load"), "freq": g["freq"]} for name, g in client.gpu.items()}
            yield {"power": client.power, "gpu": gpus, "temperature": client.temperature}


def with_meter(count):
    from traingov.telemetry.jtop import JtopMeter  # noqa: PLC0415  (the other mode runs without traingov)

    meter = JtopMeter()
    for _ in range(count):
        reading = meter.read()
        yield {
            "rails_w": dict(reading.rails_w),
            "gpu_frequency_hz": reading.gpu_frequency_hz,
            "gpu_utilization": reading.gpu_utilization,
            "temperatures_celsius": dict(reading.temperatures_celsius),
        }
    meter.close()


def main():
    server = JtopServer(force=False)
    server.start()
    try:
        for reading in (with_meter if sys.argv[1] == "meter" else with_jtop)(int(sys.argv[2])):
            print(json.dumps({"t_s": time.monotonic(), **reading}), flush=True)
    finally:
        server.close()


if __name__ == "__main__":  # the service starts processes of its own
    main()
