"""A Python program on HAKMEM: hakmem run -- python3 words.py"""
import ctypes

words = {f"word {number}": number for number in range(100_000)}
print(len(words), "words")

library = ctypes.CDLL(None)
block = ctypes.cast(library.malloc, ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t))(100)
owns = getattr(library, "hakmem_owns", None)
if owns:
    owns.restype, owns.argtypes = ctypes.c_bool, [ctypes.c_void_p]
print("malloc is HAKMEM's" if owns and owns(block) else "malloc is another's")
