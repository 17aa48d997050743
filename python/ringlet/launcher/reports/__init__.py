"""Commands that show what jobs do or did."""
