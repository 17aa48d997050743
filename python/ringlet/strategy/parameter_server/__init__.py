"""ParameterServerStrategy: variables on parameter servers."""
