"""The morph: whatever the trees, the result is the new one, and ids keep their element."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator

import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.async_api import Browser, Page

from headrace.server.dashboard import assets

MORPH = (assets._FOLDER / "morph.js").read_text()
CHECK = """
([before, after, focus]) => {
  const old = window.morphParse(before).firstElementChild;
  document.body.replaceChildren(old);
  const ids = new Map([...old.querySelectorAll("[id]")].map((each) => [each.id, each]));
  const wanted = window.morphParse(after).firstElementChild;
  const same = wanted.cloneNode(true);
  const focused = focus && ids.get(focus);
  if (focused) { focused.tabIndex = 0; focused.focus(); }
  window.morph(old, wanted);
  const kept = document.activeElement === focused;
  if (focused) focused.removeAttribute("tabindex");
  const told = { equal: old.isEqualNode(same), old: old.outerHTML, changed: [], kept };
  for (const each of old.querySelectorAll("[id]")) {
    const before = ids.get(each.id);
    if (before && before.tagName === each.tagName && before !== each) told.changed.push(each.id);
  }
  return told;
}
"""
TAGS = st.sampled_from(["div", "section", "span", "ul", "b"])
TEXTS = st.text("ab <&\"'é😀", max_size=4)
IDS = [f"i{number}" for number in range(8)]


@st.composite
def trees(draw: st.DrawFn) -> str:
    """A tree of elements, some of which have ids, none twice."""
    free = draw(st.permutations(IDS))

    def node(depth: int) -> str:
        if depth == 0 or draw(st.integers(0, 3)) == 0:
            return html.escape(draw(TEXTS))
        name = draw(TAGS)
        named = draw(st.booleans())
        attributes = f' id="{free.pop()}"' if free and named else ""
        if draw(st.booleans()):
            attributes += f' class="{html.escape(draw(TEXTS))}"'
        inside = "".join(node(depth - 1) for _ in range(draw(st.integers(0, 4))))
        return f"<{name}{attributes}>{inside}</{name}>"

    inside = "".join(node(3) for _ in range(draw(st.integers(0, 5))))
    return f"<main>{inside}</main>"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def blank(browser: Browser) -> AsyncIterator[Page]:
    """A page with nothing but the morph."""
    page = await browser.new_page()
    await page.set_content("<!doctype html><body></body>")
    script = assets._LEFT_OUT.sub("", MORPH)
    script += "window.morph = morph; window.morphParse = parse;"
    await page.add_script_tag(content=script, type="module")
    await page.wait_for_function("() => !!window.morph")
    yield page
    await page.close()


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(before=trees(), after=trees(), focus=st.sampled_from(IDS))
async def test_the_result_is_the_new_tree(blank: Page, before: str, after: str, focus: str) -> None:
    told = await blank.evaluate(CHECK, [before, after, focus])
    assert told["equal"], told["old"]
    assert told["changed"] == [], "elements with these ids were made again"


FLAT = st.lists(st.sampled_from(IDS), unique=True)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(before=FLAT, after=FLAT, focus=st.sampled_from(IDS))
async def test_rows_that_move_around_leave_the_focus(
    blank: Page, before: list[str], after: list[str], focus: str
) -> None:
    def rows(ids: list[str]) -> str:
        return "<ul>" + "".join(f'<li id="{each}">{each}</li>' for each in ids) + "</ul>"

    told = await blank.evaluate(CHECK, [rows(before), rows(after), focus])
    assert told["equal"]
    assert told["changed"] == []
    if focus in before and focus in after:
        assert told["kept"], "the focus was lost"
