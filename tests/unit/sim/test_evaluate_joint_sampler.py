from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from traingov_sim.surfaces.ensemble import effective_draws, gelman_rubin, walk_ensembles
from traingov_sim.surfaces.family import hash_of, load_family, within_tolerance
from traingov_sim.surfaces.family_sampling import document, nano_problem, sample, write
from traingov_sim.surfaces.misfit import residuals


def test_the_walk_samples_a_normal_distribution_with_the_right_mean_spread_and_correlation() -> None:
    sd, rho = 0.05, 0.8
    inverse = np.linalg.inv(sd**2 * np.array([[1, rho], [rho, 1]]))

    def misfit(points: np.ndarray) -> np.ndarray:
        d = points - 0.5
        return np.einsum("ni,ij,nj->n", d, inverse, d)

    starts = np.random.default_rng(0).uniform(0.45, 0.55, (3, 2))
    draws = walk_ensembles(misfit, starts, 1, steps=3000, keep=150, walkers=20)
    points = draws.points.reshape(-1, 2)
    assert points.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.006)
    assert points.std(axis=0) == pytest.approx([sd, sd], rel=0.1)
    assert np.corrcoef(points.T)[0, 1] == pytest.approx(rho, abs=0.06)
    chains = np.moveaxis(draws.points[..., 0], 2, 1).reshape(60, 150)
    assert gelman_rubin(chains) < 1.05
    assert effective_draws(chains) > 500


def test_nothing_outside_the_cube_is_drawn() -> None:
    draws = walk_ensembles(lambda p: np.zeros(len(p)), np.full((2, 3), 0.9), 1, steps=300, keep=20, walkers=15)
    assert draws.points.min() >= 0
    assert draws.points.max() <= 1


def test_chains_that_disagree_are_seen() -> None:
    rng = np.random.default_rng(1)
    apart = rng.normal(0, 1, (4, 200)) + np.array([[0.0], [0.0], [5.0], [5.0]])
    assert gelman_rubin(apart) > 2
    together = rng.normal(0, 1, (4, 200))
    assert gelman_rubin(together) < 1.02
    assert effective_draws(together) > 400
    assert effective_draws(apart) < 20


def test_a_family_is_made_written_and_read_and_every_member_is_within_tolerance(tmp_path: Path) -> None:
    problem = nano_problem("mobilenetv2", Path("nowhere"))
    draws = sample(problem, 60, 1, ensembles=2, keep=4)
    data = document([(problem, draws)], 12, 1, "a test")
    write(data, tmp_path)
    family = load_family("nano", "mobilenetv2", tmp_path)
    assert len(family) == 12
    t = problem.evaluate({n: family.parameters[n] for n in problem.space.names})
    assert (np.abs(residuals(t)) <= 1 + 1e-3).all()
    assert (within_tolerance(t) < 100).all()
    surface = family.surface(3)
    exact = family.tables((307_200_000,))
    step = sum(p.duration_s for p in surface.phases(32, 307_200_000)) / 32
    assert step == pytest.approx(exact.sample_s[3, exact.case.batch_sizes.index(32), 0])


def test_a_family_whose_members_were_changed_is_refused(tmp_path: Path) -> None:
    data = {"schema": "traingov-sim.family/1", "names": ["a"], "members": [[1.0]], "baseline_hz": [[1, 2, 3]]}
    full = {**data, "strict": [True], "diagnostics": [], "sha256": hash_of(data)}
    (tmp_path / "nano-x.json").write_text(json.dumps({**full, "members": [[2.0]]}), encoding="utf-8")
    with pytest.raises(ValueError, match="do not match the hash"):
        load_family("nano", "x", tmp_path)
    with pytest.raises(KeyError, match="no family"):
        load_family("nano", "y", tmp_path)


def test_a_surface_beyond_its_tolerance_is_forbidden() -> None:
    problem = nano_problem("mobilenetv2", Path("nowhere"))
    point = sample(problem, 4, 1, ensembles=1, keep=2).points[0, -1, 0]
    values = problem.space.decode(point[None])
    wrong = {**values, "idle_w": values["idle_w"] + 1.5}
    assert float(problem.density(point[None])[0]) < 100
    assert float(within_tolerance(problem.evaluate(wrong))[0]) > 1000
