"""Snapshots as Qt item models, and the history behind the plots. Qt main thread."""
