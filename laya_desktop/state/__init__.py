"""What the node tells the world: ids, enums, frozen snapshots and events. Pure values, no behaviour."""
