"""What a text says to a model, under the tricks that hide it from people and from simple searches.

A model reads through characters of no width, look-alikes, letters set apart and common encodings. So the text is
brought to plain words first; what has no honest use is named as a finding of its own.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from typing import Dict, List, NamedTuple, Set
from urllib.parse import unquote

__all__ = ["Plain", "fold", "unmask"]

_MOST_DECODED = 8
"""The most encoded pieces that are looked into in one text."""


class Plain(NamedTuple):
    """A text unmasked.

    :ivar text: what can be read, folded: one case, no accents, no look-alikes
    :ivar tricks: names of what has no honest use in it
    :ivar hidden: folded texts that were encoded in it
    """

    text: str
    tricks: Set[str]
    hidden: List[str]


_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,8}\U000e007f")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}")
_OVERRIDES = re.compile("[\u202d\u202e]")
_EMBEDDINGS = re.compile("[\u202a\u202b\u2066-\u2069]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_NO_WIDTH = "\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u180e\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f"
_INVISIBLE = re.compile("[%s\u202a-\u202e\u2066-\u206f\U000e0000-\U000e01ef\ufff9-\ufffb]" % _NO_WIDTH)
_INSIDE_WORDS = re.compile("[A-Za-z][\u200b-\u200d\u2060-\u2064\ufeff\u180e\u034f]+[A-Za-z]")
_MANY_INVISIBLE = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u180e]{6,}")
_TERMINAL = re.compile("[\x1b\x9b\x08\x7f]")
_FAR_AWAY = re.compile(r"[ \t\u00a0\u2800\u3000]{200}\S")
_FAR_BELOW = re.compile(r"[\r\n\x0b\x0c\u2028\u2029]{40}\S")
_SPACES = re.compile(r"[ \t]+")

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}={0,2}")
_BASE64_ALONE = re.compile(rb"[A-Za-z0-9+/_-]{20,}={0,2}")
_HEX = re.compile(r"(?<![0-9a-fA-F])(?:[0-9a-fA-F]{2}[ :]?){12,}")
_BINARY = re.compile(r"(?:[01]{8}[ ,]?){8,}")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}[^%\s]{0,12}){4,}")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
_MORSE = re.compile(r"(?<![.\-])(?:[.\-]{1,5}[ /|]{1,4}){8,}[.\-]{1,5}(?![.\-])")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31});")

_MORSE_CODE = (
    *(".-", "-...", "-.-.", "-..", ".", "..-.", "--.", "....", "..", ".---", "-.-", ".-..", "--"),
    *("-.", "---", ".--.", "--.-", ".-.", "...", "-", "..-", "...-", ".--", "-..-", "-.--", "--.."),
)
_MORSE_LETTERS = {code: chr(97 + index) for index, code in enumerate(_MORSE_CODE)}

# Letters of other scripts, and some of none, that look like a Latin one.
_ALIKE: Dict[int, str] = {
    ord(other): latin
    for latin, others in {
        "a": "аɑαΑА⍺ａ", "b": "ЬВΒƄЪв", "c": "сϲСⅽ", "d": "ԁⅾɗ", "e": "еΕЕҽ℮ε", "f": "ϝƒſ", "g": "ɡցƍ",
        "h": "һНΗհн", "i": "іІΙıɩιӏ", "j": "јЈϳ", "k": "κКΚкĸ", "l": "ⅼӀ", "m": "ΜМⅿм", "n": "ոΝпռη", "o": "оΟОοօσ૦०",
        "p": "рΡРρ", "q": "ԛգ", "r": "гᴦ", "s": "ѕЅꜱ", "t": "ТΤтτ", "u": "υսʋ", "v": "νѵⅴ", "w": "ԝѡω",
        "x": "хХΧⅹ×", "y": "уҮγУүʏ", "z": "ᴢΖ",
    }.items()
    for other in others
}  # fmt: skip
_LATIN = re.compile("[a-zA-Z]")
_WORDS_OF_LETTERS = re.compile(r"[^\W\d_]{2,}")
_ALL_ALIKE = frozenset(_ALIKE)
_SMALL_CAPITALS = str.maketrans("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz")
_REGIONAL = {0x1F1E6 + index: chr(97 + index) for index in range(26)}
_SQUARED = {start + index: chr(97 + index) for start in (0x1F130, 0x1F150, 0x1F170) for index in range(26)}
_PICTURED = {**_REGIONAL, **_SQUARED}
_SPECIAL = re.compile("[\u1d00-\u1d7f\ua730-\ua731\u0262-\u029f\U0001f130-\U0001f1ff]")


def fold(text: str) -> str:
    """One case, compatibility forms resolved, accents taken off."""
    if text.isascii():
        return text.lower()
    if _SPECIAL.search(text):
        text = text.translate(_SMALL_CAPITALS).translate(_PICTURED)
    text = unicodedata.normalize("NFKD", text)
    text = "".join(each for each in text if unicodedata.category(each)[0] != "M")
    return unicodedata.normalize("NFC", text).casefold().replace("ı", "i")


def _latinized(text: str) -> str:
    """Look-alikes replaced, in words that mix scripts or consist of nothing else."""

    def word(match: re.Match[str]) -> str:
        found = match.group()
        if found.isascii():
            return found
        if _LATIN.search(found) or (len(found) >= 4 and all(ord(each) in _ALL_ALIKE for each in found)):
            return found.translate(_ALIKE)
        return found

    return _WORDS_OF_LETTERS.sub(word, text)


def unmask(text: str) -> Plain:
    """A text as a model may read it."""
    tricks: Set[str] = set()
    hidden: List[str] = []
    if _FAR_AWAY.search(text) or (len(text.splitlines()) > 20 and _FAR_BELOW.search(_SPACES.sub("", text))):
        tricks.add("text pushed out of sight")
    if _TERMINAL.search(text):
        tricks.add("terminal control characters")
    if not text.isascii():
        text = _without_invisible(text, tricks, hidden)
        plain = fold(_latinized(text))
    else:
        plain = text.lower()
    hidden.extend(fold(each) for each in _decoded(text))
    return Plain(plain, tricks, hidden)


def _without_invisible(text: str, tricks: Set[str], hidden: List[str]) -> str:
    text = _FLAG.sub("\U0001f3f4", text)
    for run in _TAGS.findall(text):
        tricks.add("tag characters")
        hidden.append("".join(chr(ord(each) - 0xE0000) for each in run).lower())
    for run in _SELECTORS.findall(text):
        codes = [ord(each) - (0xFE00 if ord(each) < 0x10000 else 0xE0100 - 16) for each in run]
        if len(codes) >= 4:
            tricks.add("variation selectors that carry data")
            hidden.append(bytes(code & 0xFF for code in codes).decode("latin-1").lower())
    if _OVERRIDES.search(text):
        tricks.add("bidirectional overrides")
        hidden.append(fold(_INVISIBLE.sub("", text))[::-1])
    elif _EMBEDDINGS.search(text) and not _RIGHT_TO_LEFT.search(text):
        tricks.add("bidirectional marks around text that needs none")
    if _INSIDE_WORDS.search(text):
        tricks.add("characters of no width inside words")
    if _MANY_INVISIBLE.search(text):
        tricks.add("runs of characters of no width")
    return _INVISIBLE.sub("", text)


def _decoded(text: str) -> List[str]:
    """Readable texts that are encoded in it."""
    found: List[str] = []
    if len(text) >= 20:
        for match in list(_BASE64.finditer(text))[:_MOST_DECODED]:
            found.append(_from_base64(match.group()))
        for match in list(_HEX.finditer(text))[:_MOST_DECODED]:
            found.append(_readable(bytes.fromhex(re.sub("[ :]", "", match.group()))))
    if "01" in text:  # so begin the bits of each letter
        for match in list(_BINARY.finditer(text))[:_MOST_DECODED]:
            bits = re.sub("[ ,]", "", match.group())
            found.append(_readable(bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))))
    if "%" in text and _PERCENT.search(text):
        found.append(unquote(text))
    if "\\" in text and len(_ESCAPE.findall(text)) > 1:
        found.append(_ESCAPE.sub(lambda match: chr(int(match.group(1) or match.group(2), 16)), text))
    if " .-" in text or " -." in text or " .." in text:
        found.extend(_from_morse(match.group()) for match in list(_MORSE.finditer(text))[:_MOST_DECODED])
    if "&" in text and _ENTITY.search(text):
        found.append(html.unescape(text))
    return [each for each in found if each]


def _from_morse(text: str) -> str:
    return " ".join(
        "".join(_MORSE_LETTERS.get(letter, "") for letter in word.split()) for word in re.split(r"\s{2,}|[/|]", text)
    )


def _from_base64(text: str, again: bool = True) -> str:
    standard = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(standard + "=" * (-len(standard) % 4))
    except (binascii.Error, ValueError):
        return ""
    if again and _BASE64_ALONE.fullmatch(data):  # encoded twice
        return _from_base64(data.decode("ascii"), again=False)
    return _readable(data)


def _readable(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return text if " " in text and text.replace("\n", " ").isprintable() else ""
