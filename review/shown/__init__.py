"""What the pages of review show: one room each, named after the page. Reads only."""
