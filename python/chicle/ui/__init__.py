"""A page in the browser for the whole way from a table to a synthetic one, on this machine alone: `chicle ui`.

`session` holds what the page does, and knows nothing of browsers. `guard` refuses every request that is not from the
page itself, `app` maps requests to the session, `pages` draws it, `server` runs it until Ctrl-C.
"""
