"""The four steps of a run. What one hands to the next is in the lake: pages in bronze, reviews in
silver, the analysis in gold, the report in artifacts. Results of stages are small.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from headrace import Context
from headrace_spots import analysis
from headrace_spots.crawling.charset import decode
from headrace_spots.crawling.crawl import Crawl, Crawled
from headrace_spots.crawling.fetch import Fetcher
from headrace_spots.crawling.kept import KeptPages
from headrace_spots.crawling.pages import Fetched
from headrace_spots.embedding import DIMENSIONS, split_sentences
from headrace_spots.errors import NoReviews
from headrace_spots.findings import (
    MOST_ASPECTS,
    Findings,
    FoundAspect,
    count_stars,
    mean_rating,
    plain,
    rate_months,
)
from headrace_spots.parsing.found import ParsedPage, Review, ShopFacts
from headrace_spots.parsing.parse import parse_page
from headrace_spots.parsing.selectors import Site, site_of
from headrace_spots.report.report import ReportFacts, make_report
from headrace_spots.service import SpotsService
from headrace_spots.store.records import (
    PROGRESS,
    Analysed,
    JudgedReview,
    RunStatus,
    SentenceVectors,
)
from headrace_spots.store.repository import LABELS
from headrace_spots.summary import word_summary

REVIEWS = "reviews.jsonl"
OPINIONS = "opinions.jsonl"
ANALYSIS = "analysis.json"
REPORT = "report.html"
JSONL = "application/x-ndjson"
CHOSEN = 3
# Representative sentences are chosen among so many reviews, taken evenly.
CHOSEN_AMONG = 2000
# Rows are written so often at most while a stage goes on.
SHOW_SECONDS = 0.5


class ParsedShop(msgspec.Struct, kw_only=True):
    """What was found on the pages; the reviews are in silver."""

    facts: ShopFacts
    reviews: int


class _Judged(msgspec.Struct, frozen=True):
    review_id: str
    label: str
    score: float


class Steps:
    """The steps of one attempt."""

    def __init__(self, service: SpotsService, ctx: Context, store_id: str) -> None:
        self._service = service
        self._ctx = ctx
        self._store_id = store_id
        self._shown_at = 0.0

    async def crawl(self, url: str) -> Crawled:
        """Fetch the pages that are not in bronze yet."""
        settings = self._service.settings
        kept = await KeptPages.of(self._ctx)
        site = site_of(self._service.sites, url)

        async def on_page(looked_at: int, known: int) -> None:
            await self._show(RunStatus.CRAWLING, RunStatus.CRAWLED, looked_at / max(known, 1))

        async with Fetcher(self._service.manners(url)) as fetcher:
            crawl = Crawl(
                fetcher,
                kept,
                most_pages=settings.most_pages,
                follow=() if site is None else site.follow,
                on_page=on_page,
            )
            return await crawl.run(url)

    async def parse(self, crawled: Crawled) -> ParsedShop:
        """Read the pages, one at a time, into reviews in silver."""
        most = self._service.settings.most_reviews
        site = site_of(self._service.sites, crawled.start)
        kept = await KeptPages.of(self._ctx)
        facts, lines, seen = ShopFacts(), bytearray(), set[str]()
        done = 0
        async for page in kept.pages():
            parsed = await asyncio.to_thread(_parse, page, site)
            facts = facts.or_else(parsed.shop)
            for review in parsed.reviews:
                if review.review_id not in seen and len(seen) < most:
                    seen.add(review.review_id)
                    lines += msgspec.json.encode(review) + b"\n"
            done += 1
            await self._show(RunStatus.PARSING, RunStatus.PARSED, done / max(crawled.pages, 1))
        if not seen:
            raise NoReviews(
                f"no reviews were found on {crawled.pages:,} pages; if the shop has some, write a "
                "selector file for it (HEADRACE_SPOTS_SITES)"
            )
        await self._ctx.artifacts.put(REVIEWS, bytes(lines), layer="silver", media_type=JSONL)
        return ParsedShop(facts=facts, reviews=len(seen))

    async def analyse(self, parsed: ParsedShop) -> Findings:
        """Judge the reviews, and find what they talk about."""
        reviews = await self._reviews()
        opinions, aspects = await asyncio.to_thread(_judge, reviews)
        judged = [
            _Judged(review.review_id, opinion.label, round(opinion.score, 4))
            for review, opinion in zip(reviews, opinions, strict=True)
        ]
        counts = {label: sum(each.label == label for each in judged) for label in LABELS}
        rating = mean_rating(reviews)
        findings = Findings(
            reviews=len(reviews),
            rating=parsed.facts.rating if rating is None else rating,
            stars=count_stars(reviews),
            sentiment=counts,
            months=rate_months(reviews),
            aspects=aspects,
            model=self._service.encoder.name,
        )
        lines = b"".join(msgspec.json.encode(each) + b"\n" for each in judged)
        await self._ctx.artifacts.put(OPINIONS, lines, layer="gold", media_type=JSONL)
        return findings

    async def embed(self, crawled: Crawled, parsed: ParsedShop, findings: Findings) -> str:
        """Embed the sentences, choose those that speak for many, make the report, and store all."""
        reviews = await self._reviews()
        content = await self._ctx.artifacts.get(OPINIONS, layer="gold")
        opinions = [msgspec.json.decode(line, type=_Judged) for line in content.splitlines()]
        vectors = await self._vectors([each.text for each in reviews])
        chosen = await asyncio.to_thread(_choose, reviews, vectors)
        worded = await word_summary(self._service.settings, findings, chosen)
        findings.summary = chosen if worded is None else [worded]
        if worded is not None:
            findings.summary_by = self._service.settings.summary_model
        body = plain(findings, crawl=msgspec.to_builtins(crawled))
        report = await self._put_findings(crawled, parsed, findings, body)
        analysed = Analysed(
            run_id=self._ctx.job_id,
            facts=parsed.facts,
            pages=crawled.pages,
            rating=findings.rating,
            reviews=[
                JudgedReview(review=review, label=each.label, score=each.score, vectors=rows)
                for review, each, rows in zip(reviews, opinions, vectors, strict=True)
            ],
            body=body,
            report=report,
            counts=findings.sentiment,
        )
        return str(await self._service.repository.complete(analysed, self._ctx.token))

    async def _put_findings(
        self, crawled: Crawled, parsed: ParsedShop, findings: Findings, body: dict[str, Any]
    ) -> str:
        about = ReportFacts(
            run_id=self._ctx.job_id,
            url=crawled.start,
            facts=parsed.facts,
            pages=crawled.pages,
            refused=crawled.refused,
            failed=crawled.failed,
            left=crawled.left,
            made_at=datetime.now(UTC),
        )
        content = msgspec.json.encode(body)
        await self._ctx.artifacts.put(
            ANALYSIS, content, layer="gold", media_type="application/json"
        )
        html = await asyncio.to_thread(make_report, about, findings)
        return await self._ctx.artifacts.put(REPORT, html.encode(), media_type="text/html")

    async def _vectors(self, texts: Sequence[str]) -> list[SentenceVectors]:
        """Return the vectors of each text's sentences, as 16-bit numbers; each sentence once."""
        size = self._service.settings.batch_size
        pieces = [split_sentences(text) for text in texts]
        every = list(dict.fromkeys(piece for own in pieces for piece in own))
        rows = np.empty((len(every), DIMENSIONS), np.float16)
        for start in range(0, len(every), size):
            batch = every[start : start + size]
            rows[start : start + len(batch)] = await self._service.encoder.encode(batch, size)
            share = (start + len(batch)) / len(every)
            await self._show(RunStatus.EMBEDDING, RunStatus.COMPLETED, 0.9 * share)
        places = {piece: place for place, piece in enumerate(every)}
        return [rows[[places[piece] for piece in own]] for own in pieces]

    async def _reviews(self) -> list[Review]:
        content = await self._ctx.artifacts.get(REVIEWS, layer="silver")
        return [msgspec.json.decode(line, type=Review) for line in content.splitlines()]

    async def _show(self, status: RunStatus, following: RunStatus, share: float) -> None:
        """Show how far a stage is, now and then."""
        first, last = PROGRESS[status], PROGRESS[following]
        progress = min(first + int((last - first) * share), last - 1)
        self._ctx.progress(progress, status)
        now = time.monotonic()
        if now - self._shown_at >= SHOW_SECONDS:
            self._shown_at = now
            await self._service.repository.show(self._ctx.job_id, self._ctx.token, status, progress)


