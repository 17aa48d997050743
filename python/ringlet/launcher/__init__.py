"""Starting worker processes: the command line, and ``ringlet.launch`` for notebooks and tests."""
