/* SPDX-License-Identifier: Apache-2.0
 *
 * yaml: a model file, through load, model and the whole front end.
 */
#include "target.h"
#include "plan.h"
#include <yaml.h>

/* Whoever ends the process leaves the parser behind. */
static yaml_parser_t *open_parser;
int __real_yaml_parser_initialize(yaml_parser_t *parser);
int __wrap_yaml_parser_initialize(yaml_parser_t *parser);
void __real_yaml_parser_delete(yaml_parser_t *parser);
void __wrap_yaml_parser_delete(yaml_parser_t *parser);

int __wrap_yaml_parser_initialize(yaml_parser_t *parser)
{
    open_parser = parser;
    return __real_yaml_parser_initialize(parser);
}

void __wrap_yaml_parser_delete(yaml_parser_t *parser)
{
    __real_yaml_parser_delete(parser);
    open_parser = NULL;
}

static void leave(void)
{
    if (open_parser)
        yaml_parser_delete(open_parser);
}

static void take(const uint8_t *data, size_t n)
{
    static const Overrides none;
    Model *m = model(load_text("fuzzed.yaml", (const char *)data, n), "fuzzed.yaml", &none);
    bad_stop();
    Graph *g = build(m);
    shape(g, m);
    bad_stop();
    grad(g, m);
    bad_stop();
    fuse(g, m);
    check_graph(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    target_leave = leave;
    return target_run(take, data, n);
}
