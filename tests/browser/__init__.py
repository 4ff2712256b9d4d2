"""The pages in a real browser, on the demo's rows."""
