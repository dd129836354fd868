/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as lists of captured work. */
#ifndef GML_SIM_GRAPH_H
#define GML_SIM_GRAPH_H

#include "sim/driver/driver.h"

bool sim_graph_add_locked(struct sim_graph *graph, const struct sim_op *op);
void sim_graph_free_locked(struct sim_graph *graph);

#endif
