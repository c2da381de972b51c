"""What the reviews of a shop speak of, how often, and how."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from headrace_spots.analysis.language import KOREAN, language_of, plain
from headrace_spots.analysis.opinion import NEGATIVE, NEUTRAL, POSITIVE, Opinion
from headrace_spots.analysis.words import english_clauses, korean_clauses
from headrace_spots.analysis.words.aspect_words import SIZES, WEAK
from headrace_spots.analysis.words.clauses import Clause, clauses, value_near

EXAMPLES = 3
LONGEST_EXAMPLE = 200
_LEAST = 0.05


@dataclass(frozen=True, slots=True)
class Aspect:
    """What reviews of one language speak of: `mentions` clauses, so many of them in praise and so
    many in blame, and sentences that say so. `name` is one of ours (`taste`, `service` …), or the
    noun itself where none fits.
    """

    name: str
    language: str
    mentions: int
    positive: int
    negative: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mention:
    """One clause that speaks of something. `known` is whether the name is one of ours."""

    name: str
    label: str
    known: bool
    sentence: str


@dataclass(slots=True)
class _Count:
    labels: list[str] = field(default_factory=list)
    examples: dict[str, str] = field(default_factory=dict)


def aspects(texts: Sequence[str], opinions: Sequence[Opinion]) -> list[Aspect]:
    """Return what texts speak of, most mentioned first; `opinions` are those of `Sentiment.of`.

    A clause is counted once for each thing that it speaks of. The same texts give the same answer.
    """
    if len(texts) != len(opinions):
        raise ValueError(
            f"there are {len(texts)} texts and {len(opinions)} opinions; give one for each"
        )
    counts: dict[tuple[str, str], _Count] = defaultdict(_Count)
    for text, opinion in zip(texts, opinions, strict=True):
        language = language_of(text)
        for mention in mentions(text, opinion):
            count = counts[mention.name, language]
            count.labels.append(mention.label)
            count.examples.setdefault(mention.sentence, mention.label)
    found = [_aspect(name, language, count) for (name, language), count in counts.items()]
    return sorted(found, key=lambda aspect: (-aspect.mentions, aspect.name, aspect.language))


def _aspect(name: str, language: str, count: _Count) -> Aspect:
    # Sentences that say an opinion first, and praise and blame in turn where there are both.
    by_label = {
        label: [sentence for sentence, said in count.examples.items() if said == label]
        for label in (POSITIVE, NEGATIVE, NEUTRAL)
    }
    if len(by_label[NEGATIVE]) > len(by_label[POSITIVE]):
        by_label = {label: by_label[label] for label in (NEGATIVE, POSITIVE, NEUTRAL)}
    opinionated = list(by_label.values())[:2]
    ordered = [
        sentence
        for place in range(EXAMPLES)
        for sentences in opinionated
        for sentence in sentences[place : place + 1]
    ]
    return Aspect(
        name,
        language,
        len(count.labels),
        count.labels.count(POSITIVE),
        count.labels.count(NEGATIVE),
        tuple([*ordered, *by_label[NEUTRAL]][:EXAMPLES]),
    )


def mentions(text: str, opinion: Opinion) -> list[Mention]:
    """Return what each clause of a text speaks of, in order.

    What it says is decided by the words of the clause; where none of them praises or blames, the
    text's opinion stands for it, unless other clauses have said theirs.
    """
    text = plain(text)
    reader = korean_clauses if language_of(text) == KOREAN else english_clauses
    found = clauses(reader.pieces(text))
    quiet = not any(clause.has_value for clause in found)
    result = []
    for clause in found:
        sentence = _shown(text[slice(*clause.sentence)])
        for name, known, place in _named(clause):
            value = value_near(clause, place)
            if known:
                value += reader.value_by_aspect(name, clause.pieces, place)
            label = _label(value, opinion.label if quiet else NEUTRAL)
            result.append(Mention(name, label, known, sentence))
    return result


def _named(clause: Clause) -> Iterator[tuple[str, bool, int]]:
    """Yield what a clause speaks of: known aspects, else nouns where it praises or blames."""
    seen: dict[str, int] = {}
    strong = any(piece.name and piece.form not in WEAK for piece in clause.pieces)
    for place, piece in enumerate(clause.pieces):
        if strong and piece.form in WEAK:
            continue
        # A word that says an opinion too is the better place for it.
        if piece.name and (piece.name not in seen or piece.value):
            seen[piece.name] = place
    nouns = {piece.noun: place for place, piece in enumerate(clause.pieces) if piece.noun}
    if not seen and not nouns:
        sizes = [place for place, piece in enumerate(clause.pieces) if piece.form in SIZES]
        seen.update(zip(["size"], sizes, strict=False))
    for name, place in seen.items():
        yield name, True, place
    if not seen and clause.has_value:
        for noun, place in nouns.items():
            yield noun, False, place


def _label(value: float, otherwise: str) -> str:
    if abs(value) < _LEAST:
        return otherwise
    return POSITIVE if value > 0 else NEGATIVE


def _shown(sentence: str) -> str:
    sentence = " ".join(sentence.split())
    return sentence if len(sentence) <= LONGEST_EXAMPLE else sentence[: LONGEST_EXAMPLE - 1] + "…"
