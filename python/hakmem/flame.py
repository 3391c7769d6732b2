"""A flame graph of a heap profile: one page of SVG that needs nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hakmem.foreign import markup
from hakmem.statistics import shown

WIDTH, ROW, LEAST = 1200.0, 18, 0.4  # pixels; narrower boxes are left out
MOST_ROWS = 256  # of callers; those further in are left out
COLOURS = ("#e8a33d", "#e5893f", "#dd6f42", "#efbf5b", "#d95f4b", "#f2cf7a")
SCRIPT = """
const boxes = [...document.querySelectorAll('g')], all = boxes[0];
function zoom(box) {
  const from = +box.dataset.x, wide = +box.dataset.w;
  for (const each of boxes) {
    const x = (+each.dataset.x - from) / wide * WIDTH, w = +each.dataset.w / wide * WIDTH;
    const inside = x + w > 0.01 && x < WIDTH - 0.01;
    each.style.display = inside ? '' : 'none';
    const left = Math.max(0, x), right = Math.min(WIDTH, x + w);
    each.querySelector('rect').setAttribute('x', left);
    each.querySelector('rect').setAttribute('width', Math.max(0, right - left - 0.5));
    const text = each.querySelector('text'), room = Math.floor((right - left - 6) / 6.2);
    text.setAttribute('x', left + 3);
    const name = each.dataset.name, told = name + each.dataset.size;
    text.textContent = room < 3 ? '' : told.length <= room ? told : name.length <= room ? name
      : name.slice(0, room - 1) + '…';
  }
}
for (const box of boxes) box.addEventListener('click', () => zoom(box));
zoom(all);
"""


@dataclass
class Node:
    """A function in a certain chain of callers."""

    name: str
    value: int = 0
    children: dict[str, "Node"] = field(default_factory=dict)


def tree(stacks: Iterable[tuple[list[str], int]], title: str) -> Node:
    """Of stacks, outermost first, and what each holds."""
    root = Node(title)
    for names, value in stacks:
        root.value += value
        node = root
        for name in names[:MOST_ROWS]:
            node = node.children.setdefault(name, Node(name))
            node.value += value
    return root


def depth_of(node: Node) -> int:
    return 1 + max((depth_of(each) for each in node.children.values()), default=0)


def page(root: Node, unit: str = "bytes") -> str:
    """The tree as a page; the root is at the bottom, and a click on a box widens it."""
    rows = depth_of(root)
    height = rows * ROW + 10
    boxes: list[str] = []

    def draw(node: Node, x: float, level: int) -> None:
        wide = WIDTH * node.value / max(root.value, 1)
        if wide < LEAST:
            return
        share = 100 * node.value / max(root.value, 1)
        colour = COLOURS[sum(map(ord, node.name)) % len(COLOURS)]
        y = height - (level + 1) * ROW
        title = markup(f"{node.name}: {node.value:,} {unit}, {share:.1f} %")
        boxes.append(
            f'<g data-x="{x:.3f}" data-w="{wide:.3f}" data-name="{markup(node.name)}" '
            f'data-size="  {shown(node.value)}, {share:.0f} %">'
            f'<title>{title}</title><rect x="{x:.3f}" y="{y}" width="{wide:.3f}" '
            f'height="{ROW - 1}" fill="{colour}"/><text y="{y + ROW - 6}"></text></g>')
        for child in sorted(node.children.values(), key=lambda each: each.name):
            draw(child, x, level + 1)
            x += WIDTH * child.value / max(root.value, 1)

    draw(root, 0.0, 0)
    return (f'<!doctype html><meta charset="utf-8"><title>{markup(root.name)}</title>'
            "<style>body{font:12px sans-serif;margin:16px}text{font:11px monospace}"
            "g{cursor:pointer}</style>"
            f"<h3>{markup(root.name)}</h3><svg viewBox=\"0 0 {WIDTH:.0f} {height}\" "
            f'width="100%">{"".join(boxes)}</svg>'
            f"<script>{SCRIPT.replace('WIDTH', str(int(WIDTH)))}</script>\n")
