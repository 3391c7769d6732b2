"""Colours of a page that is light or dark, by the contrast of WCAG 2 (1.4.3 and 1.4.11).

A picture has fixed colours. Within a page each becomes a variable, which is the nearest colour of
the same hue that stands out enough from the paper.
"""

import colorsys

TEXT, GRAPHICS = 4.5, 3.0  # the least contrast, level AA
PAPERS = {"light": "#ffffff", "dark": "#151b23"}  # as in page.html
STEPS = 200


def _parts(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def luminance(colour: str) -> float:
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
                        for part in _parts(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def readable(colour: str, paper: str, least: float = GRAPHICS) -> str:
    """The same where it stands out, else a darker one on light paper, a lighter one on dark."""
    hue, light, saturation = colorsys.rgb_to_hls(*_parts(colour))
    end = 0.0 if luminance(paper) > 0.5 else 1.0
    for step in range(STEPS + 1):
        parts = colorsys.hls_to_rgb(hue, light + (end - light) * step / STEPS, saturation)
        found = "#" + "".join(f"{round(255 * part):02x}" for part in parts)
        if contrast(found, paper) >= least:
            return found
    return found


def variable(colour: str) -> str:
    """As a page names it."""
    return f"--c{colour.removeprefix('#')}"
