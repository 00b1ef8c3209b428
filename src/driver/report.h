// The report is part of the public API.
#pragma once

#include "fxjit/explain.h"
