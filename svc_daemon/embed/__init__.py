"""Embedding: text to vectors, by whatever model the operator chose. `contract` says what a model's door promises."""
