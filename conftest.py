"""For tests and doctests alike."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _same_random_numbers():
    """What is drawn without a seed does not depend on the tests before."""
    np.random.seed(0)  # noqa: NPY002 (what random_state=None means)
