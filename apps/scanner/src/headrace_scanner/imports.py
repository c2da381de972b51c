"""Product sets in files: CSV with a header, or JSON. No I/O."""

from __future__ import annotations

import csv
import io
from typing import Any

import msgspec

from headrace_scanner.errors import InvalidProduct
from headrace_scanner.reading.addresses import shown

MOST_PRODUCTS = 100_000
LARGEST_FILE = 32 * 2**20
COLUMNS = ("platform", "product", "url", "name", "price", "sale_status")


class ProductRow(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A product of an import. `product` is its id on the platform; one of `product` and `url` will
    do.
    """

    platform: str
    product: str = ""
    url: str | None = None
    name: str | None = None
    price: float | None = None
    sale_status: str | None = None


def read_file(name: str, content: bytes) -> list[ProductRow]:
    """Return the products of a file. Raises `InvalidProduct`, which names the line."""
    if len(content) > LARGEST_FILE:
        raise InvalidProduct(f"{name} has {len(content):,} bytes, the limit is {LARGEST_FILE:,}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidProduct(f"{name} is not UTF-8; save it as CSV UTF-8 or JSON") from None
    if "\0" in text:
        raise InvalidProduct(f"{name} is not a text file; give CSV with a header, or JSON")
    rows = read_json(name, text) if text.lstrip()[:1] in ("[", "{") else read_csv(name, text)
    if not rows:
        raise InvalidProduct(f"{name} has no products")
    if len(rows) > MOST_PRODUCTS:
        raise InvalidProduct(f"{name} has {len(rows):,} products, the limit is {MOST_PRODUCTS:,}")
    return rows


def read_json(name: str, text: str) -> list[ProductRow]:
    """Return the products of a JSON list, or of `{"products": […]}`."""
    try:
        found = msgspec.json.decode(text)
        listed = found.get("products") if isinstance(found, dict) else found
        return msgspec.convert(listed, list[ProductRow])
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidProduct(f"{name}: {error}") from None


def read_csv(name: str, text: str) -> list[ProductRow]:
    """Return the products of a CSV file."""
    reader = csv.DictReader(io.StringIO(text, newline=""))
    header = [each.strip() for each in reader.fieldnames or []]
    unknown = [each for each in header if each not in COLUMNS]
    if unknown or "platform" not in header:
        known = ", ".join(COLUMNS)
        wrong = f"unknown column {shown(unknown[0])}" if unknown else "no column platform"
        raise InvalidProduct(f"{name} line 1: {wrong}; the columns are {known}")
    reader.fieldnames = header
    rows = []
    try:
        for fields in reader:
            rows.append(_row(name, reader.line_num, fields))
            if len(rows) > MOST_PRODUCTS:
                break
    except csv.Error as error:
        raise InvalidProduct(f"{name} line {reader.line_num}: {error}") from None
    return rows


def _row(name: str, line: int, fields: dict[str | None, Any]) -> ProductRow:
    if None in fields:
        raise InvalidProduct(f"{name} line {line}: there are more values than columns")
    given = {str(key): (value or "").strip() for key, value in fields.items()}
    price = given.pop("price", "")
    kept: dict[str, Any] = {key: value for key, value in given.items() if value}
    if price:
        try:
            kept["price"] = float(price.replace(",", ""))
        except ValueError:
            raise InvalidProduct(
                f"{name} line {line}: price is {shown(price)}, which is no number"
            ) from None
    if "platform" not in kept:
        raise InvalidProduct(f"{name} line {line}: platform is empty")
    return ProductRow(**kept)
