/* SPDX-License-Identifier: Apache-2.0 */
/* Priced device: a decorator whose clock runs as if the driver's memory calls cost what they are said to cost.
 *
 * The budget of stitching goes by the time that calls took. Where that says little (a device that is shared while
 * the program starts, a simulated one, an experiment), the costs can be given instead. */
#ifndef GML_DEVICE_PRICED_H
#define GML_DEVICE_PRICED_H

#include "device/device.h"

#include <stdbool.h>

#define GML_PRICE_MEASURED UINT64_MAX /* this call costs what it takes */

/* Nanoseconds for each chunk of 2 MiB. */
typedef struct gml_prices {
    uint64_t create_ns, map_ns, set_access_ns, unmap_ns;
} gml_prices;

/* Reads "create=193us,map=1.5us,set_access=36us,unmap=26us": any of the four, in ns, us or ms, at most a second
 * each. False, and every price as measured, when the text is no such list or is empty. */
bool gml_prices_parse(const char *text, gml_prices *out_prices);

/* A device that forwards to `inner`. `now_ns` is the inner device's, without the time that calls with a price took
 * and with their price, and never runs backwards; a call that fails has none. Errors: OUT_OF_METADATA. */
GML_CHECKED gml_status gml_priced_create(gml_device *inner, const gml_prices *prices, gml_device **out_device);
void gml_priced_destroy(gml_device *device);

#endif
