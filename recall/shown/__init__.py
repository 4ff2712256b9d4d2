"""What the pages of recall show: one room each, named after the page. Reads only."""
