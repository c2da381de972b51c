"""Pictures of the page for the README. From the root of the repository:

PYTHONPATH=.:apps/speech/tests .venv/bin/python -m speech_support.pictures
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from tests.support.processes import until

from headrace import Status
from headrace_speech.demo import demo
from headrace_speech.dialogues import DialogueFilter
from speech_support.making import Made
from speech_support.scene import a_browser, a_page, a_scene

FOLDER = Path(__file__).parents[2] / "pictures"
PHONE, PHONE_HEIGHT = 390, 1700
PICTURES = (("page", 1280, "light"), ("page-phone-dark", 390, "dark"))
NO_LETTERS = "there are no letters for Hangul here; install a font such as fonts-nanum"


async def spoken(made: Made) -> bool:
    found, _ = await made.dialogues.list(DialogueFilter(), limit=10, after=None)
    return len(found) == 2 and all(each.status == Status.COMPLETED for each in found)


async def main(folder: Path) -> None:
    """Take all of them."""
    found = await asyncio.create_subprocess_exec("fc-list", ":lang=ko", stdout=subprocess.PIPE)
    if not (await found.communicate())[0]:
        raise SystemExit(NO_LETTERS)
    with tempfile.TemporaryDirectory() as place:
        async with a_scene(Path(place)) as (made, address), a_browser() as browser:
            await demo(made.app, made.setup)
            await until(lambda: spoken(made), "the demo")
            for name, width, scheme in PICTURES:
                page = await a_page(browser, address, width=width, scheme=scheme)
                await page.locator("#jobs summary").first.click()
                await page.wait_for_selector("#jobs .said li")
                whole = width > PHONE
                if not whole:
                    await page.set_viewport_size({"width": width, "height": PHONE_HEIGHT})
                await page.evaluate("scrollTo(0, 0)")
                taken = await page.screenshot(full_page=whole, animations="disabled", caret="hide")
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
