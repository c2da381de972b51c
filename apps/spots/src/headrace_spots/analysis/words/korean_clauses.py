"""Pieces of a Korean text, by its morphemes."""

from __future__ import annotations

from collections.abc import Sequence

from headrace_spots.analysis.words.aspect_values import KOREAN_VALUES
from headrace_spots.analysis.words.aspect_words import KOREAN_EMPTY, korean_name
from headrace_spots.analysis.words.clauses import Border, Piece
from headrace_spots.analysis.words.korean import Morpheme, morphemes
from headrace_spots.analysis.words.korean_words import NEGATIONS_AFTER, NEGATIONS_BEFORE, value_of

_TURNS = frozenset("지만 는데 ㄴ데 은데 으나 나 던데 더라도 ᆫ데 다만 는데요".split())  # noqa: SIM905
_LINKS = frozenset(("고", "며", "으며", "면서", "으면서", "구"))
_TURNING = frozenset(("불", "부", "비", "무", "미", "최"))
_BETWEEN = frozenset(("XSA", "XSV", "JX", "JKS", "JKO"))
_PARTICLES = frozenset(("JKS", "JX", "JKO", "JC"))


def pieces(text: str) -> list[Piece]:
    """Return the morphemes of a text with what they name and say."""
    found = _with_prefixes(morphemes(text))
    values = [_value(found, place) for place in range(len(found))]
    if any(value for value, each in zip(values, found, strict=True) if each.form != "별로"):
        # `별로 안 비싸요`: the word only strengthens what follows.
        values = [
            0.0 if each.form == "별로" else value for value, each in zip(values, found, strict=True)
        ]
    return [
        Piece(
            each.begin,
            each.end,
            each.form,
            korean_name(each.form, each.tag) or "",
            values[place],
            _noun(found, place),
            _border(text, found, place),
        )
        for place, each in enumerate(found)
    ]


def _with_prefixes(found: Sequence[Morpheme]) -> list[Morpheme]:
    """Return morphemes with `불` and its like joined to what they turn round: `불친절`."""
    result: list[Morpheme] = []
    for each in found:
        last = result[-1] if result else None
        if last and last.tag == "XPN" and last.form in _TURNING and each.begin == last.end:
            result[-1] = Morpheme(last.form + each.form, each.tag, last.begin, each.end)
        else:
            result.append(each)
    return result


def value_by_aspect(name: str, found: Sequence[Piece], place: int) -> float:
    """Return what words near an aspect say of it that praise or blame nothing by themselves."""
    by_word = KOREAN_VALUES.get(name, {})
    return sum(
        by_word[piece.form] / (1 + abs(place - other)) * _turned_pieces(found, other)
        for other, piece in enumerate(found)
        if piece.form in by_word and not piece.value
    )


def _value(found: Sequence[Morpheme], place: int) -> float:
    each = found[place]
    value = float(value_of(each.form, each.tag))
    if not value:
        return 0.0
    return value * _turned([other.form for other in found], [other.tag for other in found], place)


def _turned(forms: Sequence[str], tags: Sequence[str], place: int) -> float:
    """Return -1 where a negation belongs to the morpheme, else 1."""
    before = any(
        forms[other] in NEGATIONS_BEFORE and tags[other] == "MAG"
        for other in range(max(0, place - 2), place)
    )
    after = False
    for other in range(place + 1, min(place + 6, len(forms))):
        if forms[other] in NEGATIONS_AFTER:
            after = True
            break
        # `친절하지는 않`, `문제가 없`: only these may stand between.
        if tags[other] not in _BETWEEN and (tags[other], forms[other]) != ("EC", "지"):
            break
    return -1.0 if before != after else 1.0


def _turned_pieces(found: Sequence[Piece], place: int) -> float:
    forms = [piece.form for piece in found]
    near = forms[max(0, place - 2) : place]
    behind = forms[place + 1 : place + 3]
    return -1.0 if any(form in ("안", "못") for form in near) or "않" in behind else 1.0


def _noun(found: Sequence[Morpheme], place: int) -> str:
    each = found[place]
    if each.tag not in ("NNG", "NNP") or len(each.form) < 2 or each.form in KOREAN_EMPTY:
        return ""
    followed = place + 1 < len(found) and found[place + 1].tag in _PARTICLES
    return each.form if followed and not value_of(each.form, each.tag) else ""


def _border(text: str, found: Sequence[Morpheme], place: int) -> Border:
    each = found[place]
    following = found[place + 1] if place + 1 < len(found) else None
    gap = text[each.end : following.begin] if following else ""
    if "\n" in gap or each.tag in ("SF", "SE"):
        return Border.END
    if following is None:
        return Border.NONE
    if each.tag == "EF" and following.tag not in ("SF", "SE", "JX", "SW"):
        return Border.END
    links = each.tag == "EC" and following.tag != "VX"
    if following.tag == "MAJ" or (links and each.form in _TURNS):
        return Border.TURN
    return Border.SOFT if each.tag == "SP" or (links and each.form in _LINKS) else Border.NONE
