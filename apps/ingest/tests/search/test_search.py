"""Documents are found by meaning and by words, whoever stored them."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from headrace import InvalidInput
from headrace_ingest.chunking import split
from headrace_ingest.embedding import LocalEmbedder, embed_chunks
from headrace_ingest.search.index import IndexTooLarge
from headrace_ingest.search.ranking import Question, rank
from headrace_ingest.search.search import Search
from headrace_ingest.search.segment import LoadedDocument, Segment
from headrace_ingest.search.words import terms_of
from headrace_ingest.store.records import NewDocument, Processed
from headrace_ingest.store.repository import Repository

LEAVE = "근로자는 1년에 15일의 유급 휴가를 받는다. 신청은 사흘 전까지 부서장에게 한다."
FIRE = "소방 훈련은 매년 두 번 실시하고 그 결과를 기록한다. 소화기는 각 층에 둔다."
REFUND = "Customers receive a full refund within thirty days. Keep the receipt of your order."
DEVICE = "If the printer shows ERR-4471, replace the toner. The guard_timeout is ten seconds."


class Library:
    """Stores texts, and searches them."""

    def __init__(self, engine: AsyncEngine, embedder: LocalEmbedder) -> None:
        self.engine = engine
        self.embedder = embedder
        self.repository = Repository(engine)
        self.search = Search(engine, embedder)

    async def add(
        self, document_id: str, text: str, path: str = "/", *, token: int = 1, whole: bool = False
    ) -> None:
        """Store a document whose name is its id."""
        await self.repository.begin(
            NewDocument(document_id=document_id, name=document_id, path=path, sha256=text), token
        )
        chunks = split(text)
        vectors = await embed_chunks(self.embedder, [chunk.text for chunk in chunks], whole=whole)
        processed = Processed(
            document_id=document_id, characters=len(text), model=self.embedder.name
        )
        await self.repository.store(processed, chunks, vectors, token)

    async def found(self, q: str, **options: object) -> list[str]:
        """Return the documents that a question finds, the best first."""
        hits = await self.search.search(q, **options)  # type: ignore[arg-type]
        return [hit.document_id for hit in hits]


@pytest.fixture
async def library(engine: AsyncEngine, embedder: LocalEmbedder) -> Library:
    made = Library(engine, embedder)
    for name, text, path in (
        ("leave", LEAVE, "/hr/leave"),
        ("fire", FIRE, "/hr"),
        ("refund", REFUND, "/hrx"),
        ("device", DEVICE, "/it"),
    ):
        await made.add(name, text, path)
    return made


async def test_a_question_finds_its_answer_by_meaning_in_both_languages(library: Library) -> None:
    assert (await library.found("휴가는 며칠인가요?"))[0] == "leave"
    assert (await library.found("how do I get my money back"))[0] == "refund"
    assert (await library.found("How many days of vacation do workers have?"))[0] == "leave"
    assert (await library.found("환불은 언제까지 받을 수 있나요"))[0] == "refund"


async def test_a_keyword_finds_where_it_stands(library: Library) -> None:
    assert (await library.found("ERR-4471"))[0] == "device"
    assert (await library.found("guard_timeout", mode="words")) == ["device"]
    assert await library.found("nonexistentword", mode="words") == []


async def test_a_hit_says_where_it_is_and_what_to_highlight(library: Library) -> None:
    hit = (await library.search.search("유급 휴가", k=1))[0]
    assert (hit.document_id, hit.chunk_id, hit.name) == ("leave", "leave.0", "leave")
    assert (hit.path, hit.text) == ("/hr/leave", LEAVE)
    assert [hit.text[begin:end] for begin, end in hit.highlights] == ["유급", "휴가"]
    assert 0 < hit.score <= 1


async def test_scores_fall_and_k_is_kept(library: Library) -> None:
    hits = await library.search.search("how do I get a refund", k=3)
    assert len(hits) == 3
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def test_a_path_has_what_is_below_it_only(library: Library) -> None:
    assert set(await library.found("refund", path="/hr")) == {"leave", "fire"}
    assert set(await library.found("refund", path="/hr/leave/")) == {"leave"}
    assert set(await library.found("refund", path="/nothing")) == set()


async def test_what_others_store_and_delete_is_seen_and_only_changes_are_loaded(
    library: Library,
) -> None:
    assert len(await library.found("휴가")) == 4
    other = Library(library.engine, library.embedder)
    await other.add("sick", "병가는 1년에 60일까지 쓸 수 있다. 진단서를 낸다.", "/hr")
    await other.repository.delete("leave")
    found = await library.found("병가는 며칠까지 쓸 수 있나요?")
    assert found[0] == "sick"
    assert "leave" not in found
    assert library.search.index.loaded == 5


async def test_a_new_version_is_found_instead_of_the_old_one(library: Library) -> None:
    await library.found("휴가")
    await library.repository.begin(
        NewDocument(document_id="new", name="leave", path="/hr/leave", sha256="n"), 1
    )
    text = "근로자는 1년에 20일의 유급 휴가를 받는다."
    vectors = await embed_chunks(library.embedder, [text])
    processed = Processed(document_id="new", characters=1, model=library.embedder.name)
    await library.repository.store(processed, split(text), vectors, 1)
    found = await library.found("휴가는 며칠인가요?")
    assert found[0] == "new"
    assert "leave" not in found


async def test_a_document_that_is_stored_again_is_found_once(library: Library) -> None:
    await library.found("휴가")
    await library.add(
        "leave", "주차장은 오전 7시에 연다. 방문자는 안내소에 등록한다.", "/hr/leave", token=2
    )
    found = await library.found("주차장 이용 시간")
    assert found[0] == "leave"
    assert found.count("leave") == 1
    assert library.search.index.chunks == 4


async def test_one_vector_for_a_chunk_is_compared_only_if_asked(
    engine: AsyncEngine, embedder: LocalEmbedder
) -> None:
    library = Library(engine, embedder)
    await library.add("leave", LEAVE, whole=True)
    await library.add("fire", FIRE)
    assert await library.found("휴가", mode="chunk") == ["leave"]
    assert set(await library.found("휴가")) == {"leave", "fire"}


async def test_vectors_of_another_model_are_not_compared(library: Library) -> None:
    other = LocalEmbedder()
    other.name = "another"
    assert await Search(library.engine, other).search("휴가") == []


async def test_memory_is_bounded_and_said(library: Library) -> None:
    await library.found("휴가")
    assert library.search.method.startswith("in memory: ")
    assert "of 4 chunks" in library.search.method


async def test_more_than_fits_into_memory_is_compared_by_pgvector_or_refused(
    library: Library, request: pytest.FixtureRequest
) -> None:
    small = Search(library.engine, library.embedder, memory_bytes=1000)
    if request.node.callspec.params["tables_url"] != "pgvector":
        with pytest.raises(IndexTooLarge, match="raise HEADRACE_INGEST_SEARCH_MEMORY"):
            await small.search("휴가")
        return
    in_memory = Search(library.engine, library.embedder)
    for question, path in (("휴가는 며칠인가요?", None), ("refund", "/hrx"), ("소화기", "/hr")):
        ours, theirs = await small.search(question, path), await in_memory.search(question, path)
        assert [hit.document_id for hit in ours][:1] == [hit.document_id for hit in theirs][:1]
        assert {hit.path for hit in ours} == {hit.path for hit in theirs}
    assert small.method.startswith("by pgvector")
    await library.repository.delete("leave")
    assert "leave" not in [hit.document_id for hit in await small.search("휴가")]


async def test_many_changes_are_merged_and_stay_searchable(
    engine: AsyncEngine, embedder: LocalEmbedder
) -> None:
    library = Library(engine, embedder)
    for number in range(20):
        await library.add(f"d{number}", f"Room number{number} is open. It has {number} chairs.")
        assert (await library.found(f"number{number}"))[0] == f"d{number}"
    assert len(library.search.index.segments) <= 8
    for number in range(20):
        assert (await library.found(f"number{number}", mode="words")) == [f"d{number}"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"q": "  "}, "q has 0 characters"),
        ({"q": "x" * 1001}, "q has 1001 characters"),
        ({"q": "x", "k": 0}, "k is 0"),
        ({"q": "x", "k": 101}, "k is 101"),
        ({"q": "x", "mode": "magic"}, "mode is 'magic'"),
    ],
)
async def test_what_cannot_be_searched_is_refused(
    library: Library, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        await library.search.search(**options)  # type: ignore[arg-type]


async def test_an_empty_library_finds_nothing(engine: AsyncEngine, embedder: LocalEmbedder) -> None:
    assert await Library(engine, embedder).found("휴가") == []


def test_candidates_by_signs_hold_the_nearest_vectors() -> None:
    from headrace_ingest.search.nearest import NearestVectors

    generator = np.random.default_rng(1)
    centres = generator.standard_normal((400, 512))
    vectors = centres[generator.integers(0, 400, 60_000)] + generator.standard_normal((60_000, 512))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    nearest = NearestVectors.of(vectors)
    for row in generator.integers(0, 60_000, 20):
        asked = vectors[row] + 0.05 * generator.standard_normal(512).astype(np.float32)
        asked /= np.linalg.norm(asked)
        exact = np.argsort(-(vectors @ asked))[:10]
        candidates = nearest.candidates(asked, None, 1000)
        assert np.isin(exact, candidates).all()
        cosines = nearest.cosines(asked, exact)
        assert np.abs(cosines - vectors[exact] @ asked).max() < 0.005


def test_a_chunk_about_the_question_is_before_one_with_a_single_near_sentence() -> None:
    def document(name: str, *cosines: float) -> LoadedDocument:
        vectors = np.zeros((len(cosines), 64), np.float32)
        for row, cosine in enumerate(cosines):
            vectors[row, [0, row + 1]] = cosine, np.sqrt(1 - cosine**2)
        numbers = range(1, len(cosines) + 1)
        return LoadedDocument(
            name, "/", [0], [terms_of("")], [0] * len(cosines), list(numbers), vectors
        )

    one, all_of_it = document("one", 0.6, 0.0, 0.0), document("all of it", 0.55, 0.5, 0.5)
    question = Question(terms_of(""), np.eye(64, dtype=np.float32)[0], "default", 2)
    apart = [Segment.of([one], 64), Segment.of([all_of_it], 64)]
    for segments in (apart, [Segment.merged(apart)], [Segment.of([one, all_of_it], 64)]):
        found = rank(segments, question, lambda _: None)
        assert [each.document_id for each in found] == ["all of it", "one"]
