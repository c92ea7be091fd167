"""Pages and widgets: they lay out and show. No threads, no files, no decisions."""
