"""Canaries in trainings with Opacus: as records, or inserted directly into the gradient (extra `torch`)."""

from tightaudit.support.extras import needs

with needs("torch", "canaries in Opacus"):
    from tightaudit.canaries.opacus.direct import WhiteBoxCanaries
    from tightaudit.canaries.opacus.records import RecordCanaries

__all__ = ["RecordCanaries", "WhiteBoxCanaries"]
