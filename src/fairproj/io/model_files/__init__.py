"""Model files that are safe to open: JSON, with the trees as LightGBM's own text inside.

Apart because it trusts nothing that it reads. Nothing in a file is code: every value is checked for
its kind, size and range before a model is made of it, and what does not fit is refused in a
sentence. The format is described in docs/model-files.md.
"""

from fairproj.io.model_files.format import VERSION, ModelFileError, digest
from fairproj.io.model_files.read import load
from fairproj.io.model_files.write import save

__all__ = ["VERSION", "ModelFileError", "digest", "load", "save"]
