"""An index, trees and a simulation, all of short-lived objects. Arguments: text, rounds."""
import collections
import heapq
import re
import sys

TEXT, ROUNDS = sys.argv[1], int(sys.argv[2])


class Word:
    """One word of the text with the lines where it stands."""

    def __init__(self, name):
        self.name, self.lines, self.next = name, [], {}


def index(text):
    words = {}
    for number, line in enumerate(text.splitlines()):
        previous = None
        for name in re.findall(r"\w+", line.lower()):
            word = words.get(name)
            if word is None:
                word = words[name] = Word(name)
            word.lines.append((number, len(line)))
            if previous is not None:
                previous.next[name] = previous.next.get(name, 0) + 1
            previous = word
    return words


def tree(depth):
    return {"depth": depth, "left": tree(depth - 1), "right": [tree(depth - 1)]} if depth else None


def count(node):
    return 1 + count(node["left"]) + count(node["right"][0]) if node else 0


def simulate(events):
    """A queue of events in which each event makes the next ones: the lives of blocks mix."""
    queue, done, state = [(0.0, 0, "start", {})], collections.Counter(), 1
    while queue and events:
        time, number, kind, facts = heapq.heappop(queue)
        events -= 1
        done[kind] += 1
        for _ in range(2 if len(queue) < 2000 else 1):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            heapq.heappush(queue, (time + state / 1e6, state, f"kind {state % 17}",
                                   {**facts, state % 5: str(number)}))
    return done.most_common(1)


with open(TEXT, encoding="utf-8") as file:
    found = index(file.read())
print(len(found), sum(len(word.lines) * len(word.next) for word in found.values()))
print(sum(count(tree(11)) for _ in range(ROUNDS)), simulate(4000 * ROUNDS))
