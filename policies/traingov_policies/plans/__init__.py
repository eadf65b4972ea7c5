"""Profiling plans: which operating points to measure, in which order (method A, 4.1)."""

from .adaptive import AdaptivePlan, cautious
from .base import Plan, thinned
from .full import FullPlan
from .outlook import AdaptiveSettings
from .staircase import StaircasePlan

__all__ = ["AdaptivePlan", "AdaptiveSettings", "FullPlan", "Plan", "StaircasePlan", "cautious", "thinned"]
