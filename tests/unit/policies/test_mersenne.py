"""The same numbers as NumPy's random and polynomial modules give, without loading them."""

from __future__ import annotations

import numpy as np
import pytest

from traingov_policies.mersenne import Uniforms
from traingov_policies.search import process


@pytest.mark.parametrize("seed", [0, 1, 4357, 2**32 - 1])
def test_every_number_is_numpys_to_the_last_bit(seed: int) -> None:
    ours, numpys = Uniforms(seed), np.random.RandomState(seed)
    for count in (1, 1024, 7, 3000):
        assert np.array_equal(ours.random_sample(count), numpys.random_sample(count))


def test_the_tables_of_quadrature_are_numpys() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    assert np.allclose(process._NODES, nodes, rtol=0, atol=1e-14)
    assert np.allclose(process._WEIGHTS, weights / weights.sum(), rtol=1e-12, atol=1e-18)
