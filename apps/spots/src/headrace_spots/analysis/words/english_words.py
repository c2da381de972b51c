"""English words that praise or blame, and what turns or strengthens them. Written for this project.

A word stands for its other forms too (`love`: loves, loved, loving): see `stem`.
"""

from __future__ import annotations

from collections.abc import Mapping

_BY_VALUE = {
    3.0: """
        amazing awesome best brilliant excellent exceptional exquisite extraordinary fabulous
        fantastic flawless gorgeous heavenly incredible love magnificent marvelous masterpiece
        outstanding perfect perfection phenomenal sensational spectacular splendid stellar
        stunning sublime superb superior terrific thrilled wonderful wow unbeatable impeccable
        delicious divine
    """,
    2.0: """
        admire adorable amaze astonish attractive beautiful bargain beats blast blessing bliss
        charming cool crisp delight delightful durable easy effortless elegant enjoy enjoyable
        enthusiastic favorite favourite fresh friendly fun generous genius glad good gem great
        handy happy helpful hilarious honest impress impressive inviting joy kind kudos lively
        lovely loyal luxurious memorable nice pleasant pleasantly please pleasure polite powerful
        professional prompt quick recommend refreshing reliable remarkable rich satisfied satisfy
        satisfying sharp sleek smart smooth solid special speedy stylish sturdy success successful
        super sweet tasty tender thank thanks top treat trust valuable vibrant warm welcoming win
        winner worth worthwhile worthy yum yummy attentive cozy flavorful juicy crispy scrumptious
        mouthwatering affordable courteous hospitable spotless breathtaking captivating compelling
        moving touching gripping addictive praise rave unmatched intuitive seamless versatile
        hassle-free user-friendly bonus breeze plus pro ease well thumbs-up
    """,
    1.0: """
        able accurate adequate advantage agree appealing appreciate authentic available balanced
        benefit better bright capable cheap clean clear clever colorful comfortable comfy compact
        compatible competent complete confident consistent convenient correct cute decent
        dependable detailed economical effective efficient enough ergonomic exact expand fair
        fancy fast fine flexible free functional gift genuine gentle healthy help hot improve
        improvement inexpensive innovative interesting light lightweight long-lasting like lucky
        neat okay organized original patient peaceful plenty plentiful popular portable positive
        practical precise premium productive proper pure quality quiet ready reasonable relax
        responsive robust safe secure simple simplicity sincere slick spacious stable
        straightforward strong stylishly support surprise sufficient tidy unique useful variety
        vivid wise works yes smile hope upgrade generously excited exciting excite definitely
        gladly highly rugged quieter easier faster cheaper nicer brighter clearer stronger
        smoother smaller lighter
    """,
    -1.0: """
        average bland bulky careful clumsy cold complicated con concern confuse confusing costly
        cumbersome dark dated delay difficult difficulty dim dirty doubt drawback dry dull empty
        expensive fiddly finicky flat forget greasy grainy hard heavy hesitate hiccup imperfect
        inconsistent incompatible inconvenient lack lacking lag lazy leak limit limited limitation
        loose loud meh mediocre minor miss missing mistake negative noise noisy odd old outdated
        overpriced pale plain pricey problem quibble quirk regular rough rush salty scratch
        sensitive short shortcoming slow small sorry stain stale steep sticky stiff strange stuck
        tiny tired tough tricky unclear uncomfortable uneven unfortunately unlike unnecessary
        unpleasant unsure wait warp weak weird worry complaint complain downside downfall gripe
        issue glitch nit caveat bother bug trouble warn warning wish unfortunate quirky awkward
        blurry blur fuzzy overcooked undercooked soggy bitter oily watery burnt cramped crowded
        pushy lukewarm skimpy tasteless flavorless unable fragile flimsier slower heavier louder
        harder worn skip
    """,
    -2.0: """
        angry annoy annoying anger avoid bad blame boring break broke broken careless cheat
        cheaply cheesy clunky crack crap crappy crash damage damaged dead deceptive defect
        defective die died disappoint disappointing disappointment disgrace dishonest dislike
        dissatisfied dreadful dump error fail failed failure fake fault faulty flaw flawed flimsy
        frustrate frustrating frustration gimmick hassle ignore ignorant inadequate incompetent
        incorrect inferior insult irritate irritating joke junky kill lie lost lousy mess messy
        miserable misleading nasty pain pathetic poor poorly refund refuse regret reject repair
        replace replacement return rip-off ripoff rotten rude ruin sad scam scared shame shoddy
        sick smell smelly sour spoil stink stupid sucks sucked suck trap unacceptable unhappy
        unhelpful unprofessional unreliable unresponsive unsatisfied unstable unusable upset
        useless wast waste wasted worse worsen wrong malfunction freeze frozen jam jammed lemon
        stopped dishwater inedible filthy nauseous predictable cliche pointless unwatchable bored
        skeptical incorrectly shatter toss tossed overheat corrupt corrupted nuisance beware
        dissappointed headache
    """,
    -3.0: """
        abysmal appalling atrocious awful catastrophe despise disaster disastrous disgust
        disgusting fraud garbage hate horrendous horrible horrid horrific horrify hideous
        infuriating junk nightmare outrageous repulsive revolting ridiculous rubbish terrible
        trash unbearable worst worthless vile vomit crooks thieves never-again abomination
    """,
}

