"""A curriculum of your own from one PyG layer: no scheduler, no pool, no envsched types.

Eighty exercises in eight chapters; a learner whose skill grows; each round practises the ten exercises whose outcome is
predicted to vary most. Exercises of one chapter lend each other what was seen: that is all the layer does.

    python examples/own_curriculum.py [rounds]
"""

import argparse

import torch

from envsched.predict import HistoryPropagation

NUM_CHAPTERS, NUM_PER_CHAPTER, NUM_PRACTISED, NUM_ATTEMPTS = 8, 10, 10, 8
DECAY = 0.9  # what an observation still counts a round later


def chapter_graph() -> torch.Tensor:
    """Every pair of exercises in one chapter, both ways: edge_index [2, E]."""
    chapter = torch.arange(NUM_CHAPTERS).repeat_interleave(NUM_PER_CHAPTER)
    together = (chapter[:, None] == chapter[None, :]).fill_diagonal_(False)
    return together.nonzero().t()


def attempt(difficulty: torch.Tensor, skill: float, generator: torch.Generator) -> torch.Tensor:
    """Successes [n, attempts] at exercises of the given difficulty [n]."""
    chance = torch.sigmoid(4 * (skill - difficulty)).expand(NUM_ATTEMPTS, -1).t()
    return torch.bernoulli(chance, generator=generator)


def practise(rounds: int, chooses: bool = True, seed: int = 0) -> tuple[float, float]:
    """Mean outcome variance over all rounds, and the final skill; ``chooses=False`` practises at random."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = chapter_graph()
    difficulty = torch.linspace(-1, 3, NUM_CHAPTERS).repeat_interleave(NUM_PER_CHAPTER)
    difficulty = difficulty + 0.2 * torch.randn(difficulty.shape, generator=generator)
    propagation = HistoryPropagation(shrinkage=2.0)
    mass, total = torch.zeros_like(difficulty), torch.zeros_like(difficulty)  # decayed attempts, and variance times attempts
    skill, seen = 0.0, []

    for _ in range(rounds):
        own = total / mass.clamp(min=1e-9)
        prior, _ = propagation(own, mass, edge_index, parent=0.25)  # 0.25: the most a success rate can vary
        predicted = (mass * own + 2 * prior) / (mass + 2)
        noise = torch.rand(predicted.shape, generator=generator)
        chosen = (predicted + 1e-6 * noise if chooses else noise).topk(NUM_PRACTISED).indices

        variance = attempt(difficulty[chosen], skill, generator).var(dim=1)
        mass, total = DECAY * mass, DECAY * total
        mass[chosen] += NUM_ATTEMPTS
        total[chosen] += NUM_ATTEMPTS * variance
        skill += 0.1 * float(variance.mean())  # groups that all agree teach nothing
        seen.append(float(variance.mean()))
    return sum(seen) / rounds, skill


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", type=int, nargs="?", default=60, help="how often is practised (default: %(default)s)")
    rounds = max(1, parser.parse_args().rounds)
    print(f"{'practises':<12}{'mean variance':>15}{'final skill':>13}")
    for name, chooses in (("at random", False), ("by forecast", True)):
        variance, skill = practise(rounds, chooses)
        print(f"{name:<12}{variance:>15.4f}{skill:>13.3f}")


if __name__ == "__main__":
    main()
