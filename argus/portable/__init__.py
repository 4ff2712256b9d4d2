"""Everything a person owns as plain lines of JSON, out (`leave`) and in (`enter`)."""
