"""Array types that the whole package shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Matrix = Any  # a dense float array or a SciPy CSR matrix; NaN marks missing values
