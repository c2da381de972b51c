"""What reviews speak of, by the words that say so in both languages. Written for this project.

Korean words are stems as in `korean_words`; English ones stand for their plural too. Words that say
an opinion as well ("delicious", `비싸`) are here for what they are about.
"""

from __future__ import annotations

from headrace_spots.analysis.words.korean_words import stems

KOREAN_ASPECTS = {
    "taste": """
        생선 해산물 새우 채소 야채 쌀 떡 만두 김밥 족발 보쌈 곱창 닭 돼지 소고기 한우 국 육수
        면/NNG 튀기 굽 익 식재료 시식 안주 후식 빙수 마카롱 쿠키 도넛 녹/VV 매운맛 단맛 짠맛 맛
        맛있 맛나 맛없 음식 요리 메뉴 국물 고기 커피 빵 디저트 반찬 소스 짜/VA 싱겁 느끼/XR 느끼하
        고소 담백 비리 질기 바삭 촉촉 쫄깃 존맛 꿀맛 노맛 식감 육즙 풍미 양념 면발 튀김 치킨 피자
        파스타 스테이크 초밥 회 찌개 라면 국수 떡볶이 김치 샐러드 케이크 음료 차/NNG 맥주 와인 밥
        볶음밥 덮밥 버거 햄버거 돈가스 냉면 갈비 삼겹살 달콤 매콤 새콤 달달 밍밍 텁텁 맵/VA 향
        감칠맛 불맛 맛집 간/NNG 탕 죽/NNG 전골 크림 초콜릿 과일 아메리카노 라떼
    """,
    "service": """
        챙기 틀리 점장 사장님 직원분 알바분 응대하 인사 환대 눈치 서버 고객응대 상담사 연락 사후
        전화 답장 직원 서비스 사장 점원 알바 알바생 아르바이트생 종업원 주인 응대 친절 불친절 태도
        고객 센터 고객센터 상담 상담원 환불 교환 반품 무례 퉁명 퉁명스럽 상냥 싹싹 접객 매니저
        서빙 판매자 판매원 문의 답변 안내 무뚝뚝 주인장 이모 as 에이에스 사과 대응 응답 설명
    """,
    "price": """
        원/NNB 가격표 지불 물가 인상 적립 할인가 최저가 비용 정가 돈 가격 가격대 값 가성비 비싸
        싸/VA 저렴 할인 바가지 요금 만원 세일 혜자 창렬 금액 쿠폰 가심비 돈값 배송비
    """,
    "mood": """
        인스타 사진발 재즈 배경 배경음악 창가 정원 루프탑 북적 아기자기 감성적 대화 데이트 분위기
        인테리어 음악 조명 뷰 경치 전망 시끄럽 조용 아늑 감성 소음 노래 무드 실내 공간 테라스 장식
        소란 야경 좌석 의자 풍경
    """,
    "delivery": """
        배송비 익일 송장 운송 배송되 배달되 배송지 문앞 배송 배달 택배 도착 배송일 기사 발송 출고
        당일배송 로켓배송 새벽배송 라이더 수령 택배사
    """,
    "quality": """
        보풀 보풀이 실밥 지퍼 단추 접착 코팅 충전 화면 모터 손잡이 벗겨지 부러지 떨어지 헤지 녹슬
        물빠짐 이염 내구력 촘촘 세탁 품질 질/NNG 재질 소재 원단 마감 내구 내구성 튼튼 고장 불량
        하자 성능 신선 싱싱 재료 화질 음질 부서지 찢어지 퀄리티 완성도 품질력 박음질 바느질 제품력
        견고 조잡 배터리 흡수력 촉감 망가지 작동 색감 발색 고급 버튼 소리
    """,
    "size": """
        꽉 딱맞 통/NNG 작아지 커지 키/NNG 가슴 밑위 총장 발 사이즈 크기 치수 핏 길이 기장 폭 헐렁
        품/NNG 어깨 허리 둘레 정사이즈 부피 두께 끼/VV 발볼 허벅지 소매
    """,
    "packaging": """
        스티로폼 테이프 겉포장 내용물 봉지 싸이 밀폐 파손 포장 박스 상자 뽁뽁이 완충재 완충 용기
        포장지 에어캡 비닐 밀봉 봉투 포장재 뚜껑 선물포장 아이스팩
    """,
    "cleanliness": """
        바닥 반짝반짝 반짝 끈적거리 끈적끈적 테이블 물때 파리 날파리 이물질 수저 컵 세척 소독 냅킨
        깨끗 청결 위생 더럽 지저분 화장실 냄새 벌레 머리카락 먼지 청소 깔끔 불결 악취 얼룩 끈적
        바퀴벌레 곰팡이 위생적 식기
    """,
    "waiting": """
        줄서 입장 오픈런 순서 대기실 대기자 대기줄 웨이팅하 대기 웨이팅 줄/NNG 기다리 기다림 예약
        회전율 대기표 대기시간 번호표 순번 회전
    """,
    "location": """
        버스 도보 정문 출구 건너편 맞은편 근처 시내 번화가 외지 주차비 주차하 찾/VV 걷/VV 위치
        주차 주차장 교통 접근 접근성 골목 가깝 멀/VA 역/NNG 지하철 역세권 동네 길/NNG 찾아가
        지하철역 정류장 입구
    """,
    "portion": """
        고프 배고프 배부르 곱배기 사리 포만감 한그릇 양/NNG 푸짐 인분 곱빼기 넉넉 리필 용량 창렬
        혜자 배/NNG 그릇
    """,
}  # fmt: skip

