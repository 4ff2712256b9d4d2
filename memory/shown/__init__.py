"""What the pages of memory show: one room each, named after the page. Reads only."""
