"""What is measured of a page as it is shown: width, targets, colours and shapes."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]
from playwright.async_api import Page

# Each theme and each width once, and then the other two.
WHOLE = [("light", 1280), ("dark", 390)]
FORMS = [*WHOLE, ("dark", 1280), ("light", 390)]
# WCAG 2.2: a target has at least so many pixels; what acts has more on a phone.
TARGET, ACTION = 24, 44

# Everything that is wrong with how a page is laid out, and the colours of its texts.
MEASURE = """([target, action]) => {
  const faults = [], pairs = new Set(), root = document.documentElement;
  const shown = (each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const name = (each) => `<${each.tagName.toLowerCase()}> ${(each.innerText || each.ariaLabel || each.name || each.className || "").toString().trim().slice(0, 50)}`;
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.querySelectorAll("main *")].filter((each) => shown(each) && !each.closest(".wide, pre, .box") && each.getBoundingClientRect().right > root.clientWidth + 1);
    faults.push(`wider than the window: ${wide.slice(-1).map(name)}`);
  }
  const modal = document.querySelector("dialog[open]");
  const scope = modal ?? document;
  if (modal && modal.scrollWidth > modal.clientWidth) faults.push("the dialog scrolls sideways");
  for (const each of scope.querySelectorAll("a[href], button, summary, input:not([type=hidden]), select, textarea")) {
    if (!shown(each) || each.closest(".unseen, .skip, svg")) continue;
    const { width, height } = each.getBoundingClientRect();
    if (!width || !height) continue;
    const acts = each.matches("button, summary.button, a.button, [type=submit]") && root.clientWidth < 700;
    const least = acts ? action : target;
    // A link in a line of text is as high as the line, which the rule allows.
    const inline = each.tagName === "A" && getComputedStyle(each).display === "inline";
    const label = each.type === "checkbox" && each.closest("label, th, td");
    if (inline || (label && width >= 18)) continue;
    if (height < least - 0.5 || (width < (acts ? target : least) - 0.5)) faults.push(`${name(each)} is ${Math.round(width)} x ${Math.round(height)}, less than ${least}`);
  }
  for (const each of scope.querySelectorAll(".badge")) {
    if (!shown(each)) continue;
    const { clipPath, width } = getComputedStyle(each, "::before");
    if (!each.textContent.trim()) faults.push("a status without a word");
    if (clipPath === "none" || !(parseFloat(width) > 4)) faults.push(`${each.textContent} has no shape`);
  }
  const solid = (colour) => { const found = colour.match(/[\\d.]+/g)?.map(Number); return found && (found.length < 4 || found[3] > 0.99) ? found.slice(0, 3) : null; };
  const ground = (each) => { for (; each; each = each.parentElement) { const found = solid(getComputedStyle(each).backgroundColor); if (found) return found; } return [255, 255, 255]; };
  const walker = document.createTreeWalker(scope === document ? document.body : scope, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const each = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || each.closest("script, style, svg, .unseen, option, [disabled]") || !shown(each)) continue;
    const style = getComputedStyle(each), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const colour = solid(style.color);
    if (colour) pairs.add(JSON.stringify([colour, ground(each), large]));
  }
  return { faults: [...new Set(faults)], pairs: [...pairs].map((each) => JSON.parse(each)) };
}"""  # noqa: E501

# How colours are seen, in linear light, as Chromium emulates it (Machado et al., 2009).
VISION = {
    "as they are": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}  # fmt: skip
Colour = tuple[float, float, float]


def linear(colour: Colour) -> Colour:
    """Return a colour of the screen as light."""
    red, green, blue = (
        part / 255 / 12.92 if part / 255 <= 0.04045 else ((part / 255 + 0.055) / 1.055) ** 2.4
        for part in colour
    )
    return red, green, blue


def contrast(one: Colour, other: Colour, vision: str) -> float:
    """Return the contrast of two colours, as WCAG counts it, for somebody who sees so."""

    def luminance(colour: Colour) -> float:
        light = linear(colour)
        seen = [
            min(1.0, max(0.0, sum(factor * part for factor, part in zip(row, light, strict=True))))
            for row in VISION[vision]
        ]
        return 0.2126 * seen[0] + 0.7152 * seen[1] + 0.0722 * seen[2]

    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def faint(pairs: list[Any]) -> list[str]:
    """Return every text whose colour is too near to its ground for some people."""
    found = []
    for text, ground, large in pairs:
        for vision in VISION:
            seen = contrast(tuple(text), tuple(ground), vision)
            if seen < (3.0 if large else 4.5):
                found.append(f"{text} on {ground}: {seen:.2f} ({vision})")
    return found


# Rows of a list are alike: a dozen of each is looked at.
FEWER = """() => {
  for (const row of document.querySelectorAll("tbody > tr:nth-child(n + 13)")) row.remove();
}"""
# The page, what of it is shown, and where: all that axe asks about besides colours.
SHAPE = """() => [...document.querySelectorAll("*")].map((each) => {
  if (!each.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return "";
  const { x, y, width, height } = each.getBoundingClientRect();
  return `${x} ${y} ${width} ${height}`;
}).join("\\n") + document.documentElement.outerHTML"""
# All rules in each theme and each width. In the two other forms all of them but contrast, which is
# measured here in every form, and for more eyes; and only if the other theme changes more of the
# page than its colours, since they ask about nothing else.
AXE = """async ([part, contrast]) => {
  const rules = { "color-contrast": { enabled: contrast } };
  const options = { resultTypes: ["violations"], rules };
  const found = await axe.run(part ?? document, options);
  return found.violations.map(({ id, nodes }) => `axe: ${id}: ${nodes[0].html.slice(0, 120)}`);
}"""


async def axe(page: Page, part: str | None = None, *, contrast: bool = True) -> list[str]:
    """Return everything that keeps people from using a page, or a part of it."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE_SCRIPT)
    found: list[str] = await page.evaluate(AXE, [part, contrast])
    return found


async def look(page: Page) -> list[str]:
    """Return what is wrong with how a page looks now, axe apart."""
    measured = await page.evaluate(MEASURE, [TARGET, ACTION])
    return [*measured["faults"], *faint(measured["pairs"])]


async def look_at_all_forms(page: Page, what: str, part: str | None = None) -> list[str]:
    """Return what is wrong with a page: light and dark, wide and narrow."""
    found = []
    shapes: dict[int, str] = {}
    for scheme, width in FORMS:
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        await page.set_viewport_size({"width": width, "height": 800})
        faults = await look(page)
        await page.evaluate(FEWER)
        shape = await page.evaluate(SHAPE)
        if shapes.get(width) != shape:
            shapes[width] = shape
            faults += await axe(page, part, contrast=(scheme, width) in WHOLE)
        found += [f"{what}, {scheme}, {width}: {fault}" for fault in faults]
    return found
