"""A page and a form for tests of the frame: what they show is set by the test."""

from __future__ import annotations

from datetime import UTC, datetime

from jinja2 import ChoiceLoader, DictLoader

from headrace.server.dashboard.action import Act, Done, action
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.render import environment
from headrace.server.dashboard.visit import Visit

TEMPLATE = """{% extends "base.html" %}
{% block content %}
<p><a id="detail" href="{{ url('/trial', 'foo/bar.baz?x#y') }}">{{ name }}</a></p>
{% block live_trial %}
<section id="live-trial">
  <p id="count">{{ count }}</p>
  <p id="caller">{{ scope }} {{ queues | join(",") }}</p>
  <input id="typed" name="typed" value="{{ count }}" aria-label="Typed">
  <textarea id="area" aria-label="Area">{{ count }}</textarea>
  <details id="more"><summary id="summary">More</summary><p>{{ count }}</p></details>
  <pre id="box" tabindex="0">{% for each in range(50) %}{{ each }}

{% endfor %}</pre>
  {% if may("write") %}{{ ui.confirm("Act", url("/trial/act"), "Do it " ~ name ~ "?", key="r", rows=true) }}{% endif %}
  {% call ui.list("rows", "Rows", ["Row", "When"], next) %}
  {% for each in rows %}
  <tr id="row-{{ each }}" data-row><th scope="row" data-label="Row"><input type="checkbox" data-select name="id" value="{{ each }}" aria-label="Select {{ each }}"> <a href="{{ url('/trial', each) }}">{{ each }}</a></th><td data-label="When">{{ ui.time(moment) }} {{ count }}</td></tr>
  {% endfor %}
  {% endcall %}
</section>
{% endblock %}
{% endblock %}
"""  # noqa: E501
DETAIL = """{% extends "base.html" %}
{% block content %}<p id="name">{{ name }}</p>{% endblock %}
"""
PAGE = 100


class Trial:
    """What the page shows, how often it was looked at, and what was done."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self.looks = 0
        self.rows: list[str] = ["a", "b", "c"]
        self.name = "trial"
        self.error: Exception | None = None
        self.done: list[dict[str, list[str]]] = []
        # In each row. It stays, so that the page changes only when a test changes it.
        self.moment = datetime.now(UTC).replace(microsecond=0)


TRIAL = Trial()


@page("/trial", title="Trial", key="9", query=("cursor", "status"))
async def trial(visit: Visit) -> Shown:
    TRIAL.looks += 1
    if TRIAL.error is not None:
        raise TRIAL.error
    start = int(visit.query.get("cursor", "0"))
    end = start + PAGE
    return Shown(
        "trial.html",
        count=TRIAL.count,
        name=TRIAL.name,
        rows=TRIAL.rows[start:end],
        next=visit.again(cursor=str(end)) if end < len(TRIAL.rows) else None,
        moment=TRIAL.moment,
        scope=visit.caller.scope,
        queues=sorted(visit.caller.queues),
    )


@page("/trial/{name:path}", title="Trial detail")
async def detail(visit: Visit) -> Shown:
    return Shown("trial_detail.html", name=visit.params["name"])


@action("/trial/act", scope="write")
async def act(act: Act) -> Done:
    TRIAL.done.append({name: act.form.getlist(name) for name in act.form})
    await act.changed("trial.act", "trial")
    return Done("It is done <b>.")


loader = environment().loader
assert loader is not None
environment().loader = ChoiceLoader(
    [loader, DictLoader({"trial.html": TEMPLATE, "trial_detail.html": DETAIL})]
)
