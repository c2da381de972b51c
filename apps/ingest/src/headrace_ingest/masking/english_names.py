"""Rules for names of persons in Latin letters: a title, a label or a common given name. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headrace_ingest.masking.kinds import Kind, Span

_GIVEN = frozenset(
    """
    Aaron Abigail Adam Adrian Aisha Alan Albert Alex Alexander Alexandra Alice Alicia Alison Allison
    Amanda Amber Amelia Amy Ana Andrea Andrew Angela Anita Ann Anna Anne Anthony Antonio Arthur Ashley
    Barbara Beatrice Benjamin Bernard Beth Betty Beverly Brandon Brenda Brian Bruce Carl Carla Carlos
    Carmen Carol Caroline Catherine Charles Charlotte Cheryl Chloe Chris Christian Christina Christine
    Christopher Claire Clara Craig Crystal Cynthia Daniel Danielle David Deborah Dennis Derek Diana Diane
    Donald Donna Dorothy Douglas Dylan Edward Eleanor Elena Elizabeth Ellen Emily Emma Eric Erica Ethan
    Eugene Evelyn Fatima Felix Fiona Frances Francis Frank Fred Gabriel Gary George Gerald Gloria Grace
    Graham Gregory Hannah Harold Harry Heather Helen Henry Howard Ian Isaac Isabella Ivan Jack Jacob
    Jacqueline James Jamie Jane Janet Janice Jason Jean Jeffrey Jennifer Jeremy Jerry Jesse Jessica Jill
    Joan Joanna Joe John Jonathan Jordan Jorge Jose Joseph Joshua Joyce Juan Judith Judy Julia Julian
    Julie Justin Karen Katherine Kathleen Kathryn Kayla Keith Kelly Kenneth Kevin Kimberly Kyle Larry
    Laura Lauren Laurence Lawrence Leo Leonard Lillian Linda Lisa Logan Lois Louis Louise Lucas Lucy Luis
    Lydia Madison Marcus Margaret Maria Marie Marilyn Mark Martha Martin Mary Matthew Megan Melanie
    Melissa Michael Michelle Miguel Mohamed Mohammed Monica Nancy Natalie Nathan Nicholas Nicole Nina
    Noah Nora Oliver Olivia Oscar Pamela Patricia Patrick Paul Paula Peter Philip Phillip Priya Rachel
    Ralph Raymond Rebecca Richard Robert Roger Ronald Rosa Rose Roy Russell Ruth Ryan Samantha Samuel
    Sandra Sara Sarah Scott Sean Sharon Shirley Simon Sophia Sophie Stephanie Stephen Steven Susan Tara
    Teresa Terry Theresa Thomas Timothy Tina Todd Tyler Valerie Vanessa Victor Victoria Vincent Virginia
    Walter Wayne Wendy William Yvonne Zachary
    """.split()
)
# Words that follow a given name and make it the name of something else.
_NOT_SURNAMES = frozenset(
    """
    Street St Avenue Ave Road University College School Hospital Airport Church Inc Ltd LLC Corp Group
    Company Foundation Day Award Prize Island River Lake County City Park Bank And The Of In On At Is Was
    Act Bridge Museum Library Beach Square Station Theorem Law Institute
    """.split()
)
_WORD = r"[A-Z][a-zà-ÿ]+(?:['’-][A-Z][a-zà-ÿ]+)?|[A-Z]['’][A-Z][a-z]+|Ma?c[A-Z][a-z]+"
_NAME = rf"(?:{_WORD})(?: (?:[A-Z]\.|{_WORD}|de|van|von|bin|al|da|del|la)){{0,3}}"
_TITLED = re.compile(
    rf"\b(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Professor|Sir|Madam|Rev|Capt|Sgt|Judge|Attorney|Nurse)\.? ({_NAME})"
)
_LABELLED = re.compile(
    r"(?:\b(?i:(?:full |first |last |sur|customer |employee |patient |applicant |account holder |cardholder )?name"
    r"|applicant|employee|patient|customer|attn|contact|contact person|signed(?: by)?|approved by|prepared by"
    r"|reviewed by|submitted by|author|manager|recipient|sender|cardholder|interviewer|candidate)"
    rf" ?[:=] ?|\b(?i:my name is|name is|this is|I am|I'm|dear|regards,|sincerely,|hi|hello),? ?)({_NAME})"
)
_CALLED = re.compile(rf"\b({_WORD})(?: [A-Z]\.)?((?: (?:{_WORD})){{1,2}})")
# Not after "dear", "hi" and "I am": a word that everybody begins with a capital.
_COMMON = frozenset(
    """
    Sir Madam All Team Customer Customers Colleague Colleagues Everyone Friends Hiring Manager Applicant
    The This That These Those A An My Our Your We You He She It They Korean American Not In On At For From
    Human Resources Support Sales Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February
    March April May June July August September October November December Please Thank Thanks Best Kind
    Department Office Service Services Unknown None Required Director President Chief Officer
    """.split()
)


def find_english_names(text: str) -> Iterator[Span]:
    """Yield names after a title or a label, and those that begin with a common given name."""
    for match in _TITLED.finditer(text):
        yield _trimmed(match, 1)
    for match in _LABELLED.finditer(text):
        if match[1].split()[0] not in _COMMON:
            yield _trimmed(match, 1)
    for match in _CALLED.finditer(text):
        words = match[2].split()
        if match[1] in _GIVEN and words[0] not in _NOT_SURNAMES and words[-1] not in _NOT_SURNAMES:
            end = match.end() if words[-1] not in _COMMON else match.start(2) + 1 + len(words[0])
            yield Span(match.start(), end, Kind.PERSON)


def _trimmed(match: re.Match[str], group: int) -> Span:
    """Return the name without words at its end that are no part of one."""
    words = match[group].split(" ")
    while len(words) > 1 and (words[-1] in _COMMON or words[-1][0].islower()):
        words.pop()
    begin = match.start(group)
    return Span(begin, begin + len(" ".join(words)), Kind.PERSON)
