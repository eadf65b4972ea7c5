"""The two meters that stand on other people's libraries, with those libraries played by small modules."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from traingov.data import data_dir
from traingov.telemetry.interface import MeterError
from traingov.telemetry.jtop import JtopMeter, reading_of
from traingov.telemetry.nvml import NvmlMeter
from traingov.telemetry.rails import RailTable
from traingov.telemetry.samples import Sampler
from traingov_policies.events import Sample


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__({3: "Not Supported", 9: "Driver Not Loaded", 15: "GPU is lost"}.get(value, "?"))
        self.value = value


class Nvml(ModuleType):
    """pynvml as far as it is used. A value that is an error number raises it."""

    NVMLError = NVMLError
    NVML_CLOCK_GRAPHICS = 0
    NVML_TEMPERATURE_GPU = 0
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_ERROR_UNINITIALIZED = 1

    def __init__(self, **answers: Any) -> None:
        super().__init__("pynvml")
        self.answers: dict[str, Any] = {"init": 0, "power": 3, "busy": 3, "clock": 3, "heat": 3, **answers}
        self.open = 0

    def _say(self, what: str) -> Any:
        value = self.answers[what]
        if isinstance(value, NVMLError):
            raise value
        return value

    def nvmlInit(self) -> None:  # noqa: N802
        self._say("init")
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, _index: int) -> str:  # noqa: N802
        return "handle"

    def nvmlDeviceGetPowerUsage(self, _handle: str) -> Any:  # noqa: N802
        return self._say("power")

    def nvmlDeviceGetUtilizationRates(self, _handle: str) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=self._say("busy"))

    def nvmlDeviceGetClockInfo(self, _handle: str, _kind: int) -> Any:  # noqa: N802
        return self._say("clock")

    def nvmlDeviceGetTemperature(self, _handle: str, _kind: int) -> Any:  # noqa: N802
        return self._say("heat")


def use(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    monkeypatch.setitem(sys.modules, module.__name__, module)


def test_a_discrete_gpu_gives_power_utilization_clock_and_temperature(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml(power=251_300, busy=87, clock=1410, heat=61)
    use(monkeypatch, nvml)
    meter = NvmlMeter()
    reading = meter.read()
    assert reading.rails_w == {"NVML_GPU": 251.3}
    assert reading.gpu_utilization == 0.87
    assert reading.gpu_frequency_hz == 1_410_000_000
    assert reading.temperatures_celsius == {"gpu": 61.0}
    meter.close()
    assert nvml.open == 0


def test_the_power_of_a_discrete_card_is_input_power_and_that_of_a_jetsons_gpu_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, Nvml(power=40_000, busy=50, clock=1500, heat=50))

    def sample(meter: NvmlMeter, board: str) -> Sample:
        return Sampler(RailTable.load(data_dir() / "boards"), board, lambda rule, unknown: None).sample(
            1.0, meter.read()
        )

    assert sample(NvmlMeter(), "unknown").input_power_w == 40.0
    on_thor = sample(NvmlMeter(on_jetson=True), "NVIDIA Jetson AGX Thor Developer Kit")
    assert on_thor.input_power_w is None
    assert on_thor.gpu_utilization == 0.5


def test_what_nvml_does_not_support_is_missing_and_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Nvml(power=NVMLError(3), busy=12, clock=NVMLError(3), heat=NVMLError(3)))
    reading = NvmlMeter().read()
    assert reading.rails_w == {}
    assert reading.gpu_frequency_hz is None
    assert reading.temperatures_celsius == {}
    assert reading.gpu_utilization == 0.12


def test_orin_whose_nvml_comes_up_and_supports_nothing_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    no = NVMLError(3)
    use(monkeypatch, Nvml(power=no, busy=no, clock=no, heat=no))
    with pytest.raises(MeterError, match="supports no reading of this GPU"):
        NvmlMeter().read()


def test_a_gpu_that_fell_off_the_bus_is_an_error_and_not_a_reading_without_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, Nvml(power=250_000, busy=87, clock=NVMLError(15), heat=61))
    with pytest.raises(MeterError, match="GPU is lost"):
        NvmlMeter().read()


def test_a_driver_that_is_not_loaded_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Nvml(init=NVMLError(9)))
    with pytest.raises(MeterError, match="NVML cannot be used: Driver Not Loaded"):
        NvmlMeter().read()


@pytest.mark.parametrize(
    ("module", "meter", "package"), [("pynvml", NvmlMeter, "nvidia-ml-py"), ("jtop", JtopMeter, "jetson-stats")]
)
def test_a_package_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, meter: Any, package: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MeterError, match=f"pip install {package}"):
        meter().read()


ORIN_NANO = (
    {"rail": {"VDD_CPU_GPU_CV": {"volt": 4912, "curr": 120, "power": 589, "avg": 590, "online": True},
              "VDD_SOC": {"volt": 4912, "curr": 288, "power": 1414, "avg": 1400, "online": True}},
     "tot": {"name": "VDD_IN", "volt": 4912, "curr": 976, "power": 4794, "avg": 4800}},
    {"gpu": {"type": "integrated", "status": {"load": 43.7}, "freq": {"cur": 510000, "min": 306000}}},
    {"gpu": {"temp": 46.5, "online": True}, "cv0": {"temp": -256, "online": False}},
)  # fmt: skip


def test_the_total_of_jtop_is_a_rail_where_it_has_a_rails_name() -> None:
    reading = reading_of(*ORIN_NANO)
    assert reading.rails_w == {"VDD_CPU_GPU_CV": 0.589, "VDD_SOC": 1.414, "VDD_IN": 4.794}
    assert reading.gpu_utilization == pytest.approx(0.437)
    assert reading.gpu_frequency_hz == 510_000_000
    assert reading.temperatures_celsius == {"gpu": 46.5}


def test_a_sum_that_jtop_made_itself_is_left_out() -> None:
    power = {"rail": {"VDD_GPU_SOC": {"power": 6000}}, "tot": {"power": 9999, "avg": 1}}
    assert reading_of(power, {}, {}).rails_w == {"VDD_GPU_SOC": 6.0}


def test_what_jtop_does_not_know_is_missing() -> None:
    reading = reading_of({"rail": {"VDD_IN": {"volt": 5000}}, "tot": {}}, {"gpu": {"status": {}, "freq": {}}}, {})
    assert reading.rails_w == {}
    assert reading.gpu_utilization is None
    assert reading.gpu_frequency_hz is None


class Client:
    """jtop's client as far as it is used."""

    def __init__(self, interval: float) -> None:
        self.interval, self.closed, self.alive = interval, False, True
        self.power, self.gpu, self.temperature = ORIN_NANO

    def start(self) -> None:
        if self.interval > 5:
            raise RuntimeError("never")

    def ok(self) -> bool:
        return self.alive

    def close(self) -> None:
        self.closed = True


def test_a_jtop_client_is_started_once_read_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Client] = []
    module = ModuleType("jtop")
    module.jtop = lambda interval: made.append(Client(interval)) or made[-1]  # type: ignore[attr-defined]
    use(monkeypatch, module)
    meter = JtopMeter()
    assert meter.read() == meter.read()
    assert len(made) == 1
    made[0].alive = False
    with pytest.raises(MeterError, match="systemctl status jtop"):
        meter.read()
    meter.close()
    assert made[0].closed


def test_what_the_jtop_package_objects_to_is_passed_on_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Client):
        def start(self) -> None:
            raise Exception("Mismatch version jtop service: [4.2] and client: [7.2].\nPlease run: ...")

    module = ModuleType("jtop")
    module.jtop = Refusing  # type: ignore[attr-defined]
    use(monkeypatch, module)
    with pytest.raises(MeterError) as caught:
        JtopMeter().read()
    assert str(caught.value) == "jtop: Mismatch version jtop service: [4.2] and client: [7.2]. Please run: ..."
