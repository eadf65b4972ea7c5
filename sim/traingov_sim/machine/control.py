"""The messages of a virtual board's socket: steps for the GPU, tegrastats runs, the truth, and disturbances."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..board.battery import Battery
from ..board.overcurrent import CurrentLimits
from ..board.physics import Contention, OutOfMemory, VirtualBoard
from ..board.surroundings import Surroundings
from ..board.tegrastats_text import TegrastatsText
from ..kernel.tree import FolderTree
from ..surface import Surface
from .connection import Connection, Stream

if TYPE_CHECKING:
    from .process import BoardProcess

Message = dict[str, Any]


class Control:
    """Answers messages. A wrong message gets {"error": one line}; it never ends the board."""

    def __init__(
        self, board: VirtualBoard, tree: FolderTree, surfaces: Callable[[str, str], Surface], process: BoardProcess
    ) -> None:
        self._board = board
        self._tree = tree
        self._load = surfaces
        self._process = process
        self._surfaces: dict[str, Surface] = {}
        self.hanging = False
        self._operations: dict[str, Callable[[Connection, Message], Message | None]] = {
            "submit": self._submit,
            "allocate": self._allocate,
            "tegrastats": self._tegrastats,
            "truth": self._truth,
            "set": self._set,
            "stop": self._stop,
        }

    def handle(self, connection: Connection, message: Message) -> None:
        """Carry out one message and answer it."""
        operation = self._operations.get(str(message.get("op")))
        try:
            if operation is None:
                raise ValueError(f"op {message.get('op')!r}: use one of {', '.join(self._operations)}")
            answer = operation(connection, message)
        except OutOfMemory as error:
            answer = {"error": str(error), "kind": "out_of_memory"}
        except (ValueError, OSError) as error:
            answer = {"error": str(error), "kind": "wrong"}
        except KeyError as error:
            answer = {"error": f"{message.get('op')}: {error} is missing or not known", "kind": "wrong"}
        except TypeError as error:
            answer = {"error": f"{message.get('op')}: a value is of the wrong kind: {error}", "kind": "wrong"}
        if answer is not None:
            connection.send(answer)

    def _surface(self, message: Message) -> tuple[Surface, int]:
        workload, batch_size = message["workload"], message["batch_size"]
        if not isinstance(workload, str) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"a step needs a workload's name and a batch size, not {workload!r}, {batch_size!r}")
        surface = self._surfaces.get(workload)
        if surface is None:
            try:
                surface = self._surfaces[workload] = self._load(self._board.spec.name, workload)
            except KeyError as error:  # its text names what is known; str() of a KeyError would put it in quotes
                raise ValueError(error.args[0]) from None
        surface.phases(batch_size, self._board.clock.hz)  # an unknown batch size fails here, not in the core
        return surface, batch_size

    def _allocate(self, connection: Connection, message: Message) -> Message:
        surface, batch_size = self._surface(message)
        self._board.queue.check(connection.name, surface, batch_size)
        return {"ok": True, "memory_bytes": surface.memory_bytes(batch_size)}

    def _submit(self, connection: Connection, message: Message) -> None:
        surface, batch_size = self._surface(message)
        now = time.monotonic()
        submitted = float(message.get("t", now))
        ticket = self._board.submit(surface, batch_size, min(submitted, now), connection.name)
        self._process.await_step(connection, ticket)

    def _tegrastats(self, connection: Connection, message: Message) -> None:
        interval_ms = message["interval_ms"]
        if not isinstance(interval_ms, int) or not 1 <= interval_ms <= 3_600_000:
            raise ValueError(f"interval_ms must be 1 to 3600000 milliseconds, not {interval_ms!r}")
        stream = Stream(interval_ms / 1000, time.monotonic(), TegrastatsText(self._board.spec))
        self._process.start_stream(connection, stream)

    def _truth(self, _connection: Connection, message: Message) -> Message:
        truth = asdict(self._board.truth(time.monotonic()))
        since = float(message.get("since", float("-inf")))
        clock = self._board.clock
        truth["clock_history"] = [entry for entry in self._board.clock_history if entry[0] >= since]
        truth["bounds_hz"] = list(clock.bounds())
        truth["governor"] = clock.read("governor").strip()
        truth["power_mode"] = self._board.power_mode.id
        truth["oc_events"] = list(self._board.over_current.counts)
        truth["throttle_steps"] = self._board.thermal.throttle_steps
        truth["emc_hz"] = self._board.costs.emc_hz
        truth["memory_used_bytes"] = self._board.queue.memory_used_bytes
        return truth

    def _set(self, _connection: Connection, message: Message) -> Message:
        board, now = self._board, time.monotonic()
        known = {"op", "contention", "ambient_celsius", "sensor_fault", "power_mode", "tegrastats", "bounds_hz"}
        known |= {"switch_delay_s", "surroundings", "clock_follows", "current_limits", "supply_w", "battery"}
        unknown = set(message) - known
        if unknown:
            raise ValueError(f"set: nothing called {', '.join(sorted(unknown))}")
        board.advance(max(now, board.t_s))
        if "contention" in message:
            board.contention = Contention(**(message["contention"] or {}))
        if "surroundings" in message:
            board.set_surroundings(Surroundings.from_json(message["surroundings"] or {}), board.t_s)
        if "current_limits" in message:
            limits = message["current_limits"] or {}
            board.over_current.set_limits({rail: CurrentLimits(**values) for rail, values in limits.items()})
        if "supply_w" in message:
            board.over_current.set_supply(message["supply_w"])
        if "battery" in message:
            data = message["battery"]
            board.battery = None if data is None else Battery.from_json(data)
        if {"current_limits", "battery"} & set(message):
            self._tree.refresh_surroundings()
        if "clock_follows" in message:
            board.set_follows(bool(message["clock_follows"]), board.t_s)
        if "ambient_celsius" in message:
            board.thermal.ambient_celsius = float(message["ambient_celsius"])
        if "switch_delay_s" in message:
            board.clock.switch_delay_s = float(message["switch_delay_s"])
        if "sensor_fault" in message:
            fault = message["sensor_fault"] or {}
            board.sensor.set_fault(fault.get("fault"), fault.get("rails", ()))
        if "power_mode" in message:
            board.set_power_mode(message["power_mode"], board.t_s)
            self._tree.refresh_mode()
        if "bounds_hz" in message:
            low, high = message["bounds_hz"]
            board.set_bounds(int(low), int(high), board.t_s)
            self._tree.refresh_mode()
        if "tegrastats" in message:
            self._set_tegrastats(message["tegrastats"])
        return {"ok": True}

    def _set_tegrastats(self, state: str) -> None:
        if state not in ("run", "hang", "kill"):
            raise ValueError(f"tegrastats {state!r}: use run, hang or kill")
        self.hanging = state == "hang"
        if state == "kill":
            self._process.end_streams()

    def _stop(self, _connection: Connection, _message: Message) -> Message:
        self._process.stopping.set()
        return {"ok": True}
