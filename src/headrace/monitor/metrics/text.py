"""The text format of Prometheus (0.0.4). No I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from headrace.telemetry import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "headrace_"
# So many lines, or histograms, are made at a stretch.
PIECE = 50
Labels = Mapping[str, str]
Values = Iterable[tuple[Sequence[str], float]]


@dataclass(slots=True, eq=False)
class Metric:
    """One metric and its series. `name` is without `headrace_` and without `_total`."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    words: str
    labels: Sequence[str] = ()
    values: Sequence[tuple[Sequence[str], float]] = ()
    histograms: list[tuple[Sequence[str], Histogram]] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Return its lines in the text format; those of one histogram together."""
        name = f"{PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"
        yield f"# HELP {name} {_escaped(self.words)}\n"
        yield f"# TYPE {name} {self.kind}\n"
        for place, value in self.values:
            yield f"{name}{_labels(self.at(place))} {float(value)!r}\n"
        for place, values in self.histograms:
            yield from self._histogram(name, self.at(place), values)

    def at(self, place: Sequence[str]) -> dict[str, str]:
        """Return the labels of one of its series."""
        return dict(zip(self.labels, place, strict=True))

    @staticmethod
    def _histogram(name: str, labels: dict[str, str], values: Histogram) -> Iterator[str]:
        count = 0
        # Quoted once for all buckets: there are thousands. No name is before `le` in the alphabet.
        shown = _labels(labels)
        rest = f",{shown[1:]}" if shown else "}"
        lines = []
        for bound, count in values.cumulative():
            upper = "+Inf" if bound == float("inf") else repr(bound)
            lines.append(f'{name}_bucket{{le="{upper}"{rest} {float(count)!r}\n')
        lines.append(f"{name}_count{shown} {float(count)!r}\n")
        lines.append(f"{name}_sum{shown} {float(values.total)!r}\n")
        yield "".join(lines)


def gauge(name: str, words: str, labels: Sequence[str], values: Values) -> Metric:
    """Return a metric whose values go up and down."""
    return Metric(name, "gauge", words, labels, list(values))


def counter(name: str, words: str, labels: Sequence[str], values: Values) -> Metric:
    """Return a metric whose values only grow."""
    return Metric(name, "counter", words, labels, list(values))


def text_of(metrics: Iterable[Metric]) -> bytes:
    """Return metrics as Prometheus reads them."""
    return "".join(line for metric in metrics for line in metric.lines()).encode()


async def text_in_pieces(metrics: Iterable[Metric]) -> bytes:
    """Return the same, and let the event loop do something else now and then. Nothing may change
    the metrics meanwhile.
    """
    made: list[str] = []
    for metric in metrics:
        for line in metric.lines():
            made.append(line)
            if len(made) % PIECE == 0:
                await asyncio.sleep(0)
    return "".join(made).encode()


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    shown = (f'{name}="{_quoted(value)}"' for name, value in sorted(labels.items()))
    return "{" + ",".join(shown) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    # What is not a character (half of a pair) cannot be sent; it must not cost all the others.
    return _escaped(text).replace('"', r"\"").encode(errors="replace").decode()
