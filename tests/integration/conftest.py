"""Makes ``rig`` importable by the tests beside it, and gives each test a lab."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from rig import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as it:
        yield it
