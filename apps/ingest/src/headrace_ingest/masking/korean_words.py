"""Words by which names of persons are told in Korean: surnames, titles, and what is no person."""

from headrace_ingest.masking.words import words

SURNAMES = frozenset(
    "김이박최정강조윤장임한오서신권황안송류유전홍고문양손배백허남심노하곽성차주우구민진나지엄채원천방공현함변염"
    "여추도소석선설마길연위표명기반왕금옥육인맹제모탁국어은편용예경봉사부가복태목형피두감호제갈음빈동온"
)
LONG_SURNAMES = ("남궁", "황보", "제갈", "사공", "선우", "서문", "독고", "동방")
# Seldom words in themselves, so that three syllables with them at the beginning are mostly names.
COMMON_SURNAMES = frozenset(
    "김이박최정강조윤장임한오서신권황안송류유전홍고문양손배백허남심노하곽성차주우구민나엄채원"
)

# After a name, with or without a space.
TITLES = words("korean_titles")
# Before a name.
ROLES = words("korean_roles")
# Before a name, with a colon or a space: what a form calls it.
LABELS = (
    "성명",
    "이름",
    "담당자",
    "신청인",
    "신청자",
    "예금주",
    "작성자",
    "승인자",
    "보호자",
    "대표자",
    "수신인",
    "수취인",
)

# Three syllables that begin like a name and are none.
NO_NAMES = words("korean_no_names")
# The word goes on: a place, a firm, an office, a team.
SUFFIXES = words("korean_suffixes")
PLACES = words("korean_places")
