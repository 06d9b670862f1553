"""Differentially private synthetic tables at census scale.

`__init__.pyi` lists the names and their modules. A module is imported when one of its names is first used, so that
`import chicle` is quick.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
