"""What a claim, a method or a mechanism of your own may import; nothing else is promised to stay.

A class enters itself under its `name` with a decorator: `@CLAIMS.register`, `@METHODS.register` or
`@MECHANISMS.register`. A package of its own announces it by entry points in the groups `tightaudit.claims`,
`tightaudit.methods` and `tightaudit.mechanisms`.
"""

from tightaudit.claims.approx_dp import ApproxDP
from tightaudit.claims.base import CLAIMS, Claim
from tightaudit.claims.discrete import DiscretePair
from tightaudit.claims.family import Family
from tightaudit.claims.gaussian import Gaussian
from tightaudit.claims.laplace import Laplace
from tightaudit.claims.privacy_loss import PrivacyLoss
from tightaudit.claims.tabulated import Tabulated
from tightaudit.claims.text import as_claim, as_family
from tightaudit.evidence.counts import Evidence
from tightaudit.methods.base import METHODS, Assumptions, Method
from tightaudit.methods.exact import expected_errors
from tightaudit.simulate.mechanisms.base import MECHANISMS, Mechanism
from tightaudit.support import checks
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.errors import InputError
from tightaudit.support.notation import text_form

__all__ = [
    "CLAIMS",
    "MECHANISMS",
    "METHODS",
    "ApproxDP",
    "Assumptions",
    "BoolArray",
    "Claim",
    "DiscretePair",
    "Evidence",
    "Family",
    "FloatArray",
    "Gaussian",
    "InputError",
    "Laplace",
    "Mechanism",
    "Method",
    "PrivacyLoss",
    "Tabulated",
    "as_claim",
    "as_family",
    "checks",
    "expected_errors",
    "text_form",
]
