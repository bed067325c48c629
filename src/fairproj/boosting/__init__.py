"""The boosting loop and its parts.

`loop` runs rounds; `losses` keep weights and margins; `policies` choose the training weights, by
the paper's `projection` or by what a `monitor` observes; `record` and `certificate` keep what is
known; `finish` decides which rounds make the model; `resume` continues a run.
"""
