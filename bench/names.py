"""The contenders, and what the tables call them."""

LABEL = {"copy": "copy", "eager": "eager", "inductor": "torch.compile", "jax": "JAX", "hand": "hand", "fxjit": "fxjit"}
EVERYONE = list(LABEL)
EXTRA = ["compile", "call", "trace", "rewrite"]  # what is measured beside the cases, with one thread only
