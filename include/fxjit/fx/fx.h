// Everything of the fx floor.
#pragma once

#include "fxjit/errors.h"
#include "fxjit/fx/argument.h"
#include "fxjit/fx/callable.h"
#include "fxjit/fx/draw.h"
#include "fxjit/fx/graph.h"
#include "fxjit/fx/graph_module.h"
#include "fxjit/fx/interpreter.h"
#include "fxjit/fx/minimize.h"
#include "fxjit/fx/module.h"
#include "fxjit/fx/proxy.h"
#include "fxjit/fx/symbolic_trace.h"
#include "fxjit/fx/tracer.h"
#include "fxjit/fx/transform.h"
#include "fxjit/fx/transformer.h"
#include "fxjit/fx/types.h"
#include "fxjit/fx/wrap.h"
