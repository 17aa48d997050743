"""Reports about running programs: what each rank waits for, and where."""
