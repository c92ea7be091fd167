"""Laya Desktop: a control panel for local AI inference, with the node inside."""

__version__ = "0.1.0"
