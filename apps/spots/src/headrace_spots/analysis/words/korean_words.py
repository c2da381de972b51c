"""Korean words that praise or blame, as their stems. Written for this project.

`짜/VA` is the adjective only: the same letters may be a noun, a verb or a part of other words.
"""

from __future__ import annotations

from collections.abc import Iterable

_PRAISE = """
    챙기 어마어마 녹/VV 반짝반짝 반짝 그림 푸근 살살 환상적 인상적 적절 알아서 금방 흐뭇 완전하
    배려심 예의 뿌듯 저렴하 아름 합격 기분좋 술술 감미롭 좋/VA 최고 만족 훌륭 추천 감동 빠르 편하
    편리 편안 완벽 괜찮 재밌 재미있 귀엽 예쁘 이쁘 멋지 멋있 친절 넓/VA 적당 든든 꼼꼼 튼튼 맛있
    맛나 고소 담백 바삭 촉촉 쫄깃 부드럽 신선 싱싱 저렴 싸/VA 착하 알차 푸짐 넉넉 깨끗 청결 깔끔
    조용 아늑 포근 따뜻 상냥 정중 신속 정확 대박 굿 짱 강추 사랑 행복 감사 고맙 즐겁 기쁘 뛰어나
    탁월 우수 알맞 맞/VV 어울리 세련 고급 고급스럽 화사 시원 쾌적 가깝 합리 혜자 꿀맛 일품 예술
    단골 흡족 풍부 진하 개운 센스 세심 배려 싹싹 존맛 안전 뽀송 가볍 선명 생생 유용 쉽/VA 간편
    반하/VV 황홀 근사 환상 푹신 무료 정성 정갈 풍성 감탄 최상 다양 상큼 향긋 은은 밝/VA 화려 특별
    성공 배부르 여유 탄탄 견고 짱짱 편 재미 웃/VV 감칠맛 존중 적극 친근 알뜰 이득 잘 훈훈 아름답
    사르르 담백하 믿/VV
"""
_BLAME = """
    틀리 세/VA 고프 배고프 끈적 끈적거리 끈적끈적 부러지 녹슬 보풀 보풀이 벗겨지 뜯기 꽉 물때
    날파리 파리 이물질 퉁퉁 오르 인상 무시하 안되 탄내 설익 덜익 질퍽 어정쩡 미흡 형편 누렇 눅
    뭉개지 물렁 젖/VV 쏟아지 흘러나오 떠들 시들 냉랭 불성실 잊/VV 나쁘 별로 최악 불만 불만족 실망
    느리 늦 불편 아쉽 엉망 지루 쓰레기 짜증 화나 좁/VA 답답 부실 허술 약하 망가지 찌그러지 깨지
    터지 새/VV 후회 비싸 맛없 짜/VA 싱겁 느끼/XR 느끼하 비리 질기 퍽퍽 눅눅 불친절 무례 퉁명
    퉁명스럽 시끄럽 더럽 지저분 찝찝 구리 형편없 엉성 조잡 헐렁 끼/VV 작/VA 적/VA 멀/VA 어둡 춥 덥
    탁하 떨어지 부족 모자라 불쾌 화 실수 누락 빠뜨리 잘못 고장 불량 하자 바가지 아깝 창렬 기다리
    지연 차갑 식/VV 굳/VV 상하/VV 썩 곰팡이 벌레 머리카락 먼지 얼룩 흠집 스크래치 기스 찢어지
    부서지 헤지 해지 어수선 산만 복잡 붐비 힘들 어렵 귀찮 싫 싫어하 밉 끔찍 역겹 거슬리 무성의
    무뚝뚝 불결 딱딱 밍밍 텁텁 떫 쓰/VA 맵/VA 무겁 얇/VA 구겨지 망하 노맛 비추 환불 반품 무시 건성
    짧/VA 허접 무관심 소홀 이상 문제 미지근 눌리 파손 훼손 불안 흔들리 삐걱 흐리 흐릿 늘어나 변색
    과하 심하 악취 헤매 헤매이 굳이 엉터리 거짓 사기 낡 오래되 촌스럽 어이없 황당 불쌍 욕 부담
    초라 대충 함부로 뜯어지 터무니없 볼품없 정신없 까칠 쌀쌀맞 느릿느릿 너무하 불만스럽 빈약 텅 탔
"""
NEGATIONS_BEFORE = frozenset(("안", "못", "전혀", "덜"))
NEGATIONS_AFTER = frozenset(("않", "못하", "못", "말", "아니", "없"))


def stems(words: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return words by their form and tag; the tag is empty where any will do."""
    found = {}
    for word in words:
        form, _, tag = word.partition("/")
        found[form, tag] = word
    return found


VALUES: dict[tuple[str, str], int] = {
    **dict.fromkeys(stems(_PRAISE.split()), 1),
    **dict.fromkeys(stems(_BLAME.split()), -1),
}


def value_of(form: str, tag: str) -> int:
    """Return 1 for a morpheme that praises, -1 for one that blames, else 0."""
    value = VALUES.get((form, tag)) or VALUES.get((form, ""), 0)
    # The dictionary has some adjectives whole: `깨끗하`.
    return value or (VALUES.get((form[:-1], ""), 0) if form.endswith("하") else 0)
