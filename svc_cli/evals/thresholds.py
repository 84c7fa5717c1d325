"""What an evaluation has to reach, and whether it did."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from svc_cli.evals.runs import Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """One demand on the means."""

    #: `recall`, `mrr` or `ndcg`.
    metric: str
    least: float
    reached: float

    @property
    def is_passed(self) -> bool:
        # 0.9 of ten queries is 0.9, however it was added up.
        return self.reached >= self.least - 1e-9


@dataclass(frozen=True, slots=True)
class Thresholds:
    """All demands. Where none was made, everything expected has to be found."""

    least: Mapping[str, float]

    def judge(self, evaluation: Evaluation) -> list[Threshold]:
        return list(self._thresholds(evaluation))

    def is_passed(self, evaluation: Evaluation) -> bool:
        if not self.least:
            return all(result.is_found for result in evaluation.results)
        return all(threshold.is_passed for threshold in self._thresholds(evaluation))

    def _thresholds(self, evaluation: Evaluation) -> Iterator[Threshold]:
        reached = asdict(evaluation.scores)
        for metric, least in self.least.items():
            yield Threshold(metric=metric, least=least, reached=reached[metric])
