"""A decision's detail (see ``explaining``) in words: one line for the log, sentences for ``traingov explain``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .values import OperatingPoint

_NOUN = {"time": "time", "energy": "energy", "edp": "energy times time"}
_ASSUMED = {
    "no-relation": "No relation vector: every batch size is taken to need the same samples to accuracy.",
    "exact-relation": "The relation vector states no interval: its values are taken as exact.",
    "exact-power": "The table states no uncertainty of power: its values are taken as exact.",
    "exact-time": "The table states no uncertainty of time: its values are taken as exact.",
}


def headline(detail: Mapping[str, Any]) -> str:
    """The choice and its reason in one line."""
    chosen = detail["chosen"]
    cap = _cap(detail)
    if not detail["feasible"]:
        watts = f"{chosen['peak_power_w']:.2f} W"
        if 0 < chosen["violation_probability"] < 1:
            chance = _percent(chosen["violation_probability"])
            text = f"{_place(chosen)}: no point stays below the {cap} surely enough"
            return f"{text}; this one ({watts}) exceeds it with {chance} probability"
        return f"{_place(chosen)}: no measured point stays below the {cap}; this one draws least ({watts})"
    text = f"{_place(chosen)}: least {detail['objective']} of {detail['batch_sizes']} candidates under {cap}"
    second = detail["second_batch"]
    if second is not None and second["more"] is not None:
        text += f"; next {_place(second['point'])}, {_more(second)} more"
    if any(a["what"] == "no-relation" for a in detail["assumed"]):
        text += "; no relation vector: every batch size is taken to need the same samples"
    return text


def sentences(detail: Mapping[str, Any]) -> list[str]:
    """The whole explanation: what was chosen, what came second, what bound, what would change it, what was assumed."""
    out = [_chosen(detail)]
    if detail["feasible"]:
        out += _seconds(detail)
    out += [text for bound in detail["bound"] if (text := _bound(bound, detail))]
    out += [text for change in detail["changes"] if (text := _change(change, detail))]
    out += [_assumption(entry) for entry in detail["assumed"]]
    return out


def _chosen(detail: Mapping[str, Any]) -> str:
    chosen, noun = detail["chosen"], _NOUN[detail["objective"]]
    if not detail["feasible"]:
        return headline(detail)[0].upper() + headline(detail)[1:] + "."
    text = f"Chosen: {_place(chosen)}, the least {noun} to accuracy of {_count(detail['allowed'], 'point')}"
    if detail["cap_w"] is not None:
        text += f" that stay below {detail['cap_w']:g} W ({detail['points']} looked at)"
    if chosen["peak_power_w"] is not None:
        text += f". Its peak power is {chosen['peak_power_w']:.2f} W"
        if detail["cap_w"] is not None:
            text += f", {_watts(detail['cap_w'] - chosen['peak_power_w'])} below the cap"
            if chosen["violation_probability"] > 0:
                chance, limit = _percent(chosen["violation_probability"]), _percent(detail["violation_limit"])
                text += f"; it exceeds the cap with {chance} probability; less than {limit} is allowed"
    if chosen["origin"] == "predicted":
        text += ". The point is predicted, not measured: the service measures it before it uses it"
    return text + "."


def _seconds(detail: Mapping[str, Any]) -> list[str]:
    second, other, noun = detail["second"], detail["second_batch"], _NOUN[detail["objective"]]
    if second is None or second["more"] is None:
        return ["Nothing came second: no other point may be chosen."]
    out = [f"Second: {_place(second['point'])}, {_more(second)} more {noun}{_chance(second)}."]
    if other is None:
        out.append("No other batch size may be chosen.")
    elif other["point"] != second["point"] and other["more"] is not None:
        out.append(f"Best with another batch size: {_place(other['point'])}, {_more(other)} more{_chance(other)}.")
    best = detail["chosen"]["best_probability"]
    if best < 1:
        out.append(f"The chosen point is truly the best one with {_percent(best)} probability.")
    return out


def _bound(bound: Mapping[str, Any], detail: Mapping[str, Any]) -> str:
    noun = _NOUN[detail["objective"]]
    if bound["by"] == "cap":
        draws = "an unknown power" if bound["peak_power_w"] is None else f"{bound['peak_power_w']:.2f} W"
        return (
            f"The cap binds: without it, it would be {_place(bound['point'])}{_less(bound, noun)}, which draws {draws}."
        )
    if bound["by"] == "uncertainty":
        chance, limit = _percent(bound["violation_probability"]), _percent(detail["violation_limit"])
        table = f"Uncertainty binds: {_place(bound['point'])}{_less(bound, noun)} is below the cap by its table value"
        return f"{table}, but it exceeds the cap with {chance} probability; less than {limit} is allowed."
    if bound["by"] == "memory":
        sizes = _sizes(bound["batch_sizes"])
        if bound["point"] is None:
            return f"{sizes} did not fit into memory and left the choice."
        return f"Memory binds: if {sizes} fitted, it would be {_place(bound['point'])}{_less(bound, noun)}."
    return f"The relation vector decides: by {noun} per sample alone it would be {_place(bound['point'])}."


def _change(change: Mapping[str, Any], detail: Mapping[str, Any]) -> str:
    noun = _NOUN[detail["objective"]]
    if change["what"] == "cap-up" and not detail["feasible"]:
        return f"At a cap above {_up(change['cap_w'])} a point would stay below it: {_place(change['point'])}."
    if change["what"] == "cap-up":
        return f"At a cap above {_up(change['cap_w'])} it would be {_place(change['point'])}{_less(change, noun)}."
    if change["what"] == "cap-down":
        limit = f"At a cap of {_down(change['cap_w'])} or less"
        if change["point"] is None:
            return f"{limit} no point would be left."
        return f"{limit} it would be {_place(change['point'])}{_less(change, noun)}."
    chosen = detail["chosen"]["batch_size"]
    if change["more_samples"] == 0:
        return f"By the relation vector {_place(change['point'])} is as good; the tie went to the lower power."
    needed = f"If batch {chosen} needed {_percent(change['more_samples'])} more samples than the relation vector says"
    return f"{needed}, {_place(change['point'])} would win."


def _assumption(entry: Mapping[str, Any]) -> str:
    what = entry["what"]
    if what in _ASSUMED:
        return _ASSUMED[what]
    if what == "no-relation-value":
        return f"{_sizes(entry['batch_sizes'])}: no relation value (missed the target or never tried), so no candidate."
    if what == "interpolated-relation":
        return f"{_sizes(entry['batch_sizes'])}: the relation value is interpolated between its neighbours."
    cells = _count(entry["cells"], "point")
    if what == "predicted":
        return f"{cells} predicted by a model: " + (
            "taken as candidates." if entry["used"] else "never chosen unmeasured."
        )
    if what == "infeasible":
        return f"{cells} given up above a cap while measured; their time is unknown."
    if what == "failed":
        return f"{cells} could not be measured."
    return f"{cells} never measured."


def _cap(detail: Mapping[str, Any]) -> str:
    return "no cap" if detail["cap_w"] is None else f"cap {detail['cap_w']:g} W"


def _place(point: Mapping[str, Any]) -> str:
    return str(OperatingPoint(point["batch_size"], point["gpu_frequency_hz"]))


def _more(margin: Mapping[str, Any]) -> str:
    text = f"{100 * margin['more']:.1f}"
    if margin["more_std"]:
        text += f" ± {100 * margin['more_std']:.1f}"
    return f"{text} %"


def _less(entry: Mapping[str, Any], noun: str) -> str:
    more = entry.get("more")
    if more is None:
        return ""
    return f" ({100 * abs(more):.1f} % {'less' if more < 0 else 'more'} {noun})"


def _chance(margin: Mapping[str, Any]) -> str:
    chance = margin["best_probability"]
    return f"; it is truly the best one with {_percent(chance)} probability" if 0 < chance < 1 else ""


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.001 else "less than 0.1 %"


def _watts(watts: float) -> str:
    return f"{watts:.2f} W" if watts >= 0.01 else f"{1000 * watts:.1f} mW"


def _up(watts: float) -> str:
    """Rounded up to 10 mW, so that what is said stays true."""
    return f"{-(-watts * 100 // 1) / 100:.2f} W"


def _down(watts: float) -> str:
    """Rounded down to 10 mW."""
    return f"{watts * 100 // 1 / 100:.2f} W"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _sizes(sizes: list[int]) -> str:
    return ("Batch " if len(sizes) == 1 else "Batches ") + ", ".join(str(b) for b in sizes)
