"""The gradient-noise scale, on gradients whose noise is known."""

from __future__ import annotations

import numpy as np
import pytest

from traingov_policies.gradient_noise import disagreement, expected_samples, noise_scale
from traingov_policies.relation import RelationVector


def norms(rng, batch_size, steps, gradient, sd):
    """|G_b|² of ``steps`` gradients: the true one and Gaussian noise of ``sd`` a sample and coordinate."""
    noise = rng.normal(0.0, sd / np.sqrt(batch_size), (steps, len(gradient)))
    return list(((gradient + noise) ** 2).sum(axis=1))


@pytest.mark.parametrize("sd", [0.1, 1.0, 3.0])
def test_the_known_scale_of_a_synthetic_problem_is_found(sd):
    rng = np.random.default_rng(3)
    gradient = rng.normal(size=50)
    true = 50 * sd**2 / (gradient @ gradient)
    found = noise_scale(8, norms(rng, 8, 4000, gradient, sd), 64, norms(rng, 64, 4000, gradient, sd))
    assert found.squared_gradient == pytest.approx(gradient @ gradient, rel=0.05)
    assert found.trace == pytest.approx(50 * sd**2, rel=0.1)
    assert found.batch_size == pytest.approx(true, rel=0.1)


def test_a_gradient_lost_in_noise_gives_no_scale():
    assert noise_scale(1, [4.0], 4, [0.5]).batch_size is None


@pytest.mark.parametrize("bad", [(4, [1.0], 4, [1.0]), (1, [], 4, [1.0]), (1, [1.0], 4, [float("nan")])])
def test_what_is_no_measurement_is_refused(bad):
    with pytest.raises(ValueError, match="noise scale"):
        noise_scale(*bad)


def test_a_vector_that_follows_the_law_agrees_and_another_does_not():
    sizes = (4, 16, 64, 256)
    counts = [expected_samples(b, 32.0) for b in sizes]
    fits = RelationVector("w", sizes, tuple(n / counts[-1] for n in counts))
    assert disagreement(fits, 32.0) == pytest.approx(1.0)
    flat = RelationVector("w", sizes, (1.0, 1.0, 1.0, 1.0))
    assert disagreement(flat, 32.0) == pytest.approx(counts[-1] / counts[0])
    assert disagreement(RelationVector("w", (4,), (1.0,)), 32.0) is None
    with pytest.raises(ValueError, match="above 0"):
        expected_samples(4, 0.0)
