"""Small PDF files, written by hand: plain, without text, many pages, and hostile ones."""

from __future__ import annotations

import zlib


def make_pdf(objects: list[bytes], *, root: int = 1) -> bytes:
    """Return a PDF file with these objects, numbered from 1."""
    body = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    body += b"".join(b"%010d 00000 n \n" % place for place in places)
    body += b"trailer\n<< /Size %d /Root %d 0 R >>\n" % (len(objects) + 1, root)
    return body + b"startxref\n%d\n%%%%EOF\n" % table


def stream(data: bytes, extra: bytes = b"") -> bytes:
    """Return a stream object."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), extra, data)


FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def text_pdf(*lines: str) -> bytes:
    """Return a PDF with one page for each line."""
    count = len(lines)
    kids = b" ".join(b"%d 0 R" % (4 + 2 * index) for index in range(count))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count),
        FONT,
    ]
    for index, line in enumerate(lines):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * index)
        )
        shown = line.encode("latin-1")
        objects.append(stream(b"BT /F1 12 Tf 72 700 Td (%s) Tj ET" % shown if shown else b""))
    return make_pdf(objects)


def hanging_pdf(*, width: int = 10, depth: int = 4, pages: int = 20_000) -> bytes:
    """Return a PDF that keeps a parser busy for hours: each page draws a form that draws a form …

    What a page takes is given back before the next, so that it is its time that runs out and not
    its memory, on a fast machine too.
    """
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b"4 0 R " * pages, pages),
        FONT,
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R "
        b"/Resources << /XObject << /X 6 0 R >> >> >>",
        stream(b"/X Do " * width),
    ]
    for level in range(depth):
        last = level == depth - 1
        resources = b"/Font << /F1 3 0 R >>" if last else b"/XObject << /X %d 0 R >>" % (7 + level)
        content = b"BT /F1 12 Tf 72 700 Td (ha) Tj ET" if last else b"/X Do " * width
        head = b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << %s >>" % resources
        objects.append(stream(content, head))
    return make_pdf(objects)


def bomb_pdf(mebibytes: int) -> bytes:
    """Return a PDF of a thousandth of that size, whose page inflates to so many MiB of text."""
    deflate = zlib.compressobj(9)
    part = b"BT /F1 12 Tf 72 700 Td (hahaha) Tj ET\n" * 26_000
    data = b"".join(deflate.compress(part) for _ in range(mebibytes)) + deflate.flush()
    return make_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
            FONT,
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>",
            stream(data, b"/Filter /FlateDecode"),
        ]
    )
