"""Rebuild: everything above the raw items made again, from the record and from the log of replies.

`record` brings the house's rows into a database of their own, `chronicle` reads from them what
happened when, `played` does it again, `compared` says what came out otherwise, `settled` puts that
into the house. `rebuild` is the verb.
"""