ENGLISH_ASPECTS = {
    "taste": """
        ramen toast oyster lamb duck bean vegetable fruit egg cheese ice-cream gelato bagel pie
        waffle donut stew kimchi bbq undercooked cooking recipe seasoned crust dough topping spice
        aroma aftertaste tasted tastes fried grilled taste flavor flavour food dish meal menu
        delicious tasty bland yummy yum flavorful flavorless tasteless seasoning sauce soup coffee
        bread dessert cake pizza pasta burger steak chicken fish noodle rice sushi salad curry
        beef pork shrimp sandwich fries tea beer wine drink cocktail breakfast lunch dinner brunch
        salty sweet spicy juicy crispy soggy greasy overcooked burnt texture broth cuisine cooked
        sour bitter savory mouthwatering scrumptious pastry pancake croissant cookie chocolate
        latte espresso dumpling taco rib
    """,
    "service": """
        waitstaff crew assistant salesperson agent greeted reply response apology apologized
        apologised attitude ignored clerk checkout responded wrong-order service staff waiter
        waitress server employee manager owner rude friendly polite helpful attentive host hostess
        bartender cashier barista seller vendor support courteous unprofessional unhelpful
        welcoming refund rep representative chef customer-service team impolite hospitality
        receptionist dismissive
    """,
    "price": """
        cheaper pricier prices dollars euro pound pay paid afford markup robbery spend spent cents
        price pricey expensive cheap overpriced affordable cost value bargain inexpensive money
        bill pricing reasonable fee charge discount deal worth dollar buck rip-off ripoff budget
        priced tip sale coupon
    """,
    "mood": """
        jazz candle vibes romantic lively crowded dim lit noise decorated background peaceful cosy
        privacy intimate atmosphere ambiance ambience mood decor interior music vibe lighting view
        cozy noisy quiet loud decoration scenery setting seating furniture terrace patio relaxing
        playlist charming
    """,
    "delivery": """
        delivering deliveries shipped mail post postal doorstep estimated delivery shipping
        shipment courier deliver delivered ship arrive arrived arrival driver dispatch parcel
        transit shipper tracking
    """,
    "quality": """
        handle snapped snap hinge strap peeled tore torn ripped rust rusted faded shrunk wash
        button lens charger speaker product-quality sturdiness flimsier lasted wear reliable
        quality material fabric durability durable sturdy flimsy broken broke defective build
        workmanship stitching seam battery performance sound picture screen craftsmanship
        construction finish ingredient fresh freshness stale malfunction crack cracked leak fell
        zipper plastic leather cotton design feature camera well-made cheaply-made fade
    """,
    "size": """
        sizes bigger smaller larger fitting shoulder hip chest shrank petite size sizing fit fits
        fitted tight loose length width baggy snug inch oversized waist sleeve dimension bulky
    """,
    "packaging": """
        boxed wrapped bubble tape padding cardboard cap envelope unpacked unboxing packaging
        package box wrapping packed wrap bubble-wrap carton packing packet lid sealed seal
        container crushed dented
    """,
    "cleanliness": """
        crumb crumbs floor floors mold mould stank stinks smelled smelly stinky sanitary cleaner
        wiped hygienically fly flies sink clean dirty filthy spotless hygiene hygienic bathroom
        restroom toilet smell sticky stain dust dusty cleanliness tidy messy cockroach roach hair
        immaculate grimy unsanitary insect bug odor stained washroom
    """,
    "waiting": """
        lines queued queues waits wait-list waitlist table-ready reservations reserve wait waiting
        waited queue line reservation wait-time seated queuing booking
    """,
    "location": """
        nowhere train bus lot garage valet corner block directions location parking located
        neighborhood neighbourhood subway downtown accessible nearby street central
        convenient-location walk station metro park distance
    """,
    "portion": """
        portions servings share shared stuffed full leftovers hearty quantities portion serving
        helping filling generous-portion refill quantity amount hungry plate-size
    """,
}

