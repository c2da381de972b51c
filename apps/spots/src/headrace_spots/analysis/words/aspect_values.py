"""Words that praise or blame only beside what they are about: a price that is high, a queue that is
long. Written for this project.
"""

from __future__ import annotations

# Each aspect: words that are good of it, and words that are bad of it.
_ENGLISH = {
    "price": ("low lower", "high higher extra too"),
    "portion": (
        "big large huge enough share full leftovers",
        "small tiny little still shrunk half smaller",
    ),
    "size": (
        "true perfectly",
        "small big large huge short long too smaller larger bigger",
    ),
    "waiting": ("short immediately straight away", "long hour hours minutes forever ages"),
    "delivery": (
        "early time next sooner before",
        "late slow weeks lost later never",
    ),
    "location": ("close near heart steps minutes next right", "far hard remote impossible nowhere"),
    "mood": ("bright soft beautiful", "dark loud blaring too"),
    "quality": (
        "last lasted lasts thick soft high",
        "apart cheap thin stopped low tore peeling",
    ),
    "service": (
        "smiled answered patiently fast apologized",
        "ignored forgot slow yelled never rolled",
    ),
    "packaging": (
        "securely carefully careful intact recyclable",
        "torn crushed dented open ripped leaked spilled",
    ),
    "cleanliness": ("", "found"),
    "taste": ("homemade craving", "cold dry raw too"),
}
_KOREAN = {
    "price": ("낮 착하 내리", "높 오르"),
    "portion": ("많 크", "적 작 줄 줄어들"),
    "size": ("딱 넉넉", "크 작 길 짧 타이트"),
    "waiting": ("짧 바로 없이", "길 오래 많 시간"),
    "delivery": ("바로 하루 금방", "오래 일주일 주일"),
    "location": ("바로 근처", ""),
    "mood": ("감성", "크"),
    "quality": ("높", "낮 싸구려 금방"),
    "service": ("빨리 바로", "없"),
    "packaging": ("꼼꼼히 단단 이중", "뜯기 열리 젖"),
    "cleanliness": ("", "나 나오 많 끈적"),
    "taste": ("생각나 그립 중독", "차"),
}


def _by_word(words: tuple[str, str], size: float) -> dict[str, float]:
    good, bad = words
    return {**dict.fromkeys(good.split(), size), **dict.fromkeys(bad.split(), -size)}


ENGLISH_VALUES = {name: _by_word(words, 2.0) for name, words in _ENGLISH.items()}
KOREAN_VALUES = {name: _by_word(words, 1.0) for name, words in _KOREAN.items()}
