"""Messages to a virtual board: what is wrong with one is told in words."""

from __future__ import annotations

from typing import Any, cast

import pytest

from traingov_sim.board.boardspec import load_board
from traingov_sim.board.physics import VirtualBoard
from traingov_sim.machine.connection import Connection
from traingov_sim.machine.control import Control
from traingov_sim.machine.process import load_surface


class Answers:
    """A connection that keeps its answers."""

    name = "here"

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)


@pytest.mark.parametrize("op", ["allocate", "submit"])
def test_an_unknown_surface_is_answered_with_the_names_that_the_board_has(op: str) -> None:
    nothing = cast("Any", None)
    control = Control(VirtualBoard(load_board("nano")), nothing, load_surface, nothing)
    answers = Answers()
    control.handle(cast("Connection", answers), {"op": op, "workload": "my-net", "batch_size": 8})
    assert answers.sent == [
        {
            "error": "no surface of 'my-net' on nano; known: "
            "digits-mlp, efficientvit, mobilenetv2, resnet18, transformer",
            "kind": "wrong",
        }
    ]
