"""What people say in the shops that do not exist: invented by us, in Korean and English."""

from __future__ import annotations

ENGLISH = {
    "coffee": (
        [
            "The coffee is wonderful, dark and never bitter.",
            "Best flat white I have had in this part of town.",
            "Their coffee beans are roasted on the spot and you can taste it.",
        ],
        [
            "The coffee was cold when it came.",
            "My coffee tasted burnt and thin.",
            "Three different coffees and none of them was good.",
        ],
    ),
    "staff": (
        [
            "The staff remembered my order on the second visit.",
            "Friendly staff who explain every cake without being asked.",
            "A waiter ran after me with the umbrella I had forgotten.",
        ],
        [
            "The staff talked to each other and ignored the queue.",
            "We were told off for asking for tap water.",
            "Rude service at the counter, nobody said hello.",
        ],
    ),
    "price": (
        ["Fair prices for what you get.", "The lunch menu is surprisingly cheap."],
        ["Far too expensive for a small slice of cake.", "The price went up twice this year."],
    ),
    "seats": (
        [
            "Plenty of seats by the window, and sockets at every table.",
            "The garden at the back is quiet and shady.",
        ],
        [
            "The chairs are so hard that nobody stays long.",
            "No free table on a Saturday, we stood for half an hour.",
        ],
    ),
    "parking": (
        ["Parking behind the house is free for guests."],
        ["There is no parking anywhere near.", "Parking cost more than the meal."],
    ),
    "cake": (
        [
            "The lemon cake alone is worth the trip.",
            "Fresh bread and cake from seven in the morning.",
        ],
        ["The cake was dry and from yesterday.", "Half of the cakes were sold out by noon."],
    ),
    "noise": (
        ["Calm enough to read a whole book."],
        ["The music is so loud that you cannot talk.", "Very noisy, chairs scrape all the time."],
    ),
    "cleanliness": (
        ["Everything is spotless, the toilets too."],
        ["The tables were sticky and the floor dirty."],
    ),
}
KOREAN = {
    "커피": (
        [
            "커피가 진하고 향이 정말 좋아요.",
            "이 동네에서 커피가 제일 맛있는 곳이에요.",
            "직접 볶은 원두라서 커피 맛이 달라요.",
        ],
        [
            "커피가 다 식어서 나왔어요.",
            "커피에서 탄 맛이 나서 남겼어요.",
            "커피가 너무 연해서 물 같았습니다.",
        ],
    ),
    "직원": (
        [
            "직원분들이 정말 친절하고 설명도 자세해요.",
            "두 번째 갔는데 직원이 기억해 주셔서 감동했어요.",
            "아이에게도 친절하게 대해 주셨습니다.",
        ],
        [
            "직원이 불친절해서 기분이 나빴어요.",
            "불러도 직원이 오지 않아 한참 기다렸습니다.",
            "계산할 때 인사도 없고 말투가 차가웠어요.",
        ],
    ),
    "가격": (
        ["가격이 착하고 양도 많아요.", "이 가격에 이런 맛이면 만족합니다."],
        ["가격에 비해 양이 너무 적어요.", "가격이 또 올라서 이제는 부담스러워요."],
    ),
    "음식": (
        [
            "음식이 하나하나 정성스럽고 맛있어요.",
            "국물이 깊고 반찬도 깔끔합니다.",
            "메뉴판에 없는 음식도 물어보면 만들어 주세요.",
        ],
        [
            "음식이 짜고 미지근했어요.",
            "주문한 음식이 사십 분 만에 나왔습니다.",
            "고기에서 냄새가 나서 못 먹었어요.",
        ],
    ),
    "분위기": (
        ["분위기가 조용하고 아늑해서 책 읽기 좋아요.", "창가 자리 분위기가 정말 예뻐요."],
        ["음악이 너무 커서 대화를 할 수 없었어요.", "조명이 어둡고 분위기가 답답했습니다."],
    ),
    "주차": (
        ["건물 뒤에 주차장이 넓어서 편해요."],
        ["주차할 곳이 없어서 두 바퀴나 돌았어요.", "주차비가 따로 들어서 아쉬웠습니다."],
    ),
    "자리": (
        ["자리가 넓고 콘센트도 많아요."],
        ["자리가 좁아서 옆 사람과 부딪혔어요.", "주말에는 자리가 없어서 그냥 나왔습니다."],
    ),
    "위생": (
        ["매장이 아주 깨끗하고 화장실도 좋아요."],
        ["테이블이 끈적거리고 바닥이 더러웠어요."],
    ),
}
OPENINGS = {
    "en": {
        "good": ["I keep coming back.", "A lovely place.", "What a find!", "Very happy.", ""],
        "bad": ["Never again.", "What a pity.", "Not what it used to be.", "Disappointed.", ""],
        "mixed": ["It depends on the day.", "Half good, half not.", "So-so.", ""],
    },
    "ko": {
        "good": ["또 갈 거예요.", "정말 만족했습니다.", "추천해요!", "숨은 맛집이네요.", ""],
        "bad": ["다시는 안 갑니다.", "많이 아쉬웠어요.", "기대했는데 실망했습니다.", ""],
        "mixed": ["그냥 무난했어요.", "좋은 점도 있고 아쉬운 점도 있어요.", ""],
    },
}
AUTHORS = {
    "en": ["Maple", "Wren", "Otto", "June", "Basil", "Robin", "Hazel", "Fern"],
    "ko": ["구름", "하늘", "보리", "달래", "여름", "바다", "솔잎", "봄이"],
}
