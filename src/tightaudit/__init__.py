"""How much does a differentially private algorithm really leak? Lower bounds on ε from a single run.

The public names are listed in `__init__.pyi` and loaded when they are used, so that importing costs nothing.
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
