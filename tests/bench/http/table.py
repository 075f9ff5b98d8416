"""Tables: medians of rounds, their ratios, and what is asked of them."""

import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Goal:
    """What a figure must be, and what it is meant to be: at least, or at most."""

    floor: float
    aim: float
    at_least: bool = True
    unit: str = ""

    def verdict(self, figure):
        def met(bound):
            return figure >= bound if self.at_least else figure <= bound

        return "reached" if met(self.aim) else "floor" if met(self.floor) else "**below**"

    def cells(self, figure):
        sign = "≥" if self.at_least else "≤"
        bounds = [f"{sign} {bound:g}{self.unit}" for bound in (self.floor, self.aim)]
        return [*bounds, self.verdict(figure)]


class Rounds:
    """What was measured: for each row, contender and measure, a figure a round."""

    def __init__(self):
        self.figures = {}

    def add(self, row, contender, **measures):
        for measure, figure in measures.items():
            self.figures.setdefault((row, contender, measure), []).append(figure)

    def median(self, row, contender, measure):
        return statistics.median(self.figures[row, contender, measure])

    def ratio(self, row, measure, one, other):
        """The median of the rounds' own ratios: what both met in a round cancels out."""
        pairs = zip(self.figures[row, one, measure], self.figures[row, other, measure])
        return statistics.median(mine / theirs for mine, theirs in pairs)

    @property
    def count(self):
        return max(map(len, self.figures.values()))


def goal_cells(goal, figure):
    """The floor, the aim and the verdict, where there is a goal."""
    return goal.cells(figure) if goal else ["–", "–", "–"]


def show(title, header, rows):
    print(f"\n### {title}\n")
    print(f"| {' | '.join(header)} |")
    print(f"|{'---|' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    print(flush=True)


def milliseconds(microseconds):
    figure = microseconds / 1000
    return f"{figure:.3f}" if figure < 1 else f"{figure:.2f}" if figure < 100 else f"{figure:.0f}"
