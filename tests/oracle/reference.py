"""The method in plain Python, straight from METHOD.md sections 2-7 and 12: no envsched, no torch, no numpy.

Slow on purpose: every sum is written out, every leave-one-out mean is summed anew, nothing is kept between steps.
Letters: N tasks, t the step now, s a past step, h half-life, n own mass, v own variance, c evidence of a task, u prediction.
"""

import math
from dataclasses import dataclass, field
from itertools import pairwise

MISSING = ("infra_error", "verifier_error", "aborted")


@dataclass
class Settings:
    estimator: str = "envsched"
    relations: tuple = ("within", "cross")
    group_size: int = 8
    half_life: float = 8.0
    short_half_life: float = 2.0
    own_half_life: float = 40.0
    visit_half_life: float = 3.0
    decline_weight: float = 0.5
    mastery_weight: float = 1.0
    graph_shrinkage: float = 2.0
    own_shrinkage: float = 2.0
    prior: str = "pooled"
    residual_shrinkage: float = 5.0
    optimism: float = 0.5
    optimism_spread: float = 0.4
    num_within: int = 6
    num_cross: int = 12
    prior_variance: float | None = None
    calibrate: bool = True
    calibration_start: int = 256
    calibration_full: int = 512
    reward_low: float = 0.0
    reward_high: float = 1.0
    ddof: int = 1

    @property
    def reward_range(self):
        return self.reward_high - self.reward_low

    @property
    def max_variance(self):
        """The largest variance of G rewards: as many as can be at each end of the range."""
        G = self.group_size
        if self.ddof == 0:
            return self.reward_range**2 / 4
        high = G // 2
        return self.reward_range**2 * high * (G - high) / (G * (G - 1))


@dataclass
class Visit:
    task: int
    step: int
    rewards: list
    status: list
    policy_version: int


@dataclass
class Forecast:
    """What is predicted for one step."""

    u: list
    terms: dict
    score: list
    cross_weight: float
    pairs: list = field(default_factory=list)


def group_variance(visit, settings):
    """(valid rollouts, mean, variance); None where there is none."""
    rewards = [r for r, status in zip(visit.rewards, visit.status, strict=True) if status not in MISSING]
    n = len(rewards)
    if n == 0:
        return 0, None, None
    mean = math.fsum(rewards) / n
    if n == 1:
        return 1, mean, None
    if max(rewards) - min(rewards) <= 1e-9:
        return n, mean, 0.0
    return n, mean, math.fsum((r - mean) ** 2 for r in rewards) / (n - settings.ddof)


def weight(now, then, half_life):
    """Decay; beyond 900 half-lives nothing is left."""
    age = (now - then) / half_life
    return 2.0**-age if age <= 900 else 0.0


def own(visits, task, now, settings, half_life, visit_half_life=math.inf):
    """Decayed (mass in groups, mass in rollouts, the same two times the variance, rollouts times the mean) of one task before
    ``now``."""
    groups, rollouts, groups_v, rollouts_v, rollouts_m = [], [], [], [], []
    known = [visit for visit in visits if visit.task == task and visit.step < now and group_variance(visit, settings)[2] is not None]
    for visit in known:
        n, m, v = group_variance(visit, settings)
        later = sum(other.step > visit.step for other in known)
        w = weight(now, visit.policy_version, half_life) * 2.0 ** -(later / visit_half_life)
        groups.append(w)
        rollouts.append(w * n)
        groups_v.append(w * v)
        rollouts_v.append(w * n * v)
        rollouts_m.append(w * n * (m - settings.reward_low) / settings.reward_range)
    return tuple(map(math.fsum, (groups, rollouts, groups_v, rollouts_v, rollouts_m)))


def observed_before(visits, now, settings):
    return {visit.task for visit in visits if visit.step < now and group_variance(visit, settings)[2] is not None}


def neighbours(i, same, observed, environment_of, similarity, count):
    """The ``count`` most similar observed tasks of one relation, with their weights; weight 0 is no edge."""
    candidates = [j for j in observed if j != i and (environment_of[j] == environment_of[i]) == same]
    candidates.sort(key=lambda j: (-similarity[i][j], j))
    weighted = [(j, min(max(similarity[i][j], 0.0), 1.0)) for j in candidates[:count]]
    return [(j, s) for j, s in weighted if s > 0]


