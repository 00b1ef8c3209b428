"""Counterparts of torch.fx.experimental."""
