"""What a claim, a method or a mechanism of your own may import; nothing else is promised to stay.

A class enters itself under its `name` with a decorator: `@CLAIMS.register`, `@METHODS.register` or
`@MECHANISMS.register`. A package of its own announces it by entry points in the groups `tightaudit.claims`,
`tightaudit.methods` and `tightaudit.mechanisms`.
"""

from tightaudit.claims.approx_dp import ApproxDP as ApproxDP
from tightaudit.claims.base import CLAIMS as CLAIMS, Claim as Claim
from tightaudit.claims.family import Family as Family
from tightaudit.claims.gaussian import Gaussian as Gaussian
from tightaudit.claims.laplace import Laplace as Laplace
from tightaudit.claims.parts.discrete import DiscretePair as DiscretePair
from tightaudit.claims.privacy_loss import PrivacyLoss as PrivacyLoss
from tightaudit.claims.tabulated import Tabulated as Tabulated
from tightaudit.claims.text import as_claim as as_claim, as_family as as_family
from tightaudit.evidence.counts import Evidence as Evidence
from tightaudit.methods.base import METHODS as METHODS, Assumptions as Assumptions, Method as Method
from tightaudit.methods.exact import expected_errors as expected_errors
from tightaudit.simulate.mechanisms.base import MECHANISMS as MECHANISMS, Mechanism as Mechanism
from tightaudit.support import checks as checks
from tightaudit.support.checks import BoolArray as BoolArray, FloatArray as FloatArray
from tightaudit.support.errors import InputError as InputError
from tightaudit.support.notation import text_form as text_form