def predict(visits, environment_of, similarity, now, cross_weight, settings):
    """(u, terms) for every task from the visits earlier than ``now``."""
    N = len(environment_of)
    long = [own(visits, i, now, settings, settings.half_life) for i in range(N)]
    short = [own(visits, i, now, settings, settings.short_half_life) for i in range(N)]
    paper = settings.estimator == "paper"
    memory = (settings.half_life,) if paper else (settings.own_half_life, settings.visit_half_life)
    kept = [own(visits, i, now, settings, *memory) for i in range(N)]
    unit = 0 if paper else 1  # groups or rollouts
    told_n = [sums[unit] for sums in long]
    told = [sums[unit + 2] / sums[unit] if sums[unit] > 0 else 0.0 for sums in long]
    n = [sums[unit] for sums in kept]
    v = [sums[unit + 2] / sums[unit] if sums[unit] > 0 else 0.0 for sums in kept]
    groups = [sums[0] for sums in long]
    observed = observed_before(visits, now, settings)

    terms = {
        name: []
        for name in ("own", "own_mass", "environment", "within", "within_mass", "cross", "cross_mass", "prior", "guard", "headroom")
    }
    u = []
    for i in range(N):
        lists = {
            "within": neighbours(i, True, observed, environment_of, similarity, settings.num_within),
            "cross": neighbours(i, False, observed, environment_of, similarity, settings.num_cross),
        }
        for name in lists:
            if name not in settings.relations:
                lists[name] = []
        if paper:
            prior = paper_prior(i, told_n, told, environment_of, lists, settings)
        elif settings.prior == "residual":
            prior = residual_prior(i, n, v, environment_of, lists, settings)
        else:
            prior = pooled_prior(i, groups, told, environment_of, lists, cross_weight, settings)
        lam = settings.own_shrinkage
        fused = (n[i] * v[i] + lam * prior["prior"]) / (n[i] + lam)
        fused = min(max(fused, 0.0), settings.max_variance)
        guard = 1.0
        if n[i] > 0 and v[i] > 0:
            v_short = (short[i][unit + 2] + lam * v[i]) / (short[i][unit] + lam)
            guard = 1 - settings.decline_weight * min(max((v[i] - v_short) / v[i], 0.0), 1.0)
        level = (kept[i][4] + lam / 2) / (n[i] + lam)
        headroom = 1.0 if paper else math.exp(-settings.mastery_weight * max(level - 0.5, 0.0))
        u.append(fused * guard)
        for name, value in {"own": v[i], "own_mass": n[i], "guard": guard, "headroom": headroom, **prior}.items():
            terms[name].append(value)
    return u, terms


def prior_variance(settings):
    return settings.reward_range**2 / 12 if settings.prior_variance is None else settings.prior_variance


def paper_prior(i, n, v, environment_of, lists, settings):
    """Section 5: parents over observations, the own ones included; two estimates joined by mass."""
    N, lam = len(n), settings.graph_shrinkage
    everyone = range(N)
    inside = [j for j in everyone if environment_of[j] == environment_of[i]]
    mass = math.fsum(n)
    pool = math.fsum(n[j] * v[j] for j in everyone) / mass if mass > 0 else prior_variance(settings)
    environment = (math.fsum(n[j] * v[j] for j in inside) + lam * pool) / (math.fsum(n[j] for j in inside) + lam)
    m_w = math.fsum(s * n[j] for j, s in lists["within"])
    m_c = math.fsum(s * n[j] for j, s in lists["cross"])
    p_w = (math.fsum(s * n[j] * v[j] for j, s in lists["within"]) + lam * environment) / (m_w + lam)
    p_c = (math.fsum(s * n[j] * v[j] for j, s in lists["cross"]) + lam * pool) / (m_c + lam)
    g = (m_w * p_w + m_c * p_c) / (m_w + m_c) if m_w + m_c > 0 else environment
    return {"environment": environment, "within": p_w, "within_mass": m_w, "cross": p_c, "cross_mass": m_c, "prior": g}


def others_mean(i, c, v, environment_of, settings):
    """Section 12 item 2: the mean over the other tasks of an environment, shrunk to that over all other tasks."""
    lam = settings.graph_shrinkage
    others = [j for j in range(len(c)) if j != i]
    inside = [j for j in others if environment_of[j] == environment_of[i]]
    mass = math.fsum(c[j] for j in others)
    pool = math.fsum(c[j] * v[j] for j in others) / mass if mass > 1e-9 else prior_variance(settings)
    return (math.fsum(c[j] * v[j] for j in inside) + lam * pool) / (math.fsum(c[j] for j in inside) + lam)


def residual_prior(i, n, v, environment_of, lists, settings):
    """What neighbours show beyond their environments, over every task with own evidence; and optimism."""
    c = [1.0 if mass > 0 else 0.0 for mass in n]
    environment = others_mean(i, c, v, environment_of, settings)
    said, mass = {}, {}
    for name, pairs in lists.items():
        mass[name] = math.fsum(s * c[j] for j, s in pairs)
        beyond = math.fsum(s * c[j] * (v[j] - others_mean(j, c, v, environment_of, settings)) for j, s in pairs)
        said[name] = beyond / (mass[name] + settings.residual_shrinkage)
    seen = [v[j] for j in range(len(v)) if c[j]]
    middle = math.fsum(seen) / len(seen) if seen else 0.0
    spread = math.sqrt(math.fsum((x - middle) ** 2 for x in seen) / len(seen)) if seen else 0.0
    g = (1 + settings.optimism) * max(0.0, environment + said["within"] + said["cross"]) + settings.optimism_spread * spread
    return {
        "environment": environment,
        "within": environment + said["within"],
        "within_mass": mass["within"],
        "cross": environment + said["cross"],
        "cross_mass": mass["cross"],
        "prior": g,
    }


