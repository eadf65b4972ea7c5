"""How far a vector carries."""

from __future__ import annotations

import json

import pytest

from traingov_policies.lut import Lut
from traingov_policies.relation import RelationVector
from traingov_proxy import cli
from traingov_proxy.sensitivity import sensitivity

LUT = Lut(
    "board", "w", 100, (8, 64), (300, 600),
    ((20.0, 12.0), (14.0, 8.0)), ((3.0, 4.0), (4.0, 6.0)), ((3.0, 4.0), (4.0, 6.0)),
)  # fmt: skip
FLAT = RelationVector("flat", (8, 64), (1.0, 1.0))
STEEP = RelationVector("steep", (8, 64), (0.25, 1.0))
MISSES = RelationVector("misses", (8, 64), (1.0, None))


def test_each_cell_is_the_increase_over_the_fastest_configuration_of_the_column():
    both = {"flat": FLAT, "steep": STEEP}
    (free,) = sensitivity(LUT, both, both, [None])
    assert free.chosen == ((64, 600), (8, 600))
    # flat takes batch 64, which is 8/3 the time of batch 8 on steep; steep takes batch 8: 12 s for 8 s on flat.
    assert free.increase_percent == ((0.0, pytest.approx(100 * (8 / 3 - 1))), (pytest.approx(50.0), 0.0))
    (capped,) = sensitivity(LUT, both, both, [5.0])
    assert capped.chosen == ((8, 600), (8, 600))


def test_a_choice_that_misses_the_target_is_no_number():
    (matrix,) = sensitivity(LUT, {"flat": FLAT}, {"misses": MISSES}, [None])
    assert matrix.increase_percent == ((None,),)


def test_a_cap_that_allows_nothing_is_told():
    with pytest.raises(ValueError, match="no point below 2 W"):
        sensitivity(LUT, {"flat": FLAT}, {"flat": FLAT}, [2.0])


def run(arguments):
    try:
        cli.main(arguments)
    except SystemExit as done:
        return int(done.code or 0)
    return 0


def test_the_command_trains_every_recipe_and_the_diagonal_is_zero(tmp_path, capsys):
    sizes = (4, 8, 16, 32, 64, 128)
    slow = tuple((100.0 / b + 1.0,) for b in sizes)
    watts = tuple((3.0,) for _ in sizes)
    path = tmp_path / "l.json"
    path.write_text(json.dumps(Lut("b", "w", 10, sizes, (300,), slow, watts, watts).to_json()))
    arguments = ["sensitivity", "--lut", str(path), "--recipes", "wine,breast-cancer", "--seeds", "1", "--caps", "none"]
    assert run([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (matrix,) = printed["matrices"]
    assert matrix["proxies"] == matrix["targets"] == ["wine", "breast-cancer"]
    assert matrix["increase_percent"][0][0] == matrix["increase_percent"][1][1] == 0.0
    assert RelationVector.from_json(printed["relations"]["wine"]).batch_sizes == sizes
    assert run([*arguments, "--caps", "2"]) == 2
    assert run([*arguments, "--caps", "x"]) == 2
    assert run(["sensitivity", "--lut", str(tmp_path / "none.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 3
