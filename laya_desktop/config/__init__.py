"""The configuration: schema (frozen values), store (files), migrations and the legacy short form. No Qt, no node."""
