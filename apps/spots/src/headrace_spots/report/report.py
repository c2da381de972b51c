"""The report as HTML. No I/O. What pages say is only ever text in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

from headrace_spots.findings import Findings, FoundAspect
from headrace_spots.parsing.found import ShopFacts
from headrace_spots.report.plots import aspects_plot, rating_plot, sentiment_plot, stars_plot

ASPECTS = 12
STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2430; --quiet: #5b6675; --line: #d9dee5;
  --accent: #0b63ce; --good: #1a7f4b; --bad: #b3261e; --plain: #97a3b3; --on: #fff; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #e6eaf0; --quiet: #9aa5b4;
  --line: #2d3542; --accent: #7db4ff; --good: #4fb07d; --bad: #f0837a; --plain: #5d6a7c;
  --on: #10141a; } }
body { margin: 0 auto; max-width: 46rem; padding: 1.5rem 1rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0 0 .2rem; font-size: 1.7rem; } h2 { margin: 2rem 0 .5rem; font-size: 1.15rem; }
.quiet { color: var(--quiet); font-size: .9rem; } blockquote { margin: .5rem 0; padding: .2rem 0
  .2rem .9rem; border-left: 3px solid var(--accent); } dl { display: grid; gap: .2rem 1rem;
  grid-template-columns: max-content 1fr; } dt { color: var(--quiet); } dd { margin: 0; }
svg { width: 100%; height: auto; display: block; } svg text { font: 12px system-ui, sans-serif;
  fill: var(--quiet); } svg text.on { fill: var(--on); } .grid { stroke: var(--line); }
.line { fill: none; stroke: var(--accent); stroke-width: 2; } .dot, .line-fill { fill:
  var(--accent); } .count { fill: var(--line); } .good { fill: var(--good); } .bad { fill:
  var(--bad); } .plain { fill: var(--plain); } li { margin: .3rem 0; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """What a report is about, beside its findings."""

    run_id: str
    url: str
    facts: ShopFacts
    pages: int
    refused: int
    failed: int
    left: int
    made_at: datetime


def make_report(about: ReportFacts, findings: Findings) -> str:
    """Return the whole file."""
    name = about.facts.name or about.url
    rating = "none" if findings.rating is None else f"{findings.rating:.2f} of 5"
    facts = [
        ("Rating", rating),
        ("Reviews", f"{findings.reviews:,}"),
        ("Pages", _pages(about)),
        ("Address", about.facts.address or ""),
        ("Run", about.run_id),
        ("Made", about.made_at.strftime("%Y-%m-%d %H:%M UTC")),
    ]
    listed = "".join(
        f"<dt>{escape(label)}</dt><dd>{escape(value)}</dd>" for label, value in facts if value
    )
    by = "" if findings.summary_by == "chosen" else f" (worded by {findings.summary_by})"
    sections = [
        _section(
            f"In short{by}",
            "".join(f"<blockquote>{escape(each)}</blockquote>" for each in findings.summary),
        ),
        _section("Opinions", sentiment_plot(findings.sentiment)),
        _section("Rating over time", rating_plot(findings.months)),
        _section("Stars", stars_plot(findings.stars)),
        _section("What people talk about", aspects_plot(findings.aspects[:ASPECTS])),
        _section("In their words", _examples(findings.aspects[:ASPECTS])),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
        "'unsafe-inline'\">"
        f"<title>{escape(name)}</title><style>{STYLE}</style></head><body>"
        f'<h1>{escape(name)}</h1><p class="quiet">{escape(about.url)}</p><dl>{listed}</dl>'
        f"{''.join(sections)}"
        f'<p class="quiet">Vectors by {escape(findings.model)}. Opinions follow the stars where a '
        "review has them; else a small model decides, which is wrong at times.</p></body></html>"
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _pages(about: ReportFacts) -> str:
    notes = [
        f"{count:,} {what}"
        for count, what in (
            (about.refused, "not allowed by robots.txt"),
            (about.failed, "not to be had"),
            (about.left, "beyond the limit"),
        )
        if count
    ]
    return f"{about.pages:,}" + (f" ({', '.join(notes)})" if notes else "")


def _examples(aspects: Sequence[FoundAspect]) -> str:
    found = []
    for each in aspects:
        said = "".join(f"<li>{escape(text)}</li>" for text in each.examples[:3])
        if said:
            found.append(f"<p><strong>{escape(each.name)}</strong></p><ul>{said}</ul>")
    return "".join(found)
