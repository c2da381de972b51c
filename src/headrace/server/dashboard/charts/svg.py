"""Elements of SVG. Whatever is not made here is escaped."""

from __future__ import annotations

from markupsafe import Markup, escape


def element(name: str, *inside: str, **attributes: object) -> Markup:
    """Return an element. Attributes that are None are left out; `class_` is `class`, and an
    underscore within a name stands for a hyphen.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    content = Markup().join(inside)
    made = f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"
    return Markup(made)  # noqa: S704 - all parts are escaped above


def picture(
    title: str,
    width: float,
    height: float,
    *inside: str,
    kind: str,
    small: bool = False,
    linked: bool = False,
) -> Markup:
    """Return a whole picture with its title for readers. It grows with its place unless small. Of
    an image nothing inside can be reached, so one with links is a group.
    """
    return element(
        "svg",
        element("title", title),
        *inside,
        class_=f"chart {kind}",
        width=width if small else None,
        height=height if small else None,
        viewBox=f"0 0 {_text(width)} {_text(height)}",
        role="group" if linked else "img",
        aria_label=title,
        preserveAspectRatio="xMinYMid meet",
    )


def _text(value: object) -> str:
    """Short numbers: a tenth of a pixel is enough."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)
