#pragma once
#include "cpucuda.h"
