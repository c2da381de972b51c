"""The text format of Prometheus (0.0.4). No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from headrace.telemetry import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "headrace_"
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
        """Return its lines in the text format."""
        name = f"{PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"
        yield f"# HELP {name} {_escaped(self.words)}\n"
        yield f"# TYPE {name} {self.kind}\n"
        for place, value in self.values:
            yield f"{name}{_labels(self._at(place))} {float(value)!r}\n"
        for place, values in self.histograms:
            yield from self._histogram(name, self._at(place), values)

    def _at(self, place: Sequence[str]) -> dict[str, str]:
        return dict(zip(self.labels, place, strict=True))

    @staticmethod
    def _histogram(name: str, labels: dict[str, str], values: Histogram) -> Iterator[str]:
        count = 0
        for bound, count in values.cumulative():
            shown = "+Inf" if bound == float("inf") else repr(bound)
            yield f"{name}_bucket{_labels({**labels, 'le': shown})} {float(count)!r}\n"
        yield f"{name}_count{_labels(labels)} {float(count)!r}\n"
        yield f"{name}_sum{_labels(labels)} {float(values.total)!r}\n"


def gauge(name: str, words: str, labels: Sequence[str], values: Values) -> Metric:
    """Return a metric whose values go up and down."""
    return Metric(name, "gauge", words, labels, list(values))


def counter(name: str, words: str, labels: Sequence[str], values: Values) -> Metric:
    """Return a metric whose values only grow."""
    return Metric(name, "counter", words, labels, list(values))


def text_of(metrics: Iterable[Metric]) -> bytes:
    """Return metrics as Prometheus reads them."""
    return "".join(line for metric in metrics for line in metric.lines()).encode()


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
