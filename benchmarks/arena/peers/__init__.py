"""How each method is fitted, one module for each environment.

A function takes a `arena.worker.Task`, does what the points of the grid share, and returns a
function that fits the point of one setting and returns how to predict with it.
"""
