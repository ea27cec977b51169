"""Canaries inside a real training run by DP-SGD (extra `torch`)."""

from tightaudit.dpsgd.black_box import BlackBoxCanaries
from tightaudit.dpsgd.white_box import WhiteBoxCanaries

__all__ = ["BlackBoxCanaries", "WhiteBoxCanaries"]