NEGATIONS = frozenset(
    """
    no not never none nothing nobody neither nor without hardly barely scarcely cannot cant can't
    won't wont don't dont doesn't doesnt didn't didnt isn't isnt wasn't wasnt aren't arent weren't
    werent couldn't couldnt wouldn't wouldnt shouldn't shouldnt hasn't hasnt haven't havent hadn't
    hadnt ain't rarely seldom n't t zero few lacks lacking unable stop stopped
    """.split()  # noqa: SIM905 - as words are read
)
STRENGTHENERS = frozenset(
    """
    very really extremely absolutely so too totally completely highly incredibly truly super quite
    especially particularly exceptionally deeply utterly insanely remarkably such even always ever
    definitely most much far
    """.split()  # noqa: SIM905
)
WEAKENERS = frozenset(
    """
    slightly somewhat little bit kinda kind sort fairly rather almost nearly mostly only just
    occasionally sometimes partly moderately relatively
    """.split()  # noqa: SIM905
)
TURNS = frozenset(("but", "however", "although", "though", "yet", "except", "despite", "unless"))
WISHES = frozenset(
    ("if", "would", "could", "should", "wish", "hoped", "expected", "supposed", "want")
)

# What is cut off at the end of a word, and what is put there: "tastier" is "tasty".
_ENDINGS = tuple(
    (ending, instead)
    for endings, instead in (
        (("ies", "iest", "ier", "ied", "ily"), "y"),
        (("ing", "ed", "es", "s", "ly", "er", "est", "ness", "d", "r"), ""),
        (("ing", "ed", "er", "est", "y"), "e"),
    )
    for ending in endings
)

# For clauses about an aspect. The model of whole texts was learnt without them.
_IN_CLAUSES = {
    2.0: """
        refill smiling smile gracious accommodating knowledgeable melt melted secure securely
        heart-warming buttery sparkling immaculate punctual wholesome hearty romantic
    """,
    1.0: """
        share early soft promptly carefully fairly refilling snug neatly central right-away plush
    """,
    -1.0: """
        nobody hungry nowhere late fade shrink shrank tight thin undersized underwhelming forever
        chewy noisier hour hours
    """,
    -2.0: """
        snapped snap rip ripped robbery ignored soaked crumbs mold mouldy moldy rust rusted peeled
        peel tore torn crushed dented forgot stank overcharge overcharged spilled crumpled wobbly
        grim yelled unfriendly impolite disrespectful dismissive untrained frown grumpy
    """,
}


def _by_word(by_value: dict[float, str]) -> dict[str, float]:
    return {word: value for value, words in by_value.items() for word in words.split()}


VALUES = _by_word(_BY_VALUE)
VALUES_IN_CLAUSES = {**VALUES, **_by_word(_IN_CLAUSES)}
EMOJIS = {
    **dict.fromkeys("😀😃😄😁😊🙂😍🥰😘😋🤗🤩😎👍👏❤💕💖💯🔥✨🎉🙌😻♥🥳💛💙💜👌😂🤣⭐★", 2.0),
    **dict.fromkeys("😞😟😠😡🤬😢😭😤😒🙁☹😣😖😩😫🤢🤮👎💔😱😷🙄😑💩👿", -2.0),
}
SMILEYS = {
    ":)": 2.0,
    ":-)": 2.0,
    ":d": 2.0,
    ";)": 1.0,
    "<3": 2.0,
    ":(": -2.0,
    ":-(": -2.0,
    ":/": -1.0,
}


def value_of(word: str, known: Mapping[str, float] = VALUES) -> float:
    """Return how much a word praises (up to 3) or blames (down to -3); 0 for others."""
    if word in known:
        return known[word]
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            stem = word[: -len(ending)] + instead
            if stem in known:
                return known[stem]
            if len(stem) > 3 and stem[-1] == stem[-2:-1] and stem[:-1] in known:
                return known[stem[:-1]]
    return 0.0
