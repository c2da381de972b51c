"""Large files to measure with."""

from __future__ import annotations

import os
from pathlib import Path

PAGES = 200
LINE = "Parcel {number} weighs {number} kilograms and is sent to depot {depot} on Monday."


def large_pdf(path: Path, mebibytes: int) -> None:
    """Write a PDF of pages with some lines of text and a picture each, so large in all."""
    picture = mebibytes * 2**20 // PAGES
    places: list[int] = []
    with path.open("wb") as file:

        def add(content: bytes) -> None:
            places.append(file.tell())
            file.write(b"%d 0 obj\n%s\nendobj\n" % (len(places), content))

        file.write(b"%PDF-1.4\n")
        kids = b" ".join(b"%d 0 R" % (4 + 3 * page) for page in range(PAGES))
        add(b"<< /Type /Catalog /Pages 2 0 R >>")
        add(b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, PAGES))
        add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
        for page in range(PAGES):
            own = 4 + 3 * page
            add(
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources "
                b"<< /Font << /F1 3 0 R >> /XObject << /P %d 0 R >> >> >>" % (own + 1, own + 2)
            )
            lines = "".join(
                f"({LINE.format(number=page * 20 + line, depot=line)}) Tj 0 -20 Td "
                for line in range(20)
            )
            text = f"/P Do BT /F1 10 Tf 40 700 Td {lines}ET".encode()
            add(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text))
            side = int(picture**0.5)
            # Noise, which no format packs: as a scan or a photograph.
            noise = os.urandom(side * side)
            head = b"/Type /XObject /Subtype /Image /ColorSpace /DeviceGray /BitsPerComponent 8"
            size = b"/Width %d /Height %d /Length %d" % (side, side, len(noise))
            add(b"<< %s %s >>\nstream\n%s\nendstream" % (head, size, noise))
        table = file.tell()
        file.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1))
        file.write(b"".join(b"%010d 00000 n \n" % place for place in places))
        file.write(b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(places) + 1))
        file.write(b"startxref\n%d\n%%%%EOF\n" % table)
