/* SPDX-License-Identifier: Apache-2.0 */
/* Names and texts of the status codes. */
#include "base/status.h"

static const char *const names[] = {
#define X(name, text) #name,
    GML_STATUSES(X)
#undef X
};

static const char *const texts[] = {
#define X(name, text) text,
    GML_STATUSES(X)
#undef X
};

const char *gml_status_name(gml_status status)
{
    return (unsigned)status < GML_STATUS_COUNT ? names[status] : "UNKNOWN";
}

const char *gml_status_text(gml_status status)
{
    return (unsigned)status < GML_STATUS_COUNT ? texts[status] : "unknown status";
}
