"""Arguments, options and semantics of strategy calls, shared by replicas and strategies."""