def pooled_prior(i, groups, v, environment_of, lists, cross_weight, settings):
    """Section 12 item 2: means over tasks, without the task itself; one pooled shrinkage."""
    lam = settings.graph_shrinkage
    c = [min(1.0, g) for g in groups]
    environment = others_mean(i, c, v, environment_of, settings)
    m_w = math.fsum(s * c[j] for j, s in lists["within"])
    m_c = math.fsum(s * c[j] for j, s in lists["cross"])
    W_w = math.fsum(s * c[j] * v[j] for j, s in lists["within"])
    W_c = math.fsum(s * c[j] * v[j] for j, s in lists["cross"])
    g = (lam * environment + W_w + cross_weight * W_c) / (lam + m_w + cross_weight * m_c)
    within = W_w / m_w if m_w > 0 else environment
    cross = W_c / m_c if m_c > 0 else environment
    return {"environment": environment, "within": within, "within_mass": m_w, "cross": cross, "cross_mass": m_c, "prior": g}


def measured_cross_weight(pairs, now, settings):
    """k_c: how far the cross relation was right about what the environment's mean missed."""
    top, bottom, total, count = [], [], [], 0
    for pair in pairs:
        w = weight(now, pair["policy_version"], settings.half_life)
        if pair["step"] < 1 or pair["cross"] is None or w == 0:
            continue
        d, r = pair["cross"] - pair["environment"], pair["v"] - pair["environment"]
        top.append(w * d * r)
        bottom.append(w * d * d)
        total.append(w)
        count += 1
    # below a root mean square of 1e-9 the relation only repeats the environment's mean
    if not count or math.fsum(bottom) <= 1e-18 * math.fsum(total):
        return 0.0
    return min(max(math.fsum(top) / math.fsum(bottom), 0.0), 1.0) * min(1.0, count / 256)


def calibrated(u, pairs, first_step, now, settings):
    """Section 7: the isotonic map of past pairs, blended in, clipped."""
    if not settings.calibrate:
        return [min(max(x, 0.0), settings.max_variance) for x in u]
    triples = [(p["u"], p["v"], weight(now, p["policy_version"], settings.half_life)) for p in pairs if p["step"] != first_step]
    triples = sorted(triple for triple in triples if triple[2] > 0)
    share = (len(triples) - settings.calibration_start) / (settings.calibration_full - settings.calibration_start)
    blend = min(max(share, 0.0), 1.0)
    knots = merged(triples, 1e-9 * settings.max_variance)
    if len(knots) < 8:
        blend = 0.0
    fitted = pool_adjacent_violators([(v, w) for _, v, w in knots])
    points = [(knot[0], value) for knot, value in zip(knots, fitted, strict=True)]
    out = []
    for x in u:
        y = (1 - blend) * x + (blend * interpolate(points, x) if blend > 0 else 0.0)
        out.append(min(max(y, 0.0), settings.max_variance))
    return out


def merged(triples, tolerance):
    """Predictions that rounding alone tells apart become one knot (their smallest u, their weighted mean v)."""
    knots, last = [], None
    for u, v, w in triples:
        if last is None or u - last > tolerance:
            knots.append([u, w * v, w])
        else:
            knots[-1][1] += w * v
            knots[-1][2] += w
        last = u
    return [(u, wv / w, w) for u, wv, w in knots]


def pool_adjacent_violators(values):
    """One value at a time onto a stack of blocks, merged while they fall."""
    blocks = []  # [sum of w v, sum of w, members]
    for v, w in values:
        blocks.append([w * v, w, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            wv, w_last, members = blocks.pop()
            blocks[-1][0] += wv
            blocks[-1][1] += w_last
            blocks[-1][2] += members
    return [wv / w for wv, w, members in blocks for _ in range(members)]


def interpolate(points, x):
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in pairwise(points):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return points[-1][1]


def forecast(visits, environment_of, similarity, now, settings):
    """Walk through the past and predict ``now``."""
    visits = sorted(visits, key=lambda visit: (visit.step, visit.task))
    past_steps = sorted({visit.step for visit in visits if visit.step < now})
    pairs = []
    for s in past_steps:
        u, terms = predict(visits, environment_of, similarity, s, measured_cross_weight(pairs, s, settings), settings)
        for visit in visits:
            v = group_variance(visit, settings)[2]
            if visit.step != s or v is None:
                continue
            i = visit.task
            pairs.append(
                {
                    "step": s,
                    "policy_version": visit.policy_version,
                    "u": u[i],
                    "v": v,
                    "environment": terms["environment"][i],
                    "cross": terms["cross"][i] if terms["cross_mass"][i] > 0 else None,
                }
            )
    k_c = measured_cross_weight(pairs, now, settings)
    u, terms = predict(visits, environment_of, similarity, now, k_c, settings)
    first = past_steps[0] if past_steps else None
    score = [y / settings.max_variance for y in calibrated(u, pairs, first, now, settings)]
    return Forecast(u, terms, score, k_c, pairs)
