"""Where nodes come from. The state is torch.fx's own: what preserves or annotates there does so here, and what
torch.export, torch.compile and autograd put there is seen."""

from torch.fx.traceback import (
    NodeSource,
    NodeSourceAction,
    annotate,
    annotate_fn,
    format_stack,
    get_current_meta,
    get_current_replay_node,
    get_graph_provenance_json,
    has_preserved_node_meta,
    preserve_node_meta,
    reset_grad_fn_seq_nr,
    set_current_meta,
    set_current_replay_node,
    set_grad_fn_seq_nr,
    set_stack_trace,
)

__all__ = [
    "NodeSource",
    "NodeSourceAction",
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "get_current_replay_node",
    "get_graph_provenance_json",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "reset_grad_fn_seq_nr",
    "set_current_meta",
    "set_current_replay_node",
    "set_grad_fn_seq_nr",
    "set_stack_trace",
]
