"""Pictures of the page for the README. From the root of the repository:

PYTHONPATH=.:apps/ingest/tests .venv/bin/python -m ingest_support.pictures

The machine needs a font with Korean letters, or names of documents are boxes.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from tests.support.processes import until

from headrace_ingest.demo import demo
from ingest_support.scene import Scene, a_browser, a_page, a_scene

FOLDER = Path(__file__).parents[2] / "pictures"
PICTURES = (
    ("page", 1280, "light"),
    ("page-phone-dark", 390, "dark"),
)
QUESTION = "Who approves refunds and flights?"
HITS = 2
SECONDS = 180.0


async def processed(scene: Scene) -> bool:
    found, _ = await scene.documents.list("/", None, limit=50, after=None)
    return len(found) > 1 and all(each.status != "processing" for each in found)


async def main(folder: Path) -> None:
    """Take all of them."""
    with tempfile.TemporaryDirectory() as place:
        async with a_scene(Path(place), mask_names=True) as scene, a_browser() as browser:
            await demo(scene.app, scene.setup)
            await until(lambda: processed(scene), "the demo", SECONDS)
            for name, width, scheme in PICTURES:
                page = await a_page(browser, scene.address, width=width, scheme=scheme)
                await page.fill("#query", QUESTION)
                await page.press("#query", "Enter")
                await page.wait_for_selector("#hits mark")
                # The best ones; the picture is to show the rest of the page too.
                await page.evaluate(
                    "most => [...document.querySelectorAll('#hits li')].slice(most)"
                    ".forEach(each => each.remove())",
                    HITS,
                )
                await page.locator("#query").blur()
                taken = await page.screenshot(full_page=True, animations="disabled", caret="hide")
                await page.close()
                file = folder / f"{name}.png"
                # Text on plain ground: 256 colours are enough, and a third of the size.
                picture = Image.open(BytesIO(taken)).convert("RGB")
                picture.quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
                print(f"{file.name}: {file.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    target.mkdir(exist_ok=True)
    asyncio.run(main(target))
