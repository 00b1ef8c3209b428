// All that a C++ program includes: graphs and their transformation, tensors in graphs, compile().
#pragma once

#include <c10/core/GradMode.h>  // c10::NoGradGuard, around calls that are to be compiled

#include "fxjit/compile.h"
#include "fxjit/explain.h"
#include "fxjit/fx/fx.h"
#include "fxjit/nn.h"
#include "fxjit/options.h"
#include "fxjit/record.h"
#include "fxjit/torch/call_aten.h"
#include "fxjit/torch/file.h"
#include "fxjit/torch/values.h"
#include "fxjit/version.h"
