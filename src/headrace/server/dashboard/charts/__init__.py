"""Charts and graphs as SVG, made here: no script draws them, and they are in the first paint.

Colours come from classes in the style sheet, so that both themes are served by one picture. A chart
has a title for those who do not see it; pages put its numbers into a table beside it.
"""

from headrace.server.dashboard.charts.bars import distribution, dots
from headrace.server.dashboard.charts.gantt import GanttRow, gantt
from headrace.server.dashboard.charts.graph import Edge, Node, graph
from headrace.server.dashboard.charts.lines import Line, chart, sparkline

__all__ = [
    "Edge",
    "GanttRow",
    "Line",
    "Node",
    "chart",
    "distribution",
    "dots",
    "gantt",
    "graph",
    "sparkline",
]
