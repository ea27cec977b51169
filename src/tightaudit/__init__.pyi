from .auditing.audit import audit as audit
from .auditing.looking import Looking as Looking
from .auditing.question import Question as Question
from .auditing.report import Look as Look, Report as Report
from .auditing.rows import Row as Row
from .bounds.beliefs import Beliefs as Beliefs
from .bounds.many_runs import ManyRuns as ManyRuns, many_runs as many_runs
from .bounds.one_run import Bound as Bound, lower_bound as lower_bound
from .calls.audit import Learning as Learning, audit_calls as audit_calls
from .claims.approx_dp import ApproxDP as ApproxDP
from .claims.base import Claim as Claim
from .claims.dp_sgd import DpSgd as DpSgd
from .claims.dp_sgd_participation import DpSgdParticipation as DpSgdParticipation
from .claims.dp_sgd_schedule import DpSgdSchedule as DpSgdSchedule
from .claims.family import Family as Family
from .claims.gaussian import Gaussian as Gaussian
from .claims.laplace import Laplace as Laplace
from .claims.parts.base_pair import BasePair as BasePair
from .claims.privacy_loss import PrivacyLoss as PrivacyLoss
from .claims.published_sampling import PublishedSampling as PublishedSampling
from .claims.subsampled_gaussian import SubsampledGaussian as SubsampledGaussian
from .claims.tabulated import Tabulated as Tabulated
from .claims.text import as_claim as as_claim, as_family as as_family
from .evidence.checkup import Check as Check, Checkup as Checkup
from .evidence.coins import Coins as Coins, draw_coins as draw_coins
from .evidence.counts import Evidence as Evidence, Guessing as Guessing, WeightedCount as WeightedCount
from .evidence.guessing import release as release
from .evidence.reading.columns import Columns as Columns
from .evidence.reading.files import read_run as read_run
from .evidence.run import Run as Run
from .methods.any_dependence import AnyDependence as AnyDependence
from .methods.base import p_value as p_value
from .methods.bits import Bits as Bits
from .methods.exact import Exact as Exact, expected_errors as expected_errors
from .methods.fdp_recursion import FdpRecursion as FdpRecursion
from .methods.order_statistics import OrderStatistics as OrderStatistics
from .methods.rank_weighted import RankWeighted as RankWeighted
from .methods.steinke import Steinke as Steinke
from .planning.canaries import Goal as Goal, Plan as Plan, plan as plan
from .planning.looks import Looks as Looks
from .planning.release import Best as Best, Count as Count, Planned as Planned, Share as Share
from .simulate.calibration import Audits as Audits, Calibration as Calibration, calibrate as calibrate
from .support.errors import InputError as InputError

__version__: str
__all__: list[str]
