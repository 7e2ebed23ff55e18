/* SPDX-License-Identifier: Apache-2.0
 *
 * chat: a template of conversations, which then writes one, whole and up to an answer.
 */
#include "target.h"
#include "gen/tokens/render.h"

static const char talk[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \" be brief \"}, "
    "{\"role\": \"user\", \"content\": \"What floats?\\n\"}, {\"role\": \"assistant\", \"content\": \"A boat.\"}, "
    "{\"role\": \"user\", \"content\": \"\"}], "
    "\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"tools\": null, \"add_generation_prompt\": false}";

static void take(const uint8_t *data, size_t n)
{
    char *text = alloc(n + 1);
    memcpy(text, data, n);
    Steps steps = template_read("fuzzed.jinja", text);
    Value names = value_json("talk", talk, sizeof talk - 1);
    template_render(&steps, &names);
    value_put(&names, "add_generation_prompt", (Value){.kind = BOOLEAN, .i = true});
    template_render(&steps, &names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
