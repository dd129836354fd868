/* SPDX-License-Identifier: Apache-2.0 */
/* The model device under the contract suite. */
#include "subject.h"

#include "device/model.h"

bool subject_open_model(subject *out_subject, const char **out_why)
{
    gml_model_options options = {.total_bytes = (uint64_t)1 << 30};
    *out_subject = (subject){.violation = gml_model_violation, .name = "model"};
    if (gml_model_create(&options, &out_subject->dev) == GML_OK)
        return true;
    *out_why = "no memory";
    return false;
}

void subject_close_model(subject *s)
{
    gml_model_destroy(s->dev);
}
