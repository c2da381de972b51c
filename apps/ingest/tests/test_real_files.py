"""Files of other projects: each is completed with text, or fails after one attempt with one clear
sentence.
"""

from __future__ import annotations

from collections import Counter

import pytest
from ingest_support.embedding_server import an_embedding_server

from headrace_ingest.real_files import Unreachable, download, outcomes


@pytest.mark.timeout(400)
async def test_every_real_file_is_completed_with_text_or_fails_once_with_one_clear_sentence(
    request: pytest.FixtureRequest,
) -> None:
    try:
        folders = download(request.config.cache.mkdir("headrace-ingest-real-files"))
    except Unreachable as error:
        pytest.skip(str(error))
    # What the texts mean is nothing to this test.
    with an_embedding_server() as server:
        settings = {"embedding_url": server.url, "embedding_key": "k", "embedding_dimensions": 4}
        found = await outcomes(folders, **settings)
    assert [each for each in found if each.what.startswith("FAULT")] == []
    counts = Counter(each.path.suffix.lower() for each in found if each.what == "text")
    assert counts[".pdf"] >= 70
    assert counts[".docx"] >= 30
    assert counts[".pptx"] >= 25
