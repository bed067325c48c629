"""What a search or a test raises where it has no model to give."""


class NoSolutionFoundError(ValueError):
    """No model met the target, or the finished one could not be confirmed: there is none to use."""
