"""The pages of the shops that do not exist. No I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from html import escape

from headrace_spots.mock_shop.plans import MadeUpReview, ShopPlan, mean_of, review_at

ROBOTS = "User-agent: *\nDisallow: /private/\nDisallow: /*/cart\n"


def first_page(plan: ShopPlan, today: date) -> str:
    """Return the page at which a shop begins: about it, and where its reviews are."""
    total = plan.pages * plan.per_page
    rating = mean_of(plan, today)
    about = (
        f"<h1>{escape(plan.name)}</h1><p>{escape(plan.address)}</p>"
        f"<p>{rating} of 5, {total} reviews</p>"
        f'<p><a href="/{plan.slug}/reviews?page=1">All reviews</a> '
        f'<a href="/{plan.slug}/cart">Cart</a> <a href="/private/{plan.slug}">Staff only</a> '
        f'<a href="/{plan.slug}/about?utm_source=home">About us</a> '
        f'<a href="/">Other shops</a> <a href="logo.png">Logo</a></p>'
    )
    if plan.form == "json-ld":
        facts = {
            "@context": "https://schema.org",
            "@type": plan.kind,
            "name": plan.name,
            "address": {"@type": "PostalAddress", "streetAddress": plan.address},
            "aggregateRating": {
                "@type": "AggregateRating",
                "ratingValue": rating,
                "reviewCount": total,
            },
        }
        about += _script(facts)
    elif plan.form == "microdata":
        about = (
            f'<div itemscope itemtype="https://schema.org/{plan.kind}">'
            f'<h1 itemprop="name">{escape(plan.name)}</h1>'
            f'<p itemprop="address">{escape(plan.address)}</p>'
            '<p itemprop="aggregateRating" itemscope '
            'itemtype="https://schema.org/AggregateRating">'
            f'<span itemprop="ratingValue">{rating}</span> / <span itemprop="reviewCount">{total}'
            f'</span></p><a href="/{plan.slug}/reviews?page=1">리뷰</a> '
            f'<a href="/{plan.slug}/cart">장바구니</a> '
            f'<a href="/private/{plan.slug}">직원</a></div>'
        )
    return _page(plan, plan.name, about)


def about_page(plan: ShopPlan) -> str:
    """Return a page without reviews."""
    return _page(plan, f"About {plan.name}", "<p>We do not exist, and are open every day.</p>")


def review_page(plan: ShopPlan, number: int, today: date) -> str:
    """Return a page of reviews, from 1, with links to the pages around it."""
    first = (number - 1) * plan.per_page
    reviews = [review_at(plan, first + each, today) for each in range(plan.per_page)]
    render = {"json-ld": _json_ld, "microdata": _microdata, "plain": _plain}[plan.form]
    turn = f'<a href="?page={number - 1}">Back</a> ' if number > 1 else ""
    if number < plan.pages:
        turn += f'<a rel="next" href="?page={number + 1}">Next</a>'
    return _page(plan, f"Reviews of {plan.name}", render(plan, reviews) + f"<nav>{turn}</nav>")


def index_page(plans: Sequence[ShopPlan]) -> str:
    """Return the page of all shops."""
    listed = "".join(f'<li><a href="/{each.slug}/">{escape(each.name)}</a></li>' for each in plans)
    return f"<!doctype html><meta charset=utf-8><title>Shops</title><ul>{listed}</ul>"


def _json_ld(plan: ShopPlan, reviews: Sequence[MadeUpReview]) -> str:
    graph = []
    for each in reviews:
        item: dict[str, object] = {
            "@type": "Review",
            "reviewBody": each.text,
            "datePublished": each.day,
            "author": {"@type": "Person", "name": each.author},
            "itemReviewed": {"@type": plan.kind, "name": plan.name},
        }
        if each.rating is not None:
            item["reviewRating"] = {"@type": "Rating", "ratingValue": each.rating, "bestRating": 5}
        graph.append(item)
    shown = "".join(f"<li>{escape(each.text)}</li>" for each in reviews)
    return f"<ul>{shown}</ul>" + _script({"@context": "https://schema.org", "@graph": graph})


def _microdata(plan: ShopPlan, reviews: Sequence[MadeUpReview]) -> str:
    parts = []
    for each in reviews:
        stars = ""
        if each.rating is not None:
            stars = (
                '<span itemprop="reviewRating" itemscope itemtype="https://schema.org/Rating">'
                f'<meta itemprop="ratingValue" content="{each.rating}">{"★" * each.rating}</span>'
            )
        parts.append(
            '<li itemscope itemtype="https://schema.org/Review">'
            f'<b itemprop="author">{escape(each.author)}</b> {stars} '
            f'<time itemprop="datePublished" datetime="{each.day}">{each.day}</time> '
            f'<p itemprop="reviewBody">{escape(each.text)}</p></li>'
        )
    return f"<ul>{''.join(parts)}</ul>"


def _plain(plan: ShopPlan, reviews: Sequence[MadeUpReview]) -> str:
    parts = [
        f'<li class="review"><b class="who">{escape(each.author)}</b> '
        + ("" if each.rating is None else f'<i class="stars" data-score="{each.rating * 2}"></i>')
        + f'<span class="day">{each.day.replace("-", ". ")}.</span>'
        f'<p class="words">{escape(each.text)}</p></li>'
        for each in reviews
    ]
    return f"<ul>{''.join(parts)}</ul>"


def _script(document: object) -> str:
    text = json.dumps(document, ensure_ascii=False).replace("</", "<\\/")
    return f'<script type="application/ld+json">{text}</script>'


def _page(plan: ShopPlan, title: str, body: str) -> str:
    padding = f"<!-- {'.' * plan.padding} -->" if plan.padding else ""
    return (
        f'<!doctype html><html><head><meta charset="{plan.charset}"><title>{escape(title)}</title>'
        f"</head><body>{body}{padding}</body></html>"
    )
