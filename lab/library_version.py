"""Prints what the preloaded allocator says of its version, if it says anything.

The laboratory runs this under a library that was handed in.
"""

import ctypes
from typing import Any

LIBRARY = ctypes.CDLL(None)


def ask(name: str, kind: Any, *arguments: Any) -> Any:
    """What a function of the library returns; None if it has none of that name."""
    function = getattr(LIBRARY, name, None)
    if function is None:
        return None
    function.restype = kind
    return function(*arguments)


def version() -> str:
    text, size = ctypes.c_char_p(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_char_p))
    for name in ("mallctl", "je_mallctl", "_rjem_mallctl"):
        if ask(name, ctypes.c_int, b"version", ctypes.byref(text), ctypes.byref(size), None,
               ctypes.c_size_t(0)) == 0 and text.value:
            return f"jemalloc {text.value.decode()}"
    number = ask("mi_version", ctypes.c_int)
    if number:
        base = 100 if number >= 10000 else 10  # 30403 is 3.4.3, and 209 was 2.0.9
        return f"mimalloc {number // base ** 2}.{number // base % base}.{number % base}"
    for name, of in (("hakmem_version", "HAKMEM "), ("tc_version", "")):
        said = ask(name, ctypes.c_char_p, None, None, None)
        if said:
            return of + str(said.decode())
    return ""


if __name__ == "__main__" and version():
    print("Version:", version())
