"""The bundled sessions through every stage, with what the rows say afterwards.

`story` walks, `script` speaks for a model twice, `rows` counts, `tables` prints.
"""
