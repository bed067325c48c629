"""Fuzzing and faults: mutated files, kills, full disks and folders that cannot be written."""
