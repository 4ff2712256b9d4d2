"""The judge that needs no network and no key: it decides only what it can prove (see `judge`)."""
