"""Tables: medians of rounds, their ratios, and what is asked of them."""

import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Goal:
    """The floor of a ratio, if any, and its aim: lower bounds, or upper bounds. `name` is that of the ratio."""

    name: str
    floor: float | None
    aim: float
    at_least: bool = True

    def met(self, bound, ratio):
        return bound is None or (ratio >= bound if self.at_least else ratio <= bound)

    def text(self, bound):
        return "" if bound is None else f"{self.name} {'≥' if self.at_least else '≤'} {bound:g}"


def judged(goals, ratios):
    """The floors, the aims, and which of them all these ratios meet."""
    if not goals:
        return ["–", "–", "–"]
    floors = ", ".join(filter(None, (goal.text(goal.floor) for goal in goals)))
    aims = ", ".join(goal.text(goal.aim) for goal in goals)
    if all(goal.met(goal.aim, ratios[goal.name]) for goal in goals):
        return [floors, aims, "reached"]
    held = all(goal.met(goal.floor, ratios[goal.name]) for goal in goals)
    return [floors, aims, "floor" if held else "**below**"]


class Rounds:
    """What was measured: for each row, contender and measure, a figure a round."""

    def __init__(self):
        self.figures = {}

    def add(self, row, contender, **measures):
        for measure, figure in measures.items():
            self.figures.setdefault((row, contender, measure), []).append(figure)

    def of(self, row, contender, measure):
        return self.figures[row, contender, measure]

    def median(self, row, contender, measure):
        return statistics.median(self.of(row, contender, measure))

    def ratio(self, row, measure, one, other, added=0):
        """The median of the rounds' own ratios: what both met in a round cancels out."""
        pairs = zip(self.of(row, one, measure), self.of(row, other, measure))
        return statistics.median(mine / (theirs + added) for mine, theirs in pairs)

    def each(self, row, contender, measure, by):
        """A measure for each of another, over all rounds."""
        return sum(self.of(row, contender, measure)) / sum(self.of(row, contender, by))

    @property
    def count(self):
        return max(map(len, self.figures.values()))


def show(title, header, rows):
    print(f"\n### {title}\n")
    print(f"| {' | '.join(header)} |")
    print(f"|{'---|' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def milliseconds(microseconds):
    figure = microseconds / 1000
    return f"{figure:.3f}" if figure < 1 else f"{figure:.2f}" if figure < 100 else f"{figure:,.0f}"
