/* SPDX-License-Identifier: BSD-3-Clause */
#include "path_id.h"

#include <stddef.h>

const char *const uci_path_names[] = {"auto", "direct", "stream", "get", "bounce", "eager", NULL};
