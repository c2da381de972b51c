"""The demo of `headrace up --bundle speech`: two short dialogues, one in Korean and
English. Once they are spoken, nothing is done any more.
"""

from __future__ import annotations

from headrace import App
from headrace.bundles import Setup
from headrace_speech.dialogues import Dialogues
from headrace_speech.script import Script, Turn
from headrace_speech.service import SpeechService

STATION = (
    ("지나", "안녕하세요. 부산 가는 다음 기차가 몇 시에 있나요?"),
    ("Tom", "Good morning! The next train to Busan leaves at ten past nine, from platform four."),
    ("지나", "고맙습니다. 표는 어디에서 살 수 있어요?"),
    ("Tom", "At the machine behind you. It speaks Korean, and it is more patient than I am."),
    ("지나", "하하, 그럼 기계한테 물어볼게요. 안녕히 계세요!"),
)
NEWS = (
    ("Anchor", "This is the six o'clock news. The weather first."),
    ("Weather", "Rain in the north until noon, then clear skies and eighteen degrees."),
    ("Anchor", "Thank you. And now the traffic."),
    ("Traffic", "All roads are clear, and all trains are on time. I have never said this before."),
)


async def demo(app: App, setup: Setup) -> None:
    """Hand in two dialogues."""
    service = SpeechService(setup)
    try:
        dialogues = Dialogues(service)
        for title, voices, turns in (
            (
                "The six o'clock news",
                {"Anchor": "en-gb", "Weather": "en-us+f3", "Traffic": "en-gb-scotland+m7"},
                NEWS,
            ),
            # The newest is shown first.
            ("역에서 · At the station", {"지나": "ko+f2", "Tom": "en-us+m3"}, STATION),
        ):
            script = Script(
                title=title,
                turns=[Turn(role=role, text=text) for role, text in turns],
                voice_assignments=voices,
            )
            await dialogues.hand_in(script, user="local")
    finally:
        service.close()
