"""JSON Schema, evaluated within bounds: schemas of strangers cost a known amount of work, and nothing is fetched."""
