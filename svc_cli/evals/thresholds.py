"""The minimum scores that an evaluation must reach."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from svc_cli.evals.runs import Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """The minimum that a mean score must reach, and the actual score."""

    #: `recall`, `mrr` or `ndcg`.
    metric: str
    least: float
    reached: float

    @property
    def is_passed(self) -> bool:
        # Tolerate rounding errors.
        return self.reached >= self.least - 1e-9


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of an evaluation. If there are none, every expected passage must be found."""

    least: Mapping[str, float]

    def judge(self, evaluation: Evaluation) -> list[Threshold]:
        reached = asdict(evaluation.scores)
        return [Threshold(metric=name, least=least, reached=reached[name]) for name, least in self.least.items()]

    def is_passed(self, evaluation: Evaluation) -> bool:
        if not self.least:
            return all(result.is_found for result in evaluation.results)
        return all(threshold.is_passed for threshold in self.judge(evaluation))
