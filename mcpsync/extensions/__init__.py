"""Extensions of the protocol: each a module that a user imports, none that the rest of the library knows of."""
