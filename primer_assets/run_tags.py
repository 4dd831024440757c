"""Tags that say what a run is for, as far as its steps need to know it."""

SWEEP_TAG = "primer/sweep"
SLOW_SWEEP_TAG = "primer/slow_sweep"
ACCESS_TAG = "primer/access"
BACKFILL_TAG = "primer/backfill"
LIVE_TAGS = frozenset((SWEEP_TAG, SLOW_SWEEP_TAG, ACCESS_TAG))
"""Runs that sensors launch for live work: they leave a backfill's jobs to its own runs. A run that a person launches does both."""
