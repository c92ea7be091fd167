"""The window. The only package that imports Qt; it shows snapshots and sends requests."""
