"""The network and the optimizer against what they must compute."""

from __future__ import annotations

import numpy as np
import pytest

from traingov_proxy.recipes.mlp import Adam, Mlp


def test_gradients_are_those_of_the_loss_by_finite_differences():
    rng = np.random.default_rng(3)
    network = Mlp((6, 5, 4, 3), rng)
    for parameter in network.parameters:  # no bias at exactly 0, where ReLU has a kink
        np.add(parameter, rng.normal(0, 0.1, parameter.shape), out=parameter)
    inputs, labels = rng.normal(size=(7, 6)), rng.integers(0, 3, 7)
    _, gradients = network.gradients(inputs, labels)
    step = 1e-6
    for parameter, gradient in zip(network.parameters, gradients, strict=True):
        assert gradient.shape == parameter.shape
        for index in np.ndindex(parameter.shape):
            was = parameter[index]
            parameter[index] = was + step
            above, _ = network.gradients(inputs, labels)
            parameter[index] = was - step
            below, _ = network.gradients(inputs, labels)
            parameter[index] = was
            assert gradient[index] == pytest.approx((above - below) / (2 * step), abs=1e-7)


def test_the_loss_of_equal_scores_is_the_logarithm_of_the_number_of_classes():
    network = Mlp((4, 5), np.random.default_rng(0))
    network.parameters[0][:] = 0
    loss, _ = network.gradients(np.ones((3, 4)), np.array([0, 1, 4]))
    assert loss == pytest.approx(np.log(5))


def test_large_scores_do_not_overflow():
    network = Mlp((1, 2), np.random.default_rng(0))
    network.parameters[0][:] = [[1e4, -1e4]]
    loss, gradients = network.gradients(np.ones((1, 1)), np.array([1]))
    assert loss == pytest.approx(2e4)
    assert all(np.isfinite(g).all() for g in gradients)


def test_accuracy_is_the_share_of_right_classes():
    network = Mlp((2, 2), np.random.default_rng(0))
    network.parameters[0][:] = np.eye(2)
    inputs = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [0.0, 3.0]])
    assert network.accuracy(inputs, np.array([0, 1, 1, 1])) == 0.75


@pytest.mark.parametrize("sizes", [(4,), (4, 0), ()])
def test_a_network_without_layers_or_width_is_refused(sizes):
    with pytest.raises(ValueError, match="sizes"):
        Mlp(sizes, np.random.default_rng(0))


def test_the_first_step_of_adam_is_the_learning_rate_against_the_gradient():
    parameter = np.array([1.0, 2.0, 3.0])
    Adam([parameter]).step([np.array([0.5, -200.0, 1e-3])], 0.1)
    np.testing.assert_allclose(parameter, [0.9, 2.1, 2.9], rtol=1e-4)


def test_later_steps_of_adam_follow_its_recursion():
    parameter, gradients = np.array([0.0]), [1.0, -0.5, 2.0]
    optimizer = Adam([parameter], beta1=0.8, beta2=0.9, epsilon=1e-8)
    expected, mean, square = 0.0, 0.0, 0.0
    for t, gradient in enumerate(gradients, start=1):
        optimizer.step([np.array([gradient])], 0.01 * t)
        mean = 0.8 * mean + 0.2 * gradient
        square = 0.9 * square + 0.1 * gradient**2
        expected -= 0.01 * t * (mean / (1 - 0.8**t)) / (np.sqrt(square / (1 - 0.9**t)) + 1e-8)
    assert parameter[0] == pytest.approx(expected, rel=1e-12)
