"""How much does a differentially private algorithm really leak? Lower bounds on ε from a single run."""

from tightaudit.auditing import Report, audit
from tightaudit.belief_rows import Row
from tightaudit.bounds import Bound, lower_bound
from tightaudit.canary_plan import Plan, plan
from tightaudit.errors import InputError
from tightaudit.game import Coins, Evidence, WeightedCount, draw_coins, release
from tightaudit.manyruns import ManyRuns, many_runs
from tightaudit.pvalues.any_dependence import AnyDependence
from tightaudit.pvalues.base import p_value
from tightaudit.pvalues.bits import Bits
from tightaudit.pvalues.exact import Exact, expected_errors
from tightaudit.pvalues.fdp_recursion import FdpRecursion
from tightaudit.pvalues.order_statistics import OrderStatistics
from tightaudit.pvalues.rank_weighted import RankWeighted
from tightaudit.pvalues.steinke import Steinke
from tightaudit.reading.files import read_run
from tightaudit.run import Run
from tightaudit.tradeoffs.approximate import ApproxDP
from tightaudit.tradeoffs.base import BasePair, Family, TradeOff
from tightaudit.tradeoffs.dpsgd import DpSgd
from tightaudit.tradeoffs.gaussian import Gaussian
from tightaudit.tradeoffs.laplace import Laplace
from tightaudit.tradeoffs.privacy_loss import PrivacyLoss
from tightaudit.tradeoffs.published_sampling import PublishedSampling
from tightaudit.tradeoffs.subsampled import SubsampledGaussian
from tightaudit.tradeoffs.tabulated import Tabulated
from tightaudit.tradeoffs.text import null

__version__ = "0.1.0"

__all__ = [
    "AnyDependence",
    "ApproxDP",
    "BasePair",
    "Bits",
    "Bound",
    "Coins",
    "DpSgd",
    "Evidence",
    "Exact",
    "Family",
    "FdpRecursion",
    "Gaussian",
    "InputError",
    "Laplace",
    "ManyRuns",
    "OrderStatistics",
    "Plan",
    "PrivacyLoss",
    "PublishedSampling",
    "RankWeighted",
    "Report",
    "Row",
    "Run",
    "Steinke",
    "SubsampledGaussian",
    "Tabulated",
    "TradeOff",
    "WeightedCount",
    "audit",
    "draw_coins",
    "expected_errors",
    "lower_bound",
    "many_runs",
    "null",
    "p_value",
    "plan",
    "read_run",
    "release",
]
