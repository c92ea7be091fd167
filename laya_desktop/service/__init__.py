"""The thread boundary: commands go down and return futures, snapshots and events come up. No Qt."""