def _parse(page: Fetched, site: Site | None) -> ParsedPage:
    return parse_page(decode(page.content, page.content_type), page.url, site)


def _judge(
    reviews: Sequence[Review],
) -> tuple[list[analysis.Opinion], list[FoundAspect]]:
    texts = [each.text for each in reviews]
    stars = [each.rating for each in reviews]
    opinions = analysis.Sentiment.load().of(texts, stars=stars)
    aspects = [
        FoundAspect(
            name=each.name,
            language=each.language,
            mentions=each.mentions,
            positive=each.positive,
            negative=each.negative,
            examples=list(each.examples),
        )
        for each in analysis.aspects(texts, opinions)[:MOST_ASPECTS]
    ]
    return opinions, aspects


def _choose(reviews: Sequence[Review], vectors: Sequence[SentenceVectors]) -> list[str]:
    """Return the sentences that speak for many: the first of each chosen review, and what follows
    if that is short.
    """
    step = -(-len(reviews) // CHOSEN_AMONG)
    some = range(0, len(reviews), step)
    texts = [reviews[place].text for place in some]
    means = np.stack([vectors[place].astype(np.float32).mean(axis=0) for place in some])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    means /= np.where(lengths > 0, lengths, 1)
    return [texts[place] for place in analysis.representative(texts, means, CHOSEN)]
