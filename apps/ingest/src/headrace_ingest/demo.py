"""The demo of `headrace up --bundle ingest`: a small firm's papers, and real package texts.

All persons, numbers and addresses are made up.
"""

from __future__ import annotations

import importlib.metadata
import io
import zipfile
from html import escape

from headrace import App
from headrace.bundles import Setup
from headrace_ingest.documents import Documents
from headrace_ingest.service import IngestService
from headrace_ingest.store.sources import FileSource

# Read where they are installed, and real: what is found is not only what was made up for it.
PACKAGES = ("msgspec", "sqlalchemy", "httpx", "click", "numpy")
LONGEST = 60_000

LEAVE = """# 연차 휴가 규정

제1조 근로자는 1년에 15일의 유급 휴가를 받는다. 3년 이상 일한 사람은 2년마다 하루를 더 받는다.
제2조 휴가는 사흘 전까지 부서장에게 신청한다. 급한 병은 당일 전화로 알린다.
제3조 쓰지 않은 휴가는 이듬해 3월까지 쓸 수 있고, 그 뒤에는 수당으로 받는다.

담당자: 김민수 과장, 전화 010-2345-6789, 메일 minsu.kim@example.com
"""
CONTRACT = """근로계약서

성명: 박서연
주민등록번호: 900101-1234568
연락처: 010-9876-5432

근무 시간은 오전 아홉 시부터 오후 여섯 시까지이며 점심시간은 한 시간이다.
급여는 매달 25일에 국민은행 123456-04-567890 계좌로 지급한다.
수습 기간은 3개월이며 이 기간의 급여는 정상 급여의 90퍼센트이다.
"""
SAFETY = """소방 훈련 안내

소방 훈련은 매년 4월과 10월에 두 번 한다. 경보가 울리면 엘리베이터를 타지 말고 계단으로 나간다.
소화기는 각 층 계단 옆에 있다. 모이는 곳은 건물 뒤 주차장이다.
문의: 시설팀 이영희 대리, 02-555-0199, facility@example.com
"""
TRAVEL = """# Business travel

Trains are booked in second class; flights need the approval of the head of department. Hotels may
cost up to 140 EUR a night. Keep all receipts and hand them in within 30 days of your return.

Questions: Emily Carter, emily.carter@example.com, +1 415 555 2671
"""
REFUND = """Refunds and returns

Customers may return goods within thirty days and receive the full price back. Opened software is
exchanged only if it is faulty. Refunds go to the card that was used, such as 4111 1111 1111 1111.
A refund above 500 EUR is approved by Michael Brown (michael.brown@example.com).
"""
MAIL = """From: Sarah Johnson <sarah.johnson@example.com>
To: helpdesk@example.com
Subject: The printer on the third floor
Date: Mon, 16 Nov 2026 09:12:00 +0000
Content-Type: text/plain; charset=utf-8

The printer shows ERR-4471 and smells burnt. I have unplugged it. Please bring a new toner.
You can reach me at +44 20 7946 0958 until noon.
"""
SUPPLIERS = """supplier,contact,phone,what
한빛식품,정우성,02-555-0132,커피와 차
Nordic Paper,Anna Larsson,+46 8 123 456 78,paper and envelopes
서울청소,최지우,010-3333-4444,청소 매주 화요일과 금요일
"""
INCIDENT = """<h1>Outage of the shop on 3 November</h1>
<p>The shop was down for 42 minutes because the disk of the database was full. Logs were not
rotated after the upgrade. The key sk_live_4eC39HqLyjWDarjtT1zdp7dc stood in a log file and was
replaced.</p><p>On call: David Wilson, david.wilson@example.com, from 192.0.2.17.</p>
"""
MINUTES = (
    "Minutes of the works council, 12 November",
    "Working from home: three days a week are allowed from January, after a talk with the team.",
    "The canteen will offer a vegetarian dish every day. 구내식당은 열한 시 반에 연다.",
    "Present: Laura Meyer (laura.meyer@example.com), Thomas Schmidt, 김지훈 부장.",
)


async def demo(app: App, setup: Setup) -> None:
    """Hand in some documents."""
    documents = Documents(IngestService(setup))
    for path, name, content in [*made_up(), *real()]:
        async with FileSource(content) as source:
            await documents.add(source, name, path, metadata={"demo": True})


def made_up() -> list[tuple[str, str, bytes]]:
    """Return documents with personal data to mask: path, name, content."""
    texts = [
        ("/hr/leave", "연차 휴가 규정.md", LEAVE),
        ("/hr", "근로계약서 견본.txt", CONTRACT),
        ("/office", "소방 훈련.txt", SAFETY),
        ("/hr", "travel.md", TRAVEL),
        ("/sales", "refunds.txt", REFUND),
        ("/it", "printer.eml", MAIL),
        ("/office", "suppliers.csv", SUPPLIERS),
        ("/it/incidents", "outage.html", INCIDENT),
    ]
    found = [(path, name, text.encode()) for path, name, text in texts]
    return [*found, ("/hr/council", "minutes.docx", word_document(MINUTES))]


def real() -> list[tuple[str, str, bytes]]:
    """Return the descriptions of some installed packages."""
    found = []
    for package in PACKAGES:
        try:
            about = importlib.metadata.metadata(package).json.get("description")
        except importlib.metadata.PackageNotFoundError:
            continue
        if isinstance(about, str) and about.strip():
            found.append(("/it/packages", f"{package}.md", about[:LONGEST].encode()))
    return found


def word_document(paragraphs: tuple[str, ...]) -> bytes:
    """Return a document of Word with these paragraphs."""
    namespace = "http://schemas.openxmlformats.org"
    body = "".join(f"<w:p><w:r><w:t>{escape(text)}</w:t></w:r></w:p>" for text in paragraphs)
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{namespace}/package/2006/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{word}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{namespace}/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{namespace}/officeDocument/2006/relationships/officeDocument"'
        ' Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{namespace}/wordprocessingml/2006/main">'
        f"<w:body>{body}</w:body></w:document>",
    }
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, '<?xml version="1.0" encoding="UTF-8"?>' + text)
    return target.getvalue()
