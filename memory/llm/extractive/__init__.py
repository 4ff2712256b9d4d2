"""The distiller that needs no network and no key: it only quotes (see `distiller`)."""
