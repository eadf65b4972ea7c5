"""Profiling plans: which operating points to measure, in which order (method A, 4.1)."""

from .adaptive import AdaptivePlan, cautious
from .base import Plan, thinned
from .chances import AdaptiveSettings
from .full import FullPlan
from .staircase import StaircasePlan

__all__ = ["AdaptivePlan", "AdaptiveSettings", "FullPlan", "Plan", "StaircasePlan", "cautious", "thinned"]
