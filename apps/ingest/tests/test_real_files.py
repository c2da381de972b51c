"""Files of other projects: each ends with text or in one clear error."""

from __future__ import annotations

from collections import Counter

import pytest

from headrace_ingest.real_files import Unreachable, download, outcomes


@pytest.mark.timeout(400)
def test_every_real_file_ends_with_text_or_in_one_clear_error(
    request: pytest.FixtureRequest,
) -> None:
    try:
        folders = download(request.config.cache.mkdir("headrace-ingest-real-files"))
    except Unreachable as error:
        pytest.skip(str(error))
    found = list(outcomes(folders))
    assert [(path.name, what) for _, path, what in found if what.startswith("FAULT")] == []
    assert all("\n" not in what for _, _, what in found)
    counts = Counter(path.suffix.lower() for _, path, what in found if what == "text")
    assert counts[".pdf"] >= 70
    assert counts[".docx"] >= 30
    assert counts[".pptx"] >= 25
