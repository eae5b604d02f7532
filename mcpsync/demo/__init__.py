"""A small MCP server in plain Python, to try things on and to learn from: ``python -m mcpsync.demo``.

It speaks every revision of the protocol over standard input and output, and offers a little of everything. Nothing
here comes from the rest of mcpsync, or from anywhere but the standard library. Read it in this order:

* :mod:`mcpsync.demo.wire`: messages as lines
* :mod:`mcpsync.demo.call`: one request that is being worked on: progress, cancellation, questions to the user
* :mod:`mcpsync.demo.offers`: the tools, resources and prompts
* :mod:`mcpsync.demo.server`: the protocol itself, in both eras
"""
