"""eSpeak NG by ctypes. Its state is global and it is GPL-3: only the child process imports this."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import espeakng_loader  # type: ignore[import-untyped]

_SYNCHRONOUS = 2  # AUDIO_OUTPUT_SYNCHRONOUS: samples are given to a function
_DONT_EXIT = 0x8000  # a wrong path is an error, not the end of the process
_UTF8 = 1
_CHARACTERS = 1  # positions are counted in characters
# The library copies the folder of its data into a field of so many bytes.
_LONGEST_PATH = 150
_GENDERS = {1: "male", 2: "female"}

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


class _EspeakVoice(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_void_p),
        ("identifier", ctypes.c_char_p),
        ("gender", ctypes.c_ubyte),
        ("age", ctypes.c_ubyte),
        ("variant", ctypes.c_ubyte),
        ("unused", ctypes.c_ubyte),
        ("score", ctypes.c_int),
        ("spare", ctypes.c_void_p),
    )


class EspeakError(Exception):
    """The library has refused something."""


class Espeak:
    """The library, which there is once in a process."""

    def __init__(self) -> None:
        folder = espeakng_loader.get_data_path().encode()
        if len(folder) > _LONGEST_PATH:
            raise EspeakError(
                f"the folder of its data has {len(folder)} bytes, more than the {_LONGEST_PATH} "
                "that the library takes; install it at a shorter path"
            )
        self._library: Any = ctypes.CDLL(espeakng_loader.get_library_path())
        self._library.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(_EspeakVoice))
        self._library.espeak_Synth.argtypes = [
            *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_int),
            *(ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p),
        ]
        self.rate: int = self._library.espeak_Initialize(_SYNCHRONOUS, 0, folder, _DONT_EXIT)
        if self.rate <= 0:
            raise EspeakError(f"it cannot be started with its data in {folder.decode()}")
        self._spoken: list[bytes] = []
        # Kept: the library calls it as long as it is loaded.
        self._callback = _Callback(self._take)
        self._library.espeak_SetSynthCallback(self._callback)
        # What callers say: the language, and the file that the library wants for it.
        self._names: dict[str, str] = {}
        self.voices = self._read_voices()
        """A voice for each language: the name that callers use, and what it is."""
        self.variants = self._read_variants()
        """What can follow a voice after a plus sign."""

    def _read_voices(self) -> list[dict[str, str | None]]:
        found = []
        for each in self._listed(None):
            identifier = each.identifier.decode()
            language = next(_languages(each.languages))
            # Two voices of one language are told apart by their files.
            called = language if language not in self._names else identifier.rpartition("/")[2]
            self._names[called.lower()] = identifier
            found.append(
                {
                    "voice": called.lower(),
                    "name": each.name.decode(),
                    "language": language,
                    "gender": _GENDERS.get(each.gender),
                }
            )
        return found

    def _read_variants(self) -> list[dict[str, str | None]]:
        wanted = _EspeakVoice()
        wanted.languages = ctypes.cast(ctypes.c_char_p(b"variant"), ctypes.c_void_p).value
        return [
            {
                "voice": each.identifier.decode().rpartition("/")[2],
                "name": each.name.decode(),
                "language": None,
                "gender": _GENDERS.get(each.gender),
            }
            for each in self._listed(ctypes.byref(wanted))
        ]

    def speak(self, text: str, voice: str) -> bytes:
        """Return a text as 16-bit samples."""
        base, plus, variant = voice.partition("+")
        identifier = self._names.get(base)
        # An unknown voice would be spoken by the one before, an unknown variant by none.
        if identifier is None:
            raise EspeakError(f"there is no voice {base!r}")
        if plus and all(each["voice"] != variant for each in self.variants):
            raise EspeakError(f"there is no variant {variant!r}")
        if self._library.espeak_SetVoiceByName(f"{identifier}{plus}{variant}".encode()):
            raise EspeakError(f"the voice {voice!r} cannot be loaded")
        self._spoken.clear()
        content = text.encode()
        done = self._library.espeak_Synth(
            content, len(content) + 1, 0, _CHARACTERS, 0, _UTF8, None, None
        )
        if done or self._library.espeak_Synchronize():
            raise EspeakError(f"it answered {done}")
        return b"".join(self._spoken)

    def _take(self, samples: Any, count: int, _: Any) -> int:
        if samples and count > 0:
            self._spoken.append(ctypes.string_at(samples, count * 2))
        return 0

    def _listed(self, wanted: Any) -> Iterator[Any]:
        listed, place = self._library.espeak_ListVoices(wanted), 0
        while listed[place]:
            yield listed[place].contents
            place += 1


def _languages(address: int) -> Iterator[str]:
    """Yield the languages of a voice: each has a byte for its rank before, and a zero behind."""
    while ctypes.string_at(address, 1) != b"\0":
        language = ctypes.string_at(address + 1)
        yield language.decode()
        address += len(language) + 2
