"""Profiling plans: which operating points to measure, in which order (method A, 4.1)."""

from .base import Plan, thinned
from .full import FullPlan
from .staircase import StaircasePlan

__all__ = ["FullPlan", "Plan", "StaircasePlan", "thinned"]
