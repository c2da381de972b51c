"""What reviews say: praise or blame, of what, and which of them stand for the others."""

from headrace_spots.analysis.aspects import Aspect, aspects
from headrace_spots.analysis.model.weights import DamagedWeights
from headrace_spots.analysis.opinion import Opinion
from headrace_spots.analysis.representative import representative
from headrace_spots.analysis.sentiment import Sentiment

__all__ = ["Aspect", "DamagedWeights", "Opinion", "Sentiment", "aspects", "representative"]