# These name their aspect only where the clause names no other: "the package came late" is about its
# delivery, "the fabric feels cheap" about its quality.
WEAK = frozenset(
    """
    menu soup coffee bread dessert cake pizza pasta burger steak chicken fish noodle noodles rice
    sushi salad curry beef pork shrimp sandwich fries tea beer wine cocktail drinks breakfast
    lunch dinner brunch broth pastry pancake croissant cookie chocolate latte espresso dumpling
    dumplings taco rib ribs ramen toast meal dish sauce texture 메뉴 국물 고기 커피 빵 디저트 반찬
    소스 튀김 치킨 피자 파스타 스테이크 초밥 찌개 라면 국수 떡볶이 김치 샐러드 케이크 음료 맥주
    와인 볶음밥 덮밥 버거 햄버거 돈가스 냉면 갈비 삼겹살 라떼 아메리카노 생선 새우 만두 김밥 재료
    향 package cheap worth deal sweet hair park walk finish design amount charge drink view sound
    line setting support team fresh plastic driver clean 배 길 소리 공간 설명 간 차 회 돈 고급
    문의 안내 교환 환불 반품 그릇 의자 실내 예약 기사 밥 깔끔 깔끔하
    """.split()  # noqa: SIM905
)
# Said of nothing that is named, these are about the size of it: "too big", `생각보다 커요`.
SIZES = frozenset("small big large tight huge tiny 크 작 짧 길".split())  # noqa: SIM905

# Words that name nothing that is worth counting: the reviewer, time, and what every review has.
KOREAN_EMPTY = frozenset(
    """
    것 거 수 때 제품 상품 물건 가게 식당 집 곳 매장 여기 저기 거기 사람 친구 가족 남편 아내 엄마
    아빠 아이 애 오늘 어제 내일 이번 다음 저번 처음 마지막 생각 정도 때문 전 후 중 안 밖 위 아래
    번 개 명 시간 분 일 월 년 말 하루 주말 평일 아침 점심 저녁 리뷰 후기 구매 사용 방문 추천 느낌
    기분 경우 부분 이유 상태 사진 실제 전체 하나 둘 우리 저 나 너 자기 본인 모두 그것 이것 뭐 최고
    최악 만족 실망 후회 재구매 재방문 별로 정말 진짜 완전 기대 감사 감동 별점 점 요즘 평소 마음
    강추 불만 영화
    """.split()  # noqa: SIM905
)
ENGLISH_EMPTY = frozenset(
    """
    thing things lot bit time times day days week weeks month months year years way people person
    friend friends family wife husband kid kids one ones place restaurant store shop product item
    review reviews star stars today yesterday tomorrow night morning evening afternoon experience
    order purchase something anything everything nothing someone everyone anyone part rest reason
    fact case end first second last hour hours minute minutes side top front back half couple
    point kind sort
    """.split()  # noqa: SIM905
)


def by_word(groups: dict[str, str]) -> dict[str, str]:
    """Return the aspect of each word; the first group that has a word keeps it."""
    found: dict[str, str] = {}
    for name, words in groups.items():
        for word in words.split():
            found.setdefault(word, name)
    return found


KOREAN_NAMES: dict[tuple[str, str], str] = {
    key: name for name, words in reversed(KOREAN_ASPECTS.items()) for key in stems(words.split())
}
ENGLISH_NAMES = by_word(ENGLISH_ASPECTS)


def korean_name(form: str, tag: str) -> str | None:
    """Return the aspect that a morpheme speaks of."""
    found = KOREAN_NAMES.get((form, tag)) or KOREAN_NAMES.get((form, ""))
    # The dictionary has some adjectives whole: `깨끗하`.
    return found or (KOREAN_NAMES.get((form[:-1], "")) if form.endswith("하") else None)


def english_name(word: str) -> str | None:
    """Return the aspect that a word speaks of, singular or plural."""
    for candidate in (word, word.removesuffix("s"), word.removesuffix("es")):
        if candidate in ENGLISH_NAMES:
            return ENGLISH_NAMES[candidate]
    return None
