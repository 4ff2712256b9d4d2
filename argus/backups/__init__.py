"""Everything as one file, out (`backup`) and in (`restore`): what a person keeps for a bad day."""
