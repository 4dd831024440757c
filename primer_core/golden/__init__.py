"""The golden set: questions with the passage that answers them, what a search is worth against them, and whether one index version is as
good as another. Pure rules; no index is asked here."""
