"""Small Office documents, written by hand."""

from __future__ import annotations

import io
import struct
import zipfile

_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_XML = '<?xml version="1.0"?>'
_TYPES = (
    f'{_XML}<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>{}</Types>'
)
_RELATIONS = f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{{}}</Relationships>'
_DOC = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PART = "application/vnd.openxmlformats-officedocument"


def make_zip(entries: dict[str, bytes | str]) -> bytes:
    """Return a ZIP file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


def make_docx(*paragraphs: str, more: dict[str, bytes | str] | None = None) -> bytes:
    """Return a Word document."""
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    part = f"{_PART}.wordprocessingml.document.main+xml"
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return make_zip(
        {
            "[Content_Types].xml": _TYPES.format(
                f'<Override PartName="/word/document.xml" ContentType="{part}"/>'
            ),
            "_rels/.rels": _RELATIONS.format(
                f'<Relationship Id="r1" Type="{_DOC}/officeDocument" Target="word/document.xml"/>'
            ),
            "word/document.xml": f'<?xml version="1.0" encoding="UTF-8"?>'
            f'<w:document xmlns:w="{namespace}"><w:body>{body}</w:body></w:document>',
            **(more or {}),
        }
    )


def make_xlsx(*cells: str) -> bytes:
    """Return a workbook with one row."""
    namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    row = "".join(
        f'<c r="{chr(65 + index)}1" t="inlineStr"><is><t>{text}</t></is></c>'
        for index, text in enumerate(cells)
    )
    main = f"{_PART}.spreadsheetml"
    return make_zip(
        {
            "[Content_Types].xml": _TYPES.format(
                f'<Override PartName="/xl/workbook.xml" ContentType="{main}.sheet.main+xml"/>'
                f'<Override PartName="/xl/worksheets/sheet1.xml" '
                f'ContentType="{main}.worksheet+xml"/>'
            ),
            "_rels/.rels": _RELATIONS.format(
                f'<Relationship Id="r1" Type="{_DOC}/officeDocument" Target="xl/workbook.xml"/>'
            ),
            "xl/workbook.xml": f'{_XML}<workbook xmlns="{namespace}" xmlns:r="{_DOC}">'
            '<sheets><sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": _RELATIONS.format(
                f'<Relationship Id="r1" Type="{_DOC}/worksheet" Target="worksheets/sheet1.xml"/>'
            ),
            "xl/worksheets/sheet1.xml": f'<?xml version="1.0"?><worksheet xmlns="{namespace}">'
            f'<sheetData><row r="1">{row}</row></sheetData></worksheet>',
        }
    )


def make_pptx(*slides: str) -> bytes:
    """Return a presentation with one text on each slide."""
    draw = "http://schemas.openxmlformats.org/drawingml/2006/main"
    show = "http://schemas.openxmlformats.org/presentationml/2006/main"
    main = f"{_PART}.presentationml"
    numbers = range(1, len(slides) + 1)
    entries: dict[str, bytes | str] = {
        "[Content_Types].xml": _TYPES.format(
            f'<Override PartName="/ppt/presentation.xml" '
            f'ContentType="{main}.presentation.main+xml"/>'
            + "".join(
                f'<Override PartName="/ppt/slides/slide{n}.xml" ContentType="{main}.slide+xml"/>'
                for n in numbers
            )
        ),
        "_rels/.rels": _RELATIONS.format(
            f'<Relationship Id="r1" Type="{_DOC}/officeDocument" Target="ppt/presentation.xml"/>'
        ),
        "ppt/presentation.xml": f'<?xml version="1.0"?><p:presentation xmlns:p="{show}" '
        f'xmlns:r="{_DOC}"><p:sldIdLst>'
        + "".join(f'<p:sldId id="{255 + n}" r:id="r{n}"/>' for n in numbers)
        + "</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": _RELATIONS.format(
            "".join(
                f'<Relationship Id="r{n}" Type="{_DOC}/slide" Target="slides/slide{n}.xml"/>'
                for n in numbers
            )
        ),
    }
    for number, text in enumerate(slides, start=1):
        entries[f"ppt/slides/slide{number}.xml"] = (
            f'<?xml version="1.0"?><p:sld xmlns:p="{show}" xmlns:a="{draw}"><p:cSld><p:spTree>'
            '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr>'
            "<p:grpSpPr/>"
            '<p:sp><p:nvSpPr><p:cNvPr id="2" name="t"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>'
            f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
            "</p:spTree></p:cSld></p:sld>"
        )
    return make_zip(entries)


def understate_sizes(archive: bytes) -> bytes:
    """Return a ZIP file whose directory says that every entry has 10 bytes when expanded."""
    data = bytearray(archive)
    place = data.find(b"PK\x01\x02")
    while place >= 0:
        struct.pack_into("<I", data, place + 24, 10)
        place = data.find(b"PK\x01\x02", place + 4)
    return bytes(data)
