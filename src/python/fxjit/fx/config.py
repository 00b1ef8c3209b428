"""Settings of fxjit.fx, with the names and defaults of torch.fx.config."""

# Whether Interpreter shows no progress bar while it runs.
disable_progress = True
# Whether the bar also says the names of the nodes.
verbose_progress = False
