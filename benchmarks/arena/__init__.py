"""The arena: every method on the same splits and the same features.

Nothing is imported here, so that `arena.worker` runs in environments without fairproj.
"""
